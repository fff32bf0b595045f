//! A folder that an agent can write: its files are opened one step at a time, and no link is followed. An
//! agent can exchange any entry at any time; a reader gets only files below the folder, or an error, and
//! never waits for a pipe.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat, readlinkat, renameat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::remove_tree::remove_entry;
use super::system;

const DEEPEST: usize = 200;

#[derive(Debug)]
pub struct UntrustedFolder(OwnedFd, Whose);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// An agent can remove our rights on its files; we are the owner and restore them.
    Agents,
    Yours,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Folder,
    File,
    /// A link, a pipe, a socket or a device.
    Other,
}

impl UntrustedFolder {
    /// Opens a folder whose parent is trusted.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Whose::Agents.open(CWD, path.as_os_str(), folder_flags())?, Whose::Agents))
    }

    /// The same for a folder of the person, in which a merge may have put an agent's files.
    pub fn open_yours(path: &Path) -> io::Result<Self> {
        Ok(Self(Whose::Yours.open(CWD, path.as_os_str(), folder_flags())?, Whose::Yours))
    }

    pub fn folder(&self, path: &Path) -> io::Result<Self> {
        let mut folder = Self(self.0.try_clone()?, self.1);
        for part in path.components() {
            let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            folder = Self(self.1.open(folder.0.as_fd(), name, folder_flags())?, self.1);
        }
        Ok(folder)
    }

    /// Creates missing folders; deletes a file or link in their place.
    pub fn make_folder(&self, path: &Path) -> io::Result<Self> {
        let mut folder = Self(self.0.try_clone()?, self.1);
        for part in path.components() {
            let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            folder = match folder.folder(Path::new(name)) {
                Ok(inner) => inner,
                Err(_) => {
                    let _ = unlinkat(&folder.0, name, AtFlags::empty());
                    mkdirat(&folder.0, name, Mode::RWXU | Mode::RWXG | Mode::RWXO)?;
                    folder.folder(Path::new(name))?
                }
            };
        }
        Ok(folder)
    }

    /// Creates a new file, with the folders above it.
    pub fn new_file(&self, path: &Path) -> io::Result<File> {
        let (folder, name) = self.new_parent(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&folder.0, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    pub fn new_link(&self, path: &Path, target: &OsStr) -> io::Result<()> {
        let (folder, name) = self.new_parent(path)?;
        Ok(symlinkat(target, &folder.0, name)?)
    }

    fn new_parent<'p>(&self, path: &'p Path) -> io::Result<(Self, &'p OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut folder = Self(self.0.try_clone()?, self.1);
        for part in path.parent().unwrap_or(Path::new("")).components() {
            let Component::Normal(part) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            match mkdirat(&folder.0, part, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => folder = folder.folder(Path::new(part))?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok((folder, name))
    }

    pub fn file(&self, path: &Path) -> io::Result<File> {
        let (folder, name) = self.parent_of(path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = self.1.open(folder.0.as_fd(), name, flags)?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
            Ok(File::from(file))
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"))
        }
    }

    pub fn link(&self, path: &Path) -> io::Result<OsString> {
        let (folder, name) = self.parent_of(path)?;
        let target = readlinkat(&folder.0, name, Vec::new())?;
        Ok(OsStr::from_bytes(target.as_bytes()).to_owned())
    }

    /// Fails if the file has more than `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(path)?.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    }

    /// Replaces whatever has that name now.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.parent_of(path)?;
        let mut temporary = OsString::from(".liza-");
        temporary.push(name);
        folder.clear(&temporary)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        File::from(openat(&folder.0, &temporary, flags, mode)?).write_all(bytes)?;
        match renameat(&folder.0, &temporary, &folder.0, name) {
            Err(Errno::ISDIR) => folder.clear(name)?,
            done => return Ok(done?),
        }
        Ok(renameat(&folder.0, &temporary, &folder.0, name)?)
    }

    /// Removes whatever has that name. A missing file is no error.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.parent_of(path)?;
        folder.clear(name)
    }

    /// An agent can put a folder in the place of any file; yours stay.
    fn clear(&self, name: &OsStr) -> io::Result<()> {
        match self.1 {
            Whose::Agents => remove_entry(self.0.as_fd(), name),
            Whose::Yours => match unlinkat(&self.0, name, AtFlags::empty()) {
                Err(Errno::NOENT) => Ok(()),
                done => Ok(done?),
            },
        }
    }

    pub fn entries(&self) -> io::Result<Vec<(OsString, EntryKind)>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            // Some file systems do not report it; opening it does.
            let unknown = entry.file_type() == FileType::Unknown;
            let kind = match () {
                () if entry.file_type().is_dir() => EntryKind::Folder,
                () if entry.file_type().is_file() => EntryKind::File,
                () if unknown && self.folder(Path::new(&name)).is_ok() => EntryKind::Folder,
                () if unknown && self.file(Path::new(&name)).is_ok() => EntryKind::File,
                () => EntryKind::Other,
            };
            if name != "." && name != ".." {
                names.push((name, kind));
            }
        }
        Ok(names)
    }

    fn parent_of<'p>(&self, path: &'p Path) -> io::Result<(Self, &'p OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.folder(path.parent().unwrap_or(Path::new("")))?, name))
    }
}

