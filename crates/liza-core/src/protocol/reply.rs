//! Replies that several commands share, and git's facts about a worktree.

use serde::Serialize;

use crate::model::{Sha, Status, Task, TaskId, WorkFacts, Worktree};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Nothing {}

/// The new state of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskReply {
    pub task: TaskId,
    /// `None` if the file has an unknown status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
}

impl From<&Task> for TaskReply {
    fn from(task: &Task) -> Self {
        let worktree = task.status.prior_work().worktree;
        Self { task: task.id.clone(), status: Some(task.status.name()), worktree }
    }
}

/// Git's facts about a task's worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeFacts {
    pub head: Sha,
    pub on_task_branch: bool,
    /// Staged, unstaged and untracked paths that are not ignored.
    pub dirty: Vec<String>,
    /// Tracked paths that differ from HEAD.
    pub changed_tracked: Vec<String>,
    /// True if the task's base is an ancestor of HEAD.
    pub has_base: bool,
    /// Merges in the work that take back parts of the integration branch, each with its files.
    pub takes_back: Vec<String>,
    /// Facts about the submitted change; `None` if it is not about a submission.
    pub work: Option<WorkFacts>,
}

impl WorktreeFacts {
    /// A clean worktree of the task's branch at that commit.
    pub fn clean(head: Sha) -> Self {
        Self {
            head,
            on_task_branch: true,
            dirty: Vec::new(),
            changed_tracked: Vec::new(),
            has_base: true,
            takes_back: Vec::new(),
            work: None,
        }
    }
}
