//! What must be done in the world after a change was written, as data; the program carries it out.

use crate::ids::{Sha, TaskId};

/// Whether a claim goes on in the worktree that stands, or starts in a fresh one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeMode {
    /// Go on with what is there; make it where it is missing.
    Keep,
    /// Save what is unmerged on a rescue branch, then start from the base.
    Fresh,
}

/// The files by which a human stops everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HaltFile {
    /// `.liza/PAUSE`
    Pause,
    /// `.liza/CHECKPOINT`
    Checkpoint,
    /// `.liza/ABORT`
    Abort,
}

impl HaltFile {
    /// The name of the file in `.liza/`.
    pub fn name(self) -> &'static str {
        match self {
            HaltFile::Pause => "PAUSE",
            HaltFile::Checkpoint => "CHECKPOINT",
            HaltFile::Abort => "ABORT",
        }
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Make the worktree of a reservation; its success is the next command.
    PrepareWorktree {
        /// Whose.
        task: TaskId,
        /// Kept or fresh.
        mode: WorktreeMode,
        /// Where a new one starts.
        base: Sha,
    },
    /// Save what is unmerged, then remove worktree and branch.
    RemoveWorktree {
        /// Whose.
        task: TaskId,
    },
    /// Create the file.
    Raise(HaltFile),
    /// Remove the file.
    Lower(HaltFile),
}
