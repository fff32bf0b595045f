//! Reads the entries of log.yaml. Skips everything else: the log is append-only, so it cannot be repaired.

use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use liza_host::durable::{self, Open};

use crate::backend::ReadLog;
use crate::error::StoreError;
use crate::log::{LogRecord, entry, entry_starts};

/// Reads the log from its beginning, and then the entries that are added.
#[derive(Debug)]
pub(crate) struct FileLogReader {
    path: PathBuf,
    offset: u64,
}

impl FileLogReader {
    /// Starts at the beginning of the log, or at its last bytes.
    pub(crate) fn new(path: PathBuf, tail: Option<u64>) -> Self {
        let length = || std::fs::metadata(&path).map_or(0, |meta| meta.len());
        // The rest of an entry at the front is skipped like anything else that is not an entry.
        let offset = tail.map_or(0, |bytes| length().saturating_sub(bytes));
        Self { path, offset }
    }

    /// The parts of the log that are not entries, each with its line.
    pub(crate) fn faults(&self) -> Result<Vec<String>, StoreError> {
        let text = self.rest().map_err(StoreError::io("read", &self.path))?;
        let starts: Vec<usize> = entry_starts(&text).collect();
        let first = starts.first().copied().unwrap_or(text.len());
        let is_blank = |line: &str| line.trim().is_empty() || line.starts_with('#');
        let mut damaged: Vec<usize> = if text[..first].lines().all(is_blank) { Vec::new() } else { vec![0] };
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        damaged.extend(
            starts
                .iter()
                .copied()
                .zip(ends)
                .filter(|(at, end)| entry(&text[*at..*end]).is_none())
                .map(|(at, _)| at),
        );
        let describe = |at: usize| {
            let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1;
            format!("log.yaml:{line}: not a log entry; it was damaged or edited, and `liza log` skips it")
        };
        Ok(damaged.into_iter().map(describe).collect())
    }
}

impl ReadLog for FileLogReader {
    fn read_new(&mut self) -> Result<Vec<LogRecord>, StoreError> {
        let text = self.rest().map_err(StoreError::io("read", &self.path))?;
        let starts: Vec<usize> = entry_starts(&text).collect();
        let mut entries = Vec::with_capacity(starts.len());
        for (n, start) in starts.iter().enumerate() {
            let next = starts.get(n + 1).copied();
            match entry(&text[*start..next.unwrap_or(text.len())]) {
                Some(entry) => entries.push(entry),
                // The last one may be incomplete; the next call reads it again.
                None if next.is_none() => {
                    self.offset += *start as u64;
                    return Ok(entries);
                }
                None => {}
            }
        }
        self.offset += text.len() as u64;
        Ok(entries)
    }
}

impl FileLogReader {
    fn rest(&self) -> std::io::Result<String> {
        let mut file = match durable::open(Open::Read, &self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // Up to the last complete line.
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1));
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| {
            // One byte for one byte, so that offsets stay valid.
            error
                .into_bytes()
                .iter()
                .map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' })
                .collect()
        }))
    }
}
