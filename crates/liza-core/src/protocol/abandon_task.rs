//! abandon-task: a task that will not be done.

use crate::model::{AgentStatus, Effect, EventName, LogAction, Refusal, Section, Status, TaskId, TaskRecord};

use super::operation::{LoadScope, Rule, TaskReply};
use super::permission::{PLANNING, Rights};
use super::supersede_task::check_removable;
use super::tx::{Tx, required};
use super::unblock_task::record_assessment;

/// Abandons a task. Works on the record, so that a broken one can be abandoned too.
#[derive(Debug, Clone, PartialEq)]
pub struct AbandonTask {
    /// Which task.
    pub task: TaskId,
    /// Why.
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
        tx.log(LogAction::Task(EventName::Abandoned), Some(id), reason);
        tx.put_record(id.clone(), record);
        Ok(TaskReply { task: id.clone(), status: Some(Status::Abandoned), worktree: None })
    }
}

/// Makes a record ABANDONED and frees its agents and its worktree.
pub(super) fn abandon(
    tx: &mut Tx<'_>,
    id: &TaskId,
    record: &mut TaskRecord,
    reason: &str,
) -> Result<(), Refusal> {
    tx.free_agents([record.assigned_to, record.reviewing_by].into_iter().flatten(), id, AgentStatus::Idle)?;
    if record.worktree.is_some() {
        tx.effect(Effect::RemoveWorktree(id.clone()));
    }
    record.clear_status_fields();
    record.id = Some(id.clone());
    record.status = Some(Status::Abandoned);
    record.reservation = None;
    record.handoff_pending = record.handoff_pending.map(|_| false);
    record.history.get_or_insert_default().push(tx.event(EventName::Abandoned).with("reason", reason));
    Ok(())
}
