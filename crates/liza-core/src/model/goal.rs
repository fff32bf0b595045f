//! The goal of the human, and the alignment of the work with it over time.

use liza_ids::{Sha, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::spending::Usage;

/// The state of the goal. It spans sprints, so it has no checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum GoalStatus {
    InProgress,
    /// Reached; declared by the planner or the human.
    Completed,
    Aborted,
}

/// The `goal` section without its history, which only grows and is never read for a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    pub id: String,
    /// Empty until the human has stated it.
    #[serde(default)]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    pub status: GoalStatus,
    /// True once the planner has planned for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planned: bool,
    /// Tokens and money that all its sessions have used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The head of the integration branch that the program set, or that the human accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration_head: Option<Sha>,
    /// The result of the integration test on an integration head, without the change of any task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_test: Option<HeadTest>,
    /// Counts the merges and acceptances that may have changed the protected files; a merge that waits for
    /// the human's word on the gate is tried again after each.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gate_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<TakenResult>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The result of a goal as the human took it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenResult {
    /// The integration head that was taken.
    pub head: Sha,
    pub time: Timestamp,
    pub how: String,
}

/// The result of the integration test on the integration branch itself: it tells a task that breaks the test
/// from a test that was broken before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadTest {
    pub head: Sha,
    pub time: Timestamp,
    /// `None` if it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TestFailure>,
    /// Words for the settings under which it was run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestFailure {
    /// One line for people.
    pub what: String,
    /// The file that has its output.
    pub output: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
}

impl Goal {
    /// Creates a goal that begins now, with nothing planned for it.
    pub fn begin(number: u32, description: &str, now: Timestamp) -> Self {
        Self {
            id: format!("goal-{number}"),
            description: description.to_owned(),
            spec_ref: None,
            created: Some(now),
            status: GoalStatus::InProgress,
            planned: false,
            usage: None,
            integration_head: None,
            head_test: None,
            gate_version: 0,
            taken: None,
        }
    }
}

/// One entry of `goal.alignment_history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alignment {
    pub timestamp: Timestamp,
    /// `initialization`, `alignment` or `rescope_<task>`.
    pub event: String,
    /// The relation of the work to the goal.
    pub summary: String,
}
