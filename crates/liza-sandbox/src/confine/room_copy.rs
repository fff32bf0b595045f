//! A judged checkout and its caches as its rooms show them: at places that are the same for every commit, since build tools
//! note the paths of what they build. So a build of another commit can begin with what is there.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::copies::{COPIES, ThrowAwayCopy, can_copy};
use super::placed::Placed;

/// The name of both places.
const JUDGED: &str = "judged";

#[derive(Debug)]
pub struct RoomCopy {
    /// Outside: what is written in the rooms stays there.
    files: PathBuf,
    caches: PathBuf,
    shown: PathBuf,
    shown_caches: PathBuf,
    /// A folder that the rooms show below the files, and cannot change.
    below: Option<PathBuf>,
    copy: RefCell<ThrowAwayCopy>,
}

impl RoomCopy {
    /// `own` is the project's `.liza`, where rooms can make copies. `None` if they cannot make these.
    pub fn of(own: &Path, files: &Path, caches: &Path) -> Option<Self> {
        let own = own.canonicalize().ok()?;
        let copy = ThrowAwayCopy::new(&own.join(COPIES)).ok()?;
        let (files, caches) = (files.canonicalize().ok()?, caches.canonicalize().ok()?);
        // Tried was the disk of the copies.
        let disk = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
        let here = disk(&own.join(COPIES));
        let is_usable = |folder: &PathBuf| can_copy(folder) && disk(folder) == here;
        if ![&files, &caches].into_iter().all(is_usable) {
            return None;
        }
        // In a folder of which rooms have nothing else, so nothing need be there outside. As deep as a worktree: what a
        // checkout borrows from the project may be named from there.
        let (shown, shown_caches) = (own.join(JUDGED), own.join("caches").join(JUDGED));
        Some(Self { files, caches, shown, shown_caches, below: None, copy: RefCell::new(copy) })
    }

    pub fn above(self, below: PathBuf) -> Self {
        Self { below: Some(below), ..self }
    }

    pub fn shown(&self) -> &Path {
        &self.shown
    }

    pub fn shown_caches(&self) -> &Path {
        &self.shown_caches
    }

    /// For the plan of one room; the next one finds what it has written.
    pub fn placed(&self) -> io::Result<[Placed; 2]> {
        let mut copy = self.copy.borrow_mut();
        Ok([
            copy.over(&self.shown, &self.files, self.below.as_slice())?,
            copy.over(&self.shown_caches, &self.caches, &[])?,
        ])
    }
}
