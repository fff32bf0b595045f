//! The impact of a task, the approvals that a high one collects, and the preference for other reviewers. Plain data.

use liza_ids::{AgentId, Sha};
use serde::{Deserialize, Serialize};

/// The planner's or the human's word on a task. Facts about the work can only raise it.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Impact {
    #[default]
    Normal,
    /// Needs the approvals of two code reviewers, or of the human.
    High,
}

/// One code reviewer's approval of one commit, while others are needed or were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub commit: Sha,
    /// The integration head at which it has read the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Sha>,
}

/// The rule for reviewers whose program and model are the author's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReviewDiversity {
    /// A free reviewer with another program or model comes first.
    #[default]
    Prefer,
    Off,
}
