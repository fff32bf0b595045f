//! claim-task: reserve, make the worktree, claim. Until the last step nobody sees the task CLAIMED.
//!
//! Whoever loses the race leaves nothing behind and touches nothing of the winner's. Trying again is the caller's.

use liza_core::Command;
use liza_core::ids::{AgentId, TaskId};

use crate::git::{Branch, PreparedWorktree};

use super::error::WorkError;
use super::locks::FileLock;
use super::tree::discard_under;
use super::{Work, Written, integration_branch};

/// A claim that came through.
#[derive(Debug)]
pub struct Claimed {
    /// What the rules told.
    pub written: Written,
    /// The worktree.
    pub worktree: PreparedWorktree,
}

impl Work<'_> {
    /// Claims a task for a coder.
    ///
    /// # Errors
    ///
    /// When the rules refuse it or git cannot make the worktree; the reservation is then gone again, and so is a
    /// worktree that this claim has made.
    pub fn claim(&self, task: &TaskId, coder: AgentId) -> Result<Claimed, WorkError> {
        let integration = integration_branch(&self.glance(&[])?)?;
        let head = self.head_of(&integration)?;
        // Before the reservation, so that one without a lock is proof of a claim that died. Where another process
        // has the lock, the rules say whether it is claiming the task or only clearing up after the last coder.
        let early = self.try_task_lock(task)?;
        let reserved = self.submit(Command::Reserve { task: task.clone(), coder, head })?;
        let lock = match early.map_or_else(|| self.task_lock(task), Ok) {
            Ok(lock) => lock,
            Err(error) => {
                self.cancel(task, coder);
                return Err(error);
            }
        };
        let claimed = self.claim_reserved(task, coder, &reserved, &integration, &lock);
        if claimed.is_err() {
            self.cancel(task, coder);
            // Where somebody needs it by now, or it was there before, the blackboard says so.
            let _ = self.repo().and_then(|repo| discard_under(self.project, repo, task, &lock));
        }
        claimed
    }

    fn claim_reserved(
        &self,
        task: &TaskId,
        coder: AgentId,
        reserved: &Written,
        integration: &Branch,
        lock: &FileLock,
    ) -> Result<Claimed, WorkError> {
        let worktree = self.prepare(&reserved.effects, integration, lock)?;
        let written = self.submit(Command::Claim { task: task.clone(), coder })?;
        Ok(Claimed { written, worktree })
    }

    /// Gives the reservation back. Where that fails it was taken over, or `recover` clears it away.
    fn cancel(&self, task: &TaskId, coder: AgentId) {
        let _ = self.submit(Command::CancelReservation { task: task.clone(), coder });
    }
}
