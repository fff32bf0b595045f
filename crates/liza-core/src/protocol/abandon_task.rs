//! abandon-task: a task that will not be done.

use crate::model::{EventName, LogAction, Refusal, Section, Status, TaskId};

use super::budget::refill_planner;
use super::dropping::{abandon, check_removable};
use super::operation::{LoadScope, Rule};
use super::permission::{PLANNING, Rights};
use super::reply::TaskReply;
use super::tx::{Tx, required};
use super::unblock_task::record_assessment;

/// Abandons a task. Works on the record, so that a broken one can be abandoned too.
#[derive(Debug, Clone, PartialEq)]
pub struct AbandonTask {
    pub task: TaskId,
    pub reason: String,
}

impl Rule for AbandonTask {
    type Reply = TaskReply;
    const VERB: &'static str = "abandon-task";
    const RIGHTS: Rights = PLANNING;
    const LOADS: LoadScope = LoadScope::all(&[Section::Handoff, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let id = &self.task;
        let reason = required(&self.reason, "the rationale (--reason)")?;
        let mut record = tx.board.body(id)?.record().clone();
        match tx.task(id) {
            Ok(task) => {
                check_removable(tx, &task)?;
                record_assessment(tx, &task, record.blocked_reason.as_deref().unwrap_or_default(), reason);
            }
            Err(broken) if record.status.is_some_and(Status::is_terminal) => return Err(broken),
            Err(_) => {}
        }
        abandon(tx, id, &mut record, reason)?;
        tx.drop_handoff(id)?;
        refill_planner(tx)?;
        tx.log(LogAction::Task(EventName::Abandoned), Some(id), reason);
        tx.put_record(id.clone(), record);
        Ok(TaskReply { task: id.clone(), status: Some(Status::Abandoned), worktree: None })
    }
}
