//! Locks between processes that work in git: for each task one for its worktree and one for sending its work,
//! one for merges. The operating system releases them when a process dies, so a reservation without a held
//! lock belongs to a dead claim. Must not be taken while the blackboard's lock is held.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::TaskId;
use liza_host::durable::{self, Open};
use liza_host::private;

use super::error::EngineError;

const PAUSE: Duration = Duration::from_millis(20);

const NOTE_MAX: u64 = 1024;

/// Its file is removed with it.
#[derive(Debug)]
pub struct FileLock {
    path: PathBuf,
    /// Holds the lock until it is closed.
    file: File,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A process that opened the file before it was removed notices that and opens it again.
        let _ = durable::remove_if_present(&self.path);
    }
}

impl FileLock {
    pub fn folder(liza: &Path) -> PathBuf {
        liza.join("locks")
    }

    pub fn of_task(liza: &Path, task: &TaskId) -> PathBuf {
        Self::folder(liza).join(format!("{task}.lock"))
    }

    /// No task's lock has such a name.
    pub(crate) fn of_sender(liza: &Path, task: &TaskId) -> PathBuf {
        Self::folder(liza).join(format!("{task}.sending"))
    }

    pub(crate) fn of_merges(liza: &Path) -> PathBuf {
        liza.join("merge.lock")
    }

    /// The lock of the integration branch here, while it follows the remote.
    pub fn of_branch(liza: &Path) -> PathBuf {
        liza.join("branch.lock")
    }

    /// Writes the holder's purpose into the file.
    pub fn note(&self, what: &str) -> io::Result<()> {
        self.file.set_len(0).and_then(|()| (&self.file).write_all(what.as_bytes()))
    }

    /// The holder's purpose; `None` if the lock is free, or the holder has not written it.
    pub(crate) fn note_of_holder(path: &Path) -> Option<String> {
        let mut text = String::new();
        let file = durable::open(Open::Read, path).ok()?;
        (&file).take(NOTE_MAX).read_to_string(&mut text).ok()?;
        let is_held = !text.is_empty() && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        is_held.then_some(text)
    }

    pub(crate) fn try_at(path: &Path) -> Result<Option<Self>, EngineError> {
        let failed = |error| EngineError::io("lock", path)(error);
        loop {
            let file = open(path).map_err(failed)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Ok(()) if is_at(&file, path) => return Ok(Some(Self { path: path.to_owned(), file })),
                // The last holder has removed the file: a lock on it protects nothing.
                Ok(()) => {}
            }
        }
    }

    pub fn at(path: &Path, timeout: Duration) -> Result<Self, EngineError> {
        let failed = |error| EngineError::io("lock", path)(error);
        let deadline = Instant::now() + timeout;
        let mut file = open(path).map_err(failed)?;
        loop {
            match file.try_lock() {
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Ok(()) if is_at(&file, path) => return Ok(Self { path: path.to_owned(), file }),
                // The last holder has removed the file.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(EngineError::Locked { path: path.to_owned(), waited: timeout });
                }
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            }
            if !is_at(&file, path) {
                file = open(path).map_err(failed)?;
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        private::create_folder(folder)?;
    }
    durable::open(Open::Update, path)
}

fn is_at(file: &File, path: &Path) -> bool {
    let id = |data: fs::Metadata| (data.dev(), data.ino());
    let current = fs::symlink_metadata(path).map(id);
    file.metadata().map(id).is_ok_and(|own| current.is_ok_and(|current| current == own))
}
