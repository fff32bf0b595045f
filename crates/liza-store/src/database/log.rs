//! The log: one row per entry, in the order of the writes.

use super::DatabaseStore;
use crate::error::StoreError;
use crate::log_reader::{LogRecord, entry};

/// Reads the log from where it begins, and then the entries that are added.
#[derive(Debug)]
pub(crate) struct DatabaseLogReader {
    store: DatabaseStore,
    /// The revision and the number of the last entry that was read.
    last: (i64, i64),
    /// How many bytes of the end to begin with.
    tail: Option<u64>,
}

impl DatabaseStore {
    /// A reader at the beginning of the log, or at its last bytes.
    pub(crate) fn log_reader(&self, tail: Option<u64>) -> DatabaseLogReader {
        DatabaseLogReader { store: self.clone(), last: (-1, -1), tail }
    }
}

impl DatabaseLogReader {
    /// The entries since the last call.
    pub(crate) fn read_new(&mut self) -> Result<Vec<LogRecord>, StoreError> {
        let (revision, number) = self.last;
        let tail = self.tail.take();
        let results = self.store.query(|project| {
            let rows = match tail {
                Some(bytes) => format!(
                    "(SELECT *, sum(octet_length(text) + 1) OVER (ORDER BY revision DESC, number DESC) <= {bytes} \
                     AS is_recent FROM liza.log WHERE project = {project}) AS l WHERE is_recent"
                ),
                None => format!("liza.log WHERE project = {project}"),
            };
            format!(
                "SELECT revision, number, text FROM {rows} AND (revision, number) > ({revision}, {number}) \
                 ORDER BY revision, number"
            )
        })?;
        let mut entries = Vec::new();
        for row in results.iter().flat_map(|result| result.iter()) {
            self.last = (row.number(0), row.number(1));
            entries.extend(entry(row.text(2)));
        }
        Ok(entries)
    }
}
