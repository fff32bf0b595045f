//! Matters that the planner has left as they were, or does not look at: only the human decides them.

use std::collections::BTreeSet;

use crate::alarms::{AlarmLevel, Observations};
use crate::task_words::without_dead;
use liza_core::model::{AgentStatus, Role, State, Status, TaskBody, TaskId, Timestamp};
use liza_core::rules::questions::open_questions;
use liza_core::rules::sessions::{decided_since, undecided};
use liza_core::rules::sprint::is_planning;
use liza_core::rules::triggers::{
    Trigger, TriggerKind, drafts_of_human, is_complete, lacks_plan, planner_triggers, proposed_tasks,
};
use liza_core::supervise::planner_needs_human;

use super::{NeedKind, NeedsYou};
use crate::command_line::{CommandLine, OPEN, liza};

/// Drafts that no one finishes, and tasks that wait for one that will never be merged. A task with an open
/// question has its own entry, and a planner's running session may still decide all of them.
pub(super) fn left_by_planner(state: &State, seen: &Observations, now: Timestamp) -> Vec<NeedsYou> {
    if is_deciding(state, seen, now) {
        return Vec::new();
    }
    let left = seen_and_left(state, now);
    let is_proposed = |task: &TaskId| proposed_tasks(state).any(|(proposed, _)| proposed == task);
    let own = drafts_of_human(state).filter(|task| !lacks_plan(state) && !is_proposed(task));
    let own = own.map(|task| draft(state, task));
    let mut needs: Vec<NeedsYou> =
        own.chain(left.iter().filter_map(|trigger| need(state, trigger))).collect();
    if !needs.is_empty() {
        let asked: BTreeSet<TaskId> =
            open_questions(state).into_iter().filter_map(|question| question.task).collect();
        needs.retain(|need| need.task.as_ref().is_none_or(|task| !asked.contains(task)));
    }
    needs
}

/// The triggers that a planner's session has seen, and that are still there.
fn seen_and_left(state: &State, now: Timestamp) -> Vec<Trigger> {
    let seen = state.board.sprint.ready().map(|sprint| sprint.seen_triggers.as_slice()).unwrap_or_default();
    if (seen.is_empty() && !is_planning(&state.board, now)) || planner_needs_human(state, now) {
        return Vec::new();
    }
    // A session that has decided, and has not ended yet, leaves the rest.
    let open: BTreeSet<String> = undecided(state, now).into_iter().map(|trigger| trigger.key).collect();
    planner_triggers(state, now).into_iter().filter(|trigger| !open.contains(&trigger.key)).collect()
}

/// True if a planner's running session may still decide something.
pub(super) fn is_deciding(state: &State, seen: &Observations, now: Timestamp) -> bool {
    let mut planners = seen.presence(&state.board, now).of(Role::Planner);
    planners
        .any(|(_, entry)| entry.status == AgentStatus::Planning && decided_since(state, entry, now).is_none())
}

fn need(state: &State, left: &Trigger) -> Option<NeedsYou> {
    let task: TaskId = left.subject.parse().ok()?;
    match left.kind {
        TriggerKind::NewDraft => Some(draft(state, &task)),
        TriggerKind::DeadDependency => Some(dead_dependency(state, &task, &left.detail)),
        // Each of these has an entry of its own, or agents handle it.
        TriggerKind::HumanDecision
        | TriggerKind::QuestionAnswered
        | TriggerKind::HypothesisExhausted
        | TriggerKind::BlockedTasks
        | TriggerKind::IntegrationFailed
        | TriggerKind::ImmediateDiscovery
        | TriggerKind::InitialPlanning
        | TriggerKind::SprintCompleted => None,
    }
}

fn draft(state: &State, task: &TaskId) -> NeedsYou {
    let command = match state.board.body(task).is_ok_and(is_complete) {
        true => liza!("finalize", task),
        false => liza!("edit-task", task, "--done", OPEN, "--scope", OPEN),
    };
    let text =
        format!("{task} is a draft that no agent finishes. Complete it, or drop it: {}", abandon(task));
    NeedsYou::new(NeedKind::Draft, AlarmLevel::Warning, text, command).about(Some(task))
}

fn abandon(task: &TaskId) -> CommandLine {
    liza!("abandon-task", task, "--reason", OPEN)
}

fn dead_dependency(state: &State, task: &TaskId, detail: &str) -> NeedsYou {
    let text = format!("{task} {detail}, and the planner has left it so");
    let body = state.board.body(task).ok().map(TaskBody::record);
    let (text, command) = match body.filter(|record| record.status != Some(Status::Rejected)) {
        Some(record) => {
            let text = format!("{text}. Let it go on without, or drop it: {}", abandon(task));
            (text, without_dead(&state.board, task, record))
        }
        // It has work of a coder, which was made for this plan.
        None => (text, abandon(task)),
    };
    NeedsYou::new(NeedKind::DeadDependency, AlarmLevel::Warning, text, command).about(Some(task))
}
