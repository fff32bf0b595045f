//! The blackboard of one project, whichever way it is kept: in `.liza/state.yaml`, or in a database that `.liza/store.yaml`
//! names.
//!
//! Only chooses; the two implementations are `file_store/` and `database/`. Both decide by the same rules.

mod edit_session;
mod readers;
mod transfer;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::model::{
    Board, Fields, Generation, LogEntry, Revision, Section, State, StopFile, StopFileTimes, TaskId,
    Timestamp, Value,
};
use liza_core::protocol::{Operation, Request};
use liza_core::rules::invariants::{self, Violation};
use liza_core::rules::misspelled::MisspelledKey;

use crate::archive::{record_name, task_name};
use crate::call::{Call, Host, Outcome};
use crate::codec;
use crate::database::{self, Address, DatabaseReport, DatabaseStore, RaisedAlarms, RequestId};
use crate::disk::ProjectDisk;
use crate::error::StoreError;
use crate::file::Notice;
use crate::file_store::FileStore;
use crate::log_reader::LogRecord;
use crate::value_path::ValuePath;
use crate::verify::not_encoded;
use crate::watch::{self, Watch};

pub use edit_session::EditSession;
pub use readers::{IncrementalReader, LogReader};
pub use transfer::Export;

/// The blackboard of one project.
#[derive(Debug, Clone)]
pub struct Store {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    File(FileStore),
    Database(DatabaseStore),
}

