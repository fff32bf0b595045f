//! The log and the archive of a blackboard as texts, to read, to export and to import them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use liza_host::durable::{read_file, replace_private_file, sync_folder};
use liza_host::private;

use crate::backend::Backend as _;
use crate::error::StoreError;
use crate::log::entry_texts;

use super::FileStore;

/// `None` if there is no such file.
pub(super) fn text_of(path: &Path) -> Result<Option<String>, StoreError> {
    match read_file(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

pub(super) fn archive(store: &FileStore) -> Result<BTreeMap<String, String>, StoreError> {
    let folder = store.folder().join("archive");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(StoreError::io("read", &folder)(error)),
    };
    let mut archive = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(StoreError::io("read", &folder))?.path();
        let is_archived = path.extension().is_some_and(|end| end == "yaml");
        let Some(name) = path.file_stem().and_then(|name| name.to_str()).filter(|_| is_archived) else {
            continue;
        };
        let bytes = read_file(&path).map_err(StoreError::io("read", &path))?;
        archive.insert(name.to_owned(), String::from_utf8_lossy(&bytes).into_owned());
    }
    Ok(archive)
}

/// Adds earlier log entries and archived texts; existing ones stay.
pub(super) fn add_earlier(
    store: &FileStore,
    log: &str,
    archive: &BTreeMap<String, String>,
) -> Result<(), StoreError> {
    let mut locked = store.lock()?;
    locked.current()?;
    let folder = store.folder().join("archive");
    if !archive.is_empty() {
        private::create_folder(&folder).map_err(StoreError::io("create", &folder))?;
    }
    for (name, text) in archive {
        let path = folder.join(format!("{name}.yaml"));
        replace_private_file(&path, text.as_bytes()).map_err(StoreError::io("write", &path))?;
    }
    if !archive.is_empty() {
        sync_folder(&folder).map_err(StoreError::io("sync", &folder))?;
    }
    let whole = store.whole_log()?;
    let known: BTreeSet<&str> = entry_texts(&whole).map(str::trim_end).collect();
    let missing = entry_texts(log).map(str::trim_end).filter(|text| !known.contains(text));
    let missing: Vec<String> = missing.map(|text| format!("{text}\n")).collect();
    if missing.is_empty() { Ok(()) } else { locked.add_to_log(&missing.join("\n")) }
}
