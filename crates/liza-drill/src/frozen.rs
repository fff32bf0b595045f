//! The blackboard as it was when a change was submitted. Pure: what happened later is not in it, and no agent is.

use liza_core::model::{
    Discovery, EventName, GoalStatus, Loaded, Seconds, Sha, Sprint, SprintStatus, State, Status, TaskId,
    TaskRecord, Timestamp, Value, WorkFacts, Worktree,
};
use liza_team::run::close_in;

use crate::changes::Change;

/// The wait of a reviewer that has nothing to review: its validation failed, which no defect of a drill causes.
const NO_WORK: Seconds = Seconds(5);

/// The blackboard with `shown` submitted in the place of the commit of that change. Other tasks are as they had ended by then, or
/// as they were planned.
pub(crate) fn frozen(state: &State, change: &Change, shown: &Sha, facts: Option<&WorkFacts>) -> State {
    let (mut then, at) = (state.clone(), change.submitted);
    close_in(&mut then);
    then.board.tasks.clear();
    for (id, body) in state.bodies() {
        let record = match *id == change.task {
            true => Some(submitted(body.record(), change, shown, facts)),
            false => earlier(body.record(), at),
        };
        if let Some(record) = record {
            then.board.put(id.clone(), record);
        }
    }
    freeze_sections(&mut then, change);
    let journal = &mut then.journal;
    journal.anomalies.retain(|anomaly| anomaly.timestamp <= at);
    journal.human_notes.retain(|note| note.timestamp <= at);
    journal.spec_changes.retain(|change| change.timestamp <= at);
    journal.alignment_history.retain(|alignment| alignment.timestamp <= at);
    then
}

fn freeze_sections(then: &mut State, change: &Change) {
    let board = &mut then.board;
    if let Loaded::Ready(goal) = &mut board.goal {
        goal.status = GoalStatus::InProgress;
        goal.integration_head = Some(change.head.clone());
        (goal.head_test, goal.taken, goal.usage) = (None, None, None);
    }
    if let Loaded::Ready(config) = &mut board.config {
        config.coder_max_wait = NO_WORK;
    }
    let is_known = |task: &TaskId| board.tasks.contains_key(task);
    if let Loaded::Ready(sprint) = &mut board.sprint {
        let begun = sprint.timeline.started.unwrap_or(change.submitted);
        let goal = sprint.goal_ref.clone().unwrap_or_default();
        let mut scope = std::mem::take(&mut sprint.scope);
        scope.planned.retain(is_known);
        scope.stretch.retain(is_known);
        *sprint = Sprint {
            scope,
            status: SprintStatus::InProgress,
            ..Sprint::begin(sprint.number(), &goal, begun)
        };
    }
    if let Loaded::Ready(discovered) = &mut board.discovered {
        let is_earlier =
            |discovery: &Discovery| discovery.created.is_some_and(|time| time <= change.submitted);
        discovered.retain(is_earlier);
        discovered.iter_mut().for_each(|discovery| discovery.converted_to_task = None);
    }
    board.circuit_breaker = Loaded::Ready(Default::default());
    board.handoff = Loaded::Ready(Default::default());
    board.direct_edits = Loaded::Ready(Default::default());
}

/// The drilled task: submitted, and reviewed by no one.
fn submitted(record: &TaskRecord, change: &Change, shown: &Sha, facts: Option<&WorkFacts>) -> TaskRecord {
    let mut history = record.history.clone().unwrap_or_default();
    let last = history.iter().rposition(|event| event.is(EventName::ReadyForReview));
    history.truncate(last.map_or(0, |last| last + 1));
    if let Some(event) = history.last_mut() {
        event.more.insert("commit".to_owned(), Value::from(shown.as_str()));
    }
    let claims = history.iter().rev().filter(|event| event.is_claim());
    let coder = claims.filter_map(|event| event.agent.as_ref()?.parse().ok()).next();
    TaskRecord {
        status: Some(Status::ReadyForReview),
        assigned_to: coder.or_else(|| "coder-1".parse().ok()),
        worktree: Some(Worktree::of(&change.task)),
        base_commit: Some(change.base.clone()),
        review_commit: Some(shown.clone()),
        history: Some(history),
        facts: facts.cloned(),
        validated: None,
        approvals: None,
        approved_by: None,
        merge_held: None,
        gate_change: None,
        merge_commit: None,
        review_dropped_by: None,
        integration_fix: None,
        ..record.clone()
    }
}

/// Another task: merged or dropped by then, or planned; `None` if it is younger.
fn earlier(record: &TaskRecord, at: Timestamp) -> Option<TaskRecord> {
    let events = record.history.clone().unwrap_or_default();
    let created = record.created.or_else(|| events.first().map(|event| event.time));
    created.filter(|created| *created <= at)?;
    if record.ended().is_some_and(|ended| ended <= at) {
        return Some(record.clone());
    }
    let is_plan =
        |name: EventName| matches!(name, EventName::Created | EventName::Proposed | EventName::Finalized);
    let history: Vec<_> =
        events.into_iter().filter(|event| event.time <= at && event.name().is_some_and(is_plan)).collect();
    let is_final = history.iter().any(|event| event.is(EventName::Finalized));
    Some(TaskRecord {
        id: record.id.clone(),
        description: record.description.clone(),
        status: Some(if is_final { Status::Unclaimed } else { Status::Draft }),
        priority: record.priority,
        impact: record.impact,
        depends_on: record.depends_on.clone(),
        spec_ref: record.spec_ref.clone(),
        done_when: record.done_when.clone(),
        validation: record.validation.clone(),
        scope: record.scope.clone(),
        created: record.created,
        revision: record.revision,
        history: Some(history),
        ..TaskRecord::default()
    })
}
