//! align: the relation of the work to the goal.

use serde::Serialize;

use crate::model::{Actor, Alignment, Appended, LogAction, Refusal, Section};

use super::operation::{LoadScope, Rule};
use super::permission::{PLANNING, Rights};
use super::tx::{Tx, required};

/// Adds an entry to the goal's alignment history.
#[derive(Debug, Clone, PartialEq)]
pub struct Align {
    pub summary: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Aligned {
    pub event: String,
}

impl Rule for Align {
    type Reply = Aligned;
    const VERB: &'static str = "align";
    const RIGHTS: Rights = PLANNING;
    const LOADS: LoadScope = LoadScope::named(&[Section::Goal]);

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Aligned, Refusal> {
        let summary = required(&self.summary, "how the work relates to the goal (--summary)")?.to_owned();
        // A planner that finds the tasks of others complete has planned.
        if tx.actor != Actor::Human && !tx.board.goal()?.planned {
            tx.goal()?.planned = true;
        }
        tx.log(LogAction::Aligned, None, &summary);
        let event = "alignment".to_owned();
        tx.append(Appended::Alignment(Alignment { timestamp: tx.now, event: event.clone(), summary }));
        Ok(Aligned { event })
    }
}
