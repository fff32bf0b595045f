//! Notes of agents and people: anomalies, discoveries, handoffs, human notes and changes of specifications.
//!
//! Holds their shapes and required content; the commands in `protocol/` write them.

use std::fmt;
use std::str::FromStr;

use liza_ids::text::bounded;
use liza_ids::{AgentId, DiscoveryId, Role, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::value::{Fields, Value};

/// The type that a detail's value must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetailType {
    Text,
    /// A whole number of at least 0.
    Number,
    Flag,
}

impl DetailType {
    /// Converts a text, if it has this type.
    pub fn parse(self, text: &str) -> Option<Value> {
        match self {
            DetailType::Text => Some(Value::Text(text.to_owned())),
            DetailType::Number => text.trim().parse::<u32>().ok().map(Value::from),
            DetailType::Flag => match text.trim() {
                "true" | "yes" => Some(Value::Bool(true)),
                "false" | "no" => Some(Value::Bool(false)),
                _ => None,
            },
        }
    }

    /// True if the value is of this type and not blank.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            DetailType::Text => value.as_text().is_some_and(|text| !text.trim().is_empty()),
            DetailType::Number => matches!(value, Value::Int(0..)),
            DetailType::Flag => matches!(value, Value::Bool(_)),
        }
    }

    pub fn expected(self) -> &'static str {
        match self {
            DetailType::Text => "a text",
            DetailType::Number => "a whole number",
            DetailType::Flag => "true or false",
        }
    }
}

/// Declares the anomaly types: the roles that have the duty to log it, and its required details.
macro_rules! anomaly_types {
    ($($(#[$doc:meta])* $variant:ident by [$($role:ident),*] needs [$($field:literal: $type:ident),*],)+) => {
        /// The thirteen kinds of anomaly.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[derive(strum::Display, strum::IntoStaticStr, strum::VariantArray)]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        pub enum AnomalyType {
            $($(#[$doc])* $variant,)+
        }

        impl AnomalyType {

            pub fn duty_of(self) -> &'static [Role] {
                match self { $(AnomalyType::$variant => &[$(Role::$role),*]),+ }
            }

            /// The details that it must have.
            pub fn required(self) -> &'static [(&'static str, DetailType)] {
                match self { $(AnomalyType::$variant => &[$(($field, DetailType::$type)),*]),+ }
            }
        }
    };
}

anomaly_types! {
    /// The same error over more than two iterations.
    RetryLoop by [Coder, CodeReviewer] needs ["count": Number, "error_pattern": Text],
    /// A worse solution was accepted to make progress.
    TradeOff by [Coder] needs ["what": Text, "why": Text, "debt_created": Flag],
    /// The specification does not cover the case.
    SpecAmbiguity by [Coder] needs [],
    /// Something outside the project is in the way.
    ExternalBlocker by [Coder] needs ["blocker_service": Text],
    /// An assumption of the specification is wrong.
    AssumptionViolated by [Coder, CodeReviewer] needs ["assumption": Text, "reality": Text],
    /// The implementation differs from the task.
    ScopeDeviation by [CodeReviewer] needs [],
    /// A shortcut instead of a proper fix.
    Workaround by [CodeReviewer] needs [],
    DebtCreated by [CodeReviewer] needs [],
    /// The specification changed under the task.
    SpecChanged by [CodeReviewer] needs [],
    /// Two coders failed at the same task.
    HypothesisExhaustion by [Planner] needs [],
    SpecGap by [Planner] needs [],
    /// Coder and code reviewer did not agree.
    ReviewDeadlock by [Planner] needs [],
    /// Liza's own rules are unclear.
    SystemAmbiguity by [Planner, Coder, CodeReviewer] needs ["protocol_section": Text, "question": Text],
}

impl AnomalyType {
    /// All of them, in the order of the specification.
    pub const ALL: &'static [AnomalyType] = <AnomalyType as strum::VariantArray>::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// True if it asks the human something and waits for the answer.
    pub fn is_question(self) -> bool {
        matches!(self, AnomalyType::SpecGap | AnomalyType::SystemAmbiguity)
    }