impl Store {
    /// Opens the blackboard of the project at `root`. Does not connect to a database yet.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        match database::settings_of(root)? {
            Some(settings) => Ok(Self { kind: Kind::Database(DatabaseStore::new(root, settings)) }),
            None => Ok(Self { kind: Kind::File(FileStore::open(root)?) }),
        }
    }

    /// Creates a blackboard in a project that has none.
    ///
    /// # Errors
    /// When there is one already, or the folder cannot be written.
    pub fn create(root: &Path, state: &State, log: &LogEntry) -> Result<Self, StoreError> {
        Ok(Self { kind: Kind::File(FileStore::create(root, state, log)?) })
    }

    /// Creates a blackboard of that name in a database, and writes the file that names it.
    ///
    /// # Errors
    /// When the database has one of that name already, or cannot be used.
    pub fn create_in_database(
        root: &Path,
        address: &Address,
        name: &str,
        state: &State,
        log: &LogEntry,
    ) -> Result<Self, StoreError> {
        Ok(Self { kind: Kind::Database(DatabaseStore::create(root, address, name, state, log)?) })
    }

    /// Uses the blackboard of that name in a database for the project at `root`. Without a name, the only one there is.
    ///
    /// # Errors
    /// When there is no such blackboard, or the database cannot be used.
    pub fn join_database(root: &Path, address: &Address, name: Option<&str>) -> Result<Self, StoreError> {
        Ok(Self { kind: Kind::Database(DatabaseStore::join(root, address, name)?) })
    }

    /// Waits this long for the lock of the file, whatever the config says.
    #[must_use]
    pub fn with_lock_timeout(self, timeout: Duration) -> Self {
        match self.kind {
            Kind::File(store) => Self { kind: Kind::File(store.with_lock_timeout(timeout)) },
            Kind::Database(_) => self,
        }
    }

    /// Keeps trying this long while the database cannot be reached, instead of a few seconds: for programs that run long.
    #[must_use]
    pub fn with_retry_limit(self, retry_limit: Duration) -> Self {
        match self.kind {
            Kind::File(_) => self,
            Kind::Database(store) => Self { kind: Kind::Database(store.with_retry_limit(retry_limit)) },
        }
    }

    /// The project root.
    pub fn root(&self) -> &Path {
        match &self.kind {
            Kind::File(store) => store.root(),
            Kind::Database(store) => store.root(),
        }
    }

    /// The `.liza` folder of the project.
    pub fn folder(&self) -> &Path {
        match &self.kind {
            Kind::File(store) => store.folder(),
            Kind::Database(store) => store.folder(),
        }
    }

    /// The file of the blackboard: itself, or the file that says where it is.
    pub fn state_file(&self) -> PathBuf {
        match &self.kind {
            Kind::File(store) => store.state_file(),
            Kind::Database(store) => store.settings_file(),
        }
    }

    /// The fencing token for a registration in a database, where it must be random; none for a file, where it is a revision.
    pub fn new_generation(&self) -> Option<Generation> {
        self.is_in_database().then(database::random_generation)
    }

    /// Whether the blackboard is in a database.
    pub fn is_in_database(&self) -> bool {
        matches!(self.kind, Kind::Database(_))
    }

    /// The address of the database and the name of the blackboard in it; none for a file.
    pub fn database(&self) -> Option<(&Address, &str)> {
        match &self.kind {
            Kind::File(_) => None,
            Kind::Database(store) => Some((store.address(), store.name())),
        }
    }

    /// What `doctor` has to know of the database; none for a file.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn database_report(&self) -> Result<Option<DatabaseReport>, StoreError> {
        match &self.kind {
            Kind::File(_) => Ok(None),
            Kind::Database(store) => store.report().map(Some),
        }
    }

    /// Decides a command and writes what it changes. In a database the time is the database's.
    ///
    /// # Errors
    /// When the rules refuse it, the lock is not free, or the blackboard cannot be read or written. It is unchanged then.
    pub fn submit<C: Operation>(
        &self,
        call: Call<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        match &self.kind {
            Kind::File(store) => store.submit(call, host),
            Kind::Database(store) => store.submit(call, host),
        }
    }

    /// Decides a command under an ID that is given again if the answer was lost. In a database, a second call with the same
    /// ID and command fails with the first answer; one with another command is refused. A file has no request IDs.
    ///
    /// # Errors
    /// As [`Store::submit`].
    pub fn submit_request<C: Operation>(
        &self,
        id: &RequestId,
        call: Call<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        match &self.kind {
            Kind::File(store) => store.submit(call, host),
            Kind::Database(store) => store.submit_request(id, call, host),
        }
    }

    /// Decides a request without a lock, and writes nothing.
    ///
    /// # Errors
    /// When the rules refuse it, or the blackboard cannot be read.
    pub fn check<C: Operation>(&self, request: Request<C>) -> Result<C::Reply, StoreError> {
        match &self.kind {
            Kind::File(store) => store.check(request),
            Kind::Database(store) => store.check(request),
        }
    }

    /// The whole blackboard, read without a lock.
    ///
    /// # Errors
    /// When it is not valid, or cannot be read.
    pub fn snapshot(&self) -> Result<State, StoreError> {
        match &self.kind {
            Kind::File(store) => store.snapshot(),
            Kind::Database(store) => store.snapshot(),
        }
    }

    /// The whole blackboard, if a command could write it (also checks its version), and its keys that are probably
    /// misspelled.
    ///
    /// # Errors
    /// When it is not valid, or a newer program wrote it.
    pub fn writable_snapshot(&self) -> Result<(State, Vec<MisspelledKey>), StoreError> {
        match &self.kind {
            Kind::File(store) => store.writable_snapshot(),
            Kind::Database(store) => store.writable_snapshot(),
        }
    }

    /// The keys of the blackboard that are probably misspelled.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn misspelled_keys(&self) -> Result<Vec<MisspelledKey>, StoreError> {
        match &self.kind {
            Kind::File(store) => crate::file_store::misspelled_keys(&store.state_file()),
            Kind::Database(store) => Ok(store.writable_snapshot()?.1),
        }
    }

    /// The text of the blackboard; that of a database as the file would have it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn text(&self) -> Result<String, StoreError> {
        match &self.kind {
            Kind::File(store) => store.text(),
            Kind::Database(store) => store.text(),
        }
    }

    /// The last record of an archived task; none if the archive does not have it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn archived_task(&self, id: &TaskId) -> Result<Option<String>, StoreError> {
        self.archived(&task_name(id))
    }

    /// The last record of a closed sprint; none if the archive does not have it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn archived_sprint(&self, id: &str) -> Result<Option<String>, StoreError> {
        self.archived(&record_name("sprint", id))
    }

    fn archived(&self, name: &str) -> Result<Option<String>, StoreError> {
        match &self.kind {
            Kind::File(store) => store.archived(name),
            Kind::Database(store) => store.archived(name),
        }
    }

    /// Parts of the blackboard, read without a lock: these sections, and these tasks in full.
    ///
    /// # Errors
    /// When it is not valid, or cannot be read.
    pub fn read_parts(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError> {
        match &self.kind {
            Kind::File(store) => store.read_parts(sections, tasks),
            Kind::Database(store) => store.read_parts(sections, tasks),
        }
    }

    /// The values that match a path; the whole blackboard for the empty path.
    ///
    /// # Errors
    /// When it cannot be read, or the path is invalid.
    pub fn read_path(&self, path: &str) -> Result<Vec<Value>, StoreError> {
        match &self.kind {
            Kind::File(store) => store.read_path(path),
            Kind::Database(store) => store.read_path(path),
        }
    }

    /// The values that match a path. Settings are those in force, also if the blackboard does not have them.
    ///
    /// # Errors
    /// When it cannot be read, or the path is invalid.
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
        match &self.kind {
            Kind::File(_) => ProjectDisk::new(self.root()),
            Kind::Database(_) => ProjectDisk::of_several_machines(self.root()),
        }
    }

    /// All violations in the blackboard.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn validate(&self, now: Timestamp) -> Result<Vec<Violation>, StoreError> {
        Ok(invariants::validate(&self.snapshot()?, &self.disk(), now))
    }

    /// Repairs what a crash or a stale save has left in the file, and reports it. A database needs no repair.
    ///
    /// # Errors
    /// When the lock is not free, or the files cannot be read or written.
    pub fn recover(&self) -> Result<Vec<Notice>, StoreError> {
        match &self.kind {
            Kind::File(store) => store.recover(),
            Kind::Database(_) => Ok(Vec::new()),
        }
    }

    /// Restores a blackboard that was deleted, emptied or cut off from the kept version.
    ///
    /// # Errors
    /// When the lock is not free, or the files cannot be read or written.
    pub fn restore_lost(root: &Path) -> Result<Option<Notice>, StoreError> {
        FileStore::restore_lost(root)
    }

    /// Begins to edit the text. A file is locked until the session is dropped; in a database the write fails if another
    /// one came between.
    ///
    /// # Errors
    /// When the lock is not free, or the blackboard cannot be read.
    pub fn begin_edit(&self) -> Result<EditSession<'_>, StoreError> {
        match &self.kind {
            Kind::File(store) => Ok(EditSession::of_file(store.begin_edit()?)),
            Kind::Database(store) => Ok(EditSession::of_database(store.begin_edit()?)),
        }
    }

    /// A reader that keeps the last state.
    pub fn incremental_reader(&self) -> IncrementalReader {
        match &self.kind {
            Kind::File(store) => IncrementalReader::of_file(store.incremental_reader()),
            Kind::Database(store) => IncrementalReader::of_database(store.incremental_reader()),
        }
    }

    /// A reader at the beginning of the log.
    pub fn log_reader(&self) -> LogReader {
        match &self.kind {
            Kind::File(store) => LogReader::of_file(store.log_reader()),
            Kind::Database(store) => LogReader::of_database(store.log_reader(None)),
        }
    }

    /// The last entries of the log: those in its last `bytes` bytes.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn log_tail(&self, bytes: u64) -> Result<Vec<LogRecord>, StoreError> {
        self.recent_log_reader(bytes).read_new()
    }

    /// A reader that begins with the last entries of the log: those in its last `bytes` bytes.
    pub fn recent_log_reader(&self, bytes: u64) -> LogReader {
        match &self.kind {
            Kind::File(store) => LogReader::of_file(store.recent_log_reader(bytes)),
            Kind::Database(store) => LogReader::of_database(store.log_reader(Some(bytes))),
        }
    }

    /// What is not an entry of the log, each with its line.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log_faults(&self) -> Result<Vec<String>, StoreError> {
        match &self.kind {
            Kind::File(store) => store.log_faults(),
            // Only the store writes its rows.
            Kind::Database(_) => Ok(Vec::new()),
        }
    }

    /// Watches the blackboard and the stop files.
    ///
    /// # Errors
    /// When the system has no watches left. The caller then has to poll.
    pub fn watch(&self) -> Result<Watch, StoreError> {
        let watch = watch::watch_folder(self.folder())?;
        if let Kind::Database(store) = &self.kind {
            store.poll_for(&watch);
        }
        Ok(watch)
    }

    /// Watches the log, which is written after the state.
    ///
    /// # Errors
    /// As [`Store::watch`].
    pub fn watch_log(&self) -> Result<Watch, StoreError> {
        let watch = watch::watch_log(self.folder())?;
        if let Kind::Database(store) = &self.kind {
            store.poll_for(&watch);
        }
        Ok(watch)
    }

    /// Since when the stop files that are rows of a database have been there; none for a file, where the folder has them.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn stop_rows(&self) -> Result<Option<StopFileTimes>, StoreError> {
        match &self.kind {
            Kind::File(_) => Ok(None),
            Kind::Database(store) => store.stop_files().map(Some),
        }
    }

    /// Adds and removes stop files that are rows of a database; does nothing for a file.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn change_stop_rows(&self, add: &[StopFile], remove: &[StopFile]) -> Result<(), StoreError> {
        match &self.kind {
            Kind::File(_) => Ok(()),
            Kind::Database(store) => store.change_stop_files(add, remove),
        }
    }

    /// Records the alarms that are true on a blackboard of that revision at that time, for the watchers of all machines, and
    /// returns which of them this one has to raise; none for a file, which has one watcher. An alarm that this machine does
    /// not see has ended, unless `stays` says otherwise.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn raise_alarms(
        &self,
        keys: &BTreeSet<String>,
        stays: &dyn Fn(&str) -> bool,
        seen: (Revision, Timestamp),
    ) -> Result<Option<RaisedAlarms>, StoreError> {
        match &self.kind {
            Kind::File(_) => Ok(None),
            Kind::Database(store) => store.raise_alarms(keys, stays, seen).map(Some),
        }
    }
}
