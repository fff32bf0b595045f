//! Repeated reads of the state and of the log, of every back end.

use std::sync::Arc;

use liza_core::model::State;

use crate::backend::{ReadLog, ReadState};
use crate::error::StoreError;
use crate::log::LogRecord;

/// Reads the blackboard again and again.
#[derive(Debug)]
pub struct IncrementalReader(pub(super) Box<dyn ReadState>);

impl IncrementalReader {
    /// The same state as [`Store::snapshot`](crate::Store::snapshot), and the same `Arc` as before if nothing has changed.
    pub fn read(&mut self) -> Result<Arc<State>, StoreError> {
        self.0.read()
    }
}

/// Reads the log from where it begins, and then the entries that are added.
#[derive(Debug)]
pub struct LogReader(pub(super) Box<dyn ReadLog>);

impl LogReader {
    /// The entries since the last call.
    pub fn read_new(&mut self) -> Result<Vec<LogRecord>, StoreError> {
        self.0.read_new()
    }
}
