//! Appends to log.yaml, exactly once per logged write. An entry is in the write record before the write, and
//! in the log after it. Only the record is synced each time; it holds the last entries until the log is.

use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt;
use std::path::Path;

use liza_host::durable::{Open, open};

use crate::error::StoreError;

/// A log entry, and the length of the log when the entry was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingLogEntry {
    pub(crate) offset: u64,
    pub(crate) text: String,
}

/// Prepares an entry for the end of the log.
pub(super) fn prepare(path: &Path, text: &str) -> Result<PendingLogEntry, StoreError> {
    let mut last = [b'\n'];
    let mut offset = 0;
    match open(Open::Read, path) {
        Ok(file) => {
            let mut read_end = || {
                let length = file.metadata()?.len();
                if length > 0 {
                    file.read_exact_at(&mut last, length - 1)?;
                }
                Ok(length)
            };
            offset = read_end().map_err(StoreError::io("read", path))?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(StoreError::io("open", path)(error)),
    }
    let separator = match (offset, last) {
        (0, _) => "",
        (_, [b'\n']) => "\n",
        (_, _) => "\n\n",
    };
    Ok(PendingLogEntry { offset, text: format!("{separator}{text}\n") })
}

pub(super) fn append(path: &Path, entry: &PendingLogEntry) -> Result<(), StoreError> {
    append_bytes(path, entry.text.as_bytes())
}

pub(super) fn sync(path: &Path) -> Result<(), StoreError> {
    match open(Open::Read, path).and_then(|file| file.sync_data()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(StoreError::io("sync", path)),
    }
}

fn append_bytes(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let mut file = open(Open::Append, path)?;
        file.write_all(bytes)
    };
    write().map_err(StoreError::io("append to", path))
}

/// Appends missing entries to the log. Nearly always there are none.
pub(super) fn complete_all<'e>(
    path: &Path,
    mut entries: impl Iterator<Item = &'e PendingLogEntry> + Clone,
) -> Result<(), StoreError> {
    let Some(first) = entries.clone().next() else { return Ok(()) };
    if first.offset > 0 && length(path).map_err(StoreError::io("read", path))? < first.offset {
        // Synced entries are gone, so this was not a crash: a person started a new log.
        return Ok(());
    }
    let tail = tail(path, first.offset).map_err(StoreError::io("read", path))?;
    let mut at = 0;
    let is_next = |entry: &PendingLogEntry| {
        let found = tail[at..].starts_with(entry.text.as_bytes());
        at += if found { entry.text.len() } else { 0 };
        found
    };
    if entries.clone().all(is_next) {
        return Ok(());
    }
    // A power cut may leave zeros instead of text.
    for at in memchr::memchr_iter(0, &tail) {
        blank(path, first.offset + at as u64, 1)?;
    }
    entries.try_for_each(|entry| complete(path, entry))
}

fn length(path: &Path) -> std::io::Result<u64> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Appends the missing part of an entry whose writer was killed.
fn complete(path: &Path, entry: &PendingLogEntry) -> Result<(), StoreError> {
    let tail = tail(path, entry.offset).map_err(StoreError::io("read", path))?;
    let text = entry.text.as_bytes();
    if memchr::memmem::find(&tail, text.trim_ascii_start()).is_some() {
        return Ok(());
    }
    // The length of the written part.
    let torn = text.iter().zip(&tail).take_while(|(a, b)| a == b).count();
    if torn == tail.len() {
        return append_bytes(path, &text[torn..]);
    }
    // The next entry in the log may begin with the same bytes; the remaining text must begin with an entry.
    let begins = |at: &usize| [&b"- "[..], b"\n", b"#"].iter().any(|lead| tail[*at..].starts_with(lead));
    let torn = (0..=torn).rev().find(begins).unwrap_or(torn);
    if torn > 0 {
        blank(path, entry.offset, torn)?;
    }
    append_bytes(path, text)
}

/// Replaces bytes with line breaks: other entries follow, so nothing can be cut off.
fn blank(path: &Path, offset: u64, length: usize) -> Result<(), StoreError> {
    let fill = || open(Open::Update, path)?.write_all_at(&vec![b'\n'; length], offset);
    fill().map_err(StoreError::io("repair", path))
}

/// The log from an offset on; all of it if it is shorter than that.
fn tail(path: &Path, offset: u64) -> std::io::Result<Vec<u8>> {
    let mut file = match open(Open::Read, path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let from = if file.metadata()?.len() < offset { 0 } else { offset };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: BB-12
    #[test]
    fn a_torn_entry_is_completed_once() {
        let folder = std::env::temp_dir().join(format!("liza-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("log.yaml");
        for (before, others) in [("", ""), ("- a: 1\n", ""), ("- a: 1", ""), ("- a: 1\n", "- other: 1\n")] {
            for cut in 0.. {
                std::fs::write(&path, before).unwrap();
                let entry = prepare(&path, "- timestamp: x\n  detail: y").unwrap();
                if cut > entry.text.len() {
                    break;
                }
                append_bytes(&path, &entry.text.as_bytes()[..cut]).unwrap();
                append_bytes(&path, others.as_bytes()).unwrap();
                complete(&path, &entry).unwrap();
                complete(&path, &entry).unwrap();
                let log = std::fs::read_to_string(&path).unwrap();
                assert_eq!(log.matches("- timestamp: x\n  detail: y\n").count(), 1, "{cut}: {log:?}");
                assert_eq!(log.matches("timestamp").count(), 1, "{cut}: {log:?}");
                assert_eq!(log.matches("- other: 1\n").count(), others.len().min(1), "{cut}: {log:?}");
                assert!(crate::yaml::parse(&log).is_ok(), "{cut}: {log:?}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
