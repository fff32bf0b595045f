//! Facts about a repository, as plain data that the rules and git share.

use crate::ids::{AgentId, Sha, TaskId};

/// The author of a submitted commit.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitAuthor {
    pub commit: Sha,
    pub name: String,
    /// The agent named as author or in a line `Liza-Agent`.
    pub agent: Option<AgentId>,
}

/// A claim continues in the existing worktree or starts in a fresh one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeMode {
    /// Continues with the existing files; makes the worktree if it is missing.
    Keep,
    /// Saves unmerged work on a rescue branch, then starts from the base.
    Fresh,
}

/// A merge of a task on the integration branch, as git shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchMerge {
    pub task: TaskId,
    pub commit: Sha,
    pub merge_commit: Sha,
}

/// Commits on the integration branch beyond the recorded head.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchSteps {
    /// Merges of tasks, the oldest first.
    pub merges: Vec<BranchMerge>,
    /// True if it has other commits too.
    pub has_others: bool,
}
