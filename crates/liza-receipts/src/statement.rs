//! Statements in the form of in-toto (Statement v1) with predicate types of our own: validation, review, merge, acceptance.
//!
//! A statement has exactly one spelling: JSON with sorted keys and no blanks. Its name is the digest of that text, so an edited
//! statement has another name. Anything else that a text contains is refused when it is read.

use liza_ids::{Approver, Digest, Sha, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strum::{EnumString, IntoStaticStr, VariantNames};

/// The longest statement, in bytes.
pub const STATEMENT_MAX: usize = 8 << 10;

/// The longest text of a command in a statement, in characters; its digest is that of the whole command.
const TEXT_MAX: usize = 200;

const TYPE: &str = "https://in-toto.io/Statement/v1";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    #[error("a statement has at most {STATEMENT_MAX} bytes, this one {0}")]
    TooLarge(usize),
    #[error("no statement: {0}")]
    Malformed(String),
    /// It has the fields of a statement in another order, with blanks, or with more beside them.
    #[error("a statement in another spelling than Liza's")]
    NotCanonical,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The random name of the project, which all its machines share.
    pub project: String,
    /// `None` if it is about no task, as at `sync`.
    pub task: Option<TaskId>,
    pub purpose: Purpose,
    pub predicate: Predicate,
}

/// The step for which a statement was made; it counts for no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Purpose {
    /// A submitted commit is judged.
    Review,
    /// The merge of a task.
    Merge,
    /// Another branch is merged into the integration branch.
    Sync,
    /// The human accepts commits that Liza did not merge.
    Accept,
    /// The result of a goal is merged into the main branch.
    Finish,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicate {
    Validation(Validation),
    Review(Review),
    Merge(Merge),
    Acceptance(Acceptance),
}

/// The commands that ran on a tree, with their results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// The submitted commit.
    pub commit: Sha,
    /// The files on which the commands ran: not those of the commit, if protected ones were laid over them.
    pub tree: Sha,
    pub commands: Vec<CommandRun>,
    /// The digest of the protected files.
    pub protected: String,
    /// The digest of the settings by which the copy was set up; `None` if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Digest>,
    /// The head of the integration branch whose build they began with; `None` if with nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_with: Option<Sha>,
    pub level: Level,
    pub made_by: Maker,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRun {
    /// Its beginning, for people.
    pub command: String,
    /// The digest of the whole command.
    pub digest: Digest,
    pub origin: Origin,
    /// `None` if it was killed, as at its time limit.
    pub exit: Option<i32>,
    pub seconds: u64,
    /// The digest of its output.
    pub output: Digest,
}

impl CommandRun {
    pub fn new(command: &str, origin: Origin, exit: Option<i32>, seconds: u64, output: Digest) -> Self {
        let digest = Digest::of(command.as_bytes());
        Self { command: command.chars().take(TEXT_MAX).collect(), digest, origin, exit, seconds, output }
    }
}

/// The part of the project that a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The settings of the project.
    Project,
    Task,
}

/// The confinement in which commands ran, the weakest first.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Level {
    Off,
    Unenforced,
    Restricted,
    Isolated,
}

/// The programs and the machine that made a statement; no name of a host or a person, since the references can become public.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maker {
    pub git: String,
    pub liza: String,
    /// A random name.
    pub machine: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    pub agent: Approver,
    /// The agent program; `None` for a person.
    pub program: Option<String>,
    pub model: Option<String>,
    pub commit: Sha,
    /// The head of the integration branch at the review.
    pub head: Sha,
    /// The digest of what the merge of the commit into that head changes.
    pub change: Digest,
    pub verdict: ReviewVerdict,
    pub made_by: Maker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReviewVerdict {
    Approved,
    Rejected,
}

/// A merge, before it is made: the trailer of its commit names this statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// The merged files.
    pub tree: Sha,
    /// The head of the branch before.
    pub head: Sha,
    /// The merged commit.
    pub commit: Sha,
    /// `None` if no task was merged.
    pub approved_by: Option<Approver>,
    /// True if the human merged without validation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_validation: bool,
    /// The statements on which it rests.
    pub evidence: Vec<Digest>,
    pub made_by: Maker,
}

/// The human accepts the integration branch as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The head that was known before; `None` if there was none.
    pub old: Option<Sha>,
    pub head: Sha,
    pub made_by: Maker,
}

/// The form in which a statement is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Value>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Contents,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    project: String,
    task: Option<TaskId>,
    purpose: Purpose,
    details: Value,
}

