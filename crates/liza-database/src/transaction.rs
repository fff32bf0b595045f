//! The lock on the project, the rows read under it, and the statements of the commands that share a
//! transaction. Two round trips hold the lock: one takes it and reads, one writes and commits.

use std::sync::Arc;

use liza_core::model::{Board, Change, Seconds, StopFiles, Timestamp};
use liza_store::backend::{
    CurrentVersion, Decided, LoadScope, RowChange, Setback, Transaction, log_entry_text,
};
use liza_store::{Host, Notice, StoreError};

use crate::connection::Connection;
use crate::fault::{is_conflict, may_be_committed};
use crate::load::{self, LoadedRows, ProjectRow};
use crate::store::DatabaseStore;
use crate::time::Clock;
use crate::write::Statements;

/// The number of requests between two clean-ups of old ones.
const CLEAN_UP_EVERY: u64 = 256;

pub(crate) struct DatabaseTransaction {
    store: DatabaseStore,
    connection: Connection,
    /// The rows that were read, with the changes of the commands.
    loaded: LoadedRows,
    clock: Clock,
    statements: Statements,
}

impl DatabaseTransaction {
    /// Takes the lock on the project and reads what is wanted.
    pub(crate) fn begin(store: &DatabaseStore, wanted: &LoadScope) -> Result<Self, Setback> {
        let (project, mut connection) = store.connect()?;
        let sql = load::lock_statements(project, wanted, connection.timeline());
        let results = match connection.begin(&sql) {
            Ok(results) => results,
            Err(error) => {
                connection.roll_back();
                let setback = if is_conflict(&error) { Setback::Again } else { store.fault(&error).into() };
                store.pool().put(connection);
                return Err(setback);
            }
        };
        let loaded = store.checked(results.get(load::LOCK_LEAD..).unwrap_or_default(), load::LOCK_GAP);
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                connection.roll_back();
                store.pool().put(connection);
                return Err(error.into());
            }
        };
        let server = connection.server(&loaded.timeline);
        let clock = store.clock_of(&loaded, &server);
        let statements = Statements::new(project);
        Ok(Self { store: store.clone(), connection, loaded, clock, statements })
    }
}

impl Transaction for DatabaseTransaction {
    fn version(&self) -> CurrentVersion {
        let text = self.loaded.rows.text(self.loaded.project.revision);
        CurrentVersion { bytes: Arc::new(text.into_bytes()), scannable: true }
    }

    fn facts(&self, host: &dyn Host) -> (Timestamp, StopFiles) {
        (self.clock.now(), union(self.loaded.stop_files, host.stop_files()))
    }

    fn complete(&self, board: &mut Board) {
        board.revision = self.loaded.revision();
        self.store.complete(board, &self.loaded.heartbeats, &self.clock);
    }

    fn remember(&self, board: Board) {
        self.store.remember(board);
    }

    fn add(&mut self, decided: Decided<'_>) -> Result<Option<Vec<Notice>>, StoreError> {
        let Decided { state, change, job, request, .. } = decided;
        let (path, now, revision) = (self.store.path(), job.now(), change.revision);
        let log = change.log.iter().map(|entry| log_entry_text(path, entry, revision));
        let log = log.collect::<Result<Vec<_>, _>>()?;
        let RowChange { before, after, whole, archived } =
            self.loaded.rows.change(path, self.loaded.revision(), state.board, &change)?;
        let statements = &mut self.statements;
        statements.rows(&before, &after, revision);
        statements.archive(&archived, revision);
        statements.whole_rows(&whole, revision);
        statements.leases(&change, job.sender(), now);
        statements.add_stop_files(&change.stop_files, now);
        statements.log(&log, revision);
        statements.request(&request.to_string(), &job.fingerprint(), &job.answer(), revision, now);
        if revision.0.is_multiple_of(CLEAN_UP_EVERY) {
            // A day more than promised.
            statements.forget_requests(now - liza_store::backend::KEPT - Seconds(86_400));
        }
        let layout = if change.archived.is_empty() { self.loaded.project.layout } else { revision.0 };
        self.loaded.project = ProjectRow { revision: revision.0, layout, clock: self.clock.clone() };
        update_heartbeats(&mut self.loaded, &change);
        Ok(Some(Vec::new()))
    }

    fn commit(self: Box<Self>) -> Result<Option<Notice>, Setback> {
        let Self { store, mut connection, loaded, mut statements, .. } = *self;
        statements.project(&loaded.project);
        match connection.end(&format!("{}COMMIT", statements.sql())) {
            Ok(_) => {
                store.announce(&mut connection, loaded.project.revision);
                store.pool().put(connection);
                Ok(None)
            }
            Err(error) if may_be_committed(&error) => Err(Setback::Unknown(store.fault(&error))),
            Err(error) => {
                connection.roll_back();
                store.pool().put(connection);
                Err(if is_conflict(&error) { Setback::Again } else { store.fault(&error).into() })
            }
        }
    }

    fn abandon(self: Box<Self>) {
        self.store.pool().put(self.connection);
    }
}

/// Joins the stop files in rows and those in the folder.
pub(crate) fn union(one: StopFiles, other: StopFiles) -> StopFiles {
    StopFiles {
        pause: one.pause || other.pause,
        checkpoint: one.checkpoint || other.checkpoint,
        abort: one.abort || other.abort,
    }
}

/// Updates the leases for the next command of the batch.
fn update_heartbeats(loaded: &mut LoadedRows, change: &Change) {
    for (id, entry) in &change.agents {
        let name = id.to_string();
        loaded.heartbeats.retain(|row| row.agent != name);
        if let Some(entry) = entry
            && let Some(expires) = entry.lease_expires
        {
            loaded.heartbeats.push(load::HeartbeatRow {
                agent: name,
                generation: i64::try_from(entry.generation.unwrap_or_default().0).unwrap_or(0),
                lease_expires: expires.unix(),
                heartbeat: entry.heartbeat.map_or(0, Timestamp::unix),
            });
        }
    }
}
