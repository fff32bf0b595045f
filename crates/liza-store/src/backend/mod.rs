//! The trait of a place for the blackboard: a file, or a database. A back end locks, loads, writes and reads;
//! commands and edits are decided in `store/`, the same for both.

mod accepted_settings;
mod address;
mod client;
mod job;
mod scope;
mod settings;
mod shared;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use liza_core::model::{
    Board, Change, DirectEdit, LogEntry, Revision, Section, State, StopFile, StopFiles, TaskId, Timestamp,
    Value,
};
use liza_core::rules::misspelled::MisspelledKey;

use crate::call::Edited;
use crate::call::Host;
use crate::codec::StateView;
use crate::codec::verify::not_encoded;
use crate::database::{DatabaseError, RequestId};
use crate::disk::ProjectDisk;
use crate::document::ValuePath;
use crate::edit::ValueSyntax;
use crate::error::StoreError;
use crate::file::Notice;
use crate::log::{LogRecord, entry_text};

pub use crate::codec::verify::mismatch;
pub use crate::database::{KEPT, note_clock_difference, stores_all_text};
pub use crate::edit::{AcceptedText, EditRules};
pub use crate::log::{entry as log_record, entry_texts as log_entries};
pub use crate::rows::{
    AGENTS, EntryRow, RowChange, Rows, SectionRow, TASKS, TaskColumns, WholeRow, changed_text, values_of,
};
pub use accepted_settings::AcceptedSettings;
pub use address::{Address, AddressError, PASSWORD_FILE_ENV, STORE_URL_ENV};
pub use client::{DatabaseClient, NewBoard, install_client, installed_client};
pub use job::Job;
pub(crate) use job::pending;
pub use scope::{LoadScope, TaskExtent};
pub use settings::{DatabaseSettings, settings_file};
pub(crate) use settings::{settings_of, write_settings};
pub use shared::SharedBoard;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitLimit {
    /// For the lock of the file.
    Lock(Duration),
    /// For a database that cannot be used.
    Database(Duration),
}

pub trait Backend: fmt::Debug + Send + Sync {
    fn root(&self) -> &Path;
    /// The `.liza` folder of the project.
    fn folder(&self) -> &Path;
    /// The blackboard itself, or the file that names its database.
    fn state_file(&self) -> PathBuf;
    /// The name of the blackboard in messages.
    fn path(&self) -> PathBuf;
    /// The facts that the rules need from the disk of this machine.
    fn disk(&self) -> ProjectDisk;
    /// The same place with another limit for waiting; an unknown limit changes nothing.
    fn with_limit(&self, limit: WaitLimit) -> Arc<dyn Backend>;
    fn database(&self) -> Option<&dyn SharedBoard> {
        None
    }
    /// The alarm about an edit of the file that no command has made, and that the next write records.
    fn pending_edit(&self, _now: Timestamp) -> Option<DirectEdit> {
        None
    }

    /// The parts of the blackboard that a command will probably need.
    fn scope(&self, _job: &dyn Job) -> LoadScope {
        LoadScope::everything()
    }
    /// Takes the lock, for a command that has been waiting since then, and loads these parts.
    fn lock(&self, scope: &LoadScope, since: Instant) -> Result<Box<dyn Transaction>, Setback>;
    /// The error of a command that always conflicted with others.
    fn overtaken(&self) -> StoreError {
        StoreError::Overtaken { path: self.path() }
    }