impl Predicate {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Validation(_) => "urn:liza:validation:v1",
            Self::Review(_) => "urn:liza:review:v1",
            Self::Merge(_) => "urn:liza:merge:v1",
            Self::Acceptance(_) => "urn:liza:acceptance:v1",
        }
    }

    /// The commits and trees that it is about.
    fn subject(&self) -> Vec<Value> {
        let commit = |commit: &Sha| json!({"name": "commit", "digest": {"gitCommit": commit}});
        let tree = |tree: &Sha| json!({"name": "tree", "digest": {"gitTree": tree}});
        match self {
            Self::Validation(validation) => vec![commit(&validation.commit), tree(&validation.tree)],
            Self::Review(review) => vec![commit(&review.commit)],
            Self::Merge(merge) => vec![tree(&merge.tree)],
            Self::Acceptance(acceptance) => vec![commit(&acceptance.head)],
        }
    }

    fn details(&self) -> Result<Value, serde_json::Error> {
        match self {
            Self::Validation(validation) => serde_json::to_value(validation),
            Self::Review(review) => serde_json::to_value(review),
            Self::Merge(merge) => serde_json::to_value(merge),
            Self::Acceptance(acceptance) => serde_json::to_value(acceptance),
        }
    }

    /// Shortens what is there for people only: a command has its digest beside it, an agent its name.
    fn shorten(&mut self, length: usize) {
        let cut = |text: &mut String| *text = text.chars().take(length).collect();
        match self {
            Self::Validation(validation) => {
                validation.commands.iter_mut().for_each(|run| cut(&mut run.command));
            }
            Self::Review(Review { program, model, .. }) => {
                [program, model].into_iter().flatten().for_each(cut);
            }
            Self::Merge(_) | Self::Acceptance(_) => {}
        }
    }

    fn parse(type_name: &str, details: Value) -> Result<Self, StatementError> {
        let parsed = match type_name {
            "urn:liza:validation:v1" => serde_json::from_value(details).map(Self::Validation),
            "urn:liza:review:v1" => serde_json::from_value(details).map(Self::Review),
            "urn:liza:merge:v1" => serde_json::from_value(details).map(Self::Merge),
            "urn:liza:acceptance:v1" => serde_json::from_value(details).map(Self::Acceptance),
            other => return Err(StatementError::Malformed(format!("{other} is unknown"))),
        };
        parsed.map_err(malformed)
    }
}

impl Statement {
    /// The only spelling of this statement.
    pub fn encode(&self) -> Result<Vec<u8>, StatementError> {
        let envelope = Envelope {
            kind: TYPE.to_owned(),
            subject: self.predicate.subject(),
            predicate_type: self.predicate.type_name().to_owned(),
            predicate: Contents {
                project: self.project.clone(),
                task: self.task.clone(),
                purpose: self.purpose,
                details: self.predicate.details().map_err(malformed)?,
            },
        };
        let mut value = serde_json::to_value(envelope).map_err(malformed)?;
        value.sort_all_objects();
        let text = serde_json::to_vec(&value).map_err(malformed)?;
        if text.len() > STATEMENT_MAX { Err(StatementError::TooLarge(text.len())) } else { Ok(text) }
    }

    /// The spelling of a statement whose texts for people are shortened until it fits.
    pub fn encode_shortened(mut self) -> Result<Vec<u8>, StatementError> {
        let mut length = TEXT_MAX;
        loop {
            match self.encode() {
                Err(StatementError::TooLarge(_)) if length > 0 => {
                    length /= 2;
                    self.predicate.shorten(length);
                }
                encoded => return encoded,
            }
        }
    }

    /// Reads a statement; refuses every text that [`Statement::encode`] does not make.
    pub fn decode(text: &[u8]) -> Result<Self, StatementError> {
        if text.len() > STATEMENT_MAX {
            return Err(StatementError::TooLarge(text.len()));
        }
        let envelope: Envelope = serde_json::from_slice(text).map_err(malformed)?;
        let Contents { project, task, purpose, details } = envelope.predicate;
        let predicate = Predicate::parse(&envelope.predicate_type, details)?;
        let statement = Self { project, task, purpose, predicate };
        if statement.encode()? == text { Ok(statement) } else { Err(StatementError::NotCanonical) }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn malformed(error: serde_json::Error) -> StatementError {
    StatementError::Malformed(error.to_string())
}

#[cfg(test)]
mod tests;
