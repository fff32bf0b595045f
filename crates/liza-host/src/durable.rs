//! Durable file replacement: temporary file, sync, rename; and opening files without following links. The
//! caller makes sure that no other thread of its process replaces the same file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::own_folder::{PRIVATE, Place};

/// Replaces a file: readers and crashes see the old version or the new one, never a part. A power cut may
/// undo it until [`sync_folder`] is called.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(Mode::from_raw_mode(0o666), &temporary_of(path), path, bytes)
}

/// [`replace_file`] for a file that only its owner can read.
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(PRIVATE, &temporary_of(path), path, bytes)
}

fn temporary_of(path: &Path) -> OsString {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp-{}", std::process::id()));
    name
}

/// Replaces a private file through a temporary file with a given name.
pub fn replace_through(temporary: &OsStr, path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(PRIVATE, temporary, path, bytes)
}

fn replace_with(mode: Mode, temporary: &OsStr, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_file_name(temporary);
    let place = Place::of(&temporary)?;
    absent(place.remove())?;
    let write = || {
        // Not an existing file: that could be a hard link to another one.
        let mut file = place.open(Open::New.flags(), mode)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        place.rename(path.file_name().ok_or(ErrorKind::InvalidInput)?)
    };
    write().inspect_err(|_| {
        // A full disk, for example. The first error is the one to report.
        let _ = place.remove();
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    Read,
    /// To read and write, created if it is missing.
    Update,
    /// To write at its end, created if it is missing.
    Append,
    /// Fails if the file exists.
    New,
}

impl Open {
    fn flags(self) -> OFlags {
        match self {
            Open::Read => OFlags::RDONLY,
            Open::Update => OFlags::RDWR | OFlags::CREATE,
            Open::Append => OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
            Open::New => OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
        }
    }
}

/// Opens a file, and checks that it is one; a link is an error. Only its owner can read a new one.
pub fn open(how: Open, path: &Path) -> io::Result<File> {
    let file =
        Place::of(path)?.open(how.flags(), PRIVATE).map_err(|error| match fs::symlink_metadata(path) {
            _ if how == Open::New => error,
            Ok(metadata) if metadata.is_symlink() => {
                not_regular("it is a symbolic link; put the file itself there")
            }
            Ok(metadata) if metadata.is_dir() => not_regular("it is a folder; put a file there"),
            Ok(metadata) if !metadata.is_file() => not_regular("it is not a file; put a file there"),
            Ok(_) | Err(_) => error,
        })?;
    let metadata = file.metadata()?;
    match metadata.is_dir() {
        true => Err(not_regular("it is a folder; put a file there")),
        false if metadata.is_file() => Ok(file),
        false => Err(not_regular("it is not a file; put a file there")),
    }
}

/// Opens a new, empty file in the place of an old one, to which a link may lead.
pub fn create(path: &Path) -> io::Result<File> {
    remove_if_present(path)?;
    open(Open::New, path)
}

fn not_regular(why: &str) -> io::Error {
    io::Error::other(why.to_owned())
}

/// Reads a file. Anything else, or a symbolic link, is an error.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(Open::Read, path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0) + 1);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_file(path)?).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

pub fn remove_if_present(path: &Path) -> io::Result<()> {
    absent(Place::of(path).and_then(|place| place.remove()))
}

fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes the names in a folder durable: new, renamed and removed files.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
