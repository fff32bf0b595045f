//! Replies that several commands share, and what git says about a worktree.

use serde::Serialize;

use crate::model::{Sha, Status, Task, TaskId, Worktree};

/// The reply of a command that has nothing to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Nothing {}

/// The reply of a command about one task: where the task is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskReply {
    pub task: TaskId,
    /// Its status; `None` if the file says something unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Its worktree, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
}

impl From<&Task> for TaskReply {
    fn from(task: &Task) -> Self {
        let worktree = task.status.prior_work().worktree;
        Self { task: task.id.clone(), status: Some(task.status.name()), worktree }
    }
}

/// What git says about a task's worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeFacts {
    pub head: Sha,
    /// Whether HEAD is on the task's branch.
    pub on_task_branch: bool,
    /// Staged, unstaged and untracked paths that are not ignored.
    pub dirty: Vec<String>,
    /// Tracked paths that differ from HEAD.
    pub changed_tracked: Vec<String>,
    /// Whether the task's base is an ancestor of HEAD.
    pub has_base: bool,
    /// Merges in the work that take back what the integration branch has, each with its files.
    pub takes_back: Vec<String>,
}
