//! Locks between processes that work in git: one for each task's worktree, one for merges.
//!
//! Held by the operating system for a living process only, so a free lock beside a reservation proves that whoever
//! reserved is gone. Never taken while the blackboard's lock is held.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::TaskId;

use super::error::WorkError;

/// How often a lock is asked for while another holds it.
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that is held; its file is there only as long.
#[derive(Debug)]
pub struct FileLock {
    path: PathBuf,
    /// Holds the lock until it is closed.
    _file: File,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Whoever has opened it meanwhile notices that the file is another one, and opens it anew.
        let _ = fs::remove_file(&self.path);
    }
}

impl FileLock {
    /// Where the locks of tasks are.
    pub(super) fn folder(liza: &Path) -> PathBuf {
        liza.join("locks")
    }

    /// The lock of a task's worktree.
    pub(super) fn of_task(liza: &Path, task: &TaskId) -> PathBuf {
        Self::folder(liza).join(format!("{task}.lock"))
    }

    /// The lock of merges.
    pub(super) fn of_merges(liza: &Path) -> PathBuf {
        liza.join("merge.lock")
    }

    /// Takes the lock if nobody holds it.
    pub fn try_at(path: &Path) -> Result<Option<Self>, WorkError> {
        let failed = |error| WorkError::io("lock", path)(error);
        loop {
            let file = open(path).map_err(failed)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Ok(()) if is_at(&file, path) => return Ok(Some(Self { path: path.to_owned(), _file: file })),
                // The one who held it has taken the file away: this one locks nothing.
                Ok(()) => {}
            }
        }
    }

    /// Takes the lock, waiting for as long as `patience`.
    pub fn at(path: &Path, patience: Duration) -> Result<Self, WorkError> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(lock) = Self::try_at(path)? {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                return Err(WorkError::Locked { path: path.to_owned(), waited: patience });
            }
            thread::sleep(PAUSE);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

fn is_at(file: &File, path: &Path) -> bool {
    let id = |data: fs::Metadata| (data.dev(), data.ino());
    let there = fs::metadata(path).map(id);
    file.metadata().map(id).is_ok_and(|mine| there.is_ok_and(|there| there == mine))
}
