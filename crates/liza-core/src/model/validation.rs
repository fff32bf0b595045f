//! Validation: commands that Liza runs on submitted work before a reviewer's session is paid for.

use liza_ids::{Sha, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::goal::TestFailure;

/// A command that validates work, and the blame for its failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationCommand {
    /// A line for the shell.
    pub line: String,
    pub kind: ValidationKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValidationKind {
    /// The project's: it passes without the work too, so a failure there blames no task.
    Keeps,
    /// The task's: it fails before the work, so it is never compared with the integration branch.
    Shows,
}

/// The last result of a task's validation, for exactly one commit, these commands and these protected files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validation {
    pub commit: Sha,
    pub result: ValidationResult,
    /// All commands of the run, in its order.
    pub commands: Vec<String>,
    /// The digest of the protected files of the integration branch.
    pub gate: String,
    /// The tree that was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Sha>,
    pub time: Timestamp,
    /// The command that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TestFailure>,
    /// Commands that failed once and then passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// The recorded integration head at which the command fails too, if no task is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Sha>,
    /// Words for the settings under which no task was to blame.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// The digest of its statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ValidationResult {
    Green,
    /// The work is sent back.
    Red,
    /// No task is to blame: the review waits for the human.
    Held,
}

/// The part of a review that its reviewer is in; a session has begun if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReviewPhase {
    /// Liza runs the commands; no session is paid for yet.
    Validation,
}
