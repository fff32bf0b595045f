//! Replaces state.yaml durably and keeps other versions of it. Runs under the lock, so temporary files need
//! no unique names. The order of the steps of a write is in `mod.rs`.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read, Write as _};
use std::path::PathBuf;

use liza_host::durable::{self, Open, remove_if_present, replace_through};
use liza_host::private;

use crate::error::StoreError;

use super::StateFolder;
use super::record::temporary_name;

const TEMPORARY_PREFIX: &str = "state.yaml.tmp-";

/// The number of bytes that are compared at a time.
const PIECE: usize = 64 * 1024;

/// Writes a temporary file. The caller syncs it.
pub(super) fn write_temporary(folder: &StateFolder, name: &str, bytes: &[u8]) -> Result<File, StoreError> {
    let path = folder.path().join(name);
    let create = || private::create_new(&path);
    let mut file = match create() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // A killed writer left it. No file with this prefix is still needed.
            remove_temporaries(folder)?;
            create()
        }
        other => other,
    }
    .map_err(StoreError::io("create", &path))?;
    let written = file.write_all(bytes).and_then(|()| match fs::metadata(folder.state()) {
        Ok(metadata) => file.set_permissions(metadata.permissions()),
        Err(_) => Ok(()),
    });
    match written {
        Ok(()) => Ok(file),
        Err(error) => {
            // A full disk, for example. The first error is the one to report.
            let _ = fs::remove_file(&path);
            Err(StoreError::io("write", &path)(error))
        }
    }
}

/// The fate of the replaced version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaced {
    /// It now has the name of the temporary file.
    Exchanged,
    /// It is gone: there was none, or the file system cannot exchange two files.
    Gone,
}

/// Puts a temporary file in the place of state.yaml. The replaced version gets the temporary name, so that a
/// save in the last moment can be found. Where the file system cannot exchange files, `link_first` keeps the
/// replaced version as the previous one.
pub(super) fn exchange(folder: &StateFolder, name: &str, link_first: bool) -> Result<Replaced, StoreError> {
    let from = folder.path().join(name);
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, &from, CWD, folder.state(), RenameFlags::EXCHANGE).is_ok() {
            return Ok(Replaced::Exchanged);
        }
    }
    if link_first && folder.state().exists() {
        link_previous(folder)?;
    }
    fs::rename(&from, folder.state()).map_err(StoreError::io("rename", &from))?;
    Ok(Replaced::Gone)
}

/// Renames the file with the temporary name to a new name that begins with `state.yaml.KIND-`, and returns
/// it. It is the same file, so text that a slow editor still writes is kept too.
pub(super) fn keep_temporary(folder: &StateFolder, name: &str, kind: &str) -> Result<PathBuf, StoreError> {
    let kept = keep_copy(folder, kind, b"")?;
    let from = folder.path().join(name);
    fs::rename(&from, &kept).map_err(StoreError::io("rename", &from))?;
    Ok(kept)
}

pub(super) fn read_temporary(folder: &StateFolder, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let path = folder.path().join(name);
    match durable::read_file(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", &path)(error)),
    }
}

/// True if the file with the temporary name exists and differs from these bytes. Reads it piece by piece: a
/// second copy of a large file in memory costs more than the comparison.
pub(super) fn temporary_differs(folder: &StateFolder, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
    let path = folder.path().join(name);
    match durable::open(Open::Read, &path).and_then(|file| has_bytes(file, bytes)) {
        Ok(same) => Ok(!same),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io("read", &path)(error)),
    }
}

fn has_bytes(file: impl Read, bytes: &[u8]) -> io::Result<bool> {
    let mut reader = BufReader::with_capacity(PIECE, file);
    let mut rest = bytes;
    loop {
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            return Ok(rest.is_empty());
        }
        let Some(after) = rest.strip_prefix(piece) else { return Ok(false) };
        rest = after;
        let length = piece.len();
        reader.consume(length);
    }
}

/// Makes the file with the temporary name the previous version.
pub(super) fn make_previous(folder: &StateFolder, name: &str) -> Result<(), StoreError> {
    let from = folder.path().join(name);
    fs::rename(&from, folder.previous()).map_err(StoreError::io("keep", folder.previous()))
}

pub(super) fn sync_folder(folder: &StateFolder) -> Result<(), StoreError> {
    durable::sync_folder(folder.path()).map_err(StoreError::io("sync", folder.path()))
}

/// Replaces state.yaml with an earlier version, durably. The replaced version gets the temporary name.
pub(super) fn restore(folder: &StateFolder, revision: u64, bytes: &[u8]) -> Result<Replaced, StoreError> {
    let name = temporary_name(revision);
    let synced = write_temporary(folder, &name, bytes)?.sync_data();
    synced.map_err(StoreError::io("sync", folder.path().join(&name)))?;
    let replaced = exchange(folder, &name, false)?;
    sync_folder(folder)?;
    Ok(replaced)
}

const PREVIOUS_LINK: &str = "state.yaml.prev-link";

/// Keeps the version that is about to be replaced, as a hard link instead of a copy.
pub(super) fn link_previous(folder: &StateFolder) -> Result<(), StoreError> {
    let step = folder.path().join(PREVIOUS_LINK);
    let link = || fs::hard_link(folder.state(), &step);
    let linked = match link() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            remove_if_present(&step).and_then(|()| link())
        }
        other => other,
    };
    // Some file systems have no hard links.
    match linked {
        Ok(()) => fs::rename(&step, folder.previous()).map_err(StoreError::io("keep", folder.previous())),
        Err(_) => copy_previous(folder, &folder.read_any()?),
    }
}

pub(super) fn remove_previous(folder: &StateFolder) -> Result<(), StoreError> {
    remove_if_present(&folder.previous()).map_err(StoreError::io("remove", folder.previous()))
}

pub(super) fn copy_previous(folder: &StateFolder, bytes: &[u8]) -> Result<(), StoreError> {
    replace_through(PREVIOUS_LINK.as_ref(), &folder.previous(), bytes)
        .map_err(StoreError::io("keep", folder.previous()))
}

/// Keeps a version under a new name that begins with `state.yaml.KIND-`, and returns that name.
pub(super) fn keep_copy(folder: &StateFolder, kind: &str, bytes: &[u8]) -> Result<PathBuf, StoreError> {
    for n in 1..u32::MAX {
        let path = folder.path().join(format!("state.yaml.{kind}-{n}"));
        match private::create_new(&path) {
            Ok(mut file) => {
                let kept = file.write_all(bytes).and_then(|()| file.sync_data());
                kept.map_err(StoreError::io("write", &path))?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StoreError::io("create", &path)(error)),
        }
    }
    Err(StoreError::io("create", folder.path())(ErrorKind::AlreadyExists.into()))
}

/// Removes the temporary files of killed writers.
pub(super) fn remove_temporaries(folder: &StateFolder) -> Result<(), StoreError> {
    let entries = fs::read_dir(folder.path()).map_err(StoreError::io("list", folder.path()))?;
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            let path = entry.path();
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_compared_over_all_its_pieces() {
        let bytes: Vec<u8> = (0..PIECE * 2 + 7).map(|n| (n % 251) as u8).collect();
        let same = |file: &[u8]| has_bytes(file, &bytes).unwrap();
        assert!(same(&bytes));
        assert!(!same(&bytes[..PIECE]));
        assert!(!same(&bytes[..bytes.len() - 1]));
        assert!(!same(&[&bytes[..], b"y"].concat()));
        let mut other = bytes.clone();
        other[PIECE + 3] ^= 1;
        assert!(!same(&other));
    }
}
