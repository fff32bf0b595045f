//! The files of `.liza`: lock, durable replacement, log, and what a crash or a person leaves behind.
//!
//! Moves bytes only. What they mean is decided elsewhere; nothing here parses YAML beyond one `revision:` line.

mod lock;
mod log;
mod record;
mod replace;

use std::fs;
use std::path::{Path, PathBuf};

use crate::document::{Edit, apply};
use crate::error::StoreError;

pub(crate) use lock::Lock;
pub use lock::{HELD_ENV, Patience};
use record::Slots;
pub(crate) use record::{Imprint, Record, Stage};

/// How many log entries, and how many bytes of them, are carried in the record before the log is made durable.
const CARRIED: usize = 16;
const CARRIED_BYTES: usize = 8 * 1024;

/// Where everything is.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
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

    /// The version before the last write; with the record's edits it gives that write back.
    pub(crate) fn previous(&self) -> PathBuf {
        self.root.join("state.yaml.prev")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("log.yaml")
    }

    /// Whether these bytes are of our writing, in a form in which a line scan finds everything. Without the lock the
    /// newest record may be of a write that is only about to happen; the one before it is still there then.
    pub(crate) fn is_as_written(&self, bytes: &[u8]) -> bool {
        let path = self.lock();
        let slots = fs::File::open(&path).ok().and_then(|file| Slots::read(&file, &path).ok());
        let imprint = Imprint::of(bytes);
        slots.is_some_and(|slots| slots.all().any(|record| record.simple && record.after == imprint))
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

/// Who wrote what state.yaml holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// We did, and it was checked then; the flag says whether its blocks can be found by a line scan.
    Ours {
        /// Whether a line scan is enough.
        simple: bool,
    },
    /// Somebody else changed our last version, or there is no record of one.
    Edited,
}

/// What else the holder of the lock found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Somebody saved a version that was based on an older one. Ours stands again; theirs is kept.
    StaleSave {
        /// Where theirs is.
        kept: PathBuf,
        /// The revision that it was based on, if it says one.
        based_on: Option<u64>,
        /// The revision that stands.
        current: u64,
    },
    /// Somebody saved a version based on an older one, and ours could not be brought back.
    StaleSaveStands {
        /// The revision that it was based on, if it says one.
        based_on: Option<u64>,
        /// The revision that was overwritten.
        lost: u64,
    },
    /// A command that was changing the file under the lock was killed; the version before it stands again.
    ModifyUndone,
    /// The write is done, but its log entry has to wait for the next one.
    LogWaits {
        /// Why.
        why: String,
    },
}

/// The file under the lock.
pub(crate) struct Current {
    /// Its text, as it is.
    pub(crate) bytes: Vec<u8>,
    /// How to know it again.
    pub(crate) imprint: Imprint,
    /// Who wrote it.
    pub(crate) origin: Origin,
    /// The last revision that was written here.
    pub(crate) revision: u64,
    /// What was settled on the way.
    pub(crate) notices: Vec<Notice>,
}

impl Current {
    fn new(bytes: Vec<u8>, origin: Origin, revision: u64, notices: Vec<Notice>) -> Self {
        let imprint = Imprint::of(&bytes);
        Self { bytes, imprint, origin, revision, notices }
    }
}

/// What one write consists of.
pub(crate) struct Write<'w> {
    /// The file before.
    pub(crate) before: Imprint,
    /// The file after.
    pub(crate) after: &'w [u8],
    /// How the one becomes the other, where that is short.
    pub(crate) edits: &'w [Edit],
    /// The revision of the write before.
    pub(crate) revision_before: u64,
    /// The revision of this write.
    pub(crate) revision: u64,
    /// Whether a line scan finds the blocks of what is written.
    pub(crate) simple: bool,
    /// The entry for the log.
    pub(crate) log: Option<String>,
}

/// The right to write: exists only while the lock is held.
pub(crate) struct Held {
    folder: Folder,
    lock: Lock,
    slots: Slots,
}

impl Held {
    /// Takes the lock.
    pub(crate) fn acquire(folder: &Folder, patience: &dyn Fn() -> Patience) -> Result<Self, StoreError> {
        let lock = Lock::acquire(&folder.lock(), patience)?;
        let slots = Slots::read(lock.file(), &folder.lock())?;
        Ok(Self { folder: folder.clone(), lock, slots })
    }

    /// How long the lock was waited for.
    pub(crate) fn waited(&self) -> std::time::Duration {
        self.lock.waited()
    }

