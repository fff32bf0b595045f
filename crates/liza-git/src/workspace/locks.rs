//! Clears lock files that a killed git left behind. Removes a lock only if it cannot be in use: no process
//! has it open and no git runs in this repository. If that cannot be known, only if it is old.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use liza_sandbox::sys::process;

use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::repo::Repo;
use crate::workspace::agent_repo::AgentRepo;

/// The age after which a lock with unknown users is stale.
const MAX_AGE: Duration = Duration::from_secs(1800);

/// Lock files, relative to a git folder.
const NAMES: [&str; 5] =
    ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "reftable/tables.list.lock"];

/// Folders of references that only Liza and its agents write.
const OWN_REFS: [&str; 3] = ["refs/heads/task", "refs/heads/rescue", "refs/liza"];

impl Repo {
    /// Removes stale locks of the repository, of the given branches and of the worktree at `tree`; returns them.
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
        let Some(tree) = tree else { return Ok(cleared) };
        if tree != self.root()
            && let Some(agent) = AgentRepo::of(tree)
        {
            cleared.extend(clear_in(&agent, tree)?);
            return Ok(cleared);
        }
        let own = (tree == self.root()).then(|| self.git_dir().to_owned());
        if let Some(git_dir) = own.or_else(|| self.linked_git_dir(tree)) {
            for name in NAMES {
                cleared.extend(clear(git_dir.join(name), &[tree, &git_dir])?);
            }
        }
        Ok(cleared)
    }

    /// Removes stale locks of the references of tasks, of rescued work and of Liza itself; returns them.
    pub fn clear_stale_ref_locks(&self) -> Result<Vec<PathBuf>, GitError> {
        let everywhere = [self.root(), self.common_dir()];
        let mut cleared = Vec::new();
        for lock in OWN_REFS.iter().flat_map(|folder| locks_below(&self.common_dir().join(folder))) {
            cleared.extend(clear(lock, &everywhere)?);
        }
        Ok(cleared)
    }
}

/// Removes the stale locks of a repository that an agent can write: a folder in it may be a link to anywhere.
fn clear_in(agent: &AgentRepo, tree: &Path) -> Result<Vec<PathBuf>, GitError> {
    const TASKS: &str = "refs/heads/task";
    let of_branches = agent.folder().folder(Path::new(TASKS)).and_then(|folder| folder.entries());
    let of_branches =
        of_branches.unwrap_or_default().into_iter().map(|(name, _)| Path::new(TASKS).join(name));
    let of_branches = of_branches.filter(|name| name.extension() == Some("lock".as_ref()));
    let mut cleared = Vec::new();
    for name in NAMES.iter().map(PathBuf::from).chain(of_branches) {
        let Ok(file) = agent.folder().file(&name) else { continue };
        let lock = agent.path().join(&name);
        let age = file.metadata().and_then(|data| data.modified());
        // Our own descriptor must not count as a use.
        drop(file);
        if age.is_ok_and(|age| is_stale(&lock, age, &[tree, agent.path()])) {
            let removed = agent.folder().remove(&name);
            removed.map_err(|error| GitError::io("removing a stale lock", &lock, error))?;
            cleared.push(lock);
        }
    }
    Ok(cleared)
}

fn is_stale(lock: &Path, changed: SystemTime, folders: &[&Path]) -> bool {
    match process::is_in_use(lock, folders) {
        Some(used) => !used,
        None => changed.elapsed().is_ok_and(|age| age > MAX_AGE),
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
    if !is_stale(&lock, age, folders) {
        return Ok(None);
    }
    match fs::remove_file(&lock) {
        Ok(()) => Ok(Some(lock)),
        // Its git has just ended.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(GitError::io("removing a stale lock", &lock, error)),
    }
}
