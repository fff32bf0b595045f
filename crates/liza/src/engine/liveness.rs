//! A lock that a supervisor holds for as long as it lives, so that its death can be proven.
//!
//! The operating system releases it with the process, whatever ended it. The file stays and says for which registration
//! it was held, and in which boot of the machine. Without proof the lease decides.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{AgentId, Generation};

use crate::sys::process::boot_id;

/// How often the lock is tried while another process holds it.
const PAUSE: Duration = Duration::from_millis(10);

/// The lock of an agent's supervisor, held until dropped.
#[derive(Debug)]
pub struct LivenessLock {
    file: File,
}

/// The result of trying to take the lock.
#[derive(Debug)]
pub enum LockAttempt {
    /// It is ours: its previous holder is dead.
    Taken(LivenessLock),
    /// A live process holds it.
    Held,
    /// This file system has no locks, so nothing can be proven.
    Unknown,
}

impl LivenessLock {
    fn path(liza: &Path, agent: AgentId) -> PathBuf {
        liza.join("agent-locks").join(format!("{agent}.lock"))
    }

    /// Tries to take the lock of an agent. A process that only checks holds it for a moment, which `timeout` covers.
    pub fn take(liza: &Path, agent: AgentId, timeout: Duration) -> LockAttempt {
        let path = Self::path(liza, agent);
        let folder = path.parent().unwrap_or(liza);
        let open = || OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path);
        let Ok(file) = fs::create_dir_all(folder).and_then(|()| open()) else { return LockAttempt::Unknown };
        let deadline = Instant::now() + timeout;
        loop {
            match file.try_lock() {
                Ok(()) => return LockAttempt::Taken(Self { file }),
                Err(TryLockError::Error(_)) => return LockAttempt::Unknown,
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return LockAttempt::Held,
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            }
        }
    }

    /// The registration whose supervisor held the lock before, and is dead. `None` if it may have run elsewhere.
    pub fn previous_holder(&mut self) -> Option<Generation> {
        let mut text = String::new();
        self.file.rewind().ok()?;
        (&self.file).take(200).read_to_string(&mut text).ok()?;
        let (generation, boot) = text.trim().split_once(' ')?;
        (boot_id()? == boot).then_some(())?;
        generation.parse().ok().map(Generation)
    }

    /// Writes for which registration it is held from now on. If that fails, its death cannot be proven later.
    pub fn hold_for(&mut self, generation: Generation) {
        let Some(boot) = boot_id() else { return };
        let _ = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(format!("{generation} {boot}\n").as_bytes()));
    }
}
