//! One team for each project: a lock that a living `liza run` holds, with a word on who that is.

use std::fs;
use std::path::{Path, PathBuf};

use crate::project::{Project, now};
use crate::work::{FileLock, WorkError};

/// The right to be the team of a project; given back when dropped.
#[derive(Debug)]
pub struct OnlyRun {
    _lock: FileLock,
}

/// Another team that is at work already.
#[derive(Debug, thiserror::Error)]
#[error("a team is at work here already: {who}")]
pub struct Running {
    /// Its process and since when, as far as it says so.
    pub who: String,
}

impl OnlyRun {
    /// Takes the right, or says who has it.
    ///
    /// # Errors
    ///
    /// When the lock cannot be had for another reason than that somebody has it.
    pub fn of(project: &Project) -> Result<Result<Self, Running>, WorkError> {
        let path = place(project.folder());
        let Some(lock) = FileLock::try_at(&path)? else {
            let who = fs::read_to_string(&path).unwrap_or_default();
            let who = who.trim();
            let who = if who.is_empty() { "a `liza run` that has just begun" } else { who };
            return Ok(Err(Running { who: who.to_owned() }));
        };
        let word = format!("process {}, since {}\n", std::process::id(), now());
        fs::write(&path, word).map_err(|error| WorkError::io("write", &path)(error))?;
        Ok(Ok(Self { _lock: lock }))
    }
}

fn place(folder: &Path) -> PathBuf {
    folder.join("run.lock")
}
