//! The files of `.liza`: lock, durable replacement, log, and recovery from crashes and stale saves. Handles
//! bytes only and parses no YAML, except for the `revision:` line and a save that has none (`recovery.rs`).

mod kept_in_git;
mod lock;
mod log_writer;
mod notice;
mod record;
mod recovery;
mod replace;
pub(crate) mod watch;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use liza_host::durable;
use lock::FileLock;

use crate::document::Edit;
use crate::error::StoreError;

pub use kept_in_git::kept_in_git;
pub use lock::LOCK_HELD_ENV;
pub(crate) use lock::LockTimeout;
pub use notice::Notice;
pub(crate) use record::Fingerprint;
use record::{RecordSlots, Stage, WriteRecord, temporary_name};
use replace::Replaced;
pub use watch::Watch;

/// The log entries, and their bytes, that a record carries before the log is synced.
const CARRIED: usize = 16;
const CARRIED_BYTES: usize = 8 * 1024;

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

    /// The version before the last write. The edits in the record turn it into the last write.
    pub(crate) fn previous(&self) -> PathBuf {
        self.root.join("state.yaml.prev")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("log.yaml")
    }

    /// True if we wrote these bytes and a line scan finds all their blocks. Without the lock, the newest
    /// record may belong to an incomplete write; the record before it is still present then.
    pub(crate) fn is_own_version(&self, bytes: &[u8]) -> bool {
        let path = self.lock();
        let slots = durable::open(durable::Open::Read, &path)
            .ok()
            .and_then(|file| RecordSlots::read(&file, &path).ok());
        let fingerprint = Fingerprint::of(bytes);
        slots.is_some_and(|slots| slots.all().any(|record| record.scannable && record.after == fingerprint))
    }

    /// Reads state.yaml. If it is empty and its last version is kept, that is an error with the remedy.
    pub(crate) fn read(&self) -> Result<Vec<u8>, StoreError> {
        let bytes = self.read_any()?;
        let bytes =
            if self.is_recent() && !self.is_own_version(&bytes) { self.settled(bytes)? } else { bytes };
        if bytes.trim_ascii().is_empty() && self.previous().is_file() {
            return Err(StoreError::Lost { path: self.state() });
        }
        Ok(bytes)
    }

    /// Reads state.yaml, empty or not.
    fn read_any(&self) -> Result<Vec<u8>, StoreError> {
        let path = self.state();
        durable::read_file(&path).map_err(|source| {
            let is_missing = source.kind() == std::io::ErrorKind::NotFound;
            match is_missing {
                true if self.has_kept_version() => StoreError::Lost { path },
                true => StoreError::Missing { path },
                false => StoreError::Io { action: "read", path, source },
            }
        })
    }
}

/// The writer of the current state.yaml.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The store, which checked it.
    Ours {
        /// A line scan finds all its blocks.
        scannable: bool,
    },
    /// A person edited our last version, or there is no record of one.
    Edited,
}

/// The version that the file is compared with to find edits.
pub(crate) enum EditBase {
    /// The file is as we wrote it, or we never wrote one.
    Unedited,
    LastVersion(Vec<u8>),
    /// Our last version cannot be restored.
    Lost,
}

/// As read under the lock.
pub(crate) struct CurrentFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) origin: Origin,
    pub(crate) base: EditBase,
    /// The revision of the last write.
    pub(crate) revision: u64,
    pub(crate) notices: Vec<Notice>,
}

impl CurrentFile {
    fn new(bytes: Vec<u8>, origin: Origin, revision: u64, notices: Vec<Notice>) -> Self {
        let fingerprint = Fingerprint::of(&bytes);
        let base = match origin {
            Origin::Ours { .. } => EditBase::Unedited,
            Origin::Edited => EditBase::Lost,
        };
        Self { bytes, fingerprint, origin, base, revision, notices }
    }
}

pub(crate) struct NewVersion<'w> {
    /// The file that it replaces: the current one, or a command's version of it under the lock.
    pub(crate) before: Fingerprint,
    pub(crate) on_disk: &'w [u8],
    pub(crate) after: &'w [u8],
    /// The edits from one to the other, if there are any.
    pub(crate) edits: &'w [Edit],
    pub(crate) revision_before: u64,
    pub(crate) revision: u64,
    /// A line scan finds all blocks of the new file.
    pub(crate) scannable: bool,
    pub(crate) log: Option<String>,
}

/// The folder with its lock held: the only type that can write.
pub(crate) struct LockedFolder {
    folder: StateFolder,
    lock: FileLock,
    slots: RecordSlots,
}

impl LockedFolder {
    pub(crate) fn acquire(
        folder: &StateFolder,
        start: Instant,
        timeout: &dyn Fn() -> LockTimeout,
    ) -> Result<Self, StoreError> {
        let lock = FileLock::acquire(&folder.lock(), start, timeout)?;
        let slots = RecordSlots::read(lock.file(), &folder.lock())?;
        Ok(Self { folder: folder.clone(), lock, slots })
    }

