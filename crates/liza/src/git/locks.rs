//! Clears lock files that a killed git left behind.
//!
//! A lock is removed only when nobody can be using it: no process has it open and no git works in this
//! repository; where that cannot be known, only when it is old.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::GitError;
use super::refs::Branch;
use super::repo::Repo;
use crate::sys::process;

/// No git holds a lock that long while nobody can be asked who holds it.
const OLD: Duration = Duration::from_secs(1800);

/// Where git keeps locks, relative to a git folder.
const NAMES: [&str; 4] = ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"];

impl Repo {
    /// Removes stale locks of the repository, of the given branches and of the worktree at `tree`; says which.
    ///
    /// # Errors
    ///
    /// When a stale lock cannot be removed.
    pub fn clear_stale_locks(
        &self,
        tree: Option<&Path>,
        branches: &[&Branch],
    ) -> Result<Vec<PathBuf>, GitError> {
        let mut candidates: Vec<PathBuf> =
            NAMES[2..].iter().map(|name| self.common_dir().join(name)).collect();
        candidates
            .extend(branches.iter().map(|branch| self.common_dir().join(format!("{}.lock", branch.full()))));
        if let Some(git_dir) = tree.filter(|tree| tree.is_dir()).and_then(|tree| self.git_dir_of(tree).ok()) {
            candidates.extend(NAMES.iter().map(|name| git_dir.join(name)));
        }
        candidates.retain(|lock| lock.exists());
        let mut cleared = Vec::new();
        for lock in candidates {
            if self.is_stale(&lock) {
                match fs::remove_file(&lock) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(GitError::io("removing a stale lock", &lock, error));
                    }
                    Ok(()) | Err(_) => cleared.push(lock),
                }
            }
        }
        Ok(cleared)
    }

    fn is_stale(&self, lock: &Path) -> bool {
        let age =
            fs::metadata(lock).and_then(|data| data.modified()).ok().and_then(|time| time.elapsed().ok());
        match process::in_use(lock, &[self.root(), self.common_dir()]) {
            Some(used) => !used,
            None => age.is_some_and(|age| age > OLD),
        }
    }
}
