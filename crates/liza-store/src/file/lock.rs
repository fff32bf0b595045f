//! The lock on `state.yaml.lock`: the same `flock` that flock(1) takes, so old scripts and we exclude each other.
//!
//! The file is never deleted or replaced: two processes would then hold locks on two files of one name.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::error::StoreError;

/// Set to the folder of a blackboard for commands that run while its lock is held.
pub const HELD_ENV: &str = "LIZA_LOCK_HELD";

/// How long to wait for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience(pub Duration);

impl Default for Patience {
    fn default() -> Self {
        Self(Duration::from_secs(10))
    }
}

/// The lock, held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    waited: Duration,
}

impl Lock {
    /// Takes the lock. It is nearly always free; only who has to wait asks how long.
    pub(crate) fn acquire(path: &Path, patience: &dyn Fn() -> Patience) -> Result<Self, StoreError> {
        if let (Some(held), Some(folder)) = (std::env::var_os(HELD_ENV), path.parent())
            && Path::new(&held) == folder
        {
            return Err(StoreError::Nested);
        }
        // Opened close-on-exec by the standard library: no child keeps the lock alive.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(StoreError::io("open the lock file", path))?;
        let start = Instant::now();
        let mut pause = Pause::new();
        let mut tries = 0;
        let mut limit = None;
        if CROWDED.load(Ordering::Relaxed) {
            // Whoever has just let go would win every time against those who sleep between their tries.
            std::thread::sleep(pause.next(Duration::ZERO));
        }
        loop {
            tries += 1;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    CROWDED.store(tries > 1, Ordering::Relaxed);
                    return Ok(Self { file, waited: start.elapsed() });
                }
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(StoreError::io("lock", path)(error.into())),
            }
            let limit: Duration = *limit.get_or_insert_with(|| patience().0);
            let Some(left) = limit.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else {
                return Err(StoreError::Locked { path: path.to_owned(), waited: start.elapsed() });
            };
            std::thread::sleep(pause.next(start.elapsed()).min(left));
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
static CROWDED: AtomicBool = AtomicBool::new(false);

/// Ever different pauses, so that waiting processes do not march in step. Who has waited long looks more often, so
/// that none is starved.
struct Pause {
    state: u64,
}

impl Pause {
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
