//! One team per project: a lock that a running `liza run` holds, with a line that names its process.

use std::fs;

use crate::engine::{EngineError, FileLock};
use crate::project::{Project, now};

/// The lock of a project's only team; released when dropped.
#[derive(Debug)]
pub struct RunLock {
    _lock: FileLock,
}

/// Another team is running.
#[derive(Debug, thiserror::Error)]
#[error("a team is already running in this project: {holder}")]
pub struct AlreadyRunning {
    /// Its process, and when it started.
    pub holder: String,
}

impl RunLock {
    /// Takes the lock, or returns the process that holds it.
    ///
    /// # Errors
    /// When the lock file cannot be used.
    pub fn take(project: &Project) -> Result<Result<Self, AlreadyRunning>, EngineError> {
        let path = project.folder().join("run.lock");
        let Some(lock) = FileLock::try_at(&path)? else {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let holder = match holder.trim() {
                "" => "a `liza run` that has just started",
                line => line,
            };
            return Ok(Err(AlreadyRunning { holder: holder.to_owned() }));
        };
        let line = format!("process {}, started {}\n", std::process::id(), now());
        fs::write(&path, line).map_err(EngineError::io("write", &path))?;
        Ok(Ok(Self { _lock: lock }))
    }
}
