//! Durable file replacement for the whole workspace: temporary file, sync, rename.
//!
//! Knows no file of Liza by name. The caller makes sure that no other thread of its process replaces the same file.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::private;

/// Replaces a file. Readers and crashes see the old version or the new one, never a part.
///
/// A power cut may undo the replacement until [`sync_folder`] is called.
///
/// # Errors
/// When the temporary file beside it cannot be written or renamed. The file is unchanged then.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(|temporary| File::create_new(temporary), &temporary_of(path), path, bytes)
}

/// As [`replace_file`]; the file can be read by its owner only.
///
/// # Errors
/// As for [`replace_file`].
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_through(&temporary_of(path), path, bytes)
}

fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp-{}", std::process::id()));
    path.with_file_name(name)
}

/// Replaces a private file through a temporary file with a given name.
pub(crate) fn replace_through(temporary: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
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

/// Removes a file that may not exist.
pub(crate) fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes the names in a folder durable: new, renamed and removed files.
///
/// # Errors
/// When the folder cannot be opened or synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
