//! The files of `.liza`: lock, durable replacement, log, and recovery from crashes and stale saves.
//!
//! Handles bytes only and parses no YAML, except for the `revision:` line.

mod lock;
mod log_writer;
mod record;
mod replace;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::document::{Edit, apply};
use crate::error::StoreError;

use lock::FileLock;
pub use lock::LOCK_HELD_ENV;
pub(crate) use lock::LockTimeout;
pub(crate) use record::Fingerprint;
use record::{RecordSlots, Stage, WriteRecord, temporary_name};

/// How many log entries, and how many bytes of them, a record carries before the log is synced.
const CARRIED: usize = 16;
const CARRIED_BYTES: usize = 8 * 1024;

/// The `.liza` folder and the paths of its files.
#[derive(Debug, Clone)]
pub(crate) struct StateFolder {
    root: PathBuf,
}

impl StateFolder {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.join("state.yaml")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("state.yaml.lock")
    }

    /// The version before the last write. With the edits in the record it gives the last write.
    pub(crate) fn previous(&self) -> PathBuf {
        self.root.join("state.yaml.prev")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("log.yaml")
    }

    /// Whether we wrote these bytes, and a line scan finds all their blocks. Without the lock, the newest record may
    /// belong to a write that is not complete; the record before it is still there then.
    pub(crate) fn is_own_version(&self, bytes: &[u8]) -> bool {
        let path = self.lock();
        let slots = fs::File::open(&path).ok().and_then(|file| RecordSlots::read(&file, &path).ok());
        let fingerprint = Fingerprint::of(bytes);
        slots.is_some_and(|slots| slots.all().any(|record| record.scannable && record.after == fingerprint))
    }

    /// Reads state.yaml.
    pub(crate) fn read(&self) -> Result<Vec<u8>, StoreError> {
        let path = self.state();
        fs::read(&path).map_err(|source| {
            if source.kind() == std::io::ErrorKind::NotFound {
                StoreError::Missing { path }
            } else {
                StoreError::Io { action: "read", path, source }
            }
        })
    }
}

/// Who wrote the current state.yaml.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The store, which checked it.
    Ours {
        /// Whether a line scan finds all its blocks.
        scannable: bool,
    },
    /// A person edited our last version, or there is no record of one.
    Edited,
}

/// What the store found and repaired when it took the lock, or could not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A person saved a version based on an older revision. The store restored its own version and kept the other.
    StaleSave {
        /// Where the other version is kept.
        kept: PathBuf,
        /// The revision that it was based on, if it has one.
        based_on: Option<u64>,
        /// The restored revision.
        current: u64,
    },
    /// A person saved a version based on an older revision, and the store could not restore its own.
    StaleSaveNotUndone {
        /// The revision that it was based on, if it has one.
        based_on: Option<u64>,
        /// The revision that was overwritten.
        lost: u64,
    },
    /// A command that changed the file under the lock was killed. The store restored the version before it.
    ModifyUndone,
    /// The write is complete, but its log entry will be appended by the next one.
    LogDelayed {
        /// Why it could not be appended.
        reason: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StaleSave { kept, based_on, current } => {
                let based =
                    based_on.map_or("an older revision".to_owned(), |based| format!("revision {based}"));
                let kept = kept.display();
                write!(
                    f,
                    "a state.yaml based on {based} was saved over revision {current}, which was restored; "
                )?;
                write!(f, "the save is kept in {kept}. Merge it: liza edit --from {kept}")
            }
            Self::StaleSaveNotUndone { lost, .. } => {
                write!(
                    f,
                    "an older state.yaml was saved over revision {lost}, which could not be restored: "
                )?;
                f.write_str("liza log shows what it had changed")
            }
            Self::ModifyUndone => f.write_str("a `lock modify` was killed; the state before it was restored"),
            Self::LogDelayed { reason } => {
                write!(f, "written, but its log entry waits for the next write: {reason}")
            }
        }
    }
}

/// The file as read under the lock.
pub(crate) struct CurrentFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) origin: Origin,
    /// The revision of the last write.
    pub(crate) revision: u64,
    /// What was repaired before.
    pub(crate) notices: Vec<Notice>,
}

impl CurrentFile {
    fn new(bytes: Vec<u8>, origin: Origin, revision: u64, notices: Vec<Notice>) -> Self {
        let fingerprint = Fingerprint::of(&bytes);
        Self { bytes, fingerprint, origin, revision, notices }
    }
}

/// A version to be written.
pub(crate) struct NewVersion<'w> {
    /// The current file.
    pub(crate) before: Fingerprint,
    /// The new file.
    pub(crate) after: &'w [u8],
    /// The edits from one to the other; empty if there are none.
    pub(crate) edits: &'w [Edit],
    /// The revision of the last write.
    pub(crate) revision_before: u64,
    /// The revision of this write.
    pub(crate) revision: u64,
    /// Whether a line scan finds all blocks of the new file.
    pub(crate) scannable: bool,
    /// The entry for the log.
    pub(crate) log: Option<String>,
}

/// The folder with its lock held: the only type that can write.
pub(crate) struct LockedFolder {
    folder: StateFolder,
    lock: FileLock,
    slots: RecordSlots,
}

