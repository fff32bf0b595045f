//! Throw-away copies: folders in which tested code works, and from which nothing comes back.
//!
//! In a room, a copy is a pile of folders: the files to copy at the bottom, unchanged, and what each run writes above
//! them, in a folder that only Liza can enter and that one run uses. So it costs nothing to make. Without rooms, it is
//! one real folder.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use liza_host::private;
use rustix::process::{getegid, geteuid};

use crate::sys::leftovers::{leftovers, temporary_name};
use crate::sys::remove_tree::remove_tree;

use super::placed::{Placed, PlacedFiles};

const PREFIX: &str = "copy-";
const OWN: &str = "own";

/// Removed on drop, or by a later process.
#[derive(Debug)]
pub struct ThrowAwayCopy {
    /// Its place for the programs that work in it.
    at: PathBuf,
    folder: PathBuf,
    pile: Option<Pile>,
}

/// The folders of a copy in a room, the lowest first.
#[derive(Debug)]
struct Pile {
    layers: Vec<PathBuf>,
    /// The number of layers that belong to the copy itself and not to a run.
    prepared: usize,
    runs: u32,
}

impl ThrowAwayCopy {
    /// A copy that is the real folder.
    pub fn plain(folder: PathBuf) -> Self {
        Self { at: folder.clone(), folder, pile: None }
    }

    /// A copy of folders above each other, the lowest first, which nobody changes meanwhile. `store` is a folder that no
    /// room has.
    pub fn piled(store: &Path, at: &Path, below: &[PathBuf]) -> io::Result<Self> {
        let store = own_store(store)?;
        let folder = store.join(temporary_name(PREFIX));
        private::create_new_folder(&folder)?;
        let mut copy = Self { at: at.to_owned(), folder, pile: None };
        let own = copy.folder.join(OWN);
        fs::create_dir(&own)?;
        let layers: Vec<PathBuf> = below.iter().cloned().chain([own]).collect();
        copy.pile = Some(Pile { prepared: layers.len(), layers, runs: 0 });
        Ok(copy)
    }

    pub fn at(&self) -> &Path {
        &self.at
    }

    /// The folder for what Liza adds to the copy before the first run.
    pub fn own(&self) -> PathBuf {
        if self.pile.is_some() { self.folder.join(OWN) } else { self.folder.clone() }
    }

    /// A folder beside the files, which no run can write.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn is_in_room(&self) -> bool {
        self.pile.is_some()
    }

    /// What the plan of the next run needs. The next run finds what this one has written.
    pub fn next_run(&mut self) -> io::Result<Vec<Placed>> {
        let Some(pile) = &mut self.pile else { return Ok(Vec::new()) };
        pile.runs += 1;
        let [upper, work] = ["run", "work"].map(|name| self.folder.join(format!("{name}-{}", pile.runs)));
        for folder in [&upper, &work] {
            fs::create_dir(folder)?;
        }
        let lower: Vec<PathBuf> = pile.layers.iter().rev().cloned().collect();
        pile.layers.push(upper.clone());
        let files = PlacedFiles::Overlay { lower, upper, work };
        Ok(vec![Placed { at: self.at.clone(), files }])
    }

    /// Counts what the runs until now have written as a part of the copy.
    pub fn keep(&mut self) {
        if let Some(pile) = &mut self.pile {
            pile.prepared = pile.layers.len();
        }
    }

    /// Drops what the runs since then have written; false if that is impossible.
    pub fn reset(&mut self) -> bool {
        let Some(pile) = &mut self.pile else { return false };
        for dropped in pile.layers.split_off(pile.prepared) {
            // Nothing uses it again, so what is left only takes up space.
            let _ = remove_tree(&dropped);
        }
        true
    }

    /// True if a run has changed, replaced or removed this file or a folder above it. Folders in which a run has only
    /// changed something else do not count.
    pub fn has_changed(&self, path: &Path) -> bool {
        let Some(pile) = &self.pile else { return false };
        let written = pile.layers.iter().skip(pile.prepared);
        let is_changed = |layer: &PathBuf| {
            path.ancestors().filter(|part| !part.as_os_str().is_empty()).any(|part| {
                let found = fs::symlink_metadata(layer.join(part));
                found.is_ok_and(|meta| part == path || !meta.is_dir() || is_opaque(&layer.join(part)))
            })
        };
        written.into_iter().any(is_changed)
    }
}

impl Drop for ThrowAwayCopy {
    fn drop(&mut self) {
        let _ = remove_tree(&self.folder);
    }
}

/// True if the folder replaces the one below it.
fn is_opaque(folder: &Path) -> bool {
    let mut value = [0; 8];
    rustix::fs::lgetxattr(folder, OPAQUE, &mut value).is_ok()
}

const OPAQUE: &str = "user.overlay.opaque";

