//! The blackboard in PostgreSQL: rows instead of a file, the same rules.
//!
//! `address` and `settings` say where it is, `connection` and `fault` talk to it, `schema` has its tables, `rows` turns the
//! text of a blackboard into rows and back, `load` and `board` read them, `submit` with `batch` and `write` changes them,
//! `lost_answer` finds out what became of a commit, `heartbeat` renews leases without the lock, `time` keeps the
//! database's clock. Never holds the lock while other work is done.

mod address;
mod alarm_row;
mod batch;
mod board;
mod connection;
mod create;
mod edit;
mod fault;
mod heartbeat;
mod load;
mod log;
mod lost_answer;
mod poll;
mod read;
mod report;
mod request;
mod rows;
mod schema;
mod settings;
mod stop_rows;
mod submit;
mod time;
mod transfer;
mod write;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use liza_core::model::{Board, Config, StopFileTimes, Timestamp};

use batch::Queue;
use connection::{Connection, Pool, ResultSet};
use load::LoadedRows;
use time::Clock;

use crate::codec::{StateView, decode_config};
use crate::database_error::{DatabaseError, DatabaseReason};
use crate::error::StoreError;

pub use address::{Address, AddressError, STORE_URL_ENV};
pub use alarm_row::RaisedAlarms;
pub(crate) use edit::DatabaseEdit;
pub(crate) use log::DatabaseLogReader;
pub(crate) use read::DatabaseReader;
pub use report::DatabaseReport;
pub use request::RequestId;
pub(crate) use request::random_generation;
pub(crate) use settings::{Settings, settings_of};

/// How long a command keeps trying while the database cannot be used.
const RETRY_LIMIT: Duration = Duration::from_secs(10);

/// The least time between two notifications of this process.
const NOTIFY_EVERY: Duration = Duration::from_millis(100);

/// The channel on which changes are announced. Nothing depends on it.
const CHANNEL: &str = "liza";

/// The blackboard of one project in a database.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseStore {
    root: PathBuf,
    folder: PathBuf,
    /// What messages name instead of a file.
    path: PathBuf,
    retry_limit: Duration,
    shared: Arc<Shared>,
}

/// What all copies of a store share.
#[derive(Debug)]
struct Shared {
    settings: Settings,
    pool: Pool,
    /// The number of the project, once it was looked up.
    project: OnceLock<i64>,
    queue: Queue,
    /// A board that was read a while ago: tells which rows a command will need.
    known: Mutex<Arc<Board>>,
    notified: Mutex<Option<Instant>>,
    /// The stop files when they were last read.
    stops: Mutex<Option<StopFileTimes>>,
}

/// How many seconds the database's clock is ahead of this machine's, as this process last saw it: one process works on one
/// project.
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// How many seconds the time of the project is ahead of this machine's clock: with a database, time is the database's. Known
/// after the first read; 0 for a file.
pub fn clock_difference() -> i64 {
    AHEAD.load(Ordering::Relaxed)
}

impl DatabaseStore {
    /// The store with these settings. Does not connect yet.
    pub(crate) fn new(root: &Path, settings: Settings) -> Self {
        let pool = Pool::new(settings.address.clone());
        let path = PathBuf::from(format!("{} (project {})", settings.address, settings.name));
        let shared = Shared {
            settings,
            pool,
            project: OnceLock::new(),
            queue: Queue::default(),
            known: Mutex::default(),
            notified: Mutex::default(),
            stops: Mutex::default(),
        };
        let folder = root.join(".liza");
        Self { root: root.to_owned(), folder, path, retry_limit: RETRY_LIMIT, shared: Arc::new(shared) }
    }

