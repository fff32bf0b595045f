//! For those who only look: the text as it is, another state file, the entries of the log.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use liza_core::model::{State, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::store::Store;
use crate::wire::{View, body_of};
use crate::yaml::{decode, parse};

/// The blackboard in any file.
///
/// # Errors
/// When it cannot be read as one.
pub fn read_state(path: &Path) -> Result<State, StoreError> {
    let bytes = std::fs::read(path).map_err(StoreError::io("read", path))?;
    let (text, _) = body_of(path, &bytes)?;
    View::full(path, text)?.state()
}

/// An entry of the log as read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// When.
    pub timestamp: Timestamp,
    /// Who.
    pub agent: String,
    /// What.
    pub action: String,
    /// On which task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// In one line.
    pub detail: String,
    /// The write that it tells of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// Reads the log from one end to the other, and then what is added to it.
#[derive(Debug)]
pub struct Logbook {
    path: PathBuf,
    at: u64,
}

impl Store {
    /// The text of the blackboard as it is.
    ///
    /// # Errors
    /// When it cannot be read as text.
    pub fn text(&self) -> Result<String, StoreError> {
        let bytes = self.files().read()?;
        Ok(body_of(&self.files().state(), &bytes)?.0.to_owned())
    }

    /// The log from its beginning.
    pub fn logbook(&self) -> Logbook {
        Logbook { path: self.files().log(), at: 0 }
    }

    /// The last entries of the log, about as many as fit into that many bytes.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn log_tail(&self, bytes: u64) -> Result<Vec<Logged>, StoreError> {
        let path = self.files().log();
        let length = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        // What is cut at the front is no entry, and is passed over like anything else that is none.
        Logbook { path, at: length.saturating_sub(bytes) }.read_on()
    }
}

impl Logbook {
    /// The entries since the last time. What cannot be understood is passed over: the log is append-only, so nobody
    /// could mend it.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn read_on(&mut self) -> Result<Vec<Logged>, StoreError> {
        let text = self.rest().map_err(StoreError::io("read", &self.path))?;
        let starts: Vec<usize> = entry_starts(&text).collect();
        let mut entries = Vec::with_capacity(starts.len());
        for (n, start) in starts.iter().enumerate() {
            let next = starts.get(n + 1).copied();
            match entry(&text[*start..next.unwrap_or(text.len())]) {
                Some(entry) => entries.push(entry),
                // The last one may be half written; it is looked at again.
                None if next.is_none() => {
                    self.at += *start as u64;
                    return Ok(entries);
                }
                None => {}
            }
        }
        self.at += text.len() as u64;
        Ok(entries)
    }

    fn rest(&self) -> std::io::Result<String> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // Up to the last whole line.
        bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1));
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| {
            // Same length, so that offsets stay true.
            error
                .into_bytes()
                .iter()
                .map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' })
                .collect()
        }))
    }
}

fn entry_starts(text: &str) -> impl Iterator<Item = usize> {
    let lines = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1));
    lines.filter(|start| text[*start..].starts_with("- "))
}

fn entry(text: &str) -> Option<Logged> {
    let (node, _) = parse(text).ok()?;
    decode(node.items().first()?).ok()
}
