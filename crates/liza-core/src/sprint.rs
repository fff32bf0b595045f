//! The sprint: its scope, its timeline, its figures, and when it is over.
//!
//! Reads heads only, so that it stays cheap on a large blackboard.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::board::Board;
use crate::ids::TaskId;
use crate::metrics::Metrics;
use crate::record::Status;
use crate::time::Timestamp;

/// Where the sprint stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SprintStatus {
    /// Work goes on.
    InProgress,
    /// A human is asked to look.
    Checkpoint,
    /// All planned tasks are terminal.
    Completed,
    /// Stopped by the human.
    Aborted,
}

impl SprintStatus {
    /// Whether it is over for good.
    pub fn is_terminal(self) -> bool {
        matches!(self, SprintStatus::Completed | SprintStatus::Aborted)
    }
}

impl fmt::Display for SprintStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SprintStatus::InProgress => "IN_PROGRESS",
            SprintStatus::Checkpoint => "CHECKPOINT",
            SprintStatus::Completed => "COMPLETED",
            SprintStatus::Aborted => "ABORTED",
        })
    }
}

/// Which tasks the sprint is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SprintScope {
    /// What has to be done.
    #[serde(default)]
    pub planned: Vec<TaskId>,
    /// What may be done.
    #[serde(default)]
    pub stretch: Vec<TaskId>,
}

/// When the sprint began, is due, was looked at and ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// When it began.
    #[serde(default)]
    pub started: Option<Timestamp>,
    /// When a human wants to look at it at the latest.
    #[serde(default)]
    pub deadline: Option<Timestamp>,
    /// The last checkpoint.
    #[serde(default)]
    pub checkpoint_at: Option<Timestamp>,
    /// Since when everybody pauses, so that a PAUSE file that comes or goes by hand is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default)]
    pub ended: Option<Timestamp>,
}

/// What a human can decide at a checkpoint.
pub const DECISIONS: [&str; 6] = ["continue", "adjust specs", "adjust contracts", "replan", "pivot", STOP];

/// The decision after which nothing goes on.
pub const STOP: &str = "stop";

/// A human's decision at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When.
    pub timestamp: Timestamp,
    /// continue, adjust specs, adjust contracts, replan, pivot or stop.
    pub decision: String,
    /// In the human's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The `sprint` section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sprint {
    /// `sprint-N`.
    pub id: String,
    /// The goal that it serves.
    #[serde(default)]
    pub goal_ref: Option<String>,
    /// Which tasks.
    #[serde(default)]
    pub scope: SprintScope,
    /// Which times.
    #[serde(default)]
    pub timeline: Timeline,
    /// Where it stands.
    pub status: SprintStatus,
    /// Its figures.
    #[serde(default)]
    pub metrics: Metrics,
    /// What was learned.
    #[serde(default)]
    pub retrospective: Option<String>,
    /// What the planner was last woken for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen_triggers: Vec<String>,
    /// What the human decided at checkpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
}

impl Sprint {
    /// A sprint that begins now.
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
            decisions: Vec::new(),
        }
    }

    /// The number in `sprint-N`; 1 where there is none.
    pub fn number(&self) -> u32 {
        self.id.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(1)
    }

    /// Whether the deadline has come and no human has looked since: neither has it led to a checkpoint, nor was it
    /// decided after it how to go on.
    pub fn deadline_due(&self, now: Timestamp) -> bool {
        let decided = self.decisions.iter().map(|decision| decision.timestamp).max();
        let looked = self.timeline.checkpoint_at.max(decided);
        let due = self.timeline.deadline.filter(|deadline| *deadline <= now);
        due.is_some_and(|deadline| looked.is_none_or(|looked| looked < deadline))
    }

    /// Whether the task is in the plan, planned or stretch.
    pub fn names(&self, task: &TaskId) -> bool {
        self.scope.planned.contains(task) || self.scope.stretch.contains(task)
    }
}

/// The planned tasks and, where one was replaced, its replacements, to the end of the chain.
pub fn planned_with_replacements(board: &Board, sprint: &Sprint) -> BTreeSet<TaskId> {
    let mut found = BTreeSet::new();
    let mut open: Vec<TaskId> = sprint.scope.planned.clone();
    while let Some(task) = open.pop() {
        if found.insert(task.clone())
            && let Some(head) = board.head(&task)
        {
            open.extend(head.superseded_by.iter().cloned());
        }
    }
    found
}

/// Whether the sprint has come to its end: it has planned tasks, all of them, their replacements and the injected
/// ones are terminal, no DRAFT is left and no planning session runs.
pub fn is_complete(board: &Board, sprint: &Sprint, planning: bool) -> bool {
    let planned = planned_with_replacements(board, sprint);
    let stretch: BTreeSet<&TaskId> = sprint.scope.stretch.iter().collect();
    let over = |status: Option<Status>| status.is_some_and(Status::is_terminal);
    // Whatever is neither planned nor stretch was injected by a person, and counts as planned.
    let rest_over = board
        .heads()
        .all(|head| over(head.status) || (stretch.contains(&head.id) && head.status != Some(Status::Draft)));
    !planning && !planned.is_empty() && planned.iter().all(|task| over(board.status(task))) && rest_over
}
