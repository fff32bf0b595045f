//! Repeated reads of the state and of the log, of either store.

use std::sync::Arc;

use liza_core::model::State;

use crate::database::{DatabaseLogReader, DatabaseReader};
use crate::error::StoreError;
use crate::incremental::FileReader;
use crate::log_reader::{FileLogReader, LogRecord};

/// Reads the blackboard again and again.
#[derive(Debug)]
pub struct IncrementalReader(StateSource);

#[derive(Debug)]
enum StateSource {
    File(FileReader),
    Database(DatabaseReader),
}

impl IncrementalReader {
    pub(super) fn of_file(reader: FileReader) -> Self {
        Self(StateSource::File(reader))
    }

    pub(super) fn of_database(reader: DatabaseReader) -> Self {
        Self(StateSource::Database(reader))
    }

    /// The same state as [`Store::snapshot`](crate::Store::snapshot), and the same `Arc` as before if nothing has changed.
    ///
    /// # Errors
    /// When it is not a valid blackboard, or cannot be read. The next read then starts from the last valid one.
    pub fn read(&mut self) -> Result<Arc<State>, StoreError> {
        match &mut self.0 {
            StateSource::File(reader) => reader.read(),
            StateSource::Database(reader) => reader.read(),
        }
    }
}

/// Reads the log from where it begins, and then the entries that are added.
#[derive(Debug)]
pub struct LogReader(LogSource);

#[derive(Debug)]
enum LogSource {
    File(FileLogReader),
    Database(DatabaseLogReader),
}

impl LogReader {
    pub(super) fn of_file(reader: FileLogReader) -> Self {
        Self(LogSource::File(reader))
    }

    pub(super) fn of_database(reader: DatabaseLogReader) -> Self {
        Self(LogSource::Database(reader))
    }

    /// The entries since the last call.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn read_new(&mut self) -> Result<Vec<LogRecord>, StoreError> {
        match &mut self.0 {
            LogSource::File(reader) => reader.read_new(),
            LogSource::Database(reader) => reader.read_new(),
        }
    }
}
