//! note: the human leaves a note for the agents.

use serde::Serialize;

use crate::model::{Appended, HumanNote, LogAction, Refusal, Section, TaskId};
use crate::rules::notes::{NoteReader, next_readers};
use crate::rules::session_budget::SessionBudget;

use super::budget::{refill, refill_planner};
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::{Tx, required};

/// Adds a note, for all prompts or for those of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteNote {
    pub message: String,
    /// The note is for the agents of this task; for all if absent.
    pub to: Option<TaskId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteWritten {
    /// `None` means all.
    #[serde(rename = "for")]
    pub to: Option<TaskId>,
    /// The agents that read it next.
    pub readers: Vec<NoteReader>,
}

impl Rule for WriteNote {
    type Reply = NoteWritten;
    const VERB: &'static str = "note";
    const RIGHTS: Rights = HUMAN;

    const LOADS: LoadScope = LoadScope::all(&[Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        self.to.as_ref()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<NoteWritten, Refusal> {
        tx.check_known(self.to.as_ref())?;
        let message = required(&self.message, "the note")?.to_owned();
        tx.log(LogAction::Note, self.to.as_ref(), &message);
        let note = HumanNote { timestamp: tx.now, message, to: self.to.clone() };
        tx.append(Appended::HumanNote(note));
        refill_planner(tx)?;
        if let Some(task) = self.to.as_ref().filter(|task| tx.board.body(task).is_ok()) {
            let budget = SessionBudget::of_task(task, tx.board.body(task)?.record());
            refill(tx, &budget)?;
        }
        let readers = next_readers(tx.board, self.to.as_ref(), tx.now);
        Ok(NoteWritten { to: self.to.clone(), readers })
    }
}