    /// The type that a detail of that name has, required or not.
    pub fn detail_type(self, field: &str) -> DetailType {
        let required = self.required().iter().find(|(name, _)| *name == field).map(|(_, kind)| *kind);
        match field {
            _ if required.is_some() => required.unwrap_or(DetailType::Text),
            "count" => DetailType::Number,
            "debt_created" => DetailType::Flag,
            _ => DetailType::Text,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an anomaly type: expected one of {names}", names = anomaly_names())]
pub struct AnomalyTypeError(String);

/// All types in one line, for messages.
pub fn anomaly_names() -> String {
    AnomalyType::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for AnomalyType {
    type Err = AnomalyTypeError;

    fn from_str(text: &str) -> Result<Self, AnomalyTypeError> {
        AnomalyType::ALL
            .iter()
            .find(|kind| kind.name() == text)
            .copied()
            .ok_or_else(|| AnomalyTypeError(text.to_owned()))
    }
}

/// One entry of `anomalies`, as read: the type is text, since a broken one must not hide the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Anomaly {
    pub timestamp: Timestamp,
    #[serde(default)]
    pub task: Option<TaskId>,
    #[serde(default)]
    pub reporter: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub details: Fields,
}

impl Anomaly {
    pub(crate) fn new(
        timestamp: Timestamp,
        kind: AnomalyType,
        task: Option<&TaskId>,
        reporter: impl fmt::Display,
        details: Fields,
    ) -> Self {
        let (task, reporter) = (task.cloned(), Some(reporter.to_string()));
        Self { timestamp, task, reporter, kind: kind.name().to_owned(), details }
    }

    pub fn is(&self, kind: AnomalyType) -> bool {
        self.kind == kind.name()
    }
}

pub fn detail_faults(kind: AnomalyType, details: &Fields) -> Vec<String> {
    let fault = |(field, wanted): &(&str, DetailType)| match details.get(*field) {
        None | Some(Value::Null) => Some(format!("{kind} needs the detail {field}")),
        Some(value) if wanted.fits(value) => None,
        Some(value) => {
            Some(format!("{kind}: {field} must be {}, not {}", wanted.expected(), value.describe()))
        }
    };
    kind.required().iter().filter_map(fault).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    Critical,
    High,
    Medium,
    Low,
}

/// The time by which the planner has to look at a discovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Urgency {
    Immediate,
    #[default]
    Deferred,
}

/// The most bytes of the texts of a new discovery.
pub const DISCOVERY_MAX: usize = 8 << 10;

/// One entry of `discovered`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Discovery {
    pub id: DiscoveryId,
    #[serde(default)]
    pub by: Option<String>,
    #[serde(default)]
    pub during: Option<TaskId>,
    pub description: String,
    pub severity: Severity,
    #[serde(default)]
    pub urgency: Urgency,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
    #[serde(default)]
    pub created: Option<Timestamp>,
    /// The task that came of it.
    #[serde(default)]
    pub converted_to_task: Option<TaskId>,
    /// The time at which the human decided that it needs no task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dismissed: Option<Timestamp>,
}

impl Discovery {
    /// True until it becomes a task or is dismissed.
    pub fn is_open(&self) -> bool {
        self.converted_to_task.is_none() && self.dismissed.is_none()
    }

    /// True if the planner must look at it now.
    pub fn is_pressing(&self) -> bool {
        self.urgency == Urgency::Immediate && self.is_open()
    }

    /// The bytes of its texts.
    pub fn size(&self) -> usize {
        self.description.len() + self.recommendation.as_ref().map_or(0, String::len)
    }

    /// The same with texts for a screen: those of older programs had no limit.
    #[must_use]
    pub fn bounded(&self) -> Self {
        let short = |text: &String| bounded(text).into_owned();
        Self {
            id: self.id,
            by: self.by.clone(),
            during: self.during.clone(),
            description: short(&self.description),
            recommendation: self.recommendation.as_ref().map(short),
            severity: self.severity,
            urgency: self.urgency,
            created: self.created,
            converted_to_task: self.converted_to_task.clone(),
            dismissed: self.dismissed,
        }
    }
}

/// The notes of a session with a full context for the next one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Handoff {
    pub agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The context fill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_used: Option<String>,
    #[serde(default)]
    pub timestamp: Option<Timestamp>,
    /// The progress on the task.
    #[serde(default)]
    pub summary: String,
    #[serde(default)]
    pub next_action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approach: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blockers: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_steps: Vec<String>,
}

impl Handoff {
    /// The role that the notes are for.
    pub fn reader(&self) -> Role {
        self.role.unwrap_or(self.agent.role())
    }
}

/// One entry of `human_notes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HumanNote {
    pub timestamp: Timestamp,
    pub message: String,
    /// The notes are for the agents of this task; for all if absent.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub to: Option<TaskId>,
}

/// One entry of `spec_changes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecChange {
    pub timestamp: Timestamp,
    /// The document, with or without an anchor.
    pub spec: String,
    pub change: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<String>,
}
