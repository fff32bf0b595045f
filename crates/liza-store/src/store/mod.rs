//! The blackboard of one project, whichever way it is kept: in `.liza/state.yaml`, or in a database that `.liza/store.yaml`
//! names.
//!
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
    Board, Fields, Generation, LogEntry, Revision, Section, State, StopFile, StopFileTimes, TaskId,
    Timestamp, Value,
};
use liza_core::rules::invariants::{self, Violation};
use liza_core::rules::misspelled::MisspelledKey;

use crate::archive::{record_name, task_name};
use crate::backend::{
    Address, Backend, DatabaseSettings, NewBoard, WaitLimit, installed_client, log_entry_text, settings_of,
    write_settings,
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
use crate::log::LogRecord;

use queue::Queue;

pub use edit_session::EditSession;
pub use readers::{IncrementalReader, LogReader};
pub use transfer::Export;

/// The blackboard of one project.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    /// The commands of this process that wait for each other.
    queue: Arc<Queue>,
}

impl Store {
    fn of(backend: Arc<dyn Backend>) -> Self {
        Self { backend, queue: Arc::default() }
    }

    /// Opens the blackboard of the project at `root`. Does not connect to a database yet.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        match settings_of(root)? {
            Some(settings) => Ok(Self::of(installed_client()?.open(root, settings))),
            None => Ok(Self::of(Arc::new(FileStore::open(root)?))),
        }
    }

    /// Creates a blackboard in a project that has none.
    pub fn create(root: &Path, state: &State, log: &LogEntry) -> Result<Self, StoreError> {
        Ok(Self::of(Arc::new(FileStore::create(root, state, log)?)))
    }

    /// Creates a blackboard of that name in a database, and writes the file that names it.
    pub fn create_in_database(
        root: &Path,
        address: &Address,
        name: &str,
        state: &State,
        log: &LogEntry,
    ) -> Result<Self, StoreError> {
        let settings = DatabaseSettings { address: address.clone(), name: name.to_owned() };
        let text = new_document(&settings.path(), state)?;
        let log = log_entry_text(&settings.path(), log, state.board.revision)?;
        let board = NewBoard { text: &text, state, log: &log };
        let backend = installed_client()?.create(root, settings.clone(), board)?;
        write_settings(root, &settings)?;
        Ok(Self::of(backend))
    }

    /// Uses the blackboard of that name in a database for the project at `root`. Without a name, the only one there is.
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

    /// Keeps trying this long while the database cannot be reached, instead of a few seconds: for programs that run long.
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

    /// The `.liza` folder of the project.
    pub fn folder(&self) -> &Path {
        self.backend.folder()
    }

    /// The file of the blackboard: itself, or the file that says where it is.
    pub fn state_file(&self) -> PathBuf {
        self.backend.state_file()
    }

    /// The fencing token for a registration in a database, where it must be random; none for a file, where it is a revision.
    pub fn new_generation(&self) -> Option<Generation> {
        self.is_in_database().then(random_generation)
    }

    /// Whether the blackboard is in a database.
    pub fn is_in_database(&self) -> bool {
        self.backend.database().is_some()
    }

    /// The address of the database and the name of the blackboard in it; none for a file.
    pub fn database(&self) -> Option<(&Address, &str)> {
        let settings = self.backend.database()?.settings();
        Some((&settings.address, &settings.name))
    }

    /// What `doctor` has to know of the database; none for a file.
    pub fn database_report(&self) -> Result<Option<DatabaseReport>, StoreError> {
        self.backend.database().map(|database| database.report()).transpose()
    }

    /// The whole blackboard, read without a lock.
    pub fn snapshot(&self) -> Result<State, StoreError> {
        self.backend.snapshot()
    }

    /// The whole blackboard, if a command could write it (also checks its version), and its keys that are probably
    /// misspelled.
    pub fn writable_snapshot(&self) -> Result<(State, Vec<MisspelledKey>), StoreError> {
        self.backend.writable_snapshot()
    }

    /// The keys of the blackboard that are probably misspelled.
    pub fn misspelled_keys(&self) -> Result<Vec<MisspelledKey>, StoreError> {
        self.backend.misspelled_keys()
    }

    /// The text of the blackboard; that of a database as the file would have it.
    pub fn text(&self) -> Result<String, StoreError> {
        self.backend.text()
    }

    /// The last record of an archived task; none if the archive does not have it.
    pub fn archived_task(&self, id: &TaskId) -> Result<Option<String>, StoreError> {
        self.backend.archived(&task_name(id))
    }

    /// The last record of a closed sprint; none if the archive does not have it.
    pub fn archived_sprint(&self, id: &str) -> Result<Option<String>, StoreError> {
        self.backend.archived(&record_name("sprint", id))
    }

    /// Parts of the blackboard, read without a lock: these sections, and these tasks in full.
    pub fn read_parts(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError> {
        self.backend.read_parts(sections, tasks)
    }

    /// The values that match a path; the whole blackboard for the empty path.
    pub fn read_path(&self, path: &str) -> Result<Vec<Value>, StoreError> {
        let path: ValuePath = path.parse()?;
        let root = self.backend.values()?;
        Ok(path.find(&root).into_iter().cloned().collect())
    }

    /// The values that match a path. Settings are those in force, also if the blackboard does not have them.
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

    /// The facts that the rules need from the disk of this machine.
    pub fn disk(&self) -> ProjectDisk {
        self.backend.disk()
    }

    /// All violations in the blackboard.
    pub fn validate(&self, now: Timestamp) -> Result<Vec<Violation>, StoreError> {
        Ok(invariants::validate(&self.snapshot()?, &self.disk(), now))
    }

    /// Repairs what a crash or a stale save has left in the file, and reports it. A database needs no repair.
    pub fn recover(&self) -> Result<Vec<Notice>, StoreError> {
        self.backend.recover()
    }

    /// Restores a blackboard that was deleted, emptied or cut off from the kept version.
    pub fn restore_lost(root: &Path) -> Result<Option<Notice>, StoreError> {
        FileStore::restore_lost(root)
    }

    /// Begins to edit the text. A file is locked until the session is dropped; in a database the write fails if another
    /// one came between.
    pub fn begin_edit(&self) -> Result<EditSession<'_>, StoreError> {
        Ok(EditSession::new(self.backend.begin_edit()?))
    }

    /// A reader that keeps the last state.
    pub fn incremental_reader(&self) -> IncrementalReader {
        IncrementalReader(self.backend.state_reader())
    }

    /// A reader at the beginning of the log.
    pub fn log_reader(&self) -> LogReader {
        LogReader(self.backend.log_reader(None))
    }

    /// The last entries of the log: those in its last `bytes` bytes.
    pub fn log_tail(&self, bytes: u64) -> Result<Vec<LogRecord>, StoreError> {
        self.recent_log_reader(bytes).read_new()
    }

    /// A reader that begins with the last entries of the log: those in its last `bytes` bytes.
    pub fn recent_log_reader(&self, bytes: u64) -> LogReader {
        LogReader(self.backend.log_reader(Some(bytes)))
    }

    /// What is not an entry of the log, each with its line.
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

    /// The watch, which also hears of changes in a database.
    fn polled(&self, watch: Watch) -> Watch {
        if let Some(database) = self.backend.database() {
            database.poll_for(&watch);
        }
        watch
    }

    /// Since when the stop files that are rows of a database have been there; none for a file, where the folder has them.
    pub fn stop_rows(&self) -> Result<Option<StopFileTimes>, StoreError> {
        self.backend.database().map(|database| database.stop_files()).transpose()
    }

    /// Adds and removes stop files that are rows of a database; does nothing for a file.
    pub fn change_stop_rows(&self, add: &[StopFile], remove: &[StopFile]) -> Result<(), StoreError> {
        match self.backend.database() {
            Some(database) => database.change_stop_files(add, remove),
            None => Ok(()),
        }
    }

    /// Records the alarms that are true on a blackboard of that revision at that time, for the watchers of all machines, and
    /// returns which of them this one has to raise; none for a file, which has one watcher. An alarm that this machine does
    /// not see has ended, unless `stays` says otherwise.
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