impl LockedFolder {
    /// Takes the lock.
    pub(crate) fn acquire(
        folder: &StateFolder,
        timeout: &dyn Fn() -> LockTimeout,
    ) -> Result<Self, StoreError> {
        let lock = FileLock::acquire(&folder.lock(), timeout)?;
        let slots = RecordSlots::read(lock.file(), &folder.lock())?;
        Ok(Self { folder: folder.clone(), lock, slots })
    }

    /// How long it took to get the lock.
    pub(crate) fn waited(&self) -> Duration {
        self.lock.waited()
    }

    /// Reads the file and repairs what a crash or a stale save has left.
    pub(crate) fn current(&mut self) -> Result<CurrentFile, StoreError> {
        let bytes = self.folder.read()?;
        let Some(record) = self.slots.newest().cloned() else {
            replace::remove_temporaries(&self.folder)?;
            return Ok(CurrentFile::new(bytes, Origin::Edited, 0, Vec::new()));
        };
        if record.stage == Stage::Modifying {
            return self.undo_modify(bytes, &record);
        }
        let found = Fingerprint::of(&bytes);
        // The version before is no sign of an interrupted write: a person may have saved exactly that version again.
        let committed = record.stage == Stage::Done
            || found == record.after
            || !self.folder.path().join(temporary_name(record.revision)).exists();
        if committed {
            log_writer::complete_all(&self.folder.log(), record.entries())?;
        } else {
            self.discard(&record, found)?;
        }
        let (last, revision) =
            if committed { (record.after, record.revision) } else { (record.before, record.revision_before) };
        if found == last {
            let origin = Origin::Ours { scannable: record.scannable };
            return Ok(CurrentFile { bytes, fingerprint: found, origin, revision, notices: Vec::new() });
        }
        replace::remove_temporaries(&self.folder)?;
        match revision_line(&bytes) {
            Some(based_on) if based_on >= revision => {
                let (origin, notices) = (Origin::Edited, Vec::new());
                Ok(CurrentFile { bytes, fingerprint: found, origin, revision, notices })
            }
            based_on => self.undo_stale_save(bytes, &record, committed, based_on),
        }
    }

    /// Discards a write that was interrupted before its rename.
    fn discard(&mut self, record: &WriteRecord, found: Fingerprint) -> Result<(), StoreError> {
        // Its record may not be synced, and the records before it may be overwritten from now on.
        log_writer::complete_all(&self.folder.log(), record.carried.iter())?;
        self.sync_log()?;
        if found == record.before {
            replace::copy_previous(&self.folder, &self.folder.read()?)?;
        }
        let discarded = WriteRecord {
            revision: record.revision_before,
            after: record.before,
            stage: Stage::Done,
            log: None,
            carried: Vec::new(),
            edits: Vec::new(),
            ..record.clone()
        };
        self.write_record(discarded, true)
    }

    /// Syncs the log and its name, so that the record no longer has to carry its last entries.
    fn sync_log(&self) -> Result<(), StoreError> {
        log_writer::sync(&self.folder.log())?;
        replace::sync_folder(&self.folder)
    }

    fn write_record(&mut self, record: WriteRecord, durable: bool) -> Result<(), StoreError> {
        self.slots.write(self.lock.file(), &self.folder.lock(), record)?;
        if durable { self.sync_record() } else { Ok(()) }
    }

    fn sync_record(&self) -> Result<(), StoreError> {
        self.lock.file().sync_data().map_err(StoreError::io("sync", self.folder.lock()))
    }

    /// Restores our version over one that is based on an older revision, and keeps the other.
    fn undo_stale_save(
        &mut self,
        bytes: Vec<u8>,
        record: &WriteRecord,
        committed: bool,
        based_on: Option<u64>,
    ) -> Result<CurrentFile, StoreError> {
        let revision = if committed { record.revision } else { record.revision_before };
        let Some(ours) = self.last_version(record, committed) else {
            let notices = vec![Notice::StaleSaveNotUndone { based_on, lost: revision }];
            return Ok(CurrentFile::new(bytes, Origin::Edited, revision, notices));
        };
        let kept = replace::keep_stale(&self.folder, &bytes)?;
        replace::restore(&self.folder, revision, &ours)?;
        let notices = vec![Notice::StaleSave { kept, based_on, current: revision }];
        Ok(CurrentFile::new(ours, Origin::Ours { scannable: record.scannable }, revision, notices))
    }

    /// Our last version, from the one before it and the edits in the record.
    fn last_version(&self, record: &WriteRecord, committed: bool) -> Option<Vec<u8>> {
        let previous = fs::read(self.folder.previous()).ok()?;
        let wanted = if committed { record.after } else { record.before };
        if Fingerprint::of(&previous) == wanted {
            return Some(previous);
        }
        let text = String::from_utf8(previous).ok()?;
        let ours = apply(&text, &mut record.edits.clone()).ok()?.into_bytes();
        (Fingerprint::of(&ours) == wanted).then_some(ours)
    }

