//! The needs of the pages. The program implements the seat; this crate only asks.

use std::net::SocketAddr;

use liza_core::model::{AgentId, Timestamp};

/// The human's seat: commands as the human, and data that is kept outside the blackboard.
pub trait Seat: Send + Sync + 'static {
    /// Executes `liza WORDS` as the human, by the code of the command line.
    fn execute(&self, words: &[String]) -> CommandResult;

    /// True if the process at the other end is of the same user and outside all agent sessions.
    fn admits(&self, peer: SocketAddr, server: SocketAddr) -> bool;

    /// The sessions whose prompts are kept, the newest first.
    fn sessions(&self) -> Vec<SavedSession>;

    fn prompt(&self, session: &SavedSession) -> Option<String>;

    /// The output of one of those sessions, for people.
    fn output(&self, session: &SavedSession) -> Vec<OutputLine>;

    /// The whole log, the oldest entry first.
    fn log(&self) -> Vec<LogLine>;

    /// A time with its day, in the zone of the person.
    fn full_time(&self, time: Timestamp) -> String;

    /// The time of the day, in the zone of the person.
    fn time_of_day(&self, time: Timestamp) -> String;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    pub succeeded: bool,
    pub text: String,
}

/// A session whose prompt is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSession {
    pub name: String,
    pub agent: AgentId,
    /// The task, or `plan`.
    pub about: String,
    pub started: Timestamp,
}

/// The kind of a line of a session's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    Text,
    /// A tool that it used.
    Tool,
    /// The answer of a tool.
    Answer,
    /// A refusal of Liza as the answer of a tool.
    Refusal,
    Note,
    Fault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLine {
    pub kind: OutputKind,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub time: Timestamp,
    pub who: String,
    /// The action, by its name in the log.
    pub action: String,
    /// The task, if it is about one.
    pub task: Option<String>,
    pub detail: String,
    /// The sentence before and after its task; `who` is its subject.
    pub sentence: [String; 2],
    /// The details that the sentence does not have.
    pub remark: Option<String>,
    pub tone: LogTone,
}

/// The tone of an entry of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogTone {
    Plain,
    /// A step of the whole team.
    Strong,
    Good,
    /// Something that is worth a look.
    Attention,
    Bad,
}
