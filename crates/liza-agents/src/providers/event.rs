//! The common events of all agent programs, and the task of an adapter. Plain data; reads nothing.

use liza_core::model::{ClientFault, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{EnumString, VariantNames};

/// The format of the events that a program writes to its output, named as in `config.providers`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum EventFormat {
    #[default]
    None,
    Rehearsal,
    Claude,
    Codex,
    Gemini,
    Goose,
    Opencode,
    Vibe,
    Copilot,
    Qwen,
}

impl EventFormat {
    /// True if the program reports the cost of a session.
    pub(crate) fn reports_cost(self) -> bool {
        match self {
            EventFormat::Rehearsal
            | EventFormat::Claude
            | EventFormat::Goose
            | EventFormat::Opencode
            | EventFormat::Vibe => true,
            EventFormat::None
            | EventFormat::Codex
            | EventFormat::Gemini
            | EventFormat::Copilot
            | EventFormat::Qwen => false,
        }
    }

    /// The session's own part of a total, if the program reports that of the whole conversation, of which
    /// `before` was used by earlier sessions.
    pub(super) fn own_part(self, total: &Usage, before: &Usage) -> Usage {
        match self {
            EventFormat::Codex | EventFormat::Copilot => total.since(before),
            EventFormat::Claude if total.cost_usd >= before.cost_usd => {
                Usage { cost_usd: total.cost_usd - before.cost_usd, ..total.clone() }
            }
            EventFormat::None
            | EventFormat::Rehearsal
            | EventFormat::Claude
            | EventFormat::Gemini
            | EventFormat::Goose
            | EventFormat::Opencode
            | EventFormat::Vibe
            | EventFormat::Qwen => total.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ClientEvent {
    /// The program has begun; its name for the conversation.
    Started(String),
    /// The words of the model, or of the program itself.
    Text(String),
    /// A tool is used: its name and its target.
    Tool(String, String),
    /// A tool has ended; the model has its result.
    Answered(ToolAnswer),
    Compacted,
    /// The program has ended its session because it has cost what it may.
    BudgetReached,
    Used(UsageReport),
    /// News for a person, such as a retry; not an error yet.
    Note(String),
    /// A warning of the client, which says nothing about the session's work.
    Warning(String),
    Fault(ClientFault),
    /// The program has reported its regular end.
    Ended,
}

/// A tool call and its answer as numbers: equal ones have equal numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolExchange {
    /// The tool and its input.
    pub call: u64,
    /// The answer; `None` if the program does not say it.
    pub answer: Option<u64>,
}

/// The answer of a tool, folded: a few lines, and the number of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The call and the answer, to be compared with others; `None` if the call is not known.
    pub exchange: Option<ToolExchange>,
    pub end: ToolEnd,
    /// Its last lines, or those of the refusal. They may contain anything that a terminal obeys.
    pub lines: Vec<String>,
    /// The number of its other lines.
    pub folded: usize,
    /// Liza refused the command that the tool ran.
    pub refused: bool,
}

/// The end of a tool, as far as its program reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ToolEnd {
    #[default]
    Unknown,
    Succeeded,
    Failed,
    /// A command, with this code.
    Exit(i64),
}

impl ToolEnd {
    /// An exit code says more than that a tool failed.
    pub(super) fn of(code: Option<&Value>, failed: Option<bool>) -> Self {
        match (code.and_then(Value::as_i64), failed) {
            (Some(code), _) => ToolEnd::Exit(code),
            (None, Some(true)) => ToolEnd::Failed,
            (None, Some(false)) => ToolEnd::Succeeded,
            (None, None) => ToolEnd::Unknown,
        }
    }

    pub(super) fn is_failure(self) -> bool {
        match self {
            ToolEnd::Unknown | ToolEnd::Succeeded => false,
            ToolEnd::Failed => true,
            ToolEnd::Exit(code) => code != 0,
        }
    }
}

/// A program's report about its usage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageReport {
    pub usage: Usage,
    /// True if the figures are those of the whole session, and replace the sum so far.
    pub is_total: bool,
    /// The used share of the context, if it is known.
    pub context_percent: Option<f64>,
}

/// Turns the lines of one program's output into common events; may keep state from line to line.
pub trait EventReader: Send {
    /// The events in a line; `None` if it is plain text. An event without interest is an empty list. Must not
    /// fail: output is not trusted.
    fn read(&mut self, line: &str) -> Option<Vec<ClientEvent>>;
}
