//! Clears lock files that a killed git left behind.
//!
//! Removes a lock only if it cannot be in use: no process has it open and no git runs in this repository. If that
//! cannot be known, only if it is old.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::GitError;
use super::refs::Branch;
use super::repo::Repo;
use crate::sys::process;

/// The age after which a lock is stale where its users are not known.
const MAX_AGE: Duration = Duration::from_secs(1800);

/// Lock files, relative to a git folder.
const NAMES: [&str; 5] =
    ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "reftable/tables.list.lock"];

/// Folders of references that only Liza and its agents write.
const OWN_REFS: [&str; 3] = ["refs/heads/task", "refs/heads/rescue", "refs/liza"];

impl Repo {
    /// Removes stale locks of the repository, of the given branches and of the worktree at `tree`; returns them.
    ///
    /// # Errors
    ///
    /// When a stale lock cannot be removed.
    pub fn clear_stale_locks(
        &self,
        tree: Option<&Path>,
        branches: &[&Branch],
    ) -> Result<Vec<PathBuf>, GitError> {
        let shared = NAMES[2..].iter().map(|name| self.common_dir().join(name));
        let of_branches =
            branches.iter().map(|branch| self.common_dir().join(format!("{}.lock", branch.full())));
        let everywhere = [self.root(), self.common_dir()];
        let mut cleared = Vec::new();
        for lock in shared.chain(of_branches) {
            cleared.extend(clear(lock, &everywhere)?);
        }
        if let Some((tree, git_dir)) = tree.and_then(|tree| Some((tree, self.git_folder_of(tree)?))) {
            for name in NAMES {
                cleared.extend(clear(git_dir.join(name), &[tree, &git_dir])?);
            }
            if git_dir != self.git_dir() {
                for lock in locks_below(&git_dir.join("refs/heads/task")) {
                    cleared.extend(clear(lock, &[tree, &git_dir])?);
                }
            }
        }
        Ok(cleared)
    }

    /// The git folder of a checkout; a repository that an agent can write is not opened for that.
    fn git_folder_of(&self, tree: &Path) -> Option<PathBuf> {
        let own = tree.join(".git");
        if own.is_dir() { Some(own) } else { self.git_dir_of(tree).ok() }
    }

    /// Removes stale locks of the references of tasks, of rescued work and of Liza itself; returns them.
    ///
    /// # Errors
    ///
    /// When a stale lock cannot be removed.
    pub(crate) fn clear_stale_ref_locks(&self) -> Result<Vec<PathBuf>, GitError> {
        let everywhere = [self.root(), self.common_dir()];
        let mut cleared = Vec::new();
        for lock in OWN_REFS.iter().flat_map(|folder| locks_below(&self.common_dir().join(folder))) {
            cleared.extend(clear(lock, &everywhere)?);
        }
        Ok(cleared)
    }
}

/// The lock files in a folder of references.
fn locks_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let locks = entries.flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => locks_below(&entry.path()),
        Ok(_) if entry.path().extension().is_some_and(|end| end == "lock") => vec![entry.path()],
        Ok(_) | Err(_) => Vec::new(),
    });
    locks.collect()
}

/// Removes a lock if it is stale; a git that holds it would run in one of `folders`.
fn clear(lock: PathBuf, folders: &[&Path]) -> Result<Option<PathBuf>, GitError> {
    let Ok(age) = fs::metadata(&lock).and_then(|data| data.modified()) else { return Ok(None) };
    let stale = match process::is_in_use(&lock, folders) {
        Some(used) => !used,
        None => age.elapsed().is_ok_and(|age| age > MAX_AGE),
    };
    if !stale {
        return Ok(None);
    }
    match fs::remove_file(&lock) {
        Ok(()) => Ok(Some(lock)),
        // Its git has just ended.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(GitError::io("removing a stale lock", &lock, error)),
    }
}
