//! The lock on `state.yaml.lock`: the same `flock` as flock(1), so scripts and Liza exclude each other. Never
//! deletes or replaces the lock file: two processes would then lock two files of the same name. The folder is
//! locked too, in case someone else does.

use std::fs::{File, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use liza_host::durable::{self, Open};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::StoreError;

/// The environment variable with the folder of the blackboard, for commands that run while its lock is held.
pub const LOCK_HELD_ENV: &str = "LIZA_LOCK_HELD";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockTimeout(pub(crate) Duration);

impl Default for LockTimeout {
    fn default() -> Self {
        Self(Duration::from_secs(10))
    }
}

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
    /// Held as well, so that a deleted lock file doesn't give two holders.
    _folder: File,
}

impl FileLock {
    /// Takes the lock for a caller that waits since `start`. The timeout is computed only if it is not free.
    pub(crate) fn acquire(
        path: &Path,
        start: Instant,
        timeout: &dyn Fn() -> LockTimeout,
    ) -> Result<Self, StoreError> {
        if let (Some(held), Some(folder)) = (std::env::var_os(LOCK_HELD_ENV), path.parent())
            && Path::new(&held) == folder
        {
            return Err(StoreError::Nested);
        }
        let mut backoff = Backoff::new();
        let mut attempts = 0;
        let mut limit = None;
        if CONTENDED.load(Ordering::Relaxed) {
            // Otherwise the process that just released the lock would win over those that sleep between attempts.
            std::thread::sleep(backoff.next(Duration::ZERO));
        }
        let mut files = LockFiles::open(path)?;
        loop {
            attempts += 1;
            if files.try_lock(path)? {
                if files.is_current(path) {
                    CONTENDED.store(attempts > 1, Ordering::Relaxed);
                    let LockFiles { file, folder, .. } = files;
                    return Ok(Self { file, _folder: folder });
                }
                // Deleted or replaced since it was opened.
                files = LockFiles::open(path)?;
                continue;
            }
            let limit: Duration = *limit.get_or_insert_with(|| timeout().0);
            let Some(left) = limit.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else {
                return Err(StoreError::Locked { path: path.to_owned(), waited: start.elapsed() });
            };
            std::thread::sleep(backoff.next(start.elapsed()).min(left));
        }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

/// Locked one after the other.
struct LockFiles {
    file: File,
    folder: File,
    file_is_locked: bool,
}

impl LockFiles {
    fn open(path: &Path) -> Result<Self, StoreError> {
        // The standard library opens files close-on-exec, so no child process keeps the lock.
        let file = durable::open(Open::Update, path).map_err(StoreError::io("open the lock file", path))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let folder = File::open(folder).map_err(StoreError::io("open", folder))?;
        Ok(Self { file, folder, file_is_locked: false })
    }

    fn try_lock(&mut self, path: &Path) -> Result<bool, StoreError> {
        if !self.file_is_locked {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => self.file_is_locked = true,
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(false),
                Err(error) => return Err(StoreError::io("lock", path)(error.into())),
            }
        }
        match flock(&self.folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            // Some network file systems cannot lock folders; the lock file alone must do there.
            Ok(()) | Err(_) => Ok(true),
        }
    }

    /// True if the locked file still has its name.
    fn is_current(&self, path: &Path) -> bool {
        let identity = |metadata: std::io::Result<Metadata>| metadata.ok().map(|m| (m.dev(), m.ino()));
        identity(self.file.metadata()) == identity(std::fs::symlink_metadata(path))
    }
}

/// This process had to wait for the lock the last time.
static CONTENDED: AtomicBool = AtomicBool::new(false);

/// Random pauses, so that waiting processes don't synchronize; shorter after a long wait, so that none starves.
struct Backoff {
    state: u64,
}

impl Backoff {
    fn new() -> Self {
        Self { state: RandomState::new().build_hasher().finish() | 1 }
    }

    fn next(&mut self, waited: Duration) -> Duration {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let ceiling = match waited.as_millis() {
            0..20 => 2_000,
            20..250 => 8_000,
            250..750 => 3_000,
            _ => 600,
        };
        Duration::from_micros(200 + self.state % ceiling)
    }
}
