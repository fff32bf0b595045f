//! What a team reports to people: who, what, and how much it matters.

use liza_core::model::{AgentId, Timestamp};

/// One line of a team's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMessage {
    /// The agent that it is about; none if it is about the whole team.
    pub agent: Option<AgentId>,
    pub text: String,
    pub level: MessageLevel,
    /// When it happened, if it is reported later: a session's result is known when the session has ended.
    pub happened: Option<Timestamp>,
}

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageLevel {
    /// Details, shown with `--verbose`.
    Debug,
    Info,
    Alert,
}

impl TeamMessage {
    /// A message about the whole team.
    pub fn of_team(level: MessageLevel, text: impl Into<String>) -> Self {
        Self { agent: None, text: text.into(), level, happened: None }
    }
}
