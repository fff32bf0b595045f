//! Every worktree, folder and branch that is named after a task, found with two git commands. Reads only; the
//! caller decides what should exist.

use std::collections::BTreeMap;
use std::fs;

use liza_ids::{Sha, TaskId};

use crate::program::error::GitError;
use crate::program::refs_on_disk::refs_below;
use crate::program::repo::{Repo, same_path};
use crate::workspace::worktree::TaskArtifacts;

impl Repo {
    /// The tasks of which a worktree, a folder or a branch exists.
    pub fn inventory(&self) -> Result<BTreeMap<TaskId, TaskArtifacts>, GitError> {
        let entries = self.worktrees()?;
        let branches = self.task_branches();
        let folder = self.worktrees_folder();
        let named = |name: &std::ffi::OsStr| name.to_str().and_then(|name| name.parse::<TaskId>().ok());
        let mut tasks: Vec<TaskId> = branches.keys().cloned().collect();
        let inside =
            entries.iter().filter(|entry| entry.path.parent().is_some_and(|at| same_path(at, &folder)));
        tasks.extend(inside.filter_map(|entry| entry.path.file_name().and_then(named)));
        let folders = fs::read_dir(&folder).into_iter().flatten().flatten();
        tasks.extend(folders.filter_map(|folder| named(&folder.file_name())));
        let artifacts = |task: TaskId| {
            let found = self.artifacts_among(&task, &entries, branches.get(&task).cloned());
            (task, found)
        };
        Ok(tasks.into_iter().map(artifacts).collect())
    }

    fn task_branches(&self) -> BTreeMap<TaskId, Sha> {
        const FOLDER: &str = "refs/heads/task/";
        let refs = refs_below(self.common_dir(), &[FOLDER]).into_iter();
        refs.filter_map(|(name, commit)| Some((name.strip_prefix(FOLDER)?.parse().ok()?, commit))).collect()
    }
}
