//! The triggers that have woken the planner, so that the same unchanged trigger does not wake it again.

use crate::model::{PlannerExits, Refusal, Section};

use super::operation::{LoadScope, Rule};
use super::permission::{Rights, SUPERVISION};
use super::reply::Nothing;
use super::tx::Tx;

/// After a planning session with a result. Replaces the list, so that resolved triggers are forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkTriggersSeen {
    /// The keys of all current triggers.
    pub keys: Vec<String>,
}

impl Rule for MarkTriggersSeen {
    type Reply = Nothing;
    const VERB: &'static str = "mark-triggers-seen";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<Nothing, Refusal> {
        if tx.board.sprint()?.seen_triggers != self.keys {
            tx.sprint()?.seen_triggers.clone_from(&self.keys);
        }
        if tx.board.sprint()?.planner_exits.count > 0 {
            tx.sprint()?.planner_exits = PlannerExits::default();
        }
        Ok(Nothing {})
    }
}
