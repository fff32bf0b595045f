//! What wakes the planner, each thing once per change.

use std::fmt;

use crate::model::{
    EventName, GoalStatus, MAX_FAILED_CODERS, REVIEW_DEADLOCK, Seconds, SprintStatus, State, Status,
    TaskBody, TaskId, TaskStatus, Timestamp,
};
use crate::text::{count, one_line};

/// How long a failed merge is left to the coders before the planner is asked.
const FIX_GRACE: Seconds = Seconds(60);

/// Why the planner is woken, in the order in which it should look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum TriggerKind {
    /// There is a goal and no task.
    InitialPlanning,
    /// Two coders failed at a task.
    HypothesisExhausted,
    /// A task is blocked; a review deadlock says so in its detail.
    BlockedTasks,
    /// A merge failed and no coder fixes it, or it failed twice.
    IntegrationFailed,
    /// An urgent discovery.
    ImmediateDiscovery,
    /// A task depends on one that was abandoned or replaced.
    DeadDependency,
    /// The sprint has ended: is the goal reached?
    SprintCompleted,
}

/// One reason to wake the planner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// Of what kind.
    pub kind: TriggerKind,
    /// The task, discovery, sprint or goal.
    pub subject: String,
    /// What about it, in one line.
    pub detail: String,
    /// Changes when the matter changes; kept in `sprint.seen_triggers` once the planner has looked.
    pub key: String,
}

impl Trigger {
    fn new(kind: TriggerKind, subject: impl fmt::Display, stamp: impl fmt::Display, detail: String) -> Self {
        Self { kind, subject: subject.to_string(), detail, key: format!("{kind}:{subject}:{stamp}") }
    }
}

/// Everything that the planner has to look at, first things first, tasks by priority then age.
pub fn planner_triggers(state: &State, now: Timestamp) -> Vec<Trigger> {
    let (Some(goal), Some(sprint)) = (state.board.goal.ready(), state.board.sprint.ready()) else {
        return Vec::new();
    };
    if goal.status != GoalStatus::InProgress || goal.description.trim().is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    // Drafts alone are an unfinished plan.
    let unplanned = |status: Option<Status>| status == Some(Status::Draft);
    if state.board.summaries().all(|summary| unplanned(summary.status))
        && sprint.scope.planned.iter().all(|task| unplanned(state.board.status(task)))
    {
        // A note or a changed specification is news for a planner that could not start.
        let news = state.journal.human_notes.len() + state.journal.spec_changes.len();
        found.push(Trigger::new(TriggerKind::InitialPlanning, &goal.id, news, goal.description.clone()));
    }
    let mut tasks: Vec<(&TaskId, &TaskBody)> = state.bodies().collect();
    tasks.sort_by_key(|(_, body)| (body.record().priority.unwrap_or(3), body.record().created));
    for (id, body) in tasks {
        found.extend(task_trigger(state, id, body, now));
    }
    for discovery in state.board.discovered.ready().into_iter().flatten().filter(|d| d.is_pressing()) {
        let detail = discovery.description.clone();
        found.push(Trigger::new(TriggerKind::ImmediateDiscovery, discovery.id, 0, detail));
    }
    if sprint.status == SprintStatus::Completed {
        let detail = "all planned tasks have ended".to_owned();
        found.push(Trigger::new(TriggerKind::SprintCompleted, &sprint.id, 0, detail));
    }
    found.sort_by_key(|trigger| trigger.kind);
    found
}

fn task_trigger(state: &State, id: &TaskId, body: &TaskBody, now: Timestamp) -> Option<Trigger> {
    let record = body.record();
    match body.status().ok()? {
        TaskStatus::Blocked { block, .. } => {
            let failed = record.failed_by.as_deref().unwrap_or_default();
            let reason = block.reason.clone();
            let stamp = blocked_stamp(state, id, body, &reason);
            if failed.len() >= MAX_FAILED_CODERS {
                return Some(Trigger::new(TriggerKind::HypothesisExhausted, id, stamp, reason));
            }
            let detail = if reason == REVIEW_DEADLOCK { "REVIEW_DEADLOCK".to_owned() } else { reason };
            Some(Trigger::new(TriggerKind::BlockedTasks, id, stamp, detail))
        }
        TaskStatus::IntegrationFailed { .. } => {
            let failures = record.events().filter(|event| event.is(EventName::IntegrationFailed));
            let times: Vec<Timestamp> = failures.map(|event| event.time).collect();
            let waited = times.last().is_none_or(|last| now.since(*last) >= FIX_GRACE);
            let detail = format!("{}, no coder is fixing it", count(times.len(), "failed merge"));
            // The revision would not do as a stamp: a reservation changes it, and is no news for the planner.
            (waited || times.len() >= 2)
                .then(|| Trigger::new(TriggerKind::IntegrationFailed, id, times.len(), detail))
        }
        TaskStatus::Draft | TaskStatus::Unclaimed { .. } | TaskStatus::Rejected { .. } => {
            let dead = |dependency: &&TaskId| {
                matches!(state.board.status(dependency), Some(Status::Abandoned | Status::Superseded))
            };
            let dead = record.depends_on.iter().flatten().find(dead)?;
            let detail = format!("depends on {dead}, which will never be merged");
            Some(Trigger::new(TriggerKind::DeadDependency, id, dead, detail))
        }
        TaskStatus::Claimed { .. }
        | TaskStatus::ReadyForReview { .. }
        | TaskStatus::Approved { .. }
        | TaskStatus::Merged { .. }
        | TaskStatus::Abandoned
        | TaskStatus::Superseded { .. } => None,
    }
}

/// Changes when the task is blocked again, for another reason, or when a person has left a note for it. The revision
/// would not do: the planner's own edits change it, and must not wake it again.
fn blocked_stamp(state: &State, id: &TaskId, body: &TaskBody, reason: &str) -> String {
    let blocks = body.record().events().filter(|event| event.is(EventName::Blocked)).count();
    let notes = state.journal.human_notes.iter().filter(|note| note.to.as_ref() == Some(id)).count();
    format!("{blocks}-{notes}-{}", one_line(reason, 40))
}

/// Those that the planner has not yet been woken for.
pub fn unseen(triggers: &[Trigger], seen: &[String]) -> Vec<Trigger> {
    triggers.iter().filter(|trigger| !seen.contains(&trigger.key)).cloned().collect()
}
