//! The blackboard of one project in a database: its connections, its queries, its clock.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use liza_core::model::{Board, Seconds, State, StopFileTimes, Timestamp};
use liza_store::backend::{AcceptedSettings, DatabaseSettings, LoadScope, note_clock_difference};
use liza_store::{Address, DatabaseError, DatabaseReason, StoreError};

use crate::connection::{Connection, Pool, ResultSet};
use crate::fault::fault_of;
use crate::leases::overlay;
use crate::load::{self, HeartbeatRow, LoadedRows};
use crate::schema;
use crate::time::Clock;

/// The longest time that a command keeps trying while the database cannot be used.
const RETRY_LIMIT: Duration = Duration::from_secs(10);

/// The least time between two notifications of this process.
const NOTIFY_EVERY: Duration = Duration::from_millis(100);

/// The channel on which changes are announced. Nothing depends on it.
pub(crate) const CHANNEL: &str = "liza";

#[derive(Debug, Clone)]
pub(crate) struct DatabaseStore {
    pub(crate) root: PathBuf,
    pub(crate) folder: PathBuf,
    /// Messages show it in place of a file's path.
    pub(crate) path: PathBuf,
    pub(crate) retry_limit: Duration,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: DatabaseSettings,
    accepted: AcceptedSettings,
    pool: Pool,
    /// The number of the project, once it was looked up.
    project: OnceLock<i64>,
    /// A board that was read a while ago: predicts the rows that a command will need.
    known: Mutex<Arc<Board>>,
    notified: Mutex<Option<Instant>>,
    /// The last known stop files.
    stops: Mutex<Option<StopFileTimes>>,
}

impl DatabaseStore {
    /// Does not connect yet.
    pub(crate) fn new(root: &Path, settings: DatabaseSettings) -> Self {
        let pool = Pool::new(settings.address.clone());
        let path = settings.path();
        let shared = Shared {
            settings,
            accepted: AcceptedSettings::of(root),
            pool,
            project: OnceLock::new(),
            known: Mutex::default(),
            notified: Mutex::default(),
            stops: Mutex::default(),
        };
        let folder = root.join(".liza");
        Self { root: root.to_owned(), folder, path, retry_limit: RETRY_LIMIT, shared: Arc::new(shared) }
    }

    pub(crate) fn settings(&self) -> &DatabaseSettings {
        &self.shared.settings
    }

    pub(crate) fn accepted(&self) -> &AcceptedSettings {
        &self.shared.accepted
    }

    /// Puts what is kept apart into a loaded board: the leases of heartbeats, and what this machine accepted.
    pub(crate) fn complete(&self, board: &mut Board, heartbeats: &[HeartbeatRow], clock: &Clock) {
        overlay(board, heartbeats, clock);
        self.accepted().apply(board);
    }

    pub(crate) fn state_of(&self, loaded: &LoadedRows, clock: &Clock) -> Result<State, StoreError> {
        let mut state = loaded.rows.state(&self.path, loaded.revision())?;
        self.complete(&mut state.board, &loaded.heartbeats, clock);
        Ok(state)
    }

    pub(crate) fn address(&self) -> &Address {
        &self.settings().address
    }

