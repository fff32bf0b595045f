//! dismiss: a discovery that needs no task, or a direct edit of the file that the human accepts.

use serde::Serialize;

use crate::model::{DirectEditId, DiscoveryId, LogAction, Refusal, Section};

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::Tx;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DismissDiscovery {
    pub discovery: DiscoveryId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dismissed {
    pub discovery: DiscoveryId,
}

impl Rule for DismissDiscovery {
    type Reply = Dismissed;
    const VERB: &'static str = "dismiss";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Discovered]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<Dismissed, Refusal> {
        let (id, now) = (self.discovery, tx.now);
        let found = tx.discovered()?.iter_mut().find(|found| found.id == id);
        let found = found.ok_or(Refusal::UnknownDiscovery { discovery: id })?;
        if let Some(task) = &found.converted_to_task {
            return Err(Refusal::AlreadyConverted { discovery: id, task: task.clone() });
        }
        found.dismissed = Some(now);
        let detail = format!("{id} dismissed: {}", found.description);
        tx.log(LogAction::Discovered, None, &detail);
        Ok(Dismissed { discovery: id })
    }
}

/// Ends the alarm about a direct edit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DismissEdit {
    pub edit: DirectEditId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EditDismissed {
    pub edit: DirectEditId,
}

impl Rule for DismissEdit {
    type Reply = EditDismissed;
    const VERB: &'static str = "dismiss";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::DirectEdits]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<EditDismissed, Refusal> {
        let edit = self.edit;
        let edits = tx.direct_edits()?;
        let at = edits.iter().position(|found| found.id == edit).ok_or(Refusal::UnknownEdit { edit })?;
        let dismissed = edits.remove(at);
        tx.log(LogAction::Edit, None, &format!("{edit} dismissed: {}", dismissed.describe()));
        Ok(EditDismissed { edit })
    }
}
