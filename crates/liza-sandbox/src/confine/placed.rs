//! The parts of a room that are not what is at their place outside, as data: a plan names them, and only a room can have
//! them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Its place in the room.
    pub at: PathBuf,
    pub files: PlacedFiles,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlacedFiles {
    /// Folders above each other, the uppermost first. They stay as they are: changes go to `upper`.
    Overlay { lower: Vec<PathBuf>, upper: PathBuf, work: PathBuf },
    /// This folder itself.
    Folder(PathBuf),
    /// This file or folder, which the room cannot change.
    ReadOnly(PathBuf),
    /// The folder that is there anyway; it can be neither renamed nor removed, so what is placed below stays there.
    Pinned,
}

impl Placed {
    /// True if the room's program may write there.
    pub(super) fn is_written(&self) -> bool {
        matches!(self.files, PlacedFiles::Overlay { .. } | PlacedFiles::Folder(_))
    }
}
