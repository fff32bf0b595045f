//! What happened, as data: entries of a task's history and of the log.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::time::Timestamp;
use crate::value::{Fields, Value};

/// The names of history events; the log uses the same words where a task changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventName {
    /// The task was written down.
    Created,
    /// DRAFT became UNCLAIMED.
    Finalized,
    /// First claim, or a claim after a release.
    Claimed,
    /// The same coder goes on after a rejection.
    ReclaimedAfterRejection,
    /// Another coder takes a rejected task.
    ReassignedAfterRejection,
    /// A coder repairs a failed merge.
    ClaimedForIntegrationFix,
    /// Another coder takes over after the lease ran out.
    ReclaimedAfterExpiry,
    /// The same coder goes on with its own claim.
    Resumed,
    /// The coder said what it is about to do.
    PreExecutionCheckpoint,
    /// Submitted.
    ReadyForReview,
    /// Approved.
    Approved,
    /// Sent back.
    Rejected,
    /// On the integration branch.
    Merged,
    /// The merge failed.
    IntegrationFailed,
    /// Needs a decision.
    Blocked,
    /// Released from BLOCKED.
    Unblocked,
    /// Replaced.
    Superseded,
    /// Given up.
    Abandoned,
    /// A session handed over to the next.
    Handoff,
    /// A person took the claim away.
    Released,
    /// Moved to the archive.
    Archived,
}

impl EventName {
    /// The word in the file.
    pub fn name(self) -> &'static str {
        match self {
            EventName::Created => "created",
            EventName::Finalized => "finalized",
            EventName::Claimed => "claimed",
            EventName::ReclaimedAfterRejection => "reclaimed_after_rejection",
            EventName::ReassignedAfterRejection => "reassigned_after_rejection",
            EventName::ClaimedForIntegrationFix => "claimed_for_integration_fix",
            EventName::ReclaimedAfterExpiry => "reclaimed_after_expiry",
            EventName::Resumed => "resumed",
            EventName::PreExecutionCheckpoint => "pre_execution_checkpoint",
            EventName::ReadyForReview => "ready_for_review",
            EventName::Approved => "approved",
            EventName::Rejected => "rejected",
            EventName::Merged => "merged",
            EventName::IntegrationFailed => "integration_failed",
            EventName::Blocked => "blocked",
            EventName::Unblocked => "unblocked",
            EventName::Superseded => "superseded",
            EventName::Abandoned => "abandoned",
            EventName::Handoff => "handoff",
            EventName::Released => "released",
            EventName::Archived => "archived",
        }
    }

    /// Whether it counts as an iteration: a coder began, or began again. Resuming one's own claim does not.
    pub fn is_claim(name: &str) -> bool {
        const CLAIMS: [EventName; 5] = [
            EventName::Claimed,
            EventName::ReclaimedAfterRejection,
            EventName::ReassignedAfterRejection,
            EventName::ClaimedForIntegrationFix,
            EventName::ReclaimedAfterExpiry,
        ];
        CLAIMS.iter().any(|claim| claim.name() == name)
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One entry of a task's history. The name is text, since people and older versions write their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEvent {
    /// When.
    pub time: Timestamp,
    /// What.
    pub event: String,
    /// Who, where somebody acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Commit, reason, previous assignee and the like.
    #[serde(flatten)]
    pub more: Fields,
}

impl HistoryEvent {
    /// An event without further facts.
    pub fn new(time: Timestamp, event: EventName, agent: impl fmt::Display) -> Self {
        Self { time, event: event.name().to_owned(), agent: Some(agent.to_string()), more: Fields::new() }
    }

    /// Adds one fact.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.more.insert(key.to_owned(), value.into());
        self
    }

    /// Adds a fact where there is one.
    #[must_use]
    pub fn with_some(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Whether this is an event of that name.
    pub fn is(&self, name: EventName) -> bool {
        self.event == name.name()
    }
}

/// Log actions that are not task events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAction {
    /// A task's event.
    Task(EventName),
    /// The blackboard was set up, or a new goal stated.
    GoalCreated,
    /// The goal was reached, or given up.
    GoalEnded,
    /// Drafts became claimable.
    TasksFinalized,
    /// A draft was changed.
    Edited,
    /// A claim lost its race.
    ClaimFailed,
    /// An agent came.
    Registered,
    /// An agent went.
    Deregistered,
    /// A task was replaced.
    Rescoped,
    /// A code reviewer took a review.
    ReviewClaimed,
    /// Stale review claims were cleared.
    ReviewsCleared,
    /// An anomaly was written down.
    Anomaly,
    /// A discovery was written down, or became a task.
    Discovered,
    /// A person left a note.
    Note,
    /// A specification changed.
    SpecUpdated,
    /// A summary of how the work stands to the goal.
    Aligned,
    /// PAUSE.
    Paused,
    /// PAUSE or CHECKPOINT is over.
    Resumed,
    /// ABORT.
    Aborted,
    /// CHECKPOINT.
    Checkpoint,
    /// The breaker looked, fired or was resolved.
    CircuitBreaker,
    /// All planned tasks are terminal.
    SprintCompleted,
    /// The next sprint began.
    SprintStarted,
    /// The sprint's deadline or retrospective was set.
    SprintUpdated,
    /// What a crash had left was settled.
    Recovered,
    /// A person edited the file.
    Edit,
}

impl LogAction {
    /// The word in the file.
    pub fn name(self) -> &'static str {
        match self {
            LogAction::Task(event) => event.name(),
            LogAction::GoalCreated => "goal_created",
            LogAction::GoalEnded => "goal_ended",
            LogAction::TasksFinalized => "tasks_finalized",
            LogAction::Edited => "edited",
            LogAction::ClaimFailed => "claim_failed",
            LogAction::Registered => "registered",
            LogAction::Deregistered => "deregistered",
            LogAction::Rescoped => "rescoped",
            LogAction::ReviewClaimed => "review_claimed",
            LogAction::ReviewsCleared => "reviews_cleared",
            LogAction::Anomaly => "anomaly",
            LogAction::Discovered => "discovered",
            LogAction::Note => "note",
            LogAction::SpecUpdated => "spec_updated",
            LogAction::Aligned => "aligned",
            LogAction::Paused => "paused",
            LogAction::Resumed => "resumed",
            LogAction::Aborted => "aborted",
            LogAction::Checkpoint => "checkpoint",
            LogAction::CircuitBreaker => "circuit_breaker",
            LogAction::SprintCompleted => "sprint_completed",
            LogAction::SprintStarted => "sprint_started",
            LogAction::SprintUpdated => "sprint_updated",
            LogAction::Recovered => "recovered",
            LogAction::Edit => "edit",
        }
    }
}

/// One entry of the log: what one write did, on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// When.
    pub timestamp: Timestamp,
    /// Who: an agent's ID, `human` or `system`.
    pub agent: String,
    /// What.
    pub action: String,
    /// On which task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// One line for people who skim.
    pub detail: String,
}

/// Makes one line of a text: white space folded, cut at `max` characters.
pub fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|c| !c.is_control()));
    }
    match line.char_indices().nth(max) {
        Some((cut, _)) => format!("{}…", line[..cut].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_folds_and_cuts_at_characters() {
        assert_eq!(one_line("a\n  b\u{7}c\td ", 80), "a bc d");
        assert_eq!(one_line("ééééé", 3), "ééé…");
        assert_eq!(one_line("", 3), "");
    }
}
