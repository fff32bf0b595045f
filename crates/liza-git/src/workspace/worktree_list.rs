//! The worktrees that git itself lists: a person's, and the linked ones of the original system.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::repo::{Repo, path, sha};

/// A lock that keeps git from pruning a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeLock {
    /// `git worktree add` has not ended, or was killed.
    Initializing,
    /// A person locked it; the reason may be empty.
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeEntry {
    /// It may no longer exist.
    pub path: PathBuf,
    /// The full name; `None` when HEAD is detached.
    pub branch: Option<String>,
    pub lock: Option<WorktreeLock>,
    /// Set if the folder is missing.
    pub prunable: Option<String>,
}

impl Repo {
    /// The main one first.
    pub fn worktrees(&self) -> Result<Vec<WorktreeEntry>, GitError> {
        if let Some(main) = self.only_worktree() {
            return Ok(vec![main]);
        }
        let command = self.command("listing worktrees").args(["worktree", "list", "--porcelain", "-z"]);
        let mut entries = command.read_with(parse_entries)?;
        if let Some(main) = entries.first_mut().filter(|_| self.git_dir() == self.common_dir()) {
            // Git names the git folder instead if it is not in the checkout.
            main.path = self.root().to_owned();
        }
        Ok(entries)
    }

    /// The project's checkout, if it is the only worktree, without starting git. `None` where only git can tell.
    fn only_worktree(&self) -> Option<WorktreeEntry> {
        let has_linked = match fs::read_dir(self.common_dir().join("worktrees")) {
            Ok(mut entries) => entries.next().is_some(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        if has_linked || self.git_dir() != self.common_dir() {
            return None;
        }
        let head = self.git_dir().join("HEAD");
        let text = fs::symlink_metadata(&head)
            .is_ok_and(|data| data.is_file())
            .then(|| fs::read_to_string(head).ok())??;
        let branch = match text.trim_end().strip_prefix("ref: ") {
            // With HEAD elsewhere, git writes `refs/heads/.invalid` here.
            Some(name) => Some(name.strip_prefix("refs/heads/")?.parse::<Branch>().ok()?.full()),
            None => sha(text.as_bytes()).map(|_| None)?,
        };
        Some(WorktreeEntry { path: self.root().to_owned(), branch, lock: None, prunable: None })
    }

    /// Removes git's record of a linked worktree whose folder is gone.
    pub(crate) fn forget_linked(&self, tree: &Path) -> Result<(), GitError> {
        let link = tree.join(".git");
        let entries = fs::read_dir(self.common_dir().join("worktrees")).into_iter().flatten().flatten();
        for folder in entries.map(|entry| entry.path()) {
            let text = fs::read_to_string(folder.join("gitdir")).unwrap_or_default();
            if Path::new(text.trim_end()) == link {
                fs::remove_dir_all(&folder)
                    .map_err(|error| GitError::io("removing a worktree", &folder, error))?;
            }
        }
        Ok(())
    }

    pub fn checkouts_of(&self, branch: &Branch) -> Result<Vec<PathBuf>, GitError> {
        let full = branch.full();
        let holds = |entry: &WorktreeEntry| entry.branch.as_deref() == Some(&full) && entry.path.is_dir();
        Ok(self.worktrees()?.into_iter().filter(holds).map(|entry| entry.path).collect())
    }
}

fn parse_entries(output: &[u8]) -> Option<Vec<WorktreeEntry>> {
    let mut entries: Vec<WorktreeEntry> = Vec::new();
    for line in output.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let mut words = line.splitn(2, |byte| *byte == b' ');
        let (name, value) = (words.next()?, words.next().unwrap_or_default());
        if name == b"worktree" {
            entries.push(WorktreeEntry { path: path(value), branch: None, lock: None, prunable: None });
            continue;
        }
        let entry = entries.last_mut()?;
        let text = String::from_utf8_lossy(value);
        match name {
            b"branch" => entry.branch = Some(text.into_owned()),
            b"locked" if text == "initializing" => entry.lock = Some(WorktreeLock::Initializing),
            b"locked" => entry.lock = Some(WorktreeLock::Other(text.into_owned())),
            b"prunable" => entry.prunable = Some(text.into_owned()),
            _ => {}
        }
    }
    Some(entries)
}
