//! The words of a playbook: each step with what belongs to it, named as the command that it calls.
//!
//! Only a description; `steps` carries it out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use liza_core::model::Role;

/// One thing that an agent does.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Says something.
    Say(String),
    /// Waits that many milliseconds.
    Wait(u64),
    /// Waits until a file or a branch is there.
    WaitFor(Awaited),
    /// Calls any liza command; it has to succeed.
    Liza(Vec<String>),
    /// Runs a shell command where the work is; it has to succeed.
    Check(String),
    /// `liza anomaly`
    Anomaly(Anomaly),
    /// `liza discover`
    Discover(Discover),
    /// `liza handoff`
    Handoff(Handoff),
    /// Tells what it has used since it last said so.
    Usage(Figures),
    /// Does what no agent should.
    Misbehave(Misdeed),
    /// `liza add-task`, as DRAFT.
    AddTask(AddTask),
    /// `liza finalize`, of all drafts where none is named.
    Finalize(Vec<String>),
    /// `liza supersede-task`
    Supersede(Supersede),
    /// `liza unblock-task`
    Unblock(Unblock),
    /// `liza abandon-task`
    Abandon(Abandon),
    /// `liza goal complete`
    GoalComplete,
    /// `liza align`
    Align(String),
    /// `liza pre-check`
    PreCheck(PreCheck),
    /// Writes a file of the worktree.
    Write(FileText),
    /// Adds to a file of the worktree.
    Append(FileText),
    /// Deletes a file of the worktree.
    Delete(PathBuf),
    /// Commits everything in the worktree.
    Commit(String),
    /// Merges the head that the prompt names; keeps both sides of what conflicts where nothing is given.
    Merge(Resolve),
    /// `liza mark-blocked`
    Block(Block),
    /// `liza submit-for-review` of the worktree's HEAD.
    Submit,
    /// Verifies HEAD and reads the whole change.
    ReadDiff(ReadDiff),
    /// `liza submit-verdict TASK APPROVED`, after the change was read.
    Approve,
    /// `liza submit-verdict TASK REJECTED`, after the change was read.
    Reject(Reject),
}

impl Step {
    /// The one role whose step it is; `None` for everybody's.
    pub fn role(&self) -> Option<Role> {
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
pub enum Misdeed {
    /// Ends by a signal.
    Crash,
    /// Does not end.
    Hang,
    /// Does not end, not even when asked to.
    IgnoreSigterm,
    /// Leaves that many children behind, each in a session of its own.
    LeaveChildren(u32),
    /// Writes a file of the project that is not in its worktree.
    WriteOutside(FileText),
    /// Prints that many KiB.
    Flood(u64),
    /// Calls a liza command that its role has no right to, and goes on whatever comes.
    OutOfRole(Vec<String>),
    /// Calls a liza command as an agent that was replaced, and goes on whatever comes.
    OldGeneration(Vec<String>),
}

/// What a session says that it has used.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Figures {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from a cache.
    pub cached: u64,
    /// What it cost.
    pub cost_usd: f64,
    /// How full the context is now.
    pub context_percent: Option<f64>,
}

/// What is waited for.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Awaited {
    /// A file, from the project's root.
    pub file: Option<PathBuf>,
    /// A branch of the repository.
    pub branch: Option<String>,
    /// After that many seconds it goes on without; 30 where nothing is said.
    pub seconds: Option<u64>,
}

/// A file and what is in it.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileText {
    /// Where.
    pub path: PathBuf,
    /// What.
    pub text: String,
}

/// See `liza anomaly --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anomaly {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What exactly.
    #[serde(default)]
    pub details: BTreeMap<String, String>,
}

/// See `liza discover --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discover {
    /// What.
    pub desc: String,
    /// How bad.
    pub severity: String,
    /// How soon the planner has to look.
    pub urgency: Option<String>,
    /// What to do about it.
    pub recommendation: Option<String>,
}

/// See `liza handoff --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Handoff {
    /// Where it stands.
    pub summary: String,
    /// What to do first.
    pub next_action: String,
    /// How it was being done.
    pub approach: Option<String>,
    /// What was touched.
    #[serde(default)]
    pub files: Vec<String>,
    /// What is left to do.
    #[serde(default)]
    pub next_steps: Vec<String>,
}

/// See `liza add-task --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddTask {
    /// Its name.
    pub id: String,
    /// What to build.
    pub desc: String,
    /// What it has to conform to; the vision where nothing is said.
    pub spec: Option<String>,
    /// How one sees that it is done.
    pub done: String,
    /// What belongs to it.
    pub scope: String,
    /// 1 to 5.
    pub priority: Option<u8>,
    /// Tasks that must be merged first.
    #[serde(default)]
    pub depends: Vec<String>,
}

/// See `liza supersede-task --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Supersede {
    /// Which task.
    pub task: String,
    /// What takes its place.
    pub by: Vec<String>,
    /// Why.
    pub reason: String,
    /// What was at the bottom of it.
    pub root_cause: String,
}

/// See `liza unblock-task --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Unblock {
    /// Which task.
    pub task: String,
    /// Back to its coder.
    #[serde(default)]
    pub same_coder: bool,
    /// On to another coder, with the work.
    #[serde(default)]
    pub keep_worktree: bool,
    /// With a full budget of reviews.
    #[serde(default)]
    pub reset_cycles: bool,
    /// The answer.
    pub assessment: Option<String>,
}

/// See `liza abandon-task --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abandon {
    /// Which task.
    pub task: String,
    /// Why.
    pub reason: String,
}

/// See `liza pre-check --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreCheck {
    /// What will be done.
    pub intent: String,
    /// The command that will show that it works.
    pub validation: String,
    /// What is taken for granted.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// What could go wrong.
    #[serde(default)]
    pub risks: Vec<String>,
    /// What will be touched.
    #[serde(default)]
    pub files: Vec<String>,
}

/// How conflicts are resolved.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resolve {
    /// The files as they shall be.
    pub resolve: Vec<FileText>,
}

/// See `liza mark-blocked --help`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// What is in the way.
    pub reason: String,
    /// What has to be answered.
    pub questions: Vec<String>,
    /// What was tried.
    #[serde(default)]
    pub attempted: Vec<String>,
}

/// What a reviewer expects of a change.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReadDiff {
    /// Every changed file matches one of these; `*` stands for anything. Nothing said: all do.
    pub within: Vec<String>,
    /// Whether a test has to be among them.
    pub tests: bool,
}

/// A rejection.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reject {
    /// What has to be settled.
    pub blockers: Vec<Issue>,
    /// What ought to be.
    #[serde(default)]
    pub concerns: Vec<Issue>,
    /// The assessment in a sentence or two.
    pub overall: String,
    /// What became of the earlier rejection; written where the prompt requires it.
    #[serde(default)]
    pub prior: Prior,
}

/// One point of a rejection.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issue {
    /// `file:line`
    pub at: String,
    /// What is wrong.
    pub issue: String,
    /// Why it matters.
    pub why: Option<String>,
    /// How to mend it.
    pub suggestion: Option<String>,
}

/// What became of the issues of the earlier rejection.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Prior {
    /// Mended.
    pub resolved: Vec<String>,
    /// Not touched.
    pub still_present: Vec<String>,
    /// Half mended.
    pub partial: Vec<String>,
}
