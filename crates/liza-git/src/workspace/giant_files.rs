//! Files of git in an agent's worktree that are too large to be real: git reads them into memory as a whole,
//! and a sparse file costs the agent no space. Removed before git starts, as are pipes in their place, at which
//! git would wait. Objects are measured when taken.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use liza_sandbox::sys::untrusted::{EntryKind, UntrustedFolder};

use crate::program::error::GitError;

const ACTION: &str = "removing giant files of git";

/// The largest file in a git folder, which has a line for each reference; an index has an entry for each file.
const FILE_MAX: u64 = 256 << 20;
const INDEX_MAX: u64 = 2 << 30;

/// The largest of the files that git reads among those of a project, and their names.
const SETTINGS_MAX: u64 = 16 << 20;
const SETTINGS: [&str; 4] = [".gitmodules", ".gitattributes", ".gitignore", ".mailmap"];

/// Folders of a git folder whose files git doesn't read as a whole.
const OBJECTS: [&str; 2] = ["objects", "lfs"];

const DEEPEST: usize = 64;

pub(crate) fn remove_giant_files(worktree: &Path) -> Result<(), GitError> {
    let remove = || {
        let git = UntrustedFolder::open(worktree)?.folder(Path::new(".git"));
        git.map_or(Ok(()), |git| look(&git, DEEPEST))
    };
    remove_giant_settings(worktree)?;
    remove().map_err(|error| GitError::io(ACTION, worktree, error))
}

/// Removes giant files and pipes among those of the project that git reads.
pub(crate) fn remove_giant_settings(worktree: &Path) -> Result<(), GitError> {
    let remove = || {
        let top = UntrustedFolder::open(worktree)?;
        remove_waiting(&top, &top.entries()?)?;
        SETTINGS.iter().try_for_each(|name| remove_larger(&top, Path::new(name), SETTINGS_MAX))
    };
    remove().map_err(|error| GitError::io(ACTION, worktree, error))
}

/// Removes what git would wait at when it reads the folder's settings: neither files nor links.
pub(crate) fn remove_waiting(folder: &UntrustedFolder, entries: &[(OsString, EntryKind)]) -> io::Result<()> {
    let is_read = |name: &OsStr| SETTINGS.iter().any(|known| name == *known);
    let waits = |name: &OsStr, kind| kind == EntryKind::Other && folder.link(Path::new(name)).is_err();
    let mut waiting = entries.iter().filter(|(name, kind)| is_read(name) && waits(name, *kind));
    waiting.try_for_each(|(name, _)| folder.remove(Path::new(name)))
}

fn look(folder: &UntrustedFolder, depth: usize) -> io::Result<()> {
    for (name, kind) in folder.entries()? {
        let is_data = OBJECTS.iter().any(|known| name == *known);
        match kind {
            EntryKind::Folder if depth > 0 && !is_data => look(&folder.folder(Path::new(&name))?, depth - 1)?,
            EntryKind::File => {
                let most = if name == "index" { INDEX_MAX } else { FILE_MAX };
                remove_larger(folder, Path::new(&name), most)?;
            }
            // A link could lead to such a file; Liza makes none there.
            EntryKind::Other if depth == DEEPEST => folder.remove(Path::new(&name))?,
            EntryKind::Folder | EntryKind::Other => {}
        }
    }
    Ok(())
}

fn remove_larger(folder: &UntrustedFolder, name: &Path, most: u64) -> io::Result<()> {
    let is_larger = folder.file(name).and_then(|file| file.metadata()).is_ok_and(|meta| meta.len() > most);
    if is_larger { folder.remove(name) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Covers: IS-08
    #[test]
    fn files_that_git_would_read_as_a_whole_are_removed_if_they_are_giant() {
        let place = tempfile::tempdir().unwrap();
        let (giant, normal) = (
            [".gitmodules", ".git/packed-refs", ".git/refs/heads/x", ".git/modules/lib/HEAD", ".git/index"],
            [".git/HEAD", ".git/objects/pack/a.pack", "data.bin", "sub/.git/packed-refs"],
        );
        for name in giant.iter().chain(&normal) {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let size = if *name == ".git/HEAD" { 100 } else { 60 << 30 };
            fs::File::create(path).unwrap().set_len(size).unwrap();
        }
        std::os::unix::fs::symlink("objects/pack/a.pack", place.path().join(".git/shallow")).unwrap();
        remove_giant_files(place.path()).unwrap();
        assert!(!place.path().join(".git/shallow").is_symlink());
        for (names, is_there) in [(&giant[..], false), (&normal[..], true)] {
            for name in names {
                assert_eq!(place.path().join(name).exists(), is_there, "{name}");
            }
        }
    }
}
