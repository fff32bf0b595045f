//! The sprint: its scope, its timeline and its figures.

use indexmap::IndexMap;
use liza_ids::{AgentId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::client::ClientRecord;
use crate::model::metrics::Metrics;
use crate::model::spending::{DayUsage, Usage};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum SprintStatus {
    InProgress,
    /// Waits for a person's review.
    Checkpoint,
    /// Every planned task has ended.
    Completed,
    Aborted,
}

impl SprintStatus {
    pub fn is_terminal(self) -> bool {
        matches!(self, SprintStatus::Completed | SprintStatus::Aborted)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SprintScope {
    /// The tasks that must be done.
    #[serde(default)]
    pub planned: Vec<TaskId>,
    #[serde(default)]
    pub stretch: Vec<TaskId>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    #[serde(default)]
    pub started: Option<Timestamp>,
    /// The latest time at which a person wants to review it.
    #[serde(default)]
    pub deadline: Option<Timestamp>,
    #[serde(default)]
    pub checkpoint_at: Option<Timestamp>,
    /// The beginning of a pause, so that a PAUSE file created or removed by hand is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    #[serde(default)]
    pub ended: Option<Timestamp>,
}

/// The possible decisions of a human at a checkpoint.
pub const DECISIONS: [&str; 6] = ["continue", "adjust specs", "adjust contracts", "replan", "pivot", STOP];

/// The decision that ends the goal.
pub const STOP: &str = "stop";

/// A human's decision at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub timestamp: Timestamp,
    /// continue, adjust specs, adjust contracts, replan, pivot or stop.
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Sessions since the human, or a merge, last refilled their budget: see `rules/session_budget.rs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCounts {
    #[serde(default)]
    pub planner: u32,
    /// On tasks that the planner added to a running plan.
    #[serde(default)]
    pub shared: u32,
    /// On each other task, with its replacements.
    #[serde(default)]
    pub tasks: IndexMap<TaskId, u32>,
}

impl SessionCounts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Planning sessions that ended without a result, since the last one that had one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannerExits {
    #[serde(default)]
    pub count: u32,
    /// The last lines that the last of them printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
    /// The reason that the last of them was started, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken_because: Option<String>,
    /// The matters that the last of them was started for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub woken_for: Vec<String>,
}

impl PlannerExits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sprint {
    pub id: String,
    #[serde(default)]
    pub goal_ref: Option<String>,
    #[serde(default)]
    pub scope: SprintScope,
    #[serde(default)]
    pub timeline: Timeline,
    pub status: SprintStatus,
    #[serde(default)]
    pub metrics: Metrics,
    #[serde(default)]
    pub retrospective: Option<String>,
    /// The triggers that last woke the planner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen_triggers: Vec<String>,
    /// The number of notes in the list when each planner last read them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub notes_read: IndexMap<AgentId, usize>,
    /// Sessions since their budget was refilled.
    #[serde(default, skip_serializing_if = "SessionCounts::is_empty")]
    pub sessions: SessionCounts,
    #[serde(default, skip_serializing_if = "PlannerExits::is_empty")]
    pub planner_exits: PlannerExits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The usage of the last day with a session, in this sprint or before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub today: Option<DayUsage>,
    /// Agent programs that fail, or are held.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub clients: IndexMap<String, ClientRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
}

impl Sprint {
    pub fn begin(number: u32, goal: &str, now: Timestamp) -> Self {
        Self {
            id: format!("sprint-{number}"),
            goal_ref: Some(goal.to_owned()),
            scope: SprintScope::default(),
            timeline: Timeline { started: Some(now), ..Timeline::default() },
            status: SprintStatus::InProgress,
            metrics: Metrics::default(),
            retrospective: None,
            seen_triggers: Vec::new(),
            notes_read: IndexMap::new(),
            sessions: SessionCounts::default(),
            planner_exits: PlannerExits::default(),
            usage: None,
            today: None,
            clients: IndexMap::new(),
            decisions: Vec::new(),
        }
    }

    /// The number in `sprint-N`; 1 if there is none.
    pub fn number(&self) -> u32 {
        self.id.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(1)
    }

    /// True if the deadline has passed, without a checkpoint or a decision since.
    pub fn deadline_due(&self, now: Timestamp) -> bool {
        let decided = self.decisions.iter().map(|decision| decision.timestamp).max();
        let reviewed = self.timeline.checkpoint_at.max(decided);
        let due = self.timeline.deadline.filter(|deadline| *deadline <= now);
        due.is_some_and(|deadline| reviewed.is_none_or(|reviewed| reviewed < deadline))
    }

    /// True if the task is in the plan, planned or stretch.
    pub fn names(&self, task: &TaskId) -> bool {
        self.scope.planned.contains(task) || self.scope.stretch.contains(task)
    }
}
