//! wt-delete: removes a worktree that no agent needs; unmerged work is saved first.

use crate::model::{Effect, LogAction, PriorWork, Refusal, TaskId, TaskStatus};

use super::operation::Rule;
use super::permission::{PLANNING, Rights};
use super::reply::TaskReply;
use super::tx::Tx;

/// Removes the worktree and the branch of a BLOCKED or finished task.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteWorktree {
    pub task: TaskId,
}

impl Rule for DeleteWorktree {
    type Reply = TaskReply;
    const VERB: &'static str = "wt-delete";
    const RIGHTS: Rights = PLANNING;

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let mut task = tx.task(&self.task)?;
        match &mut task.status {
            TaskStatus::Blocked { prior, .. } => {
                *prior = PriorWork { coder: prior.coder, ..PriorWork::default() };
            }
            TaskStatus::Merged { .. } | TaskStatus::Superseded { .. } | TaskStatus::Abandoned => {}
            TaskStatus::Draft
            | TaskStatus::Unclaimed { .. }
            | TaskStatus::Claimed { .. }
            | TaskStatus::ReadyForReview { .. }
            | TaskStatus::Rejected { .. }
            | TaskStatus::Approved { .. }
            | TaskStatus::IntegrationFailed { .. } => {
                return Err(tx.wrong_status(&task, "BLOCKED or a final state"));
            }
        }
        tx.effect(Effect::RemoveWorktree(self.task.clone()));
        tx.log(LogAction::Recovered, Some(&self.task), "worktree removed by wt-delete");
        Ok(tx.put(task))
    }
}
