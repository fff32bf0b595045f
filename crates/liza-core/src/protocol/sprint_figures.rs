//! Keeps the sprint's figures true in the write that changes them, and notices the end of the sprint.
//!
//! If every task of the sprint is loaded they are counted again, which also repairs them after an edit by
//! hand; otherwise only the contributions of the changed tasks are replaced. Tests compare the two ways.

use crate::model::{
    AgentStatus, Effect, Metrics, Refusal, Section, Sprint, SprintStatus, Status, TaskId, TaskRecord,
};
use crate::rules::metrics::{Contribution, contribution};
use crate::rules::sprint::{is_complete_after, planned_with_replacements};

use super::tx::Tx;

/// Updates `sprint.metrics` if this change affects them, and asks for the sprint's completion at its end.
pub(super) fn update(tx: &mut Tx<'_>, all_summaries: bool) -> Result<(), Refusal> {
    adopt_injected(tx)?;
    if affects_figures(tx) {
        match tx.board.sprint.get(Section::Sprint) {
            Ok(_) => write_figures(tx)?,
            // A command that affects the figures has to load them; one that does not is a bug of ours.
            Err(refusal @ Refusal::NotLoaded { .. }) => return Err(refusal),
            // A sprint that cannot be read has no figures to keep.
            Err(_) => return Ok(()),
        }
    }
    if all_summaries && settles(tx) && has_ended(tx) {
        tx.effect(Effect::CompleteSprint);
    }
    Ok(())
}

/// A task that a person wrote into the file belongs to the plan once work on it begins.
fn adopt_injected(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    let Some(sprint) = tx.board.sprint.ready().filter(|sprint| !sprint.status.is_terminal()) else {
        return Ok(());
    };
    let sprint = tx.change().sprint.as_ref().unwrap_or(sprint);
    let moves = |id: &TaskId, record: &TaskRecord| {
        let before = tx.board.summary(id).and_then(|summary| summary.status);
        let is_open = |status: Option<Status>| status.is_some_and(|status| !status.is_terminal());
        is_open(before) && is_open(record.status) && before != record.status
    };
    let injected = tx
        .change()
        .tasks
        .iter()
        .filter(|(id, record)| !sprint.names(id) && !is_planned(sprint, id, record) && moves(id, record));
    let injected: Vec<TaskId> = injected.map(|(id, _)| id.clone()).collect();
    if !injected.is_empty() {
        tx.sprint()?.scope.planned.extend(injected);
    }
    Ok(())
}

/// Counts the figures, or adjusts them by the changes.
pub(super) fn write_figures(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    let before = tx.board.sprint()?;
    let after = tx.change().sprint.as_ref().unwrap_or(before);
    let metrics = recount(tx, after).unwrap_or_else(|| adjust(tx, before, after));
    if metrics != after.metrics {
        tx.sprint()?.metrics = metrics;
    }
    Ok(())
}

/// True if the contribution of a task, or the plan, has changed.
fn affects_figures(tx: &Tx<'_>) -> bool {
    let plan = |sprint: &Sprint| tx.board.sprint.ready().is_none_or(|old| old.scope != sprint.scope);
    let mut tasks = tx.change().tasks.iter();
    tx.change().sprint.as_ref().is_some_and(plan)
        || tasks.any(|(id, new)| old_contribution(tx, id) != contribution(new))
}

fn old_contribution(tx: &Tx<'_>, id: &TaskId) -> Contribution {
    tx.board.body(id).map(|body| contribution(body.record())).unwrap_or_default()
}

/// The figures from all tasks of the sprint, if all are loaded.
fn recount(tx: &Tx<'_>, sprint: &Sprint) -> Option<Metrics> {
    let record = |id: &TaskId| -> Option<&TaskRecord> {
        tx.change().tasks.get(id).or_else(|| tx.board.body(id).ok().map(|body| body.record()))
    };
    let mut sum = Contribution::default();
    for id in planned_with_replacements(tx.board, sprint) {
        sum = sum + contribution(record(&id)?);
    }
    Some(sum.into())
}

/// The figures, with the old contributions of the changed tasks replaced by the new ones.
fn adjust(tx: &Tx<'_>, before: &Sprint, after: &Sprint) -> Metrics {
    let mut sum = Contribution::from(&after.metrics);
    for (id, new) in &tx.change().tasks {
        if is_planned(before, id, new) {
            sum = sum - old_contribution(tx, id);
        }
        if is_planned(after, id, new) {
            sum = sum + contribution(new);
        }
    }
    sum.into()
}

/// True if the task is in the plan, or replaces one that is.
fn is_planned(sprint: &Sprint, id: &TaskId, record: &TaskRecord) -> bool {
    let planned = &sprint.scope.planned;
    planned.contains(id) || record.supersedes.iter().flatten().any(|original| planned.contains(original))
}

/// True if the sprint may have waited for this change as the last one.
fn settles(tx: &Tx<'_>) -> bool {
    let ended = |record: &TaskRecord| record.status.is_some_and(Status::is_terminal);
    let planner = |id: &crate::model::AgentId| {
        let old = tx.board.agents.ready().and_then(|agents| agents.get(id));
        old.is_some_and(|entry| entry.status == AgentStatus::Planning)
    };
    let change = tx.change();
    // Tasks that ended during a checkpoint end the sprint when it continues.
    let continues = change.sprint.as_ref().is_some_and(|sprint| {
        let old = tx.board.sprint.ready().map(|old| old.status);
        sprint.status == SprintStatus::InProgress && old == Some(SprintStatus::Checkpoint)
    });
    change.tasks.values().any(ended) || change.agents.keys().any(planner) || continues
}

fn has_ended(tx: &Tx<'_>) -> bool {
    let sprint = tx.change().sprint.as_ref().or(tx.board.sprint.ready());
    sprint.is_some_and(|sprint| {
        sprint.status == SprintStatus::InProgress && is_complete_after(tx.board, tx.change(), sprint, tx.now)
    })
}
