//! Appending to log.yaml, exactly once per logged write.
//!
//! An entry is in the record before the write, and in the log after it. The log is not made durable each time: the
//! record is, and holds the last entries until the log has been. Entries are never changed or removed.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::StoreError;

/// An entry and where the log ended when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) offset: u64,
    pub(crate) text: String,
}

/// Makes an entry ready to be appended to the log as it is now.
pub(super) fn prepare(path: &Path, text: &str) -> Result<Entry, StoreError> {
    let mut open = true;
    let mut offset = 0;
    match File::open(path) {
        Ok(file) => {
            let look = || {
                let length = file.metadata()?.len();
                let mut last = [b'\n'];
                if length > 0 {
                    file.read_exact_at(&mut last, length - 1)?;
                }
                Ok((length, last[0] == b'\n'))
            };
            (offset, open) = look().map_err(StoreError::io("read", path))?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(StoreError::io("open", path)(error)),
    }
    let lead = match (offset, open) {
        (0, _) => "",
        (_, true) => "\n",
        (_, false) => "\n\n",
    };
    Ok(Entry { offset, text: format!("{lead}{text}\n") })
}

/// Appends the entry.
pub(super) fn append(path: &Path, entry: &Entry) -> Result<(), StoreError> {
    write_end(path, entry.text.as_bytes())
}

/// Makes durable what is in the log.
pub(super) fn sync(path: &Path) -> Result<(), StoreError> {
    match File::open(path).and_then(|file| file.sync_data()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(StoreError::io("sync", path)),
    }
}

fn write_end(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(bytes)
    };
    write().map_err(StoreError::io("append to", path))
}

/// Sees to it that these entries, the last ones that were made, are in the log. Nearly always they are.
pub(super) fn complete_all<'e>(
    path: &Path,
    mut entries: impl Iterator<Item = &'e Entry> + Clone,
) -> Result<(), StoreError> {
    let Some(first) = entries.clone().next() else { return Ok(()) };
    if first.offset > 0 && length(path).map_err(StoreError::io("read", path))? < first.offset {
        // What was durable is gone, so no crash took it: somebody has begun a new log.
        return Ok(());
    }
    let tail = tail(path, first.offset).map_err(StoreError::io("read", path))?;
    let mut at = 0;
    let is_next = |entry: &Entry| {
        let here = tail[at..].starts_with(entry.text.as_bytes());
        at += if here { entry.text.len() } else { 0 };
        here
    };
    if entries.clone().all(is_next) {
        return Ok(());
    }
    // A power cut may leave zeros where text should be; they are nobody's.
    for at in memchr::memchr_iter(0, &tail) {
        blank(path, first.offset + at as u64, 1)?;
    }
    entries.try_for_each(|entry| complete(path, entry))
}

fn length(path: &Path) -> std::io::Result<u64> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Appends what is missing of an entry whose writer was killed.
fn complete(path: &Path, entry: &Entry) -> Result<(), StoreError> {
    let tail = tail(path, entry.offset).map_err(StoreError::io("read", path))?;
    let text = entry.text.as_bytes();
    if memchr::memmem::find(&tail, text.trim_ascii_start()).is_some() {
        return Ok(());
    }
    // The longest beginning of the entry that stands where the entry would have been.
    let torn = text.iter().zip(&tail).take_while(|(a, b)| a == b).count();
    if torn == tail.len() {
        return write_end(path, &text[torn..]);
    }
    // The next writer's entry may begin like ours; what is left has to begin as an entry does.
    let begins = |at: &usize| [&b"- "[..], b"\n", b"#"].iter().any(|lead| tail[*at..].starts_with(lead));
    let torn = (0..=torn).rev().find(begins).unwrap_or(torn);
    if torn > 0 {
        blank(path, entry.offset, torn)?;
    }
    write_end(path, text)
}

/// Makes empty lines of the beginning of an entry, since others have written after it.
fn blank(path: &Path, offset: u64, length: usize) -> Result<(), StoreError> {
    let fill = || OpenOptions::new().write(true).open(path)?.write_all_at(&vec![b'\n'; length], offset);
    fill().map_err(StoreError::io("mend", path))
}

/// What the log holds from an offset on; all of it if it has become shorter than that.
fn tail(path: &Path, offset: u64) -> std::io::Result<Vec<u8>> {
    let mut file = match File::open(path) {
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
    fn an_entry_cut_off_anywhere_is_completed_once() {
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
                write_end(&path, &entry.text.as_bytes()[..cut]).unwrap();
                write_end(&path, others.as_bytes()).unwrap();
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
