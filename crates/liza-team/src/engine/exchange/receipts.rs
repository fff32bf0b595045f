//! The receipts of the remote and of this machine: joined by union, so that neither loses one.

use liza_git::{PushOutcome, RECEIPTS, REMOTE_RECEIPTS, RefChange};

use crate::engine::EngineError;

use super::Exchange;

/// The number of pushes while other machines add receipts.
const PUSHES: u32 = 10;

impl Exchange<'_> {
    /// Brings the receipts of other machines.
    pub fn bring_receipts(&self) -> Result<(), EngineError> {
        let repo = self.project.repo()?;
        let Some(theirs) = self.remote.find(RECEIPTS)? else {
            return Ok(repo.forget_remote_receipts()?);
        };
        if repo.remote_receipts().as_ref() != Some(&theirs) || repo.receipts_tip().is_none() {
            let fetched = self.remote.fetch(RECEIPTS, REMOTE_RECEIPTS)?;
            repo.join_receipts(&fetched)?;
        }
        Ok(())
    }

    /// The same, if this machine has none: the project may have its name already.
    pub fn bring_first_receipts(&self) -> Result<(), EngineError> {
        if self.project.repo()?.receipts_tip().is_none() { self.bring_receipts() } else { Ok(()) }
    }

    /// Sends receipts that belong to no push of a branch, such as that of a review.
    pub fn send_receipts(&self) -> Result<(), EngineError> {
        for _ in 0..PUSHES {
            let Some(change) = self.new_receipts()? else { return Ok(()) };
            match self.remote.push(std::slice::from_ref(&change))? {
                PushOutcome::Done => return self.see_receipts(Some(&change)),
                PushOutcome::Moved => self.bring_receipts()?,
                PushOutcome::Refused { message } => return Err(self.refused(RECEIPTS, message)),
            }
        }
        Ok(())
    }

    /// The change of the remote's receipts that adds those of this machine, if it lacks some.
    pub(super) fn new_receipts(&self) -> Result<Option<RefChange>, EngineError> {
        let repo = self.project.repo()?;
        let (from, to) = (repo.remote_receipts(), repo.receipts_tip());
        let change = |to| RefChange::Move { name: RECEIPTS.to_owned(), from: from.clone(), to };
        Ok(to.filter(|to| Some(to) != from.as_ref()).map(change))
    }

    /// Notes the position of the remote's receipts after a push.
    pub(super) fn see_receipts(&self, change: Option<&RefChange>) -> Result<(), EngineError> {
        match change {
            Some(RefChange::Move { to, .. }) => Ok(self.remote.see(REMOTE_RECEIPTS, to)?),
            Some(RefChange::Set { .. } | RefChange::Delete { .. }) | None => Ok(()),
        }
    }
}
