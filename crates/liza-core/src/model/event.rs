//! Entries of a task's history and of the log.

use std::fmt;

use liza_ids::{TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::client::ModelEnd;
use crate::model::value::{Fields, Value};

/// The names of history events; the log uses the same words where a task changed.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::Display,
    strum::EnumString,
    strum::EnumIter,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
pub enum EventName {
    Created,
    Finalized,
    /// The planner's part of a plan that the human has to approve.
    Proposed,
    /// First claim, or a claim after a release.
    Claimed,
    /// The same coder continues after a rejection.
    ReclaimedAfterRejection,
    /// Another coder takes a rejected task.
    ReassignedAfterRejection,
    /// A coder repairs a failed merge.
    ClaimedForIntegrationFix,
    /// Another coder takes over after the lease expired.
    ReclaimedAfterExpiry,
    /// The same coder continues its own claim.
    Resumed,
    /// The coder recorded its intention.
    PreExecutionCheckpoint,
    ReadyForReview,
    Approved,
    Rejected,
    Merged,
    IntegrationFailed,
    /// The merge waits for the human.
    MergeHeld,
    /// The human accepted that the task changes what judges it.
    GateAccepted,
    Blocked,
    Unblocked,
    Superseded,
    Abandoned,
    /// A session left notes for the next one.
    Handoff,
    SessionEnded,
    /// A person took the claim away.
    Released,
    Archived,
}

impl EventName {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// True if it counts as an iteration: a coder started, or started again. A resumed claim does not count.
    pub fn is_claim(self) -> bool {
        matches!(
            self,
            EventName::Claimed
                | EventName::ReclaimedAfterRejection
                | EventName::ReassignedAfterRejection
                | EventName::ClaimedForIntegrationFix
                | EventName::ReclaimedAfterExpiry
        )
    }
}

/// One entry of a task's history. The name is text, since people and older versions write their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEvent {
    pub time: Timestamp,
    pub event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Commit, reason, previous assignee and the like.
    #[serde(flatten)]
    pub more: Fields,
}

impl HistoryEvent {
    pub fn new(time: Timestamp, event: EventName, agent: impl fmt::Display) -> Self {
        Self { time, event: event.name().to_owned(), agent: Some(agent.to_string()), more: Fields::new() }
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.more.insert(key.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn with_some(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Its name, if it is one of ours.
    pub fn name(&self) -> Option<EventName> {
        self.event.parse().ok()
    }

    pub fn is(&self, name: EventName) -> bool {
        self.event == name.name()
    }

    /// See [`EventName::is_claim`].
    pub fn is_claim(&self) -> bool {
        self.name().is_some_and(EventName::is_claim)
    }

    pub fn text(&self, key: &str) -> Option<String> {
        self.more.get(key).map(ToString::to_string)
    }

    /// The behaviour of the model that left the session of this event without a result.
    pub fn model_end(&self) -> Option<ModelEnd> {
        self.text("by_model")?.parse().ok()
    }

    /// A further fact that is a list of texts; empty if it is absent or something else.
    pub fn list(&self, key: &str) -> Vec<String> {
        match self.more.get(key) {
            Some(Value::List(items)) => items.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LogAction {
    /// A task's event, under its own name.
    Task(EventName),
    /// The blackboard was set up, or a new goal stated.
    GoalCreated,
    /// The goal was reached or aborted.
    GoalEnded,
    TasksFinalized,
    Edited,
    /// A claim lost its race.
    ClaimFailed,
    Registered,
    Deregistered,
    Rescoped,
    ReviewClaimed,
    ReviewsCleared,
    Anomaly,
    /// A discovery was added, or became a task.
    Discovered,
    Note,
    /// A person answered a question about a task.
    Answered,
    SpecUpdated,
    /// A summary of the work's relation to the goal.
    Aligned,
    Paused,
    Resumed,
    Aborted,
    Checkpoint,
    /// The breaker fired or was resolved.
    CircuitBreaker,
    SprintCompleted,
    SprintStarted,
    /// The sprint's deadline or retrospective was set.
    SprintUpdated,
    /// A code reviewer's sessions ended too often without a verdict.
    ReviewDropped,
    /// The commands that validate a task have ended, or may run again.
    Validated,
    /// An approval was refused: the integration branch moved, and the change is another one.
    ChangeMoved,
    /// The planner ended too often without a result.
    PlannerStopped,
    TasksProposed,
    /// The integration branch was brought up to date, or foreign commits on it were accepted.
    IntegrationUpdated,
    /// The integration test ran on the integration branch itself.
    HeadTested,
    GoalFinished,
    /// The remains of a crash were repaired.
    Recovered,
    /// A person edited the file.
    Edit,
    Configured,
    /// A person accepted the settings of the shared file.
    SettingsApplied,
}

impl LogAction {
    pub fn name(self) -> &'static str {
        if let LogAction::Task(event) = self { event.name() } else { self.into() }
    }

    /// True if an entry of that name says that the work moved: agents that come and go do not.
    pub fn is_progress(name: &str) -> bool {
        let others = [
            LogAction::Registered,
            LogAction::Deregistered,
            LogAction::ClaimFailed,
            LogAction::Recovered,
            LogAction::Task(EventName::SessionEnded),
        ];
        others.iter().all(|action| action.name() != name)
    }
}

/// One entry of the log: one write on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    pub timestamp: Timestamp,
    /// An agent's ID, `human` or `system`.
    pub agent: String,
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// One line for people who skim.
    pub detail: String,
}
