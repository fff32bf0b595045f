//! Everything in the repository that bears a task's name: worktrees and branches, in two questions to git.
//!
//! Looks only; what ought to be there is for others to say.

use std::collections::BTreeMap;
use std::fs;

use liza_core::model::{Sha, TaskId};

use super::error::GitError;
use super::refs::Branch;
use super::repo::{Entry, Repo, sha};
use super::worktree::{Found, folder_state, same_place};

impl Repo {
    /// What is there of every task of which anything is there.
    ///
    /// # Errors
    ///
    /// When git cannot tell.
    pub fn inventory(&self) -> Result<BTreeMap<TaskId, Found>, GitError> {
        let entries = self.worktrees()?;
        let branches = self.task_branches()?;
        let folder = self.root().join(".worktrees");
        let named = |name: &std::ffi::OsStr| name.to_str().and_then(|name| name.parse::<TaskId>().ok());
        let mut tasks: Vec<TaskId> = branches.keys().cloned().collect();
        let inside =
            entries.iter().filter(|entry| entry.path.parent().is_some_and(|at| same_place(at, &folder)));
        tasks.extend(inside.filter_map(|entry| entry.path.file_name().and_then(named)));
        let folders = fs::read_dir(&folder).into_iter().flatten().flatten();
        tasks.extend(folders.filter_map(|folder| named(&folder.file_name())));
        Ok(tasks.into_iter().map(|task| (task.clone(), self.look(&task, &entries, &branches))).collect())
    }

    fn look(&self, task: &TaskId, entries: &[Entry], branches: &BTreeMap<TaskId, Sha>) -> Found {
        let (path, branch) = (self.worktree_path(task), Branch::of(task).full());
        let entry = entries.iter().find(|entry| same_place(&entry.path, &path));
        let elsewhere = entries
            .iter()
            .find(|entry| entry.branch.as_ref() == Some(&branch) && !same_place(&entry.path, &path));
        Found {
            folder: folder_state(&path, entry),
            registered: entry.is_some(),
            branch: branches.get(task).cloned(),
            branch_in_use: elsewhere.map(|entry| entry.path.clone()),
        }
    }

    fn task_branches(&self) -> Result<BTreeMap<TaskId, Sha>, GitError> {
        let call = self.here("listing the branches of tasks").args([
            "for-each-ref",
            "--format=%(objectname) %(refname:lstrip=3)",
            "refs/heads/task/",
        ]);
        let parse = |line: &str| {
            let (commit, name) = line.split_once(' ')?;
            Some((name.parse().ok()?, sha(commit.as_bytes())?))
        };
        Ok(call.text()?.lines().filter_map(parse).collect())
    }
}
