//! The tasks of a sprint, and its end.
//!
//! Reads task summaries only, so that it stays cheap on a large blackboard.

use std::collections::BTreeSet;

use indexmap::IndexSet;

use crate::model::{AgentRecord, AgentStatus, Board, Change, Sprint, Status, TaskId, Timestamp};

/// These tasks and, where one was replaced, its replacements, to the end of the chain.
pub fn with_replacements<'t>(board: &Board, tasks: impl IntoIterator<Item = &'t TaskId>) -> BTreeSet<TaskId> {
    let mut found = BTreeSet::new();
    let mut open: Vec<TaskId> = tasks.into_iter().cloned().collect();
    while let Some(task) = open.pop() {
        if found.insert(task.clone())
            && let Some(summary) = board.summary(&task)
        {
            open.extend(summary.superseded_by.iter().cloned());
        }
    }
    found
}

pub fn planned_with_replacements(board: &Board, sprint: &Sprint) -> BTreeSet<TaskId> {
    with_replacements(board, &sprint.scope.planned)
}

/// True if the current sprint counts the task: it is planned, a stretch, or replaces one of them.
pub fn belongs_to_running(board: &Board, sprint: &Sprint, task: &TaskId) -> bool {
    let all = sprint.scope.planned.iter().chain(&sprint.scope.stretch);
    !sprint.status.is_terminal() && with_replacements(board, all).contains(task)
}

/// True if the sprint has ended: it has planned tasks; all of them, their replacements and the injected ones
/// are in a final state; no DRAFT is left; and no planning session is running, which may have more to add.
pub fn is_complete(board: &Board, sprint: &Sprint, planning: bool) -> bool {
    is_complete_with(board, sprint, planning, |task| board.status(task))
}

/// The same for the board as a change leaves it.
pub(crate) fn is_complete_after(board: &Board, change: &Change, sprint: &Sprint, now: Timestamp) -> bool {
    let agents = board.agents.entries();
    let agents = agents.map(|(id, entry)| change.agents.get(id).map_or(Some(entry), Option::as_ref));
    let planning = agents.flatten().any(|entry| plans(entry, now));
    let known = change.tasks.keys().all(|task| board.knows(task));
    known
        && is_complete_with(board, sprint, planning, |task| match change.tasks.get(task) {
            Some(record) => record.status,
            None => board.status(task),
        })
}

fn is_complete_with(
    board: &Board,
    sprint: &Sprint,
    planning: bool,
    status: impl Fn(&TaskId) -> Option<Status>,
) -> bool {
    let planned = planned_with_replacements(board, sprint);
    let stretch: IndexSet<&TaskId> = sprint.scope.stretch.iter().collect();
    let ended = |task: &TaskId| status(task).is_some_and(Status::is_terminal);
    // A task that is neither planned nor stretch was injected by a person, and counts as planned.
    let rest_ended = || {
        let mut tasks = board.tasks.keys();
        tasks.all(|task| ended(task) || (stretch.contains(task) && status(task) != Some(Status::Draft)))
    };
    !planning && !planned.is_empty() && planned.iter().all(ended) && rest_ended()
}

pub fn is_planning(board: &Board, now: Timestamp) -> bool {
    board.agents.ready().is_none_or(|agents| agents.values().any(|entry| plans(entry, now)))
}

fn plans(entry: &AgentRecord, now: Timestamp) -> bool {
    entry.status == AgentStatus::Planning && entry.holds(now)
}
