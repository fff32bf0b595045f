//! Stop files as rows: they stop the agents of every machine.

use liza_core::model::{StopFile, StopFiles, Timestamp};

use super::DatabaseStore;
use super::load::stop_files_of;
use super::write::Statements;
use crate::error::StoreError;

impl DatabaseStore {
    /// The stop files of the project.
    pub(crate) fn stop_files(&self) -> Result<StopFiles, StoreError> {
        let results =
            self.query_rows(|project| format!("SELECT name FROM liza.stop_files WHERE project = {project}"))?;
        Ok(results.first().map(stop_files_of).unwrap_or_default())
    }

    /// Adds and removes stop files.
    pub(crate) fn change_stop_files(&self, add: &[StopFile], remove: &[StopFile]) -> Result<(), StoreError> {
        let now = if add.is_empty() { Timestamp::from_unix(0) } else { self.now()? };
        self.query(|project| {
            let mut statements = Statements::new(project);
            statements.add_stop_files(add, now);
            statements.remove_stop_files(remove);
            statements.sql().to_owned()
        })?;
        Ok(())
    }
}
