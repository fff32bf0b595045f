//! The steps of a playbook and their data, named after the commands that they run.
//!
//! Only a description; the file of each role performs it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::protocol::Role;

/// One thing that an agent does.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    Say(String),
    Wait(u64),
    /// Waits until a file and a branch exist.
    WaitFor(WaitFor),
    /// Runs any `liza` command; it has to succeed.
    Liza(Vec<String>),
    /// Runs a shell command in the worktree; it has to succeed.
    Check(String),
    Anomaly(Anomaly),
    Discover(Discover),
    Handoff(Handoff),
    /// Reports what was used since the last report.
    Usage(Usage),
    /// Does what no agent should.
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
    /// Writes a file of the worktree.
    Write(FileContent),
    /// Appends to a file of the worktree.
    Append(FileContent),
    /// Deletes a file of the worktree.
    Delete(PathBuf),
    /// Commits everything in the worktree.
    Commit(String),
    /// Merges the head that the prompt names; keeps both sides of a conflict that has no resolution.
    Merge(Merge),
    Block(Block),
    /// `liza submit-for-review` of HEAD.
    Submit,
    /// Verifies HEAD and reads the whole change.
    ReadDiff(ReadDiff),
    /// `liza submit-verdict TASK APPROVED`, after the change was read.
    Approve,
    /// `liza submit-verdict TASK REJECTED`, after the change was read.
    Reject(Reject),
}

impl Step {
    /// Returns the one role that has this step; `None` if all have it.
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

/// What no agent should do.
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
    /// Runs a `liza` command that its role may not run, and ignores how it ends.
    OutOfRole(Vec<String>),
    /// Runs a `liza` command as an agent that was replaced, and ignores how it ends.
    OldGeneration(Vec<String>),
}

/// What a session reports as used.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    /// Tokens read from a cache.
    pub(crate) cached: u64,
    /// The price in US dollars.
    pub(crate) cost_usd: f64,
    /// How full the context is now, in percent.
    pub(crate) context_percent: Option<f64>,
}

/// What `wait-for` waits for.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WaitFor {
    /// A file, from the project's root.
    pub(crate) file: Option<PathBuf>,
    /// A branch of the repository.
    pub(crate) branch: Option<String>,
    /// A task that an agent has begun.
    pub(crate) task: Option<String>,
    /// After that many seconds the scene continues; 30 if absent.
    pub(crate) seconds: Option<u64>,
}

/// A file and its text.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileContent {
    /// Its path, from the root of the worktree or project.
    pub path: PathBuf,
    /// Its whole text; for `append`, what is added.
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
    /// How soon the planner has to decide.
    pub(crate) urgency: Option<String>,
    /// What to do about it.
    pub(crate) recommendation: Option<String>,
}

/// See `liza handoff --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Handoff {
    /// How far the work is.
    pub(crate) summary: String,
    pub(crate) next_action: String,
    /// How the work was being done.
    pub(crate) approach: Option<String>,
    /// The files that were changed.
    #[serde(default)]
    pub(crate) files: Vec<String>,
    /// What is left to do.
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
    /// How to see that it is done.
    pub(crate) done: String,
    pub(crate) scope: String,
    pub(crate) priority: Option<u8>,
    /// Tasks that must be merged first.
    #[serde(default)]
    pub(crate) depends: Vec<String>,
}

/// See `liza supersede-task --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Supersede {
    pub(crate) task: String,
    /// The tasks that replace it.
    pub(crate) by: Vec<String>,
    pub(crate) reason: String,
    /// The root cause, in a sentence.
    pub(crate) root_cause: String,
}

/// See `liza unblock-task --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Unblock {
    pub(crate) task: String,
    /// It goes back to its coder.
    #[serde(default)]
    pub(crate) same_coder: bool,
    /// Another coder continues the work.
    #[serde(default)]
    pub(crate) keep_worktree: bool,
    /// It gets a full budget of reviews.
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
    /// The command that will show that it works.
    pub(crate) validation: String,
    #[serde(default)]
    pub(crate) assumptions: Vec<String>,
    #[serde(default)]
    pub(crate) risks: Vec<String>,
    /// The files that will change.
    #[serde(default)]
    pub(crate) files: Vec<String>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Merge {
    /// The files as they should be.
    pub(crate) resolve: Vec<FileContent>,
}

/// See `liza mark-blocked --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Block {
    /// What is in the way.
    pub(crate) reason: String,
    pub(crate) questions: Vec<String>,
    #[serde(default)]
    pub(crate) attempted: Vec<String>,
}

/// What a reviewer expects of a change.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReadDiff {
    /// The patterns of files that may change; any file may if empty.
    pub(crate) within: Vec<String>,
    /// Whether the change must have a test.
    pub(crate) tests: bool,
}

#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reject {
    /// What has to be fixed.
    pub(crate) blockers: Vec<Issue>,
    #[serde(default)]
    pub(crate) concerns: Vec<Issue>,
    /// The assessment in a sentence or two.
    pub(crate) overall: String,
    /// What became of the earlier rejection; written if the prompt requires it.
    #[serde(default)]
    pub(crate) prior: Prior,
}

/// One point of a rejection.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Issue {
    pub(crate) at: String,
    pub(crate) issue: String,
    pub(crate) why: Option<String>,
    pub(crate) suggestion: Option<String>,
}

/// What became of the issues of the earlier rejection.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct Prior {
    pub(crate) resolved: Vec<String>,
    pub(crate) still_present: Vec<String>,
    pub(crate) partial: Vec<String>,
}
