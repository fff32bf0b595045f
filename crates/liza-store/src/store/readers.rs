use std::sync::Arc;

use liza_core::model::State;

use crate::backend::{ReadLog, ReadState};
use crate::error::StoreError;
use crate::log::LogRecord;

#[derive(Debug)]
pub struct IncrementalReader(pub(super) Box<dyn ReadState>);

impl IncrementalReader {
    /// Returns the same `Arc` as before if nothing has changed.
    pub fn read(&mut self) -> Result<Arc<State>, StoreError> {
        self.0.read()
    }
}

/// Reads the log from its start, and then the added entries.
#[derive(Debug)]
pub struct LogReader(pub(super) Box<dyn ReadLog>);

impl LogReader {
    pub fn read_new(&mut self) -> Result<Vec<LogRecord>, StoreError> {
        self.0.read_new()
    }
}
