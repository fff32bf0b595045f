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
    /// The file that is there anyway; the room can neither change, replace nor remove it.
    Sealed,
    /// The folder that is there anyway; it can be neither renamed nor removed, so what is sealed below stays there.
    Pinned,
}

impl Placed {
    /// True if the files are at this place in a room only; the room's program may write there.
    pub(super) fn is_in_room_only(&self) -> bool {
        match self.files {
            PlacedFiles::Overlay { .. } => true,
            PlacedFiles::Sealed | PlacedFiles::Pinned => false,
        }
    }
}
