//! Replacing state.yaml for good: whole or not at all, and still there after a power cut.
//!
//! Everything here runs under the lock, so names of temporary files need not be unique.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use super::Folder;
use crate::error::StoreError;

const TEMPORARY_PREFIX: &str = "state.yaml.tmp-";

/// Writes a temporary file and makes it durable.
pub(super) fn put(folder: &Folder, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let path = folder.path().join(name);
    fill(folder, name, bytes)?.sync_data().map_err(StoreError::io("sync", &path))
}

/// Writes a temporary file; whoever calls makes it durable.
pub(super) fn fill(folder: &Folder, name: &str, bytes: &[u8]) -> Result<File, StoreError> {
    let path = folder.path().join(name);
    let create = || OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = match create() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // Somebody was killed here. Nothing that bears this name is needed any more.
            sweep(folder)?;
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
            // A full disk: leave no half file behind. The first error is the one to tell.
            let _ = fs::remove_file(&path);
            Err(StoreError::io("write", &path)(error))
        }
    }
}

/// Renames a temporary file over state.yaml and makes the name durable.
pub(super) fn move_into_place(folder: &Folder, name: &str) -> Result<(), StoreError> {
    rename(folder, name)?;
    sync_folder(folder)
}

/// Renames a temporary file over state.yaml.
pub(super) fn rename(folder: &Folder, name: &str) -> Result<(), StoreError> {
    let from = folder.path().join(name);
    fs::rename(&from, folder.state()).map_err(StoreError::io("rename", &from))
}

pub(super) fn sync_folder(folder: &Folder) -> Result<(), StoreError> {
    let sync = || File::open(folder.path())?.sync_all();
    sync().map_err(StoreError::io("sync", folder.path()))
}

/// Keeps the version that is about to be replaced, without copying it.
pub(super) fn link_aside(folder: &Folder) -> Result<(), StoreError> {
    let step = folder.path().join("state.yaml.prev-link");
    let link = || fs::hard_link(folder.state(), &step);
    let linked = match link() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(&step).and_then(|()| link())
        }
        other => other,
    };
    // Not every file system knows hard links.
    let kept = linked.or_else(|_| fs::copy(folder.state(), &step).map(drop));
    kept.and_then(|()| fs::rename(&step, folder.previous()))
        .map_err(StoreError::io("keep", folder.previous()))
}

/// Keeps a whole version.
pub(super) fn copy_aside(folder: &Folder, bytes: &[u8]) -> Result<(), StoreError> {
    let step = folder.path().join("state.yaml.prev-link");
    let keep = || {
        if let Err(error) = fs::remove_file(&step)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file = File::create(&step)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&step, folder.previous())
    };
    keep().map_err(StoreError::io("keep", folder.previous()))
}

/// Keeps somebody's version under a name of its own and says which.
pub(super) fn keep_beside(folder: &Folder, bytes: &[u8]) -> Result<PathBuf, StoreError> {
    for n in 1..u32::MAX {
        let path = folder.path().join(format!("state.yaml.stale-{n}"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
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

/// Removes what killed writers have left.
pub(super) fn sweep(folder: &Folder) -> Result<(), StoreError> {
    let entries = fs::read_dir(folder.path()).map_err(StoreError::io("list", folder.path()))?;
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            let path = entry.path();
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
        }
    }
    Ok(())
}
