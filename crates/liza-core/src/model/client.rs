//! The faults of an agent program, or of the provider behind it.

use std::fmt;

use liza_ids::{Seconds, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FaultKind {
    /// It is not logged in, or its key is invalid.
    Auth,
    /// A limit of the account is reached.
    Quota,
    /// The provider cannot answer now.
    Overloaded,
    /// The conversation no longer fits.
    ContextFull,
    /// It was not allowed to do something.
    PermissionDenied,
    /// The model, or its provider's policy, refuses the work.
    Refused,
    Crashed,
}

impl FaultKind {
    /// True if the client or its provider is at fault: the fault counts against no task and no agent.
    pub fn is_of_client(self) -> bool {
        match self {
            FaultKind::Auth | FaultKind::Quota | FaultKind::Overloaded => true,
            FaultKind::ContextFull
            | FaultKind::PermissionDenied
            | FaultKind::Refused
            | FaultKind::Crashed => false,
        }
    }

    /// One sentence for people.
    pub fn describe(self) -> &'static str {
        match self {
            FaultKind::Auth => "no valid login",
            FaultKind::Quota => "usage limit reached",
            FaultKind::Overloaded => "provider not available",
            FaultKind::ContextFull => "context full",
            FaultKind::PermissionDenied => "permission denied",
            FaultKind::Refused => "refused by the model",
            FaultKind::Crashed => "failed",
        }
    }
}

/// The end of an account's limit, as the provider reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitReset {
    At(Timestamp),
    /// This long after the error.
    In(Seconds),
}

/// The longest hold of a client without a retry; limits of a week are usual.
const LONGEST_LIMIT: Seconds = Seconds(8 * 24 * 60 * 60);

impl LimitReset {
    /// The time, for an error that happened at `now`.
    pub fn time(self, now: Timestamp) -> Timestamp {
        match self {
            // The output of a session is not trusted.
            LimitReset::At(time) => time.min(now + LONGEST_LIMIT),
            LimitReset::In(wait) => now + wait.min(LONGEST_LIMIT),
        }
    }
}

/// An error that an agent program reported in its own error records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientFault {
    pub kind: FaultKind,
    /// In the program's words, on one line.
    pub message: String,
    pub reset: Option<LimitReset>,
}

/// The part of the model in a session, as far as the events of its program show it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelPart {
    /// The program writes no events.
    #[default]
    Unknown,
    /// No output of a model and no tokens: whatever failed, it was not the model.
    Silent,
    /// It answered, and called no tool.
    Words,
    Tools,
}

/// The behaviour of a model that left its session without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum ModelEnd {
    NoToolCall,
    Refused,
    ContextFull,
    NothingRecorded,
}

impl ModelEnd {
    /// For a sentence about the session.
    pub fn describe(self) -> &'static str {
        match self {
            ModelEnd::NoToolCall => "the model called no tool",
            ModelEnd::Refused => "the model refused the work",
            ModelEnd::ContextFull => "its context was full",
            ModelEnd::NothingRecorded => "the model ended its turn without recording a result",
        }
    }
}

/// A result that a session tried to record and that Liza refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedResult {
    pub verb: &'static str,
    pub why: String,
}

impl fmt::Display for RefusedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Liza refused {}: {}", self.verb, self.why)
    }
}

/// The human's step after which a client can be used again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// Its login: a command, and other ways.
    Run(String),
    Set {
        variable: String,
        /// The meaning of the variable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meaning: Option<String>,
    },
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repair::Run(login) => write!(f, "Run {login}"),
            Repair::Set { variable, meaning: None } => write!(f, "Set {variable}"),
            Repair::Set { variable, meaning: Some(meaning) } => write!(f, "Set {variable}, {meaning}"),
        }
    }
}

/// The reason that no session of a client starts now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHold {
    pub kind: FaultKind,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
    pub since: Timestamp,
    /// The time of the next try by one session; `None` until the human continues.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// The sessions that have tried again.
    #[serde(default)]
    pub probes: u32,
}

/// Sessions of a client in a row that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlikeFailures {
    /// Their ending, normalized for comparison.
    pub sign: String,
    pub count: u32,
    /// The tasks that they worked on, `plan` for the planner; no more than needed.
    #[serde(default)]
    pub subjects: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<ClientHold>,
    /// The last failures, while they are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<AlikeFailures>,
}

impl ClientRecord {
    /// True if no session of it starts now.
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.until.is_none_or(|until| until > now))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    pub client: String,
    /// `None` for a planner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub started: Timestamp,
    pub ended: Timestamp,
    /// Its ending, in one line for people.
    pub result: String,
    /// True if it had no result, or its client failed.
    #[serde(default)]
    pub failed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultKind>,
    /// The time of the next try, after a session without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Timestamp>,
}
