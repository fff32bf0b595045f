//! The blackboard of one project, in `.liza/state.yaml` or in a database that `.liza/store.yaml` names.
//! `submit` with `queue` decides commands and `edit_session` changes the text, the same for every back end.

mod edit_session;
mod queue;
mod readers;
mod submit;
mod transfer;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use liza_core::model::{
    Board, DirectEdit, Fields, Generation, LogEntry, Revision, Section, State, StopFile, StopFileTimes,
    TaskId, Timestamp, Value,
};
use liza_core::rules::invariants::{self, Violation};
use liza_core::rules::misspelled::MisspelledKey;

use crate::archive::{record_name, task_name};
use crate::backend::{
    AcceptedSettings, Address, Backend, DatabaseSettings, NewBoard, WaitLimit, installed_client,
    log_entry_text, settings_of, write_settings,
};
use crate::codec;
use crate::codec::verify::{new_document, not_encoded};
use crate::database::{DatabaseReport, RaisedAlarms, random_generation};
use crate::disk::ProjectDisk;
use crate::document::ValuePath;
use crate::error::StoreError;
use crate::file::watch;
use crate::file::{Notice, Watch};
use crate::file_store::FileStore;
use crate::log::{FIRST, LogRecord};

use queue::Queue;

pub use edit_session::EditSession;
pub use readers::{IncrementalReader, LogReader};
pub use transfer::Export;

#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    queue: Arc<Queue>,
}

impl Store {
    fn of(backend: Arc<dyn Backend>) -> Self {
        Self { backend, queue: Arc::default() }
    }