/// Marks a folder of a layer as one that replaces the folder below it.
pub fn replace_below(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::setxattr(folder, OPAQUE, b"y", rustix::fs::XattrFlags::empty())?)
}

/// Marks a file or folder of the layers below as removed.
pub fn remove_below(path: &Path) -> io::Result<()> {
    let kind = rustix::fs::FileType::CharacterDevice;
    Ok(rustix::fs::mknodat(rustix::fs::CWD, path, kind, rustix::fs::Mode::empty(), 0)?)
}

/// True if a room can change copies of the files in a folder: it knows one user and one group.
pub fn can_pile(folder: &Path) -> bool {
    const SETGID: u32 = 0o2000;
    let is_own = |meta: fs::Metadata| {
        let owner = (meta.uid(), meta.gid()) == (geteuid().as_raw(), getegid().as_raw());
        owner && meta.permissions().mode() & SETGID == 0
    };
    fs::symlink_metadata(folder).is_ok_and(is_own)
}

/// Removes the copies of processes that are gone.
pub fn remove_left_copies(store: &Path) {
    for left in leftovers(store, PREFIX) {
        let _ = remove_tree(&left);
    }
}

/// The real folder of the copies, whose files belong to this process's group whatever the project's folder says.
fn own_store(store: &Path) -> io::Result<PathBuf> {
    private::create_folder(store)?;
    let store = store.canonicalize()?;
    if !can_pile(&store) {
        rustix::fs::chown(&store, None, Some(getegid()))?;
        fs::set_permissions(&store, fs::Permissions::from_mode(0o700))?;
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: RO-09
    #[test]
    fn each_run_writes_to_a_folder_of_its_own_above_those_before_it() {
        let place = tempfile::tempdir().unwrap();
        let (store, files) = (place.path().join("copies"), place.path().join("files"));
        let mut copy = ThrowAwayCopy::piled(&store, Path::new("/at"), std::slice::from_ref(&files)).unwrap();
        let own = copy.own();
        let overlay = |placed: Vec<Placed>| match placed.into_iter().next().unwrap() {
            Placed { at, files: PlacedFiles::Overlay { lower, upper, work } } if at == Path::new("/at") => {
                assert!(upper.is_dir() && work.is_dir() && upper != work);
                (lower, upper)
            }
            other => panic!("{other:?}"),
        };
        let (lower, set_up) = overlay(copy.next_run().unwrap());
        assert_eq!(lower, [own.clone(), files.clone()]);
        copy.keep();
        let (lower, first) = overlay(copy.next_run().unwrap());
        assert_eq!(lower, [set_up.clone(), own.clone(), files.clone()]);
        let (lower, second) = overlay(copy.next_run().unwrap());
        assert_eq!(lower, [first.clone(), set_up.clone(), own.clone(), files.clone()]);
        assert!(copy.reset() && !first.exists() && !second.exists());
        let (lower, third) = overlay(copy.next_run().unwrap());
        assert_eq!(lower, [set_up, own, files]);
        assert!(third != first && third != second, "none is used twice");
        let mode = fs::metadata(store.canonicalize().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(copy);
        assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
    }

    /// Covers: RO-09
    #[test]
    fn changes_of_a_run_are_seen_in_its_folder() {
        let place = tempfile::tempdir().unwrap();
        let mut copy = ThrowAwayCopy::piled(place.path(), Path::new("/at"), &[]).unwrap();
        fs::create_dir_all(copy.own().join("scripts")).unwrap();
        fs::write(copy.own().join("scripts/test.sh"), "x").unwrap();
        copy.next_run().unwrap();
        let upper = copy.pile.as_ref().unwrap().layers.last().unwrap().clone();
        let test = Path::new("scripts/test.sh");
        assert!(!copy.has_changed(test), "Liza's own files are no change");
        fs::create_dir(upper.join("scripts")).unwrap();
        fs::write(upper.join("scripts/other"), "x").unwrap();
        assert!(!copy.has_changed(test));
        replace_below(&upper.join("scripts")).unwrap();
        assert!(copy.has_changed(test), "the whole folder was replaced");
        assert!(copy.reset());
        copy.next_run().unwrap();
        let upper = copy.pile.as_ref().unwrap().layers.last().unwrap().clone();
        remove_below(&upper.join("scripts")).unwrap();
        assert!(copy.has_changed(test), "the folder was removed");
    }

    /// Covers: RO-09
    #[test]
    fn what_a_dead_process_has_left_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let left = place.path().join(format!("{PREFIX}{}-0", ended.id()));
        fs::create_dir_all(left.join("work-1/work")).unwrap();
        fs::set_permissions(left.join("work-1/work"), fs::Permissions::from_mode(0o000)).unwrap();
        let copy = ThrowAwayCopy::piled(place.path(), Path::new("/at"), &[]).unwrap();
        remove_left_copies(place.path());
        assert!(!left.exists() && copy.own().is_dir());
    }
}
