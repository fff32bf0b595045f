//! One team per project: a lock that a running `liza run` holds, with a line that names its process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::model::{AgentId, AgentRecord, State};
use liza_host::durable;

use crate::engine::{EngineError, FileLock, LivenessLock, clear_stopping};
use crate::project::{Project, now};

/// A command that only asks whether a team runs holds the lock for a moment; a team waits for that.
const LOOK: Duration = Duration::from_millis(500);

/// Released when dropped.
#[derive(Debug)]
pub struct RunLock {
    _lock: FileLock,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a team is already running in this project: {holder}")]
pub struct AlreadyRunning {
    /// Its process and start time.
    pub holder: String,
}

impl AlreadyRunning {
    fn of(path: &Path) -> Self {
        let holder = durable::read_text(path).unwrap_or_default();
        let holder = match holder.trim() {
            "" => "a `liza run` that has just started",
            line => line,
        };
        Self { holder: holder.to_owned() }
    }

    /// `None` if the team has just started.
    pub fn process(&self) -> Option<u32> {
        self.holder.strip_prefix("process ")?.split(',').next()?.parse().ok()
    }
}

impl RunLock {
    pub fn take(project: &Project) -> Result<Result<Self, AlreadyRunning>, EngineError> {
        let path = path(project);
        let lock = match FileLock::at(&path, LOOK) {
            Err(EngineError::Locked { .. }) => return Ok(Err(AlreadyRunning::of(&path))),
            lock => lock?,
        };
        let line = format!("process {}, started {}\n", std::process::id(), now());
        clear_stopping(project.folder());
        lock.note(&line).map_err(EngineError::io("write", &path))?;
        Ok(Ok(Self { _lock: lock }))
    }

    pub fn hold_until_exit(self) {
        std::mem::forget(self);
    }

    pub fn holder(project: &Project) -> Result<Option<AlreadyRunning>, EngineError> {
        let path = path(project);
        if !path.exists() {
            return Ok(None);
        }
        let free = FileLock::try_at(&path)?;
        Ok(free.is_none().then(|| AlreadyRunning::of(&path)))
    }
}

pub fn is_team_running(project: &Project, state: &State) -> Result<bool, EngineError> {
    let now = now();
    let alive = |(agent, entry): (&AgentId, &AgentRecord)| {
        let proven = |generation| LivenessLock::is_proven_dead(project.folder(), *agent, generation);
        entry.holds(now) && !entry.generation.is_some_and(proven)
    };
    let mut agents = state.board.agents.ready().into_iter().flatten();
    Ok(RunLock::holder(project)?.is_some() || agents.any(alive))
}

fn path(project: &Project) -> PathBuf {
    project.folder().join("run.lock")
}
