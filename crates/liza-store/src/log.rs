//! The entries of the log as texts and as records.

use liza_core::model::{LogEntry, Revision, Timestamp, Value};
use liza_core::text::one_line;
use serde::{Deserialize, Serialize};

use crate::yaml::{self, YamlError, to_value};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    pub timestamp: Timestamp,
    pub agent: String,
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// On one line.
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

impl LogRecord {
    /// The same as an entry to be written.
    pub fn to_entry(&self) -> LogEntry {
        LogEntry {
            timestamp: self.timestamp,
            agent: self.agent.clone(),
            action: self.action.clone(),
            task: self.task.as_ref().and_then(|task| task.parse().ok()),
            detail: self.detail.clone(),
        }
    }
}

pub(crate) fn entry_starts(text: &str) -> impl Iterator<Item = usize> {
    let lines = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1));
    lines.filter(|start| text[*start..].starts_with("- "))
}

pub fn entry_texts(log: &str) -> impl Iterator<Item = &str> {
    let starts: Vec<usize> = entry_starts(log).collect();
    let ends = starts.iter().skip(1).copied().chain([log.len()]).collect::<Vec<_>>();
    starts.into_iter().zip(ends).filter_map(|(start, end)| log.get(start..end))
}

pub fn entry(text: &str) -> Option<LogRecord> {
    let node = yaml::parse_fast(text).or_else(|| Some(yaml::parse(text).ok()?.0))?;
    yaml::decode(node.items().first()?).ok()
}

const DETAIL_LIMIT: usize = 1_000;

/// The revision of a log's first entry: a copied blackboard has an older one of its own.
pub(crate) const FIRST: Revision = Revision(1);

pub(crate) fn entry_text(entry: &LogEntry, revision: Revision) -> Result<String, YamlError> {
    // The entry must fit into a write record.
    let entry = LogEntry { detail: one_line(&entry.detail, DETAIL_LIMIT), ..entry.clone() };
    let mut value = to_value(&entry)?;
    if let Value::Map(fields) = &mut value {
        fields.insert("revision".to_owned(), Value::Int(i64::try_from(revision.0).unwrap_or(i64::MAX)));
    }
    Ok(yaml::item(&value, 0))
}
