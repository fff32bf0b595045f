//! What a change asks to be done in the world: stop files and worktrees.
//!
//! Runs after the write and without the lock. What is unmerged is saved before anything is removed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use liza_core::model::{Effect, StopFile, TaskId, Timestamp};

use crate::git::Rescue;
use crate::project::{Project, now};
use crate::report::summary;
use crate::work::{Discarded, WorkError, discard};

/// Why an effect failed. The blackboard has been written; `recover` settles what is left.
#[derive(Debug, thiserror::Error)]
pub enum EffectError {
    /// A worktree could not be removed.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// A stop file could not be written or removed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What tells people that a checkpoint waits for too long; it goes with the checkpoint.
pub const ESCALATION: &str = "ESCALATION";

/// Raises a stop file for good: it outlasts a power cut. Its first line says since when it stands.
fn raise(folder: &Path, file: StopFile, now: Timestamp) -> io::Result<()> {
    let path = folder.join(file.name());
    // A file that a person made stays as it is: its time tells since when it stands.
    if path.exists() {
        return Ok(());
    }
    let mut raised = File::create(&path)?;
    raised.write_all(format!("{now}\n").as_bytes())?;
    raised.sync_all()?;
    File::open(folder)?.sync_all()
}

/// The stop files that have to stand before the change is written which asks for them.
pub(crate) fn raise_ahead(folder: &Path, effects: &[Effect], now: Timestamp) -> io::Result<()> {
    effects.iter().try_for_each(|effect| match effect {
        Effect::Raise(file) => raise(folder, *file, now),
        Effect::Lower(_) | Effect::PrepareWorktree { .. } | Effect::RemoveWorktree { .. } => Ok(()),
    })
}

/// Takes a stop file away, or whatever stands beside it.
fn lower(folder: &Path, name: &str) -> Result<(), EffectError> {
    let path = folder.join(name);
    match fs::remove_file(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(EffectError::File { action: "remove", path, source })
        }
        Err(_) | Ok(()) => Ok(()),
    }
}

/// The stop files that the effects ask for.
pub fn run_halts(project: &Project, effects: &[Effect]) -> Result<(), EffectError> {
    run_halts_at(project, effects, now())
}

/// The same at another time.
pub fn run_halts_at(project: &Project, effects: &[Effect], now: Timestamp) -> Result<(), EffectError> {
    // Where nothing had to be written, nothing was raised ahead either.
    let raise = |file: StopFile| {
        let failed =
            |source| EffectError::File { action: "write", path: project.folder().join(file.name()), source };
        raise(project.folder(), file, now).map_err(failed)
    };
    for effect in effects {
        match effect {
            // Every checkpoint begins here, whoever asked for it: by command, bare file, deadline or breaker.
            Effect::Raise(file @ StopFile::Checkpoint) => {
                raise(*file)?;
                summarize(project, now);
            }
            Effect::Raise(file @ (StopFile::Pause | StopFile::Abort)) => {
                raise(*file)?;
            }
            Effect::Lower(file @ StopFile::Checkpoint) => {
                lower(project.folder(), file.name())?;
                lower(project.folder(), ESCALATION)?;
            }
            Effect::Lower(file @ (StopFile::Pause | StopFile::Abort)) => {
                lower(project.folder(), file.name())?;
            }
            Effect::PrepareWorktree { .. } | Effect::RemoveWorktree { .. } => {}
        }
    }
    Ok(())
}

/// Writes down how the sprint stands. Everybody has stopped, which is what counts; `liza checkpoint` tells why where
/// this could not be written.
fn summarize(project: &Project, now: Timestamp) {
    if let Ok(state) = project.look() {
        let _ = summary::write(project, &state, now);
    }
}

/// The tasks whose worktrees the effects ask to remove.
pub fn to_remove(effects: &[Effect]) -> impl Iterator<Item = &TaskId> {
    effects.iter().filter_map(|effect| match effect {
        Effect::RemoveWorktree { task } => Some(task),
        Effect::PrepareWorktree { .. } | Effect::Raise(_) | Effect::Lower(_) => None,
    })
}

/// Saves what is unmerged in a task's worktree, then removes the worktree and its branch; leaves them where somebody
/// has taken the task since the effect was asked for.
pub fn remove_worktree(project: &Project, task: &TaskId) -> Result<Option<Rescue>, EffectError> {
    match discard(project, task)? {
        Discarded::Removed(removed) => Ok(removed.rescued),
        Discarded::Needed => Ok(None),
    }
}