impl Whose {
    fn open(self, parent: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
        let opened = match openat(parent, name, flags, Mode::empty()) {
            Err(Errno::ACCESS) if self == Whose::Agents => {
                system::own_entry(parent, name)?;
                openat(parent, name, flags, Mode::empty())?
            }
            opened => opened?,
        };
        let mode = fstat(&opened)?.st_mode;
        if self == Whose::Agents && FileType::from_raw_mode(mode).is_dir() && mode & 0o700 != 0o700 {
            // It can be listed, but what is in it cannot be opened. Others' folders are left as they are.
            let _ = fchmod(&opened, Mode::from_raw_mode(mode | 0o700));
        }
        Ok(opened)
    }
}

/// The mode with which the owner of a file or folder can use it; `None` for anything else.
pub(crate) fn owned_mode(mode: u32) -> Option<u32> {
    let kind = FileType::from_raw_mode(mode as _);
    let rights = if kind.is_dir() { 0o700 } else { 0o600 };
    (kind.is_dir() || kind.is_file()).then_some(mode & 0o7777 | rights)
}

/// Restores the rights on all folders below one that agents can write, so that git can read them.
pub fn take_rights(folder: &UntrustedFolder) {
    take_rights_to(folder, DEEPEST);
}

fn take_rights_to(folder: &UntrustedFolder, depth: usize) {
    for (name, kind) in folder.entries().unwrap_or_default() {
        // Unreadable folders are left to git, which reports them.
        if kind == EntryKind::Folder
            && depth > 0
            && let Ok(inner) = folder.folder(Path::new(&name))
        {
            take_rights_to(&inner, depth - 1);
        }
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn open() -> (tempfile::TempDir, UntrustedFolder) {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("inside/deep")).unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        fs::write(home.path().join("inside/deep/file"), "text").unwrap();
        let folder = UntrustedFolder::open(&home.path().join("inside")).unwrap();
        (home, folder)
    }

    /// Covers: IS-08
    #[test]
    fn links_are_never_followed() {
        let (home, folder) = open();
        let inside = home.path().join("inside");
        symlink("../secret", inside.join("link")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        assert_eq!(folder.read(Path::new("deep/file"), 10).unwrap(), b"text");
        for path in ["link", "up/secret", "../secret", "/etc/passwd", "up"] {
            assert!(folder.read(Path::new(path), 10).is_err(), "{path}");
        }
        assert!(UntrustedFolder::open(&inside.join("up")).is_err());
        assert!(folder.read(Path::new("deep/file"), 3).is_err(), "too large");
    }

    /// Covers: IS-16
    #[test]
    fn rights_that_an_agent_took_away_are_taken_back() {
        use std::os::unix::fs::PermissionsExt as _;
        let (home, _) = open();
        let inside = home.path().join("inside");
        for name in ["deep/file", "deep", ""] {
            fs::set_permissions(inside.join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
        let folder = UntrustedFolder::open(&inside).unwrap();
        assert_eq!(folder.read(Path::new("deep/file"), 10).unwrap(), b"text");
    }

    /// Covers: IS-08
    #[test]
    fn a_pipe_is_an_error_at_once() {
        let (home, folder) = open();
        let path = home.path().join("inside/pipe");
        rustix::fs::mkfifoat(CWD, &path, Mode::RWXU).unwrap();
        assert!(folder.read(Path::new("pipe"), 10).is_err());
        assert!(folder.entries().unwrap().contains(&("pipe".into(), EntryKind::Other)));
    }

    /// Covers: IS-08
    #[test]
    fn writing_replaces_a_link_and_not_what_it_points_to() {
        let (home, folder) = open();
        symlink("../secret", home.path().join("inside/config")).unwrap();
        folder.write(Path::new("config"), b"ours").unwrap();
        assert_eq!(fs::read(home.path().join("secret")).unwrap(), b"secret");
        assert_eq!(folder.read(Path::new("config"), 10).unwrap(), b"ours");
        folder.make_folder(Path::new("a/b")).unwrap().write(Path::new("c"), b"x").unwrap();
        assert_eq!(folder.read(Path::new("a/b/c"), 1).unwrap(), b"x");
    }

    /// Covers: RO-03
    #[test]
    fn a_folder_in_the_place_of_a_file_keeps_nothing_from_being_written_or_removed() {
        let (home, folder) = open();
        for name in ["inside/config/deep", "inside/.liza-config/deep", "inside/gone/deep"] {
            fs::create_dir_all(home.path().join(name)).unwrap();
        }
        folder.write(Path::new("config"), b"ours").unwrap();
        assert_eq!(folder.read(Path::new("config"), 10).unwrap(), b"ours");
        folder.remove(Path::new("gone")).unwrap();
        assert!(!home.path().join("inside/gone").exists());
        let yours = UntrustedFolder::open_yours(home.path()).unwrap();
        assert!(yours.remove(Path::new("inside")).is_err() && home.path().join("inside/deep").exists());
    }
}
