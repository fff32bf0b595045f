//! Durable file replacement: temporary file, sync, rename. The caller makes sure that no other thread of its
//! process replaces the same file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::private;

/// Replaces a file: readers and crashes see the old version or the new one, never a part. A power cut may
/// undo it until [`sync_folder`] is called.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(|temporary| File::create_new(temporary), &temporary_of(path), path, bytes)
}

/// [`replace_file`] for a file that only its owner can read.
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_through(&temporary_of(path), path, bytes)
}

fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp-{}", std::process::id()));
    path.with_file_name(name)
}

/// Replaces a private file through a temporary file with a given name.
pub fn replace_through(temporary: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(private::create_new, temporary, path, bytes)
}

fn replace_with(
    create: impl Fn(&Path) -> io::Result<File>,
    temporary: &Path,
    path: &Path,
    bytes: &[u8],
) -> io::Result<()> {
    remove_if_present(temporary)?;
    let write = || {
        // Not an existing file: that could be a hard link to another one.
        let mut file = create(temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(temporary, path)
    };
    write().inspect_err(|_| {
        // A full disk, for example. The first error is the one to report.
        let _ = fs::remove_file(temporary);
    })
}

/// Options that refuse symbolic links and don't block on named pipes. A new file is readable by its owner only.
pub fn regular() -> OpenOptions {
    let mut options = private::file_options();
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// Opens a file, and checks that it is one.
pub fn open_regular(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.open(path).map_err(|error| match fs::symlink_metadata(path) {
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

fn not_regular(why: &str) -> io::Error {
    io::Error::other(why.to_owned())
}

/// Reads a file. Anything else, or a symbolic link, is an error.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_regular(regular().read(true), path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0) + 1);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes the names in a folder durable: new, renamed and removed files.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
