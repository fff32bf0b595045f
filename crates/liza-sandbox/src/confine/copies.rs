//! Throw-away copies: folders in which tested code works, and from which nothing comes back.
//!
//! A room makes them: it shows a folder unchanged, and keeps what is written in another folder, which only Liza can enter.
//! So a copy costs nothing to make. Without rooms there are real copies, which others make.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use liza_host::private;
use rustix::process::{getegid, geteuid};

use crate::sys::leftovers::{leftovers, temporary_name};
use crate::sys::remove_tree::remove_tree;

use super::placed::{Placed, PlacedFiles};

/// Below a project's `.liza`.
pub const COPIES: &str = "copies";

const PREFIX: &str = "copy-";

/// What is written in throw-away copies, while a run needs it. Removed on drop, or by a later process.
#[derive(Debug)]
pub struct ThrowAwayCopy {
    folder: PathBuf,
    folders: u32,
}

impl ThrowAwayCopy {
    /// `store` is a folder that no room has.
    pub fn new(store: &Path) -> io::Result<Self> {
        private::create_folder(store)?;
        let store = store.canonicalize()?;
        if !can_copy(&store) {
            // The project's folder may give its files to another group.
            rustix::fs::chown(&store, None, Some(getegid()))?;
            fs::set_permissions(&store, fs::Permissions::from_mode(0o700))?;
        }
        for left in leftovers(&store, PREFIX) {
            let _ = remove_tree(&left);
        }
        let folder = store.join(temporary_name(PREFIX));
        private::create_new_folder(&folder)?;
        Ok(Self { folder, folders: 0 })
    }

    /// A folder in place of which a room has a copy.
    pub fn of(&mut self, folder: &Path) -> io::Result<Placed> {
        let upper = self.new_folder()?;
        self.over(folder, &upper, &[folder.to_owned()])
    }

    /// A folder that a room has at another place, above the files of these, the uppermost first. What is written there
    /// goes to the folder; a later room finds it.
    pub fn over(&mut self, at: &Path, folder: &Path, below: &[PathBuf]) -> io::Result<Placed> {
        let work = self.new_folder()?;
        let mut lower = below.to_vec();
        if lower.is_empty() {
            lower.push(self.new_folder()?);
        }
        Ok(Placed {
            at: at.to_owned(),
            files: PlacedFiles::Overlay { lower, upper: folder.to_owned(), work },
        })
    }

    /// A new folder, which is used once.
    pub fn new_folder(&mut self) -> io::Result<PathBuf> {
        self.folders += 1;
        let folder = self.folder.join(self.folders.to_string());
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}

impl Drop for ThrowAwayCopy {
    fn drop(&mut self) {
        let _ = remove_tree(&self.folder);
    }
}

/// True if a room can change copies of the files in a folder: it knows one user and one group.
pub fn can_copy(folder: &Path) -> bool {
    const SETGID: u32 = 0o2000;
    let is_own = |meta: fs::Metadata| {
        let owner = (meta.uid(), meta.gid()) == (geteuid().as_raw(), getegid().as_raw());
        owner && meta.permissions().mode() & SETGID == 0
    };
    fs::symlink_metadata(folder).is_ok_and(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: RO-09
    #[test]
    fn no_folder_of_a_copy_is_used_twice_and_none_stays() {
        let place = tempfile::tempdir().unwrap();
        let (store, files) = (place.path().join("copies"), place.path().join("files"));
        let mut copy = ThrowAwayCopy::new(&store).unwrap();
        let overlay = |placed: Placed| match placed.files {
            PlacedFiles::Overlay { lower, upper, work } => (placed.at, lower, upper, work),
            files @ (PlacedFiles::Sealed | PlacedFiles::Pinned) => panic!("{files:?}"),
        };
        let (at, lower, first, work) = overlay(copy.of(&files).unwrap());
        assert_eq!((at, lower), (files.clone(), vec![files.clone()]));
        let (_, _, second, other) = overlay(copy.of(&files).unwrap());
        let mut folders = vec![first, second, work, other];
        let (at, lower, upper, work) = overlay(copy.over(Path::new("/at"), &files, &[]).unwrap());
        assert_eq!((at.as_path(), &upper), (Path::new("/at"), &files));
        folders.extend(lower.into_iter().chain([work]));
        assert!(folders.iter().all(|folder| folder.is_dir()), "{folders:?}");
        folders.sort();
        folders.dedup();
        assert_eq!(folders.len(), 6);
        let mode = fs::metadata(store.canonicalize().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(copy);
        assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
    }

    /// Covers: RO-09
    #[test]
    fn what_a_dead_process_has_left_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let left = place.path().join(format!("{PREFIX}{}-0", ended.id()));
        fs::create_dir_all(left.join("1/work")).unwrap();
        fs::set_permissions(left.join("1/work"), fs::Permissions::from_mode(0o000)).unwrap();
        let mut copy = ThrowAwayCopy::new(place.path()).unwrap();
        assert!(!left.exists() && copy.new_folder().unwrap().is_dir());
        ThrowAwayCopy::new(place.path()).unwrap();
        assert!(copy.new_folder().is_ok(), "others leave the copies of living processes");
    }
}
