//! A lock that a supervisor holds while it is alive, so that other processes can prove its death. The
//! operating system releases it when the process ends. The file stays and records the registration and the
//! boot for which it was held. Without proof, the lease decides.

use std::fs::{self, File, TryLockError};
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{AgentId, Generation};
use liza_host::durable::{self, Open};
use liza_host::private;
use liza_sandbox::sys::process::boot_id;

const PAUSE: Duration = Duration::from_millis(10);

/// The length of the file's content.
const RECORD: usize = 200;

/// Held until dropped.
#[derive(Debug)]
pub struct LivenessLock {
    file: File,
}

#[derive(Debug)]
pub enum LockAttempt {
    /// The previous holder is dead.
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

    /// Tries to take the lock of an agent. `timeout` allows for a process that holds it just to check.
    pub fn take(liza: &Path, agent: AgentId, timeout: Duration) -> LockAttempt {
        let path = Self::path(liza, agent);
        let folder = path.parent().unwrap_or(liza);
        let open = || durable::open(Open::Update, &path);
        let Ok(file) = private::create_folder(folder).and_then(|()| open()) else {
            return LockAttempt::Unknown;
        };
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

    /// The possible registrations of the dead previous supervisor; none if it may be alive on another machine.
    pub(crate) fn previous_holders(&mut self) -> Vec<Generation> {
        self.read().unwrap_or_default()
    }

    fn read(&mut self) -> Option<Vec<Generation>> {
        self.file.rewind().ok()?;
        read_record(&self.file)
    }

    /// True if the supervisor of this registration is proven dead. Takes the lock only shared and for a
    /// moment, so that several observers don't take each other for a live supervisor.
    pub fn is_proven_dead(liza: &Path, agent: AgentId, generation: Generation) -> bool {
        let Ok(file) = durable::open(Open::Read, &Self::path(liza, agent)) else { return false };
        file.try_lock_shared().is_ok() && read_record(&file).is_some_and(|held| held.contains(&generation))
    }

    /// The agents whose supervisor runs on this machine now. Needs only the lock files, so it also works with
    /// an unreadable blackboard.
    pub fn running_agents(liza: &Path) -> Vec<AgentId> {
        let files = fs::read_dir(liza.join("agent-locks")).into_iter().flatten().flatten();
        let is_held = |path: &Path| {
            let lock = durable::open(Open::Read, path).map(|file| file.try_lock_shared());
            matches!(lock, Ok(Err(TryLockError::WouldBlock)))
        };
        // A session has a file of its own beside that of its supervisor.
        let locks = files.map(|entry| entry.path()).filter(|path| path.extension() == Some("lock".as_ref()));
        let held = locks.filter(|path| is_held(path));
        let mut agents: Vec<AgentId> =
            held.filter_map(|path| path.file_stem()?.to_str()?.parse().ok()).collect();
        agents.sort_unstable();
        agents
    }

    /// Records the registrations for which the lock is held, before registering also the coming one, so that
    /// a kill at any moment can be proven. If that fails, it cannot be proven later.
    pub fn hold_for(&mut self, generations: &[Generation]) {
        let Some(boot) = boot_id() else { return };
        let line = |generations: &[Generation]| {
            let text: String = generations.iter().map(|generation| format!("{generation} ")).collect();
            format!("{text}{boot}")
        };
        // The newest ones that fit.
        let fits = |from: &usize| line(generations.get(*from..).unwrap_or_default()).len() < RECORD;
        let from = (0..generations.len()).find(fits).unwrap_or(generations.len());
        let line = line(generations.get(from..).unwrap_or_default());
        // One write over the whole record: a kill between emptying the file and writing it would leave no proof.
        let width = RECORD - 1;
        let _ = self.file.write_all_at(format!("{line:<width$}\n").as_bytes(), 0);
    }
}

/// The registrations in a lock file, if it was held since this machine was started.
fn read_record(mut file: &File) -> Option<Vec<Generation>> {
    let mut text = String::new();
    (&mut file).take(RECORD as u64).read_to_string(&mut text).ok()?;
    let (generations, boot) = text.trim().rsplit_once(' ')?;
    (boot_id()? == boot).then_some(())?;
    generations.split(' ').map(|generation| generation.parse().ok().map(Generation)).collect()
}
