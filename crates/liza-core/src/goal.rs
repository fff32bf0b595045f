//! The goal: what the human wants, and how the work has stood to it over time.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Where the goal stands. It spans sprints, so it knows no checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GoalStatus {
    /// Being worked on.
    InProgress,
    /// Reached; said by the planner or the human.
    Completed,
    /// Given up by the human.
    Aborted,
}

impl fmt::Display for GoalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            GoalStatus::InProgress => "IN_PROGRESS",
            GoalStatus::Completed => "COMPLETED",
            GoalStatus::Aborted => "ABORTED",
        })
    }
}

/// The `goal` section without its history, which only ever grows and is never read for a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// `goal-N`.
    pub id: String,
    /// What is wanted; empty while the human has not said.
    #[serde(default)]
    pub description: String,
    /// The vision document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_ref: Option<String>,
    /// When it was stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// Where it stands.
    pub status: GoalStatus,
}

/// One entry of `goal.alignment_history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alignment {
    /// When.
    pub timestamp: Timestamp,
    /// `initialization`, `alignment` or `rescope_<task>`.
    pub event: String,
    /// How the work stands to the goal.
    pub summary: String,
}