    /// Read without a lock.
    fn snapshot(&self) -> Result<State, StoreError>;
    /// Fails if a command could not write it. Also returns the keys that are probably misspelled.
    fn writable_snapshot(&self) -> Result<(State, Vec<MisspelledKey>), StoreError>;
    fn misspelled_keys(&self) -> Result<Vec<MisspelledKey>, StoreError> {
        Ok(self.writable_snapshot()?.1)
    }
    /// The text of the blackboard, as the file has it.
    fn text(&self) -> Result<String, StoreError>;
    fn values(&self) -> Result<Value, StoreError>;
    /// These sections, and these tasks in full, read without a lock.
    fn read_parts(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError>;
    /// The board on which a command can be decided without a lock. A database also sets its time and its stop files.
    fn board_for(&self, job: &mut dyn Job) -> Result<Board, StoreError>;
    fn state_reader(&self) -> Box<dyn ReadState>;

    /// A reader at the beginning of the log, or at its last bytes.
    fn log_reader(&self, tail: Option<u64>) -> Box<dyn ReadLog>;
    /// The parts of the log that are not entries, each with its line.
    fn log_faults(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
    fn whole_log(&self) -> Result<String, StoreError>;
    /// The archived texts by name.
    fn archive(&self) -> Result<BTreeMap<String, String>, StoreError>;
    fn archived(&self, name: &str) -> Result<Option<String>, StoreError>;
    /// Adds earlier log entries and archived texts; existing ones stay.
    fn add_earlier(&self, log: &str, archive: &BTreeMap<String, String>) -> Result<(), StoreError>;

    /// Repairs the damage of a crash or a stale save, and reports it.
    fn recover(&self) -> Result<Vec<Notice>, StoreError> {
        Ok(Vec::new())
    }
    fn begin_edit(&self) -> Result<Box<dyn TextEdit + '_>, StoreError>;
}

/// The reason why a write did not succeed.
#[derive(Debug)]
pub enum Setback {
    /// It needs other parts or conflicted with others: retry at once.
    Again,
    /// It may have been written.
    Unknown(DatabaseError),
    /// It failed for good, or until the database works again.
    Failed(StoreError),
}

impl From<StoreError> for Setback {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl From<DatabaseError> for Setback {
    fn from(error: DatabaseError) -> Self {
        Self::Failed(error.into())
    }
}

/// The version that the next command decides on.
pub struct CurrentVersion {
    /// With its byte order mark.
    pub bytes: Arc<Vec<u8>>,
    /// A line scan finds all its blocks.
    pub scannable: bool,
}

pub struct Decided<'d> {
    /// The state before, or the part of it that the command needed.
    pub state: State,
    pub change: Change,
    pub job: &'d dyn Job,
    pub request: &'d RequestId,
    /// The version that it was decided on.
    pub(crate) view: &'d StateView<'d>,
    pub(crate) mark: &'d [u8],
    /// The whole version was parsed.
    pub(crate) is_whole: bool,
}

/// The lock, the parts loaded under it, and the changes of the commands that wait to be written together.
pub trait Transaction: Send {
    /// The newest version: that of the last command.
    fn version(&self) -> CurrentVersion;
    /// The time and the stop files under the lock.
    fn facts(&self, host: &dyn Host) -> (Timestamp, StopFiles);
    /// Adds facts that the text lacks: the revision, and leases that were renewed elsewhere.
    fn complete(&self, board: &mut Board);
    /// Keeps a board, to predict the parts that the next attempt needs.
    fn remember(&self, _board: Board) {}
    /// The repairs that were made when the lock was taken.
    fn notices(&self) -> Vec<Notice> {
        Vec::new()
    }
    /// Creates the stop files that must exist before a change is written, unless they are part of the write.
    fn create_stop_files(
        &self,
        _host: &dyn Host,
        _files: &[StopFile],
        _now: Timestamp,
    ) -> Result<(), StoreError> {
        Ok(())
    }
    /// Adds a change and returns the notices for its sender; `None` if it needs the whole version.
    fn add(&mut self, decided: Decided<'_>) -> Result<Option<Vec<Notice>>, StoreError>;
    /// True if no further change fits.
    fn is_full(&self) -> bool {
        false
    }
    /// Writes all changes durably, and releases the lock.
    fn commit(self: Box<Self>) -> Result<Option<Notice>, Setback>;
    fn abandon(self: Box<Self>) {}
}

pub trait ReadState: fmt::Debug + Send {
    /// Returns the same `Arc` as before if nothing has changed.
    fn read(&mut self) -> Result<Arc<State>, StoreError>;
}

pub trait ReadLog: fmt::Debug + Send {
    /// The entries since the last call.
    fn read_new(&mut self) -> Result<Vec<LogRecord>, StoreError>;
}

#[derive(Debug, Clone, Copy)]
pub struct LoggedEdit<'l> {
    pub entry: &'l LogEntry,
    pub now: Timestamp,
}

/// An edit of the text; the lock of a file is held until it is dropped.
pub trait TextEdit: Send {
    fn text(&self) -> Result<String, StoreError>;
    fn revision(&self) -> Revision;
    /// Reads the text again, after others have changed it.
    fn reload(&mut self) -> Result<(), StoreError>;
    /// True if others' changes are merged into the new text, without a lock; otherwise it is refused.
    fn is_merged(&self) -> bool {
        false
    }
    fn notices(&self) -> &[Notice] {
        &[]
    }
    fn name(&self) -> PathBuf;
    /// Adds the byte order mark of the current text.
    fn with_mark(&self, text: String) -> String {
        text
    }
    /// Writes a text with the next revision, if the rules allow it. `rewritten`: it has lost the form of the current one.
    fn write(
        &mut self,
        rules: &EditRules,
        text: &str,
        log: LoggedEdit<'_>,
        rewritten: bool,
    ) -> Result<Edited, StoreError>;
    /// Sets a value if that needs only a part of the text; none if it needs the whole.
    fn set_in_part(
        &mut self,
        _rules: &EditRules,
        _path: &ValuePath,
        _value: (&str, ValueSyntax),
        _log: LoggedEdit<'_>,
    ) -> Result<Option<Edited>, StoreError> {
        Ok(None)
    }

    /// The file that a command may change.
    fn modified_file(&self) -> PathBuf;
    /// Prepares for a command that changes that file.
    fn begin_modify(&mut self, rules: &EditRules, now: Timestamp) -> Result<(), StoreError>;
    fn modified_text(&self) -> Result<String, StoreError>;
    /// Writes the text that a command wrote if that needs only a part of it; none if it needs the whole.
    fn finish_in_part(
        &mut self,
        _rules: &EditRules,
        _text: &str,
        _log: LoggedEdit<'_>,
    ) -> Result<Option<Edited>, StoreError> {
        Ok(None)
    }
    /// Ends what [`TextEdit::begin_modify`] began; restores the version before it unless a new one was written.
    fn end_modify(&mut self, _is_written: bool) -> Result<(), StoreError> {
        Ok(())
    }
}

pub fn log_entry_text(path: &Path, entry: &LogEntry, revision: Revision) -> Result<String, StoreError> {
    entry_text(entry, revision).map_err(|error| not_encoded(path, error))
}
