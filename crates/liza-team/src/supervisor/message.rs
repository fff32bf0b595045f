//! Messages of a team to people: the agent, the text, and its importance.

use liza_core::model::{AgentId, Timestamp};
use liza_status::alarms::AlarmLevel;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMessage {
    /// `None` if it is about the whole team.
    pub agent: Option<AgentId>,
    pub text: String,
    pub level: MessageLevel,
    /// The time of the event, if it is reported later: a session's result is known when the session has ended.
    pub happened: Option<Timestamp>,
    /// How loud the alarm is that it reports, if it is one.
    pub alarm: Option<AlarmLevel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageLevel {
    /// Details, shown with `--verbose`.
    Debug,
    Info,
    Alert,
}

impl TeamMessage {
    pub fn of_team(level: MessageLevel, text: impl Into<String>) -> Self {
        Self { agent: None, text: text.into(), level, happened: None, alarm: None }
    }
}