    pub(crate) fn name(&self) -> &str {
        &self.shared.settings.name
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    pub(crate) fn error(&self, reason: DatabaseReason, detail: impl Into<String>) -> DatabaseError {
        DatabaseError::new(self.address(), reason, detail)
    }

    pub(crate) fn fault(&self, error: &postgres::Error) -> DatabaseError {
        fault_of(self.address(), error)
    }

    pub(crate) fn no_project(&self) -> DatabaseError {
        self.error(DatabaseReason::NoProject, self.name())
    }

    pub(crate) fn known_board(&self) -> Arc<Board> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn remember(&self, board: Board) {
        *self.shared.known.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(board);
    }

    pub(crate) fn last_stop_files(&self) -> MutexGuard<'_, Option<StopFileTimes>> {
        self.shared.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection, and the number of the project. The first use checks the tables.
    pub(crate) fn connect(&self) -> Result<(i64, Connection), DatabaseError> {
        let mut connection = self.pool().take()?;
        if let Some(project) = self.shared.project.get() {
            return Ok((*project, connection));
        }
        let condition = load::by_name(self.name());
        let sql =
            format!("SELECT max(version) FROM liza.meta; SELECT id FROM liza.projects WHERE {condition}");
        let results = match connection.run(&sql) {
            Ok(results) => results,
            Err(error) if error.code() == Some(&postgres::error::SqlState::UNDEFINED_TABLE) => {
                return Err(self.no_project());
            }
            Err(error) => return Err(self.fault(&error)),
        };
        let version = results.first().and_then(ResultSet::first).map_or(0, |row| row.number(0));
        schema::check_version(self.address(), version)?;
        if version < schema::VERSION {
            schema::prepare(&mut connection, self.address())?;
        }
        let row = results.get(1).and_then(ResultSet::first);
        let project = row.map(|row| row.number(0)).ok_or_else(|| self.no_project())?;
        Ok((*self.shared.project.get_or_init(|| project), connection))
    }

    /// Runs statements that only read, or that may be repeated; tries again while the database cannot be used.
    pub(crate) fn query(&self, sql: impl Fn(i64) -> String) -> Result<Vec<ResultSet>, StoreError> {
        let deadline = Instant::now() + self.retry_limit;
        let mut pause = Duration::from_millis(50);
        loop {
            let error = match self.query_once(&sql) {
                Ok(results) => return Ok(results),
                Err(error) => error,
            };
            if !error.reason.is_passing() || Instant::now() >= deadline {
                return Err(error.into());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }

    pub(crate) fn query_once(&self, sql: &impl Fn(i64) -> String) -> Result<Vec<ResultSet>, DatabaseError> {
        let (project, mut connection) = self.connect()?;
        let results = connection.begin(&sql(project)).map_err(|error| self.fault(&error));
        if results.is_ok() {
            // The statements have ended what they began.
            connection.ended();
        }
        self.pool().put(connection);
        results
    }

    /// Decodes the results; fails if the project is gone or a newer program has changed the tables.
    pub(crate) fn checked(&self, results: &[ResultSet], gap: usize) -> Result<LoadedRows, DatabaseError> {
        let loaded = load::decoded(results, gap).ok_or_else(|| self.no_project())?;
        schema::check_version(self.address(), loaded.tables)?;
        Ok(loaded)
    }

    /// Loads rows of one moment.
    pub(crate) fn load(&self, wanted: &LoadScope) -> Result<LoadedRows, StoreError> {
        let results = self.query(|project| load::snapshot_statements(project, wanted))?;
        Ok(self.checked(results.get(load::SNAPSHOT_LEAD..).unwrap_or_default(), 0)?)
    }

    /// The clock of the project after the server's was read.
    pub(crate) fn clock_of(&self, loaded: &LoadedRows, server: &str) -> Clock {
        let lease = || self.lease_length(loaded);
        let clock = loaded.project.clock.read(loaded.server_ms, server, lease);
        let here = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let here = i64::try_from(here).unwrap_or(i64::MAX);
        note_clock_difference(clock.now().unix().saturating_sub(here));
        clock
    }

    fn lease_length(&self, loaded: &LoadedRows) -> Seconds {
        loaded.rows.config(self.path(), loaded.revision()).unwrap_or_default().lease_duration
    }

    pub(crate) fn now(&self) -> Result<Timestamp, StoreError> {
        let loaded = self.load(&load::least())?;
        Ok(self.clock_of(&loaded, "").now())
    }

    /// Announces a revision after its commit, at most once per [`NOTIFY_EVERY`]. Sent apart: its fate says
    /// nothing about the commit.
    pub(crate) fn announce(&self, connection: &mut Connection, revision: u64) {
        let mut notified = self.shared.notified.lock().unwrap_or_else(PoisonError::into_inner);
        if notified.is_none_or(|last| last.elapsed() >= NOTIFY_EVERY) {
            *notified = Some(Instant::now());
            drop(notified);
            let _ = connection.run(&format!("NOTIFY {CHANNEL}, '{revision}'"));
        }
    }

    /// Runs statements that need no transaction, once.
    pub(crate) fn query_rows(&self, sql: impl Fn(i64) -> String) -> Result<Vec<ResultSet>, StoreError> {
        Ok(self.query_once(&sql)?)
    }
}
