//! The worktrees that git itself lists: a person's, and the linked ones of Liza's first version.
//!
//! Reads only.

use std::path::PathBuf;

use liza_core::model::Sha;

use super::error::GitError;
use super::refs::Branch;
use super::repo::{Repo, path};

/// A lock that keeps git from pruning a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeLock {
    /// `git worktree add` has not ended, or was killed.
    Initializing,
    /// A person locked it; the reason may be empty.
    Other(String),
}

/// One worktree as git lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeEntry {
    /// Its folder, which may no longer exist.
    pub path: PathBuf,
    /// Its commit.
    pub head: Option<Sha>,
    /// The full name of its branch; `None` when HEAD is detached.
    pub branch: Option<String>,
    /// Its lock, if any.
    pub lock: Option<WorktreeLock>,
    /// Why git would prune it: its folder is missing.
    pub prunable: Option<String>,
}

impl Repo {
    /// Every worktree that git lists, the main one first.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn worktrees(&self) -> Result<Vec<WorktreeEntry>, GitError> {
        let command = self.command("listing worktrees").args(["worktree", "list", "--porcelain", "-z"]);
        command.read_with(parse_entries)
    }

    /// The folders in which a branch is checked out.
    ///
    /// # Errors
    ///
    /// When git fails.
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
            entries.push(WorktreeEntry {
                path: path(value),
                head: None,
                branch: None,
                lock: None,
                prunable: None,
            });
            continue;
        }
        let entry = entries.last_mut()?;
        let text = String::from_utf8_lossy(value);
        match name {
            // Git shows zeros for an incomplete worktree, which has no commit yet.
            b"HEAD" => entry.head = text.parse().ok().filter(|_| text.bytes().any(|byte| byte != b'0')),
            b"branch" => entry.branch = Some(text.into_owned()),
            b"locked" if text == "initializing" => entry.lock = Some(WorktreeLock::Initializing),
            b"locked" => entry.lock = Some(WorktreeLock::Other(text.into_owned())),
            b"prunable" => entry.prunable = Some(text.into_owned()),
            _ => {}
        }
    }
    Some(entries)
}
