//! What a change asks to be done in the world: stop files and worktrees.
//!
//! Runs after the write and without the lock. What is unmerged is saved before anything is removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_core::effect::{Effect, HaltFile};
use liza_core::ids::TaskId;

use crate::git::Rescue;
use crate::project::{Project, now};
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

/// Raises or lowers a stop file. The first line of a raised one says since when it stands.
pub fn set_halt(folder: &Path, file: HaltFile, raised: bool) -> Result<(), EffectError> {
    let path = folder.join(file.name());
    let (action, result) = match raised {
        // A file that a person made stays as it is: its time tells since when it stands.
        true if path.exists() => return Ok(()),
        true => ("write", fs::write(&path, format!("{}\n", now()))),
        false => ("remove", fs::remove_file(&path)),
    };
    match result {
        Err(error) if !raised && error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(EffectError::File { action, path, source }),
        Ok(()) => Ok(()),
    }
}

/// The stop files that the effects ask for.
pub fn run_halts(project: &Project, effects: &[Effect]) -> Result<(), EffectError> {
    for effect in effects {
        match effect {
            Effect::Raise(file) => set_halt(project.folder(), *file, true)?,
            Effect::Lower(file) => set_halt(project.folder(), *file, false)?,
            Effect::PrepareWorktree { .. } | Effect::RemoveWorktree { .. } => {}
        }
    }
    Ok(())
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
