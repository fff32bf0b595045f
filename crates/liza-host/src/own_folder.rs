//! The way to a file of Liza's own: below a handle of its folder, one step at a time, and through no link.
//! Links above the folder are the person's and are followed.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

/// Below a folder of this name every link is refused; elsewhere only one in the place of the file itself.
const NAME: &str = ".liza";

/// A handle to look names up in, which needs no right to list them.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// The mode of a file that only its owner may read.
pub(crate) const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fails,
    IsMade,
}

/// A name in an open folder.
#[derive(Debug)]
pub(crate) struct Place<'p> {
    folder: OwnedFd,
    name: &'p OsStr,
}

impl<'p> Place<'p> {
    pub(crate) fn of(path: &'p Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let folder = open_folder(path.parent().unwrap_or(Path::new("")), Missing::Fails)?;
        Ok(Self { folder, name })
    }

    /// Never waits for a pipe.
    pub(crate) fn open(&self, flags: OFlags, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.folder, self.name, flags, mode)?))
    }

    /// Gives the file another name in the same folder.
    pub(crate) fn rename(&self, name: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.folder, self.name, &self.folder, name)?)
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        Ok(unlinkat(&self.folder, self.name, AtFlags::empty())?)
    }
}

/// Creates a folder that only its owner may read, and those above it that are missing.
pub fn create_folder(path: &Path) -> io::Result<()> {
    open_folder(path, Missing::IsMade).map(drop)
}

fn open_folder(path: &Path, missing: Missing) -> io::Result<OwnedFd> {
    let own = path.ancestors().find(|above| above.file_name() == Some(OsStr::new(NAME))).unwrap_or(path);
    if missing == Missing::IsMade {
        DirBuilder::new().recursive(true).mode(Mode::RWXU.bits()).create(own)?;
    }
    let start = if own.as_os_str().is_empty() { Path::new(".") } else { own };
    let mut folder = openat(CWD, start, FOLDER, Mode::empty())?;
    for part in path.strip_prefix(own).unwrap_or(Path::new("")).components() {
        let Component::Normal(name) = part else { return Err(ErrorKind::InvalidInput.into()) };
        folder = match open_inside(&folder, name) {
            Err(error) if error.kind() == ErrorKind::NotFound && missing == Missing::IsMade => {
                match mkdirat(&folder, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => open_inside(&folder, name)?,
                    Err(error) => return Err(error.into()),
                }
            }
            opened => opened?,
        };
    }
    Ok(folder)
}

fn open_inside(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => {
            let name = name.display();
            io::Error::other(format!("{name} is a symbolic link or a file; put a folder there"))
        }
        other => other.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use crate::durable::{self, Open};

    /// Covers: AX-12
    #[test]
    fn no_way_to_a_file_of_its_own_leads_through_a_link() {
        let project = tempfile::tempdir().unwrap();
        let at = |name: &str| project.path().join(name);
        fs::create_dir_all(at("elsewhere/deep")).unwrap();
        fs::write(at("elsewhere/deep/file"), "theirs").unwrap();
        fs::create_dir(at("real")).unwrap();
        // The folder itself may be a link of the person.
        symlink(at("real"), at(".liza")).unwrap();
        symlink(at("elsewhere"), at(".liza/linked")).unwrap();
        symlink(at("elsewhere/deep/file"), at(".liza/file")).unwrap();
        for path in [at(".liza/linked/deep/file"), at(".liza/file")] {
            for how in [Open::Read, Open::Update, Open::Append] {
                assert!(durable::open(how, &path).is_err(), "{how:?} {}", path.display());
            }
        }
        assert!(durable::replace_file(&at(".liza/linked/deep/file"), b"ours").is_err());
        assert!(durable::create(&at(".liza/linked/deep/new")).is_err());
        assert!(durable::remove_if_present(&at(".liza/linked/deep/file")).is_err());
        assert!(crate::private::create_folder(&at(".liza/linked/made")).is_err());
        assert!(!at("elsewhere/made").exists() && !at("elsewhere/deep/new").exists());
        // A new file takes the place of the link.
        durable::create(&at(".liza/file")).unwrap();
        durable::replace_file(&at(".liza/file"), b"ours").unwrap();
        assert_eq!(durable::read_text(&at(".liza/file")).unwrap(), "ours");
        assert_eq!(fs::read_to_string(at("elsewhere/deep/file")).unwrap(), "theirs");
        crate::private::create_folder(&at(".liza/a/b")).unwrap();
        durable::open(Open::Append, &at(".liza/a/b/c")).unwrap();
    }
}
