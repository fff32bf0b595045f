//! A program's records of its usage beside its output, as lines that its reader understands.

use std::ffi::OsString;

use super::event::EventFormat;
use super::request_logs::RequestLogs;
use super::rollout::RolloutReader;

#[derive(Debug)]
pub enum SideLog {
    /// Codex: one log of the conversation.
    Rollout(RolloutReader),
    /// Goose: one log for each request.
    Requests(RequestLogs),
}

impl SideLog {
    /// A reader, if this program keeps such logs. `variable` gives the variables of the session; `is_private`
    /// is true if its folder is its own, without the logs of others.
    pub fn new(
        format: EventFormat,
        is_private: bool,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Option<Self> {
        match format {
            EventFormat::Codex => RolloutReader::new(format, variable).map(SideLog::Rollout),
            EventFormat::Goose if is_private => RequestLogs::new(variable).map(SideLog::Requests),
            EventFormat::Goose
            | EventFormat::None
            | EventFormat::Rehearsal
            | EventFormat::Claude
            | EventFormat::Gemini
            | EventFormat::Opencode
            | EventFormat::Vibe
            | EventFormat::Copilot
            | EventFormat::Qwen => None,
        }
    }

    /// The new lines, for the conversation of the session.
    pub fn read(&mut self, conversation: Option<&str>) -> Vec<String> {
        match self {
            SideLog::Rollout(log) => conversation.and_then(|name| log.read(name)).into_iter().collect(),
            SideLog::Requests(logs) => logs.read(),
        }
    }
}
