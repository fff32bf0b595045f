//! Matters that the planner has left as they were, or does not look at: only the human decides them.

use std::collections::BTreeSet;

use crate::alarms::{Alarm, AlarmKind, Moment};
use crate::command_line::{CommandLine, OPEN, liza};
use crate::task_words::without_dead;
use liza_core::model::{AgentStatus, Role, Status, TaskId};
use liza_core::rules::questions::open_questions;
use liza_core::rules::sessions::{decided_since, undecided};
use liza_core::rules::sprint::is_planning;
use liza_core::rules::triggers::{
    Trigger, TriggerKind, drafts_of_human, is_complete, lacks_plan, planner_triggers, proposed_tasks,
};
use liza_core::supervise::planner_needs_human;

/// Drafts that no one finishes, and tasks that wait for one that will never be merged. A task with an open
/// question has its own entry, and a planner's running session may still decide all of them.
pub(super) fn left_by_planner(at: Moment<'_>) -> Vec<Alarm> {
    if is_deciding(at) {
        return Vec::new();
    }
    let state = at.state;
    let is_proposed = |task: &TaskId| proposed_tasks(state).any(|(proposed, _)| proposed == task);
    let own = drafts_of_human(state).filter(|task| !lacks_plan(state) && !is_proposed(task));
    let left = seen_and_left(at);
    let mut needs: Vec<Alarm> = own.map(|task| draft(at, task)).collect();
    needs.extend(left.iter().filter_map(|trigger| need(at, trigger)));
    if !needs.is_empty() {
        let asked: BTreeSet<TaskId> =
            open_questions(state).into_iter().filter_map(|question| question.task).collect();
        needs.retain(|need| need.task.as_ref().is_none_or(|task| !asked.contains(task)));
    }
    needs
}

/// The triggers that a planner's session has seen, and that are still there.
fn seen_and_left(at: Moment<'_>) -> Vec<Trigger> {
    let Moment { state, now, .. } = at;
    let has_seen = at.sprint().is_some_and(|sprint| !sprint.seen_triggers.is_empty());
    if (!has_seen && !is_planning(&state.board, now)) || planner_needs_human(state, now) {
        return Vec::new();
    }
    // A session that has decided, and has not ended yet, leaves the rest.
    let open: BTreeSet<String> = undecided(state, now).into_iter().map(|trigger| trigger.key).collect();
    planner_triggers(state, now).into_iter().filter(|trigger| !open.contains(&trigger.key)).collect()
}

/// True if a planner's running session may still decide something.
pub(super) fn is_deciding(at: Moment<'_>) -> bool {
    at.here().of(Role::Planner).any(|(_, entry)| {
        entry.status == AgentStatus::Planning && decided_since(at.state, entry, at.now).is_none()
    })
}

fn need(at: Moment<'_>, left: &Trigger) -> Option<Alarm> {
    let task: TaskId = left.subject.parse().ok()?;
    match left.kind {
        TriggerKind::NewDraft => Some(draft(at, &task)),
        TriggerKind::DeadDependency => Some(dead_dependency(at, &task, &left.detail)),
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

fn draft(at: Moment<'_>, task: &TaskId) -> Alarm {
    let command = match at.board().body(task).is_ok_and(is_complete) {
        true => liza!("finalize", task),
        false => liza!("edit-task", task, "--done", OPEN, "--scope", OPEN),
    };
    let text =
        format!("{task} is a draft that no agent finishes. Complete it, or drop it: {}", abandon(task));
    Alarm::new(AlarmKind::Draft, task, text).about(task).answered(command)
}

fn abandon(task: &TaskId) -> CommandLine {
    liza!("abandon-task", task, "--reason", OPEN)
}

fn dead_dependency(at: Moment<'_>, task: &TaskId, detail: &str) -> Alarm {
    let (text, drop) = (format!("{task} {detail}, and the planner has left it so"), abandon(task));
    let (text, command) = match at.record(task).filter(|record| record.status != Some(Status::Rejected)) {
        Some(record) => {
            let command = without_dead(at.board(), task, record);
            (format!("{text}. Let it go on without, or drop it: {drop}"), command)
        }
        // It has work of a coder, which was made for this plan.
        None => (text, drop),
    };
    Alarm::new(AlarmKind::DeadDependency, task, text).about(task).answered(command)
}