    /// Adds entries to the log that belong to no write.
    pub(crate) fn add_to_log(&mut self, text: &str) -> Result<(), StoreError> {
        let path = self.folder.log();
        log_writer::append(&path, &log_writer::prepare(&path, text.trim_end())?)?;
        log_writer::sync(&path)
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

    /// Keeps a copy of a version before it is rewritten, and returns its name.
    pub(crate) fn keep_before_rewrite(&self, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        replace::keep_copy(&self.folder, "before-rewrite", bytes)
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
        if let Err(error) = self.replace(record, version, &temporary, &file) {
            // Without its temporary file the write has not happened, or it is complete.
            let _ = fs::remove_file(self.folder.path().join(&temporary));
            return Err(error);
        }
        self.folder.keep_in_git();
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
        version: &NewVersion<'_>,
        temporary: &str,
        file: &fs::File,
    ) -> Result<(), StoreError> {
        let (logged, copied) = (record.log.is_some(), record.needs_copy());
        if copied {
            replace::copy_previous(&self.folder, version.after)?;
        }
        let before = self.slots.newest().cloned();
        self.write_record(record, false)?;
        let synced = file.sync_data().map_err(StoreError::io("sync", self.folder.path().join(temporary)));
        // The record of a logged write holds its log entry, so it must be as durable as the write.
        let synced = synced.and_then(|()| if logged { self.sync_record() } else { Ok(()) });
        let replaced = synced.and_then(|()| self.exchange(version, temporary, file, copied));
        if replaced.is_err() {
            // The record says that a write is in progress, which is no longer true.
            self.slots.retract(self.lock.file(), &self.folder.lock(), before)?;
        }
        replaced?;
        self.slots.committed();
        replace::sync_folder(&self.folder)
    }

    /// Puts the new version in place, unless a person has saved another one since the file was read.
    fn exchange(
        &self,
        version: &NewVersion<'_>,
        temporary: &str,
        file: &fs::File,
        copied: bool,
    ) -> Result<(), StoreError> {
        if replace::exchange(&self.folder, temporary, !copied)? == Replaced::Gone {
            return Ok(());
        }
        if replace::temporary_differs(&self.folder, temporary, version.on_disk)? {
            self.give_back(temporary, file)?;
            if copied {
                // It is a copy of the version that was not written.
                replace::remove_previous(&self.folder)?;
            }
            return Err(StoreError::Overtaken { path: self.folder.state() });
        }
        if copied {
            replace::remove_temporaries(&self.folder)
        } else {
            replace::make_previous(&self.folder, temporary)
        }
    }

    /// Puts back a save that came between the read and the exchange.
    fn give_back(&self, temporary: &str, file: &fs::File) -> Result<(), StoreError> {
        let path = self.folder.path().join(temporary);
        replace::exchange(&self.folder, temporary, false)?;
        let inode = |metadata: std::io::Result<fs::Metadata>| metadata.map(|metadata| metadata.ino());
        let is_ours = match (inode(fs::metadata(&path)), inode(file.metadata())) {
            (Ok(there), Ok(ours)) => there == ours,
            (Err(_), _) | (_, Err(_)) => true,
        };
        if !is_ours {
            // Saved again in between: the newer save is the current one, and the older one is kept.
            replace::exchange(&self.folder, temporary, false)?;
            replace::keep_temporary(&self.folder, temporary, "stale")?;
        }
        Ok(())
    }

    /// Appends the log entry. The write itself is complete, so a failure only delays the entry.
    fn append_log(&self) -> Option<Notice> {
        let entry = self.slots.newest()?.log.as_ref()?;
        let outcome = log_writer::append(&self.folder.log(), entry);
        outcome.err().map(|error| Notice::LogDelayed { reason: error.to_string() })
    }

    /// Records that a command is about to change the file in place. Keeps a copy, unless the version before
    /// it can restore the file.
    pub(crate) fn begin_modify(&mut self, current: &CurrentFile) -> Result<(), StoreError> {
        self.sync_log()?;
        let last = self.slots.newest().filter(|last| last.after == current.fingerprint);
        let record = match last.filter(|last| self.last_version(last, true).is_some()) {
            Some(last) => {
                WriteRecord { stage: Stage::Modifying, log: None, carried: Vec::new(), ..last.clone() }
            }
            None => self.copied_for_modify(current)?,
        };
        self.write_record(record, true)
    }

    fn copied_for_modify(&self, current: &CurrentFile) -> Result<WriteRecord, StoreError> {
        replace::copy_previous(&self.folder, &current.bytes)?;
        Ok(WriteRecord {
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
        })
    }

    pub(crate) fn end_modify(&mut self) -> Result<(), StoreError> {
        let Some(record) = self.slots.newest().cloned() else { return Ok(()) };
        let bytes = durable::read_file(&self.folder.state()).unwrap_or_default();
        self.undo_modify(bytes, &record).map(drop)
    }
}