    /// Does not connect to a database yet.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        match settings_of(root)? {
            Some(settings) => Ok(Self::of(installed_client()?.open(root, settings))),
            None => Ok(Self::of(Arc::new(FileStore::open(root)?))),
        }
    }

    pub fn create(root: &Path, state: &State, log: &LogEntry) -> Result<Self, StoreError> {
        Ok(Self::of(Arc::new(FileStore::create(root, state, log)?)))
    }

    /// Creates a blackboard in a database, and writes the file that names it.
    pub fn create_in_database(
        root: &Path,
        address: &Address,
        name: &str,
        state: &State,
        log: &LogEntry,
    ) -> Result<Self, StoreError> {
        let settings = DatabaseSettings { address: address.clone(), name: name.to_owned() };
        let text = new_document(&settings.path(), state)?;
        let log = log_entry_text(&settings.path(), log, FIRST)?;
        let board = NewBoard { text: &text, state, log: &log };
        let backend = installed_client()?.create(root, settings.clone(), board)?;
        write_settings(root, &settings)?;
        Ok(Self::of(backend))
    }

    /// Uses the blackboard of that name, or the only one, in a database.
    pub fn join_database(root: &Path, address: &Address, name: Option<&str>) -> Result<Self, StoreError> {
        let client = installed_client()?;
        let settings = client.find(address, name)?;
        write_settings(root, &settings)?;
        Ok(Self::of(client.open(root, settings)))
    }

    /// Waits this long for the lock of the file, whatever the config says.
    #[must_use]
    pub fn with_lock_timeout(self, timeout: Duration) -> Self {
        self.with_limit(WaitLimit::Lock(timeout))
    }

    /// Keeps trying this long while the database is unreachable, instead of seconds: for long-running programs.
    #[must_use]
    pub fn with_retry_limit(self, retry_limit: Duration) -> Self {
        self.with_limit(WaitLimit::Database(retry_limit))
    }

    fn with_limit(self, limit: WaitLimit) -> Self {
        Self { backend: self.backend.with_limit(limit), ..self }
    }

    pub fn root(&self) -> &Path {
        self.backend.root()
    }

    pub fn folder(&self) -> &Path {
        self.backend.folder()
    }

    /// The blackboard itself, or the file that names its database.
    pub fn state_file(&self) -> PathBuf {
        self.backend.state_file()
    }

    /// The random fencing token for a registration in a database; `None` for a file, where it is a revision.
    pub fn new_generation(&self) -> Option<Generation> {
        self.is_in_database().then(random_generation)
    }

    pub fn is_in_database(&self) -> bool {
        self.backend.database().is_some()
    }

    pub fn database(&self) -> Option<(&Address, &str)> {
        let settings = self.backend.database()?.settings();
        Some((&settings.address, &settings.name))
    }

    /// The settings that the person of this machine accepted; `None` for a file, which only this machine has.
    pub fn accepted_settings(&self) -> Option<&AcceptedSettings> {
        Some(self.backend.database()?.accepted())
    }

    pub fn database_report(&self) -> Result<Option<DatabaseReport>, StoreError> {
        self.backend.database().map(|database| database.report()).transpose()
    }

    /// Reads the whole blackboard without a lock.
    pub fn snapshot(&self) -> Result<State, StoreError> {
        self.backend.snapshot()
    }

    /// Fails if a command could not write it (checks its version). Also returns probably misspelled keys.
    pub fn writable_snapshot(&self) -> Result<(State, Vec<MisspelledKey>), StoreError> {
        self.backend.writable_snapshot()
    }

    pub fn misspelled_keys(&self) -> Result<Vec<MisspelledKey>, StoreError> {
        self.backend.misspelled_keys()
    }

    /// The text of a database is as the file would have it.
    pub fn text(&self) -> Result<String, StoreError> {
        self.backend.text()
    }

    pub fn archived_task(&self, id: &TaskId) -> Result<Option<String>, StoreError> {
        self.backend.archived(&task_name(id))
    }

    pub fn archived_sprint(&self, id: &str) -> Result<Option<String>, StoreError> {
        self.backend.archived(&record_name("sprint", id))
    }

    /// Reads these sections, and these tasks in full, without a lock.
    pub fn read_parts(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError> {
        self.backend.read_parts(sections, tasks)
    }

    /// The values that match a path; the whole blackboard for the empty path.
    pub fn read_path(&self, path: &str) -> Result<Vec<Value>, StoreError> {
        let path: ValuePath = path.parse()?;
        let root = self.backend.values()?;
        Ok(path.find(&root).into_iter().cloned().collect())
    }

    /// The values that match a path. Settings include the defaults.
    pub fn read_path_in_force(&self, path: &str) -> Result<Vec<Value>, StoreError> {
        let steps: ValuePath = path.parse()?;
        if !steps.leads_into("config") {
            return self.read_path(path);
        }
        let written = self.read_path(".config")?.into_iter().next();
        let settings =
            codec::every_setting(written).map_err(|error| not_encoded(&self.state_file(), error))?;
        let root = Value::Map(Fields::from_iter([("config".to_owned(), settings)]));
        Ok(steps.find(&root).into_iter().cloned().collect())
    }

    pub fn disk(&self) -> ProjectDisk {
        self.backend.disk()
    }

    pub fn validate(&self, now: Timestamp) -> Result<Vec<Violation>, StoreError> {
        Ok(invariants::validate(&self.snapshot()?, &self.disk(), now))
    }

    /// The alarm about an edit of the file that the next write records.
    pub fn pending_edit(&self, now: Timestamp) -> Option<DirectEdit> {
        self.backend.pending_edit(now)
    }

    /// Repairs the damage of a crash or a stale save to the file, and reports it. A database needs no repair.
    pub fn recover(&self) -> Result<Vec<Notice>, StoreError> {
        self.backend.recover()
    }

    /// Restores a blackboard that was deleted, emptied or cut off from the kept version.
    pub fn restore_lost(root: &Path) -> Result<Option<Notice>, StoreError> {
        FileStore::restore_lost(root)
    }

    /// Begins to edit the text. A file is locked until the session is dropped; in a database a concurrent
    /// write makes this one fail.
    pub fn begin_edit(&self) -> Result<EditSession<'_>, StoreError> {
        Ok(EditSession::new(self.backend.begin_edit()?))
    }

    pub fn incremental_reader(&self) -> IncrementalReader {
        IncrementalReader(self.backend.state_reader())
    }

    pub fn log_reader(&self) -> LogReader {
        LogReader(self.backend.log_reader(None))
    }

    /// The entries in the last `bytes` bytes of the log.
    pub fn log_tail(&self, bytes: u64) -> Result<Vec<LogRecord>, StoreError> {
        self.recent_log_reader(bytes).read_new()
    }

    /// Begins with the entries in the last `bytes` bytes of the log.
    pub fn recent_log_reader(&self, bytes: u64) -> LogReader {
        LogReader(self.backend.log_reader(Some(bytes)))
    }

    pub fn log_faults(&self) -> Result<Vec<String>, StoreError> {
        self.backend.log_faults()
    }

    /// Watches the blackboard and the stop files.
    pub fn watch(&self) -> Result<Watch, StoreError> {
        Ok(self.polled(watch::watch_folder(self.folder())?))
    }

    /// Watches the log, which is written after the state.
    pub fn watch_log(&self) -> Result<Watch, StoreError> {
        Ok(self.polled(watch::watch_log(self.folder())?))
    }

    /// Adds the changes in a database to a watch.
    fn polled(&self, watch: Watch) -> Watch {
        if let Some(database) = self.backend.database() {
            database.poll_for(&watch);
        }
        watch
    }

    /// The start times of stop files in a database; `None` for a file, where the folder has them.
    pub fn stop_rows(&self) -> Result<Option<StopFileTimes>, StoreError> {
        self.backend.database().map(|database| database.stop_files()).transpose()
    }

    /// Adds and removes stop files in a database; does nothing for a file.
    pub fn change_stop_rows(&self, add: &[StopFile], remove: &[StopFile]) -> Result<(), StoreError> {
        match self.backend.database() {
            Some(database) => database.change_stop_files(add, remove),
            None => Ok(()),
        }
    }

    /// Records the alarms that are true on that revision at that time, for the watchers of all machines;
    /// returns those that this one has to raise (`None` for a file, which has one watcher). An alarm that
    /// this machine doesn't see has ended, unless `stays` says otherwise.
    pub fn raise_alarms(
        &self,
        keys: &BTreeSet<String>,
        stays: &dyn Fn(&str) -> bool,
        seen: (Revision, Timestamp),
    ) -> Result<Option<RaisedAlarms>, StoreError> {
        let database = self.backend.database();
        database.map(|database| database.raise_alarms(keys, stays, seen)).transpose()
    }
}
