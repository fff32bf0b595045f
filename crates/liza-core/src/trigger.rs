//! What wakes the planner, each thing once per change.

use std::fmt;

use crate::board::State;
use crate::event::{EventName, one_line};
use crate::goal::GoalStatus;
use crate::ids::TaskId;
use crate::record::{Status, TaskRecord};
use crate::sprint::SprintStatus;
use crate::task::{EXHAUSTED, REVIEW_DEADLOCK};
use crate::time::{Seconds, Timestamp};

/// How long a failed merge is left to the coders before the planner is asked.
const FIX_PATIENCE: Seconds = Seconds(60);

/// Why the planner is woken, in the order in which it should look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TriggerKind {
    /// There is a goal and no task.
    InitialPlanning,
    /// Two coders failed at a task.
    HypothesisExhausted,
    /// A task is blocked; a review deadlock says so in its detail.
    BlockedTasks,
    /// A merge failed and nobody repairs it, or it failed twice.
    IntegrationFailed,
    /// Somebody found what cannot wait.
    ImmediateDiscovery,
    /// A task waits for one that was given up.
    DeadDependency,
    /// The sprint is over: is the goal reached?
    SprintCompleted,
}

impl fmt::Display for TriggerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TriggerKind::InitialPlanning => "INITIAL_PLANNING",
            TriggerKind::HypothesisExhausted => "HYPOTHESIS_EXHAUSTED",
            TriggerKind::BlockedTasks => "BLOCKED_TASKS",
            TriggerKind::IntegrationFailed => "INTEGRATION_FAILED",
            TriggerKind::ImmediateDiscovery => "IMMEDIATE_DISCOVERY",
            TriggerKind::DeadDependency => "DEAD_DEPENDENCY",
            TriggerKind::SprintCompleted => "SPRINT_COMPLETED",
        })
    }
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
    // Drafts alone are a plan that a planner did not finish.
    let unplanned = |status: Option<Status>| status == Some(Status::Draft);
    if state.board.heads().all(|head| unplanned(head.status))
        && sprint.scope.planned.iter().all(|task| unplanned(state.board.status(task)))
    {
        // A note or a changed specification is news for a planner that could not begin.
        let news = state.journal.human_notes.len() + state.journal.spec_changes.len();
        found.push(Trigger::new(TriggerKind::InitialPlanning, &goal.id, news, goal.description.clone()));
    }
    let mut tasks: Vec<(&TaskId, &TaskRecord)> = state.records().collect();
    tasks.sort_by_key(|(_, record)| (record.priority.unwrap_or(3), record.created));
    for (id, record) in tasks {
        found.extend(task_trigger(state, id, record, now));
    }
    for discovery in state.board.discovered.ready().into_iter().flatten().filter(|d| d.is_pressing()) {
        let detail = discovery.description.clone();
        found.push(Trigger::new(TriggerKind::ImmediateDiscovery, discovery.id, 0, detail));
    }
    if sprint.status == SprintStatus::Completed {
        let detail = "all planned tasks are terminal".to_owned();
        found.push(Trigger::new(TriggerKind::SprintCompleted, &sprint.id, 0, detail));
    }
    found.sort_by_key(|trigger| trigger.kind);
    found
}

fn task_trigger(state: &State, id: &TaskId, record: &TaskRecord, now: Timestamp) -> Option<Trigger> {
    match record.status? {
        Status::Blocked => {
            let failed = record.failed_by.as_deref().unwrap_or_default();
            let reason = record.blocked_reason.clone().unwrap_or_default();
            let stamp = blocked_stamp(state, id, record, &reason);
            if failed.len() >= EXHAUSTED {
                return Some(Trigger::new(TriggerKind::HypothesisExhausted, id, stamp, reason));
            }
            let detail = if reason == REVIEW_DEADLOCK { "REVIEW_DEADLOCK".to_owned() } else { reason };
            Some(Trigger::new(TriggerKind::BlockedTasks, id, stamp, detail))
        }
        Status::IntegrationFailed => {
            let failures =
                record.history.iter().flatten().filter(|event| event.is(EventName::IntegrationFailed));
            let times: Vec<Timestamp> = failures.map(|event| event.time).collect();
            let waited = times.last().is_none_or(|last| now.since(*last) >= FIX_PATIENCE);
            let detail = format!("{} failed merge(s), nobody is at it", times.len());
            // Not the revision: a reservation changes it, and that is no news for the planner.
            (waited || times.len() >= 2)
                .then(|| Trigger::new(TriggerKind::IntegrationFailed, id, times.len(), detail))
        }
        Status::Draft | Status::Unclaimed | Status::Rejected => {
            let dead = |dependency: &&TaskId| {
                matches!(state.board.status(dependency), Some(Status::Abandoned | Status::Superseded))
            };
            let dead = record.depends_on.iter().flatten().find(dead)?;
            let detail = format!("depends on {dead}, which will never be merged");
            Some(Trigger::new(TriggerKind::DeadDependency, id, dead, detail))
        }
        Status::Claimed
        | Status::ReadyForReview
        | Status::Approved
        | Status::Merged
        | Status::Abandoned
        | Status::Superseded => None,
    }
}

/// Changes when the task is blocked anew, for another reason, or when a person has said something about it. Not the
/// revision: the planner's own tidying up changes that, and must not wake it again.
fn blocked_stamp(state: &State, id: &TaskId, record: &TaskRecord, reason: &str) -> String {
    let blocks = record.history.iter().flatten().filter(|event| event.is(EventName::Blocked)).count();
    let notes = state.journal.human_notes.iter().filter(|note| note.to.as_ref() == Some(id)).count();
    format!("{blocks}-{notes}-{}", one_line(reason, 40))
}

/// Those that the planner has not yet been woken for.
pub fn unseen(triggers: &[Trigger], seen: &[String]) -> Vec<Trigger> {
    triggers.iter().filter(|trigger| !seen.contains(&trigger.key)).cloned().collect()
}