    fn undo_modify(&mut self, bytes: Vec<u8>, record: &WriteRecord) -> Result<CurrentFile, StoreError> {
        let mut notices = Vec::new();
        let ours = Origin::Ours { scannable: record.scannable };
        let (bytes, origin) = if Fingerprint::of(&bytes) == record.after {
            (bytes, ours)
        } else if let Some(version) = self.last_version(record, true) {
            replace::restore(&self.folder, record.revision, &version)?;
            notices.push(Notice::ModifyUndone);
            (version, ours)
        } else {
            (bytes, Origin::Edited)
        };
        self.write_record(WriteRecord { stage: Stage::Done, log: None, ..record.clone() }, true)?;
        Ok(CurrentFile::new(bytes, origin, record.revision, notices))
    }

    /// Replaces the file. When this returns, the write survives a crash.
    pub(crate) fn commit(&mut self, version: &NewVersion<'_>) -> Result<Option<Notice>, StoreError> {
        let log = match &version.log {
            Some(text) => Some(log_writer::prepare(&self.folder.log(), text)?),
            None => None,
        };
        let temporary = temporary_name(version.revision);
        let carried = self.carried(log.as_ref())?;
        let file = replace::write_temporary(&self.folder, &temporary, version.after)?;
        let record = WriteRecord::of(version, log, carried);
        if let Err(error) = self.replace(record, version.after, &temporary, &file) {
            // Without its temporary file the write has not happened, or it is complete.
            let _ = fs::remove_file(self.folder.path().join(&temporary));
            return Err(error);
        }
        Ok(self.append_log())
    }

    /// The entries that the next record carries besides its own, since they may not be synced in the log.
    fn carried(
        &self,
        own: Option<&log_writer::PendingLogEntry>,
    ) -> Result<Vec<log_writer::PendingLogEntry>, StoreError> {
        let carried: Vec<_> =
            self.slots.newest().map(|record| record.entries().cloned().collect()).unwrap_or_default();
        let size: usize = carried.iter().map(|entry| entry.text.len()).sum();
        if own.is_none() || (carried.len() < CARRIED && size < CARRIED_BYTES) {
            return Ok(carried);
        }
        self.sync_log()?;
        Ok(Vec::new())
    }

    fn replace(
        &mut self,
        record: WriteRecord,
        after: &[u8],
        temporary: &str,
        file: &fs::File,
    ) -> Result<(), StoreError> {
        let (logged, copied) = (record.log.is_some(), record.needs_copy());
        if copied {
            replace::copy_previous(&self.folder, after)?;
        }
        let before = self.slots.newest().cloned();
        self.write_record(record, false)?;
        let synced = file.sync_data().map_err(StoreError::io("sync", self.folder.path().join(temporary)));
        // The record of a logged write holds its log entry, so it must be as durable as the write.
        let synced = synced.and_then(|()| if logged { self.sync_record() } else { Ok(()) });
        let kept = synced.and_then(|()| if copied { Ok(()) } else { replace::link_previous(&self.folder) });
        let renamed = kept.and_then(|()| replace::rename(&self.folder, temporary));
        if renamed.is_err() {
            // The record says that a write is in progress, which is no longer true.
            self.slots.retract(self.lock.file(), &self.folder.lock(), before)?;
        }
        renamed?;
        self.slots.committed();
        replace::sync_folder(&self.folder)
    }

    /// Appends the log entry. The write itself is complete, so a failure only delays the entry.
    fn append_log(&self) -> Option<Notice> {
        let entry = self.slots.newest()?.log.as_ref()?;
        let outcome = log_writer::append(&self.folder.log(), entry);
        outcome.err().map(|error| Notice::LogDelayed { reason: error.to_string() })
    }

    /// Keeps a copy and records that a command is about to change the file in place.
    pub(crate) fn begin_modify(&mut self, current: &CurrentFile) -> Result<(), StoreError> {
        self.sync_log()?;
        replace::copy_previous(&self.folder, &current.bytes)?;
        let record = WriteRecord {
            sequence: 0,
            revision: current.revision,
            revision_before: current.revision,
            after: current.fingerprint,
            before: current.fingerprint,
            scannable: current.origin == Origin::Ours { scannable: true },
            stage: Stage::Modifying,
            log: None,
            carried: Vec::new(),
            edits: Vec::new(),
        };
        self.write_record(record, true)
    }

    /// Restores the copy that was kept before the command.
    pub(crate) fn end_modify(&mut self) -> Result<(), StoreError> {
        let Some(record) = self.slots.newest().cloned() else { return Ok(()) };
        let bytes = fs::read(self.folder.state()).unwrap_or_default();
        self.undo_modify(bytes, &record).map(drop)
    }
}

/// The number in the line `revision: N` at column 0.
fn revision_line(bytes: &[u8]) -> Option<u64> {
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let at = if body.starts_with(b"revision:") { 0 } else { memchr::memmem::find(body, b"\nrevision:")? + 1 };
    let rest = body[at..].strip_prefix(b"revision:")?;
    let line = rest.split(|&b| b == b'\n').next()?;
    let value = line.split(|&b| b == b'#').next()?;
    std::str::from_utf8(value).ok()?.trim().trim_matches(['"', '\'']).parse().ok()
}
