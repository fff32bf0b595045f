//! What a team reports to people: who, what, and how much it matters.

use liza_core::model::AgentId;

/// A line for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMessage {
    /// About which agent; none if it is about the whole team.
    pub agent: Option<AgentId>,
    /// What happened.
    pub text: String,
    /// How much it matters.
    pub level: MessageLevel,
}

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageLevel {
    /// For someone who looks closely.
    Debug,
    /// Something happened.
    Info,
    /// A person should look.
    Alert,
}

impl TeamMessage {
    /// A message about the whole team.
    pub fn of_team(level: MessageLevel, text: impl Into<String>) -> Self {
        Self { agent: None, text: text.into(), level }
    }
}
