//! A sign of life: a lock that a supervisor holds for as long as it lives, so that its death can be proven.
//!
//! The operating system lets go of the lock with the process, whatever ended it. The file stays and says for which
//! registration it was held, and on which machine. What cannot be proven is not dead: then the lease decides.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::ids::{AgentId, Generation};

use crate::sys::process::boot_id;

/// How often the lock is asked for while another holds it.
const PAUSE: Duration = Duration::from_millis(10);

/// The lock of an agent's supervisor, held until dropped.
#[derive(Debug)]
pub struct Life {
    file: File,
}

/// What came of asking for the lock.
#[derive(Debug)]
pub enum Asked {
    /// It is ours: whoever held it is dead.
    Mine(Life),
    /// Somebody alive holds it.
    Held,
    /// There are no locks to be had here, so nothing can be proven.
    Unknown,
}

impl Life {
    fn path(liza: &Path, agent: AgentId) -> PathBuf {
        liza.join("agent-locks").join(format!("{agent}.lock"))
    }

    /// Asks for the lock of an agent; somebody who only looks holds it for a moment, which can be waited for.
    pub fn ask(liza: &Path, agent: AgentId, patience: Duration) -> Asked {
        let path = Self::path(liza, agent);
        let folder = path.parent().unwrap_or(liza);
        let open = || OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path);
        let Ok(file) = fs::create_dir_all(folder).and_then(|()| open()) else { return Asked::Unknown };
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Asked::Mine(Self { file }),
                Err(TryLockError::Error(_)) => return Asked::Unknown,
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Asked::Held,
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            }
        }
    }

    /// The registration whose supervisor held the lock before, and is dead. Nothing where it may have lived elsewhere.
    pub fn left_by(&mut self) -> Option<Generation> {
        let mut text = String::new();
        self.file.rewind().ok()?;
        (&self.file).take(200).read_to_string(&mut text).ok()?;
        let (generation, boot) = text.trim().split_once(' ')?;
        (boot_id()? == boot).then_some(())?;
        generation.parse().ok().map(Generation)
    }

    /// Says for which registration it is held from now on. Where that fails, this one's death will not be proven.
    pub fn stand_for(&mut self, generation: Generation) {
        let Some(boot) = boot_id() else { return };
        let _ = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(format!("{generation} {boot}\n").as_bytes()));
    }
}
