//! Replaces state.yaml durably and keeps other versions of it.
//!
//! Runs under the lock, so temporary files need no unique names. The order of the steps of a write is in `mod.rs`.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use super::StateFolder;
use super::record::temporary_name;
use crate::durable::{self, remove_if_present, replace_through};
use crate::error::StoreError;
use crate::private;

const TEMPORARY_PREFIX: &str = "state.yaml.tmp-";

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

/// Renames a temporary file to state.yaml.
pub(super) fn rename(folder: &StateFolder, name: &str) -> Result<(), StoreError> {
    let from = folder.path().join(name);
    fs::rename(&from, folder.state()).map_err(StoreError::io("rename", &from))
}

pub(super) fn sync_folder(folder: &StateFolder) -> Result<(), StoreError> {
    durable::sync_folder(folder.path()).map_err(StoreError::io("sync", folder.path()))
}

/// Replaces state.yaml with an earlier version, durably.
pub(super) fn restore(folder: &StateFolder, revision: u64, bytes: &[u8]) -> Result<(), StoreError> {
    let name = temporary_name(revision);
    let synced = write_temporary(folder, &name, bytes)?.sync_data();
    synced.map_err(StoreError::io("sync", folder.path().join(&name)))?;
    rename(folder, &name)?;
    sync_folder(folder)
}

fn previous_link(folder: &StateFolder) -> PathBuf {
    folder.path().join("state.yaml.prev-link")
}

/// Keeps the version that is about to be replaced, as a hard link instead of a copy.
pub(super) fn link_previous(folder: &StateFolder) -> Result<(), StoreError> {
    let step = previous_link(folder);
    let link = || fs::hard_link(folder.state(), &step);
    let linked = match link() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            remove_if_present(&step).and_then(|()| link())
        }
        other => other,
    };
    // Some file systems have no hard links.
    let kept = linked.or_else(|_| fs::copy(folder.state(), &step).map(drop));
    kept.and_then(|()| fs::rename(&step, folder.previous()))
        .map_err(StoreError::io("keep", folder.previous()))
}

/// Keeps a copy of a version.
pub(super) fn copy_previous(folder: &StateFolder, bytes: &[u8]) -> Result<(), StoreError> {
    replace_through(&previous_link(folder), &folder.previous(), bytes)
        .map_err(StoreError::io("keep", folder.previous()))
}

/// Keeps a stale save under a new name, and returns that name.
pub(super) fn keep_stale(folder: &StateFolder, bytes: &[u8]) -> Result<PathBuf, StoreError> {
    for n in 1..u32::MAX {
        let path = folder.path().join(format!("state.yaml.stale-{n}"));
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