    /// Reads the file and settles what a crash or a stale save has left.
    pub(crate) fn current(&mut self) -> Result<Current, StoreError> {
        let bytes = self.folder.read()?;
        let Some(record) = self.slots.newest().cloned() else {
            replace::sweep(&self.folder)?;
            return Ok(Current::new(bytes, Origin::Edited, 0, Vec::new()));
        };
        if record.stage == Stage::Modifying {
            return self.undo_modify(bytes, &record);
        }
        let found = Imprint::of(&bytes);
        // Not by comparing with the version before: a person may have saved exactly that one again.
        let happened = record.stage == Stage::Done
            || found == record.after
            || !self.folder.path().join(record.temporary()).exists();
        if happened {
            log::complete_all(&self.folder.log(), record.entries())?;
        } else {
            self.forget(&record, found)?;
        }
        let (last, revision) =
            if happened { (record.after, record.revision) } else { (record.before, record.revision_before) };
        if found == last {
            let origin = Origin::Ours { simple: record.simple };
            return Ok(Current { bytes, imprint: found, origin, revision, notices: Vec::new() });
        }
        replace::sweep(&self.folder)?;
        match revision_line(&bytes) {
            Some(based_on) if based_on >= revision => {
                Ok(Current { bytes, imprint: found, origin: Origin::Edited, revision, notices: Vec::new() })
            }
            based_on => self.overrule(bytes, &record, happened, based_on),
        }
    }

    /// Forgets a write that was cut off before its rename.
    fn forget(&mut self, record: &Record, found: Imprint) -> Result<(), StoreError> {
        // Its record was perhaps never made durable, and those before it may be overwritten from now on.
        log::complete_all(&self.folder.log(), record.carried.iter())?;
        self.sync_log()?;
        if found == record.before {
            replace::copy_aside(&self.folder, &self.folder.read()?)?;
        }
        let forgotten = Record {
            revision: record.revision_before,
            after: record.before,
            stage: Stage::Done,
            log: None,
            carried: Vec::new(),
            edits: Vec::new(),
            ..record.clone()
        };
        self.note(forgotten, true)
    }

    /// Makes the log durable, its name included, so that the record need not carry its last entries any more.
    fn sync_log(&self) -> Result<(), StoreError> {
        log::sync(&self.folder.log())?;
        replace::sync_folder(&self.folder)
    }

    fn note(&mut self, record: Record, durable: bool) -> Result<(), StoreError> {
        self.slots.write(self.lock.file(), &self.folder.lock(), record)?;
        if durable { self.sync_record() } else { Ok(()) }
    }

    fn sync_record(&self) -> Result<(), StoreError> {
        self.lock.file().sync_data().map_err(StoreError::io("sync", self.folder.lock()))
    }

    /// Brings our version back over one that was based on an older revision; theirs is kept beside it.
    fn overrule(
        &mut self,
        bytes: Vec<u8>,
        record: &Record,
        happened: bool,
        based_on: Option<u64>,
    ) -> Result<Current, StoreError> {
        let revision = if happened { record.revision } else { record.revision_before };
        let Some(ours) = self.last_version(record, happened) else {
            let notices = vec![Notice::StaleSaveStands { based_on, lost: revision }];
            return Ok(Current::new(bytes, Origin::Edited, revision, notices));
        };
        let kept = replace::keep_beside(&self.folder, &bytes)?;
        replace::put(&self.folder, &record::temporary(revision), &ours)?;
        replace::move_into_place(&self.folder, &record::temporary(revision))?;
        let notices = vec![Notice::StaleSave { kept, based_on, current: revision }];
        Ok(Current::new(ours, Origin::Ours { simple: record.simple }, revision, notices))
    }

    /// Our last version, from the one before it and the edits in the record.
    fn last_version(&self, record: &Record, happened: bool) -> Option<Vec<u8>> {
        let previous = fs::read(self.folder.previous()).ok()?;
        let wanted = if happened { record.after } else { record.before };
        if Imprint::of(&previous) == wanted {
            return Some(previous);
        }
        let text = String::from_utf8(previous).ok()?;
        let ours = apply(&text, &mut record.edits.clone()).ok()?.into_bytes();
        (Imprint::of(&ours) == wanted).then_some(ours)
    }

