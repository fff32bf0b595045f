//! Removes folders that an agent could write, despite removed rights, endless nesting and links.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use liza_host::private;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fchmod, openat, renameat, unlinkat};
use rustix::io::Errno;

/// The number of folders open at once; deeper ones are moved up first.
const DEPTH: usize = 64;

/// The number of passes through a folder. Someone may still be adding to it; then the rest stays.
const PASSES: u32 = 1000;

/// Removes a file, a link, or a whole folder, without following links. A missing path is no error.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    remove_entry(CWD, path.as_os_str())
}

/// The same for an entry of a folder.
pub(super) fn remove_entry(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(_) => {}
    }
    let top = open_folder(parent, name)?;
    let mut moved = 0;
    // Again while folders were moved up.
    for _ in 0..PASSES {
        if !clear(&top, top.as_fd(), DEPTH, &mut moved)? {
            break;
        }
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Creates an empty folder that only its owner can enter. Anything in its place is removed or moved away.
pub fn fresh_folder(path: &Path) -> io::Result<()> {
    if remove_tree(path).is_err() && fs::symlink_metadata(path).is_ok() {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".left-{}", std::process::id()));
        fs::rename(path, path.with_file_name(name))?;
    }
    path.parent().map_or(Ok(()), private::create_folder)?;
    // Fails if something is there.
    rustix::fs::mkdir(path, Mode::RWXU)?;
    Ok(())
}

/// Opens a folder, with all rights for its owner.
fn open_folder(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            super::system::own_entry(parent, name)?;
            openat(parent, name, flags, Mode::empty())?
        }
        opened => opened?,
    };
    // Fails for others' folders; removing then reports it.
    let _ = fchmod(&folder, Mode::RWXU);
    Ok(folder)
}

/// Empties a folder; true if something was moved to `top` instead.
fn clear(folder: &OwnedFd, top: BorrowedFd<'_>, depth: usize, moved: &mut u64) -> io::Result<bool> {
    let mut left = false;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." || unlinkat(folder, name, AtFlags::empty()).is_ok() {
            continue;
        }
        let inner = open_folder(folder.as_fd(), name)?;
        if depth == 0 {
            drop(inner);
            *moved += 1;
            renameat(folder, name, top, format!(".liza-deep-{}-{moved}", std::process::id()))?;
            left = true;
        } else {
            left |= clear(&inner, top, depth - 1, moved)?;
            drop(inner);
            unlinkat(folder, name, AtFlags::REMOVEDIR)?;
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// Covers: IS-15, AT-11
    #[test]
    fn neither_missing_rights_nor_endless_folders_nor_links_keep_a_folder() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("left");
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(home.path().join("yours"), "yours").unwrap();
        symlink("../yours", path.join("link")).unwrap();
        symlink("..", path.join("a/up")).unwrap();
        // Longer than any path may be, and deeper than a process can open folders.
        let mut folder = openat(CWD, &path, OFlags::RDONLY, Mode::empty()).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = openat(&folder, "d", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        for locked in ["a/b", "a", ""] {
            fs::set_permissions(path.join(locked), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(&path).unwrap();
        assert!(fs::symlink_metadata(&path).is_err());
        remove_tree(&path).unwrap();
        assert_eq!(fs::read_to_string(home.path().join("yours")).unwrap(), "yours");
    }

    /// Covers: IS-15
    #[test]
    fn a_fresh_folder_has_nothing_of_what_was_there() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/folder");
        fresh_folder(&path).unwrap();
        fs::write(path.join("left"), "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o555)).unwrap();
        fresh_folder(&path).unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::remove_dir(&path).unwrap();
        symlink("/etc", &path).unwrap();
        fresh_folder(&path).unwrap();
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    }
}
