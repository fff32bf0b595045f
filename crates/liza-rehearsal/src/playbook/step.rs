//! The steps of a playbook and their data, named after the commands that they run. Only a description; the
//! file of each role performs it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::protocol::Role;

#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    Say(String),
    Wait(u64),
    WaitFor(WaitFor),
    /// Runs any `liza` command; it has to succeed.
    Liza(Vec<String>),
    /// Runs a shell command in the worktree; it has to succeed.
    Check(String),
    Anomaly(Anomaly),
    Discover(Discover),
    Handoff(Handoff),
    /// Reports the usage since the last report.
    Usage(Usage),
    Misbehave(Misbehaviour),
    /// `liza add-task`, as DRAFT.
    AddTask(AddTask),
    /// `liza finalize`, of all drafts if none is named.
    Finalize(Vec<String>),
    Supersede(Supersede),
    Unblock(Unblock),
    Abandon(Abandon),
    GoalComplete,
    Align(String),
    PreCheck(PreCheck),
    Write(FileContent),
    Append(FileContent),
    Delete(PathBuf),
    Commit(String),
    /// Merges the head that the prompt names; keeps both sides of a conflict that has no resolution.
    Merge(Merge),
    Block(Block),
    Submit,
    /// Verifies HEAD and reads the whole change.
    ReadDiff(ReadDiff),
    /// `liza submit-verdict TASK APPROVED`, after the change was read.
    Approve,
    /// `liza submit-verdict TASK REJECTED`, after the change was read.
    Reject(Reject),
}

impl Step {
    /// Returns the only role that has this step; `None` if all have it.
    pub(crate) fn role(&self) -> Option<Role> {
        match self {
            Step::Say(_)
            | Step::Wait(_)
            | Step::WaitFor(_)
            | Step::Liza(_)
            | Step::Check(_)
            | Step::Anomaly(_)
            | Step::Discover(_)
            | Step::Handoff(_)
            | Step::Usage(_)
            | Step::Misbehave(_) => None,
            Step::AddTask(_)
            | Step::Finalize(_)
            | Step::Supersede(_)
            | Step::Unblock(_)
            | Step::Abandon(_)
            | Step::GoalComplete
            | Step::Align(_) => Some(Role::Planner),
            Step::PreCheck(_)
            | Step::Write(_)
            | Step::Append(_)
            | Step::Delete(_)
            | Step::Commit(_)
            | Step::Merge(_)
            | Step::Block(_)
            | Step::Submit => Some(Role::Coder),
            Step::ReadDiff(_) | Step::Approve | Step::Reject(_) => Some(Role::CodeReviewer),
        }
    }
}

/// Forbidden actions.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Misbehaviour {
    Crash,
    Hang,
    /// Does not end, not even on SIGTERM.
    IgnoreSigterm,
    /// Leaves that many children behind, each in a session of its own.
    LeaveChildren(u32),
    /// Writes a file of the project outside the worktree.
    WriteOutside(FileContent),
    Flood(u64),
    /// Runs a `liza` command that its role may not run, and ignores its result.
    OutOfRole(Vec<String>),
    /// Runs a `liza` command as an agent that was replaced, and ignores its result.
    OldGeneration(Vec<String>),
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cached: u64,
    pub(crate) cost_usd: f64,
    /// The used part of the context, in percent.
    pub(crate) context_percent: Option<f64>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WaitFor {
    /// Relative to the project's root.
    pub(crate) file: Option<PathBuf>,
    pub(crate) branch: Option<String>,
    /// A task that an agent has begun.
    pub(crate) task: Option<String>,
    /// After that many seconds the scene continues; 30 if absent.
    pub(crate) seconds: Option<u64>,
}

#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileContent {
    /// Relative to the root of the worktree or project.
    pub path: PathBuf,
    /// The whole text; for `append`, the addition.
    pub text: String,
}

/// See `liza anomaly --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Anomaly {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) details: BTreeMap<String, String>,
}

/// See `liza discover --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Discover {
    pub(crate) desc: String,
    pub(crate) severity: String,
    pub(crate) urgency: Option<String>,
    pub(crate) recommendation: Option<String>,
}

/// See `liza handoff --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Handoff {
    pub(crate) summary: String,
    pub(crate) next_action: String,
    pub(crate) approach: Option<String>,
    #[serde(default)]
    pub(crate) files: Vec<String>,
    #[serde(default)]
    pub(crate) next_steps: Vec<String>,
}

/// See `liza add-task --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddTask {
    pub(crate) id: String,
    pub(crate) desc: String,
    /// The spec that it follows; the vision if absent.
    pub(crate) spec: Option<String>,
    pub(crate) done: String,
    pub(crate) scope: String,
    pub(crate) priority: Option<u8>,
    /// Commands that show that it is done.
    #[serde(default)]
    pub(crate) validate: Vec<String>,
    /// Tasks that must be merged first.
    #[serde(default)]
    pub(crate) depends: Vec<String>,
}

/// See `liza supersede-task --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Supersede {
    pub(crate) task: String,
    /// The replacements.
    pub(crate) by: Vec<String>,
    pub(crate) reason: String,
    pub(crate) root_cause: String,
}

/// See `liza unblock-task --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Unblock {
    pub(crate) task: String,
    #[serde(default)]
    pub(crate) same_coder: bool,
    #[serde(default)]
    pub(crate) keep_worktree: bool,
    #[serde(default)]
    pub(crate) reset_cycles: bool,
    pub(crate) assessment: Option<String>,
}

/// See `liza abandon-task --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Abandon {
    pub(crate) task: String,
    pub(crate) reason: String,
}

/// See `liza pre-check --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreCheck {
    pub(crate) intent: String,
    pub(crate) validation: String,
    #[serde(default)]
    pub(crate) assumptions: Vec<String>,
    #[serde(default)]
    pub(crate) risks: Vec<String>,
    #[serde(default)]
    pub(crate) files: Vec<String>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Merge {
    /// The resolved files.
    pub(crate) resolve: Vec<FileContent>,
}

/// See `liza mark-blocked --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Block {
    pub(crate) reason: String,
    pub(crate) questions: Vec<String>,
    #[serde(default)]
    pub(crate) attempted: Vec<String>,
}

/// The reviewer's conditions for a change.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReadDiff {
    /// Patterns of files that may change; any file may if empty.
    pub(crate) within: Vec<String>,
    /// The change must have a test.
    pub(crate) tests: bool,
}

#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reject {
    pub(crate) blockers: Vec<Issue>,
    #[serde(default)]
    pub(crate) concerns: Vec<Issue>,
    /// The assessment in a sentence or two.
    pub(crate) overall: String,
    /// The state of the earlier issues; written if the prompt requires it.
    #[serde(default)]
    pub(crate) prior: Prior,
}

#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Issue {
    pub(crate) at: String,
    pub(crate) issue: String,
    pub(crate) why: Option<String>,
    pub(crate) suggestion: Option<String>,
}

/// The issues of the earlier rejection.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct Prior {
    pub(crate) resolved: Vec<String>,
    pub(crate) still_present: Vec<String>,
    pub(crate) partial: Vec<String>,
}