    fn undo_modify(&mut self, bytes: Vec<u8>, record: &Record) -> Result<Current, StoreError> {
        let mut notices = Vec::new();
        let (bytes, origin) = if Imprint::of(&bytes) == record.after {
            (bytes, Origin::Ours { simple: record.simple })
        } else if let Some(ours) = self.last_version(record, true) {
            replace::put(&self.folder, &record::temporary(record.revision), &ours)?;
            replace::move_into_place(&self.folder, &record::temporary(record.revision))?;
            notices.push(Notice::ModifyUndone);
            (ours, Origin::Ours { simple: record.simple })
        } else {
            (bytes, Origin::Edited)
        };
        self.note(Record { stage: Stage::Done, log: None, ..record.clone() }, true)?;
        Ok(Current::new(bytes, origin, record.revision, notices))
    }

    /// Replaces the file for good. When this returns, the write survives a crash.
    pub(crate) fn commit(&mut self, write: &Write<'_>) -> Result<Option<Notice>, StoreError> {
        let log = match &write.log {
            Some(text) => Some(log::prepare(&self.folder.log(), text)?),
            None => None,
        };
        let temporary = record::temporary(write.revision);
        let carried = self.carried(log.as_ref())?;
        let file = replace::fill(&self.folder, &temporary, write.after)?;
        let record = Record::of(write, log, carried);
        if let Err(error) = self.replace(record, write.after, &temporary, &file) {
            // Without its temporary file a write has not happened, or is complete.
            let _ = std::fs::remove_file(self.folder.path().join(&temporary));
            return Err(error);
        }
        Ok(self.append_log())
    }

    /// The entries that the next record has to hold beside its own, since the log may not have them durably.
    fn carried(&self, own: Option<&log::Entry>) -> Result<Vec<log::Entry>, StoreError> {
        let carried: Vec<log::Entry> =
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
        record: Record,
        after: &[u8],
        temporary: &str,
        file: &fs::File,
    ) -> Result<(), StoreError> {
        let (logged, copied) = (record.log.is_some(), record.is_copied());
        if copied {
            replace::copy_aside(&self.folder, after)?;
        }
        let before = self.slots.newest().cloned();
        self.note(record, false)?;
        let synced = file.sync_data().map_err(StoreError::io("sync", self.folder.path().join(temporary)));
        // The record of a logged write has to be as durable as the write: its entry is in it.
        let synced = synced.and_then(|()| if logged { self.sync_record() } else { Ok(()) });
        let aside = synced.and_then(|()| if copied { Ok(()) } else { replace::link_aside(&self.folder) });
        let renamed = aside.and_then(|()| replace::rename(&self.folder, temporary));
        if renamed.is_err() {
            // The record says that a write is under way; it is not.
            self.slots.retract(self.lock.file(), &self.folder.lock(), before)?;
        }
        renamed?;
        self.slots.happened();
        replace::sync_folder(&self.folder)
    }

    /// Appends the log entry. The write itself is done, so a failure here only delays the entry.
    fn append_log(&self) -> Option<Notice> {
        let entry = self.slots.newest()?.log.as_ref()?;
        let outcome = log::append(&self.folder.log(), entry);
        outcome.err().map(|error| Notice::LogWaits { why: error.to_string() })
    }

    /// Says that a command is about to change the file in place, after keeping a copy.
    pub(crate) fn begin_modify(
        &mut self,
        current: &[u8],
        revision: u64,
        simple: bool,
    ) -> Result<(), StoreError> {
        self.sync_log()?;
        replace::copy_aside(&self.folder, current)?;
        let imprint = Imprint::of(current);
        let record = Record {
            sequence: 0,
            revision,
            revision_before: revision,
            after: imprint,
            before: imprint,
            simple,
            stage: Stage::Modifying,
            log: None,
            carried: Vec::new(),
            edits: Vec::new(),
        };
        self.note(record, true)
    }

    /// Brings back the copy that was kept before the command.
    pub(crate) fn end_modify(&mut self) -> Result<(), StoreError> {
        let Some(record) = self.slots.newest().cloned() else { return Ok(()) };
        let bytes = fs::read(self.folder.state()).unwrap_or_default();
        self.undo_modify(bytes, &record).map(drop)
    }
}

/// The number in the line `revision: N` at column 0.
pub(crate) fn revision_line(bytes: &[u8]) -> Option<u64> {
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let at = if body.starts_with(b"revision:") { 0 } else { memchr::memmem::find(body, b"\nrevision:")? + 1 };
    let rest = body[at..].strip_prefix(b"revision:")?;
    let line = rest.split(|&b| b == b'\n').next()?;
    let value = line.split(|&b| b == b'#').next()?;
    std::str::from_utf8(value).ok()?.trim().trim_matches(['"', '\'']).parse().ok()
}
