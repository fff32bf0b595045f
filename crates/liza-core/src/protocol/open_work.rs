//! The open work and the start of the next sprint, for goal, sprint and add-task.

use crate::model::{Board, GoalStatus, Refusal, Sprint, Status, TaskId};

use super::tx::Tx;

pub(super) fn check_open(tx: &Tx<'_>) -> Result<(), Refusal> {
    match tx.board.goal()?.status {
        GoalStatus::InProgress => Ok(()),
        status @ (GoalStatus::Completed | GoalStatus::Aborted) => Err(Refusal::GoalNotOpen { status }),
    }
}

pub(super) fn open_tasks(board: &Board) -> Vec<TaskId> {
    let open = board.summaries().filter(|summary| !summary.status.is_some_and(Status::is_terminal));
    open.map(|summary| summary.id.clone()).collect()
}

/// Closes the sprint, begins the next one with the tasks that are still open, and returns its name.
pub(super) fn start_next_sprint(tx: &mut Tx<'_>) -> Result<String, Refusal> {
    let past = tx.sprint()?.clone();
    let goal = tx.board.goal()?.id.clone();
    let mut next = Sprint::begin(past.number().saturating_add(1), &goal, tx.now);
    // A new sprint does not make the triggers new that the planner has seen.
    next.seen_triggers = past.seen_triggers.clone();
    next.notes_read = past.notes_read.clone();
    // Only a person or a merge refills session budgets, not the planner by opening another sprint.
    next.sessions = past.sessions.clone();
    next.planner_exits = past.planner_exits.clone();
    next.clients = past.clients.clone();
    next.timeline.paused_at = past.timeline.paused_at;
    next.today = past.today.clone();
    for id in open_tasks(tx.board) {
        let stretch = past.scope.stretch.contains(&id);
        if stretch { next.scope.stretch.push(id) } else { next.scope.planned.push(id) }
    }
    let id = next.id.clone();
    *tx.sprint()? = next;
    tx.close_sprint(past);
    Ok(id)
}
