//! What git shows, as plain data that the rules and git share.

use crate::ids::{AgentId, Sha, TaskId};

/// The author of a submitted commit.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitAuthor {
    pub commit: Sha,
    pub name: String,
    /// The agent that it names, as its author or in a line `Liza-Agent`.
    pub agent: Option<AgentId>,
}

/// Whether a claim continues in the existing worktree or starts in a fresh one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeMode {
    /// Continue with what is there; make it if it is missing.
    Keep,
    /// Save unmerged work on a rescue branch, then start from the base.
    Fresh,
}

/// A merge of a task on the integration branch, as git shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchMerge {
    pub task: TaskId,
    /// The commit that was merged.
    pub commit: Sha,
    /// The commit by which it was merged.
    pub merge_commit: Sha,
}

/// What the integration branch has beyond the recorded head.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchSteps {
    /// Its merges of tasks, the oldest first.
    pub merges: Vec<BranchMerge>,
    /// Whether it has other commits too.
    pub has_others: bool,
}
