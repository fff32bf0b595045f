//! The removal of a task from the board, for abandon-task, supersede-task and goal new.

use crate::model::{AgentStatus, Effect, EventName, Refusal, Status, Task, TaskId, TaskRecord};

use super::ownership::check_unreserved;
use super::tx::Tx;

/// Lets the planner take the task off the board only while no agent has it.
pub(super) fn check_removable(tx: &Tx<'_>, task: &Task) -> Result<(), Refusal> {
    let free = matches!(
        task.status.name(),
        Status::Draft | Status::Unclaimed | Status::Rejected | Status::IntegrationFailed | Status::Blocked
    );
    if !free {
        let needed = "DRAFT, UNCLAIMED, REJECTED, INTEGRATION_FAILED or BLOCKED";
        return Err(tx.wrong_status(task, needed));
    }
    check_unreserved(tx, task)
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
