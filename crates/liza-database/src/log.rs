//! The log: one row per entry, in the order of the writes. A failover may lose the last entries and reuse
//! their numbers, so a reader remembers entries and goes back to the newest one that is still there.

use std::collections::VecDeque;

use xxhash_rust::xxh3::xxh3_64;

use crate::connection::Fields;
use crate::store::DatabaseStore;
use liza_store::backend::{ReadLog, log_record};
use liza_store::{LogRecord, StoreError};

/// The number of entries that a reader remembers.
const REMEMBERED: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReadEntry {
    revision: i64,
    number: i64,
    hash: u64,
}

impl ReadEntry {
    fn of(row: Fields<'_>) -> Self {
        Self { revision: row.number(0), number: row.number(1), hash: xxh3_64(row.text(2).as_bytes()) }
    }
}

/// Reads the log from its beginning, and then the entries that are added.
#[derive(Debug)]
pub(crate) struct DatabaseLogReader {
    store: DatabaseStore,
    /// The last entries, the oldest first.
    read: VecDeque<ReadEntry>,
    /// The number of bytes at the end to begin with.
    tail: Option<u64>,
}

impl DatabaseLogReader {
    pub(crate) fn new(store: &DatabaseStore, tail: Option<u64>) -> Self {
        Self { store: store.clone(), read: VecDeque::new(), tail }
    }
}

impl ReadLog for DatabaseLogReader {
    fn read_new(&mut self) -> Result<Vec<LogRecord>, StoreError> {
        let tail = self.tail.take();
        loop {
            let last = self.read.back().copied();
            let results = self.store.query(|project| statement(project, last, tail))?;
            let mut rows = results.iter().flat_map(|result| result.iter()).peekable();
            if last.is_some() && rows.next_if(|row| Some(ReadEntry::of(*row)) == last).is_none() {
                // The entry is gone: the one before it decides.
                self.read.pop_back();
                continue;
            }
            let mut entries = Vec::new();
            for row in rows {
                self.read.push_back(ReadEntry::of(row));
                entries.extend(log_record(row.text(2)));
            }
            let surplus = self.read.len().saturating_sub(REMEMBERED);
            self.read.drain(..surplus);
            return Ok(entries);
        }
    }
}

/// Reads on from the last entry.
fn statement(project: i64, last: Option<ReadEntry>, tail: Option<u64>) -> String {
    let rows = match tail {
        Some(bytes) => format!(
            "(SELECT *, sum(octet_length(text) + 1) OVER (ORDER BY revision DESC, number DESC) <= {bytes} \
             AS is_recent FROM liza.log WHERE project = {project}) AS l WHERE is_recent"
        ),
        None => format!("liza.log WHERE project = {project}"),
    };
    let (revision, number) = last.map_or((-1, -1), |last| (last.revision, last.number));
    format!(
        "SELECT revision, number, text FROM {rows} AND (revision, number) >= ({revision}, {number}) \
         ORDER BY revision, number"
    )
}
