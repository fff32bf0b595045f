//! wt-create: creates a worktree on request, for a task that is claimed or being claimed.

use serde::Serialize;

use crate::model::{Refusal, Sha, TaskId, TaskStatus, WorktreeMode};

use super::operation::Rule;
use super::ownership::check_acts_for;
use super::permission::{Rights, SUPERVISION};
use super::reply::TaskReply;
use super::tx::Tx;

/// Checks that the worktree may be created, and finds its base.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateWorktree {
    pub task: TaskId,
    /// If true, it starts again from the base.
    pub fresh: bool,
    pub head: Sha,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorktreeOrder {
    #[serde(flatten)]
    pub task: TaskReply,
    #[serde(skip)]
    pub base: Sha,
    #[serde(skip)]
    pub mode: WorktreeMode,
}

impl Rule for CreateWorktree {
    type Reply = WorktreeOrder;
    const VERB: &'static str = "wt-create";
    const RIGHTS: Rights = SUPERVISION;

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<WorktreeOrder, Refusal> {
        let task = tx.task(&self.task)?;
        let reserved = task.record.reservation.as_ref().filter(|reservation| reservation.is_live(tx.now));
        let base = match (&task.status, reserved) {
            (TaskStatus::Claimed { work, .. }, _) => {
                check_acts_for(tx, work.coder)?;
                work.base.clone().unwrap_or_else(|| self.head.clone())
            }
            (_, Some(reservation)) => {
                check_acts_for(tx, reservation.by)?;
                reservation.base_commit.clone()
            }
            (_, None) => return Err(tx.wrong_status(&task, "a CLAIMED or reserved task")),
        };
        tx.require_own_repositories();
        let mode = if self.fresh { WorktreeMode::Fresh } else { WorktreeMode::Keep };
        Ok(WorktreeOrder { task: TaskReply::from(&task), base, mode })
    }
}
