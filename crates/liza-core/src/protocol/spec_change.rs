//! spec-change: a specification changed.

use serde::Serialize;

use crate::model::{Appended, LogAction, Refusal, Section, SpecChange};

use super::budget::refill_planner;
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::{Tx, required};

#[derive(Debug, Clone, PartialEq)]
pub struct RecordSpecChange {
    pub spec: String,
    pub change: String,
    pub triggered_by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpecChanged {
    pub spec: String,
}

impl Rule for RecordSpecChange {
    type Reply = SpecChanged;
    const VERB: &'static str = "spec-change";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<SpecChanged, Refusal> {
        let spec = required(&self.spec, "which specification (--spec)")?.to_owned();
        let change = required(&self.change, "what changed (--change)")?.to_owned();
        let triggered_by = required(&self.triggered_by, "what made it necessary (--triggered-by)")?;
        tx.log(LogAction::SpecUpdated, None, &format!("{spec}: {change}"));
        let triggered_by = Some(triggered_by.to_owned());
        tx.append(Appended::SpecChange(SpecChange {
            timestamp: tx.now,
            spec: spec.clone(),
            change,
            triggered_by,
        }));
        refill_planner(tx)?;
        Ok(SpecChanged { spec })
    }
}