    pub(crate) fn with_retry_limit(self, retry_limit: Duration) -> Self {
        Self { retry_limit, ..self }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn address(&self) -> &Address {
        &self.shared.settings.address
    }

    pub(crate) fn name(&self) -> &str {
        &self.shared.settings.name
    }

    pub(crate) fn settings_file(&self) -> PathBuf {
        settings::path(&self.root)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn retry_limit(&self) -> Duration {
        self.retry_limit
    }

    fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    fn queue(&self) -> &Queue {
        &self.shared.queue
    }

    fn error(&self, reason: DatabaseReason, detail: impl Into<String>) -> DatabaseError {
        DatabaseError::new(self.address(), reason, detail)
    }

    fn fault(&self, error: &postgres::Error) -> DatabaseError {
        DatabaseError::of(self.address(), error)
    }

    fn no_project(&self) -> DatabaseError {
        self.error(DatabaseReason::NoProject, self.name())
    }

    /// A board that was read a while ago.
    fn known_board(&self) -> Arc<Board> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, board: Board) {
        *self.shared.known.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(board);
    }

    /// A connection, and the number of the project. Checks the tables when it is first used.
    fn connect(&self) -> Result<(i64, Connection), DatabaseError> {
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
    fn query(&self, sql: impl Fn(i64) -> String) -> Result<Vec<ResultSet>, StoreError> {
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

    fn query_once(&self, sql: &impl Fn(i64) -> String) -> Result<Vec<ResultSet>, DatabaseError> {
        let (project, mut connection) = self.connect()?;
        let results = connection.begin(&sql(project)).map_err(|error| self.fault(&error));
        if results.is_ok() {
            // The statements have ended what they began.
            connection.ended();
        }
        self.pool().put(connection);
        results
    }

    /// What was read, unless the project is gone or a newer program has changed the tables.
    fn checked(&self, results: &[ResultSet], gap: usize) -> Result<LoadedRows, DatabaseError> {
        let loaded = load::decoded(results, gap).ok_or_else(|| self.no_project())?;
        schema::check_version(self.address(), loaded.tables)?;
        Ok(loaded)
    }

    /// The clock of the project after the server's was read.
    fn clock_of(&self, loaded: &LoadedRows, server: &str) -> Clock {
        let lease = || self.lease_length(loaded);
        let clock = loaded.project.clock.read(loaded.server_ms, server, lease);
        let here = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let here = i64::try_from(here).unwrap_or(i64::MAX);
        AHEAD.store(clock.now().unix().saturating_sub(here), Ordering::Relaxed);
        clock
    }

    /// The usual length of a lease.
    fn lease_length(&self, loaded: &LoadedRows) -> liza_core::model::Seconds {
        let text = loaded.rows.text(loaded.project.revision);
        let config = || {
            let view = StateView::lazy(self.path(), &text).ok()?;
            view.with_section("config", decode_config).ok().flatten()
        };
        config().unwrap_or_else(Config::default).lease_duration
    }

    /// The time of the project.
    fn now(&self) -> Result<Timestamp, StoreError> {
        let wanted = load::Wanted::of([], load::TaskExtent::Named, []);
        let loaded = self.load(&wanted)?;
        Ok(self.clock_of(&loaded, "").now())
    }

    /// Announces a revision after its commit, unless this process has just announced one. Sent apart: what happens to it
    /// says nothing about the commit.
    fn announce(&self, connection: &mut Connection, revision: u64) {
        let mut notified = self.shared.notified.lock().unwrap_or_else(PoisonError::into_inner);
        if notified.is_none_or(|last| last.elapsed() >= NOTIFY_EVERY) {
            *notified = Some(Instant::now());
            drop(notified);
            let _ = connection.run(&format!("NOTIFY {CHANNEL}, '{revision}'"));
        }
    }

    /// The row of a request: its command, its revision and its answer.
    fn request_row(&self, id: &str) -> Result<Option<(String, u64, String)>, StoreError> {
        let id = connection::quoted(id);
        let results = self.query_rows(|project| {
            format!(
                "SELECT command, revision, answer FROM liza.requests WHERE project = {project} AND id = {id}"
            )
        })?;
        let row = results.first().and_then(ResultSet::first);
        Ok(row.map(|row| {
            let revision = u64::try_from(row.number(1)).unwrap_or(0);
            (row.text(0).to_owned(), revision, row.text(2).to_owned())
        }))
    }

    /// The results of statements that need no transaction, tried once.
    fn query_rows(&self, sql: impl Fn(i64) -> String) -> Result<Vec<ResultSet>, StoreError> {
        Ok(self.query_once(&sql)?)
    }
}
