//! The lock on `state.yaml.lock`: the same `flock` as flock(1), so scripts and Liza exclude each other.
//!
//! Never deletes or replaces the lock file: two processes would then hold locks on two files of the same name.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::error::StoreError;
use crate::private;

/// The environment variable with the folder of the blackboard, for commands that run while its lock is held.
pub const LOCK_HELD_ENV: &str = "LIZA_LOCK_HELD";

/// How long to wait for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockTimeout(pub(crate) Duration);

impl Default for LockTimeout {
    fn default() -> Self {
        Self(Duration::from_secs(10))
    }
}

/// The lock, held until dropped.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
    waited: Duration,
}

impl FileLock {
    /// Takes the lock. The timeout is computed only if the lock is not free, which is rare.
    pub(crate) fn acquire(path: &Path, timeout: &dyn Fn() -> LockTimeout) -> Result<Self, StoreError> {
        if let (Some(held), Some(folder)) = (std::env::var_os(LOCK_HELD_ENV), path.parent())
            && Path::new(&held) == folder
        {
            return Err(StoreError::Nested);
        }
        // The standard library opens files close-on-exec, so no child process keeps the lock.
        // It also keeps the last log entries.
        let file = private::file_options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(StoreError::io("open the lock file", path))?;
        let start = Instant::now();
        let mut backoff = Backoff::new();
        let mut attempts = 0;
        let mut limit = None;
        if CONTENDED.load(Ordering::Relaxed) {
            // Otherwise the process that just released the lock would win over those that sleep between attempts.
            std::thread::sleep(backoff.next(Duration::ZERO));
        }
        loop {
            attempts += 1;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    CONTENDED.store(attempts > 1, Ordering::Relaxed);
                    return Ok(Self { file, waited: start.elapsed() });
                }
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(StoreError::io("lock", path)(error.into())),
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

    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }
}

/// Whether this process had to wait for the lock the last time.
static CONTENDED: AtomicBool = AtomicBool::new(false);

/// Random pauses, so that waiting processes do not synchronize. They get shorter after a long wait, so that no process
/// starves.
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
