//! Stop files as rows: they stop the agents of every machine.

use liza_core::model::{StopFile, StopFileTimes, Timestamp};

use crate::connection::ResultSet;
use crate::store::DatabaseStore;
use crate::write::Statements;
use liza_store::StoreError;

/// The start time of each stop file; the last known ones while the database cannot be used.
pub(crate) fn stop_files(store: &DatabaseStore) -> Result<StopFileTimes, StoreError> {
    let read =
        store.query_rows(|project| format!("SELECT name, at FROM liza.stop_files WHERE project = {project}"));
    let mut known = store.last_stop_files();
    match read {
        Ok(results) => {
            let found = results.first().map(times_of).unwrap_or_default();
            *known = Some(found);
            Ok(found)
        }
        // A stopped agent stays stopped.
        Err(error) => known.ok_or(error),
    }
}

pub(crate) fn change_stop_files(
    store: &DatabaseStore,
    add: &[StopFile],
    remove: &[StopFile],
) -> Result<(), StoreError> {
    let now = if add.is_empty() { Timestamp::from_unix(0) } else { store.now()? };
    store.query(|project| {
        let mut statements = Statements::new(project);
        statements.add_stop_files(add, now);
        statements.remove_stop_files(remove);
        statements.sql().to_owned()
    })?;
    Ok(())
}

fn times_of(rows: &ResultSet) -> StopFileTimes {
    let since = |file: StopFile| {
        let row = rows.iter().find(|row| row.text(0) == file.name());
        row.map(|row| Timestamp::from_unix(row.number(1)))
    };
    StopFileTimes {
        pause: since(StopFile::Pause),
        checkpoint: since(StopFile::Checkpoint),
        abort: since(StopFile::Abort),
    }
}
