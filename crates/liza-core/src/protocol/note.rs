//! note: the human leaves a note for the agents.

use serde::Serialize;

use crate::model::{Appended, HumanNote, LogAction, Refusal, TaskId};

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::{Tx, required};

/// Adds a note, for all prompts or for those of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteNote {
    /// The text.
    pub message: String,
    /// For the agents of which task; for all if absent.
    pub to: Option<TaskId>,
}

/// For whom it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteWritten {
    /// The task; `None` means all.
    #[serde(rename = "for")]
    pub to: Option<TaskId>,
}

impl Rule for WriteNote {
    type Reply = NoteWritten;
    const VERB: &'static str = "note";
    const RIGHTS: Rights = HUMAN;

    fn scope(&self) -> LoadScope {
        LoadScope { sections: &[], all_summaries: self.to.is_some() }
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<NoteWritten, Refusal> {
        tx.check_known(self.to.as_ref())?;
        let message = required(&self.message, "the note")?.to_owned();
        tx.log(LogAction::Note, self.to.as_ref(), &message);
        let note = HumanNote { timestamp: tx.now, message, to: self.to.clone() };
        tx.append(Appended::HumanNote(note));
        Ok(NoteWritten { to: self.to.clone() })
    }
}
