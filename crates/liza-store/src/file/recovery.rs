//! Reads the file under the lock, and repairs the damage of crashes, stale saves and slow editors. Must not
//! lose a person's save: replaced versions are kept under another name.

use std::fs;
use std::path::Path;
use std::time::Duration;

use liza_host::durable;

use crate::document::apply;
use crate::error::StoreError;

use super::record::{Stage, WriteRecord, temporary_name};
use super::replace::Replaced;
use super::{
    CurrentFile, EditBase, Fingerprint, LockedFolder, Notice, Origin, StateFolder, log_writer, replace,
};

/// The longest time that a save may be incomplete, and the number of reads until then.
const SETTLE_AGE: Duration = Duration::from_millis(100);
const SETTLE_PAUSE: Duration = Duration::from_millis(2);
const SETTLE_ATTEMPTS: usize = 50;

/// The base of an interrupted write, now discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Discarded {
    AfterWrite,
    /// A version that was edited directly, or by a command under the lock.
    AfterEdit,
}

impl StateFolder {
    /// True if the file was saved a moment ago.
    pub(super) fn is_recent(&self) -> bool {
        let age = fs::metadata(self.state()).and_then(|metadata| metadata.modified());
        age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < SETTLE_AGE))
    }

    /// Waits until a file that was saved a moment ago is complete: an editor may empty it before it writes it.
    pub(super) fn settled(&self, mut bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        for _ in 0..SETTLE_ATTEMPTS {
            if !self.is_recent() {
                break;
            }
            std::thread::sleep(SETTLE_PAUSE);
            let again = self.read_any()?;
            let same = again == bytes;
            bytes = again;
            if same && revision_line(&bytes).is_some() {
                break;
            }
        }
        Ok(bytes)
    }
}

impl LockedFolder {
    /// Reads the file and repairs the damage of a crash or a stale save.
    pub(crate) fn current(&mut self) -> Result<CurrentFile, StoreError> {
        let bytes = self.folder.read_any()?;
        let Some(record) = self.slots.newest().cloned() else {
            replace::remove_temporaries(&self.folder)?;
            let current = CurrentFile::new(bytes, Origin::Edited, 0, Vec::new());
            // Without a record and a previous version, we have never written this file.
            let is_ours = self.folder.previous().is_file();
            return Ok(if is_ours { current } else { CurrentFile { base: EditBase::Unedited, ..current } });
        };
        if record.stage == Stage::Modifying {
            return self.undo_modify(bytes, &record);
        }
        let found = Fingerprint::of(&bytes);
        let temporary = replace::read_temporary(&self.folder, &temporary_name(record.revision))?;
        let temporary = temporary.as_deref().map(Fingerprint::of);
        // The previous version is no sign of an interrupted write: a person may have saved exactly that version again.
        let committed = record.stage == Stage::Done
            || found == record.after
            || temporary.is_none_or(|temporary| temporary == record.before);
        if committed {
            log_writer::complete_all(&self.folder.log(), record.entries())?;
        } else if self.discard(&record, found)? == Discarded::AfterEdit {
            return self.current();
        }
        let (last, revision) =
            if committed { (record.after, record.revision) } else { (record.before, record.revision_before) };
        let mut notices = if committed { self.finish_exchange(&record, temporary)? } else { Vec::new() };
        if found == last {
            notices.extend(self.late_save(&record, &bytes, committed)?);
            let origin = Origin::Ours { scannable: record.scannable };
            let base = EditBase::Unedited;
            return Ok(CurrentFile { bytes, fingerprint: found, origin, base, revision, notices });
        }
        replace::remove_temporaries(&self.folder)?;
        let bytes = self.folder.settled(bytes)?;
        let mut current = match revision_line(&bytes).or_else(|| revision_in_braces(&bytes)) {
            Some(based_on) if based_on >= revision => {
                CurrentFile::new(bytes, Origin::Edited, revision, Vec::new())
            }
            None if is_blackboard(&bytes) => self.adopt(bytes, &record, committed)?,
            based_on => self.undo_stale_save(bytes, &record, committed, based_on)?,
        };
        if current.origin == Origin::Edited {
            current.base =
                self.last_version(&record, committed).map_or(EditBase::Lost, EditBase::LastVersion);
        }
        current.notices.splice(0..0, notices);
        Ok(current)
    }

    /// Completes a write that was killed right after the exchange: the old version has the temporary name.
    fn finish_exchange(
        &mut self,
        record: &WriteRecord,
        temporary: Option<Fingerprint>,
    ) -> Result<Vec<Notice>, StoreError> {
        let name = temporary_name(record.revision);
        match temporary {
            Some(found) if found == record.before && !record.needs_copy() => {
                replace::make_previous(&self.folder, &name)?;
            }
            Some(found) if found != record.before && found != record.after => {
                let save = replace::read_temporary(&self.folder, &name)?.unwrap_or_default();
                let kept = replace::keep_temporary(&self.folder, &name, "stale")?;
                let based_on = revision_line(&save);
                return Ok(vec![Notice::StaleSave { kept, based_on, current: record.revision }]);
            }
            Some(_) => replace::remove_temporaries(&self.folder)?,
            None => {}
        }
        Ok(Vec::new())
    }

    /// Finds text that an editor wrote, after our last write, to the version before it.
    fn late_save(
        &mut self,
        record: &WriteRecord,
        bytes: &[u8],
        committed: bool,
    ) -> Result<Option<Notice>, StoreError> {
        let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let (previous, lock) = (self.folder.previous(), self.folder.lock());
        // Only to save the read: the previous version is older than the record, unless it was written to.
        if !committed || changed(&previous).zip(changed(&lock)).is_none_or(|(previous, lock)| previous < lock)
        {
            return Ok(None);
        }
        let Ok(late) = durable::read_file(&previous) else { return Ok(None) };
        let found = Fingerprint::of(&late);
        if found == record.before || found == record.after || late.is_empty() {
            return Ok(None);
        }
        let kept = replace::keep_copy(&self.folder, "stale", &late)?;
        replace::copy_previous(&self.folder, bytes)?;
        self.write_record(WriteRecord { edits: Vec::new(), ..record.clone() }, true)?;
        let based_on = revision_line(&late);
        Ok(Some(Notice::StaleSave { kept, based_on, current: record.revision }))
    }

    /// Discards a write that was interrupted before its rename.
    fn discard(&mut self, record: &WriteRecord, found: Fingerprint) -> Result<Discarded, StoreError> {
        // Its record may not be synced, and the records before it may be overwritten from now on.
        log_writer::complete_all(&self.folder.log(), record.carried.iter())?;
        self.sync_log()?;
        let before = self.slots.before_newest().cloned();
        if let Some(before) = before.as_ref().filter(|before| before.after != record.before) {
            // The write would have logged the edit, so the edit must be found again; a command's changes
            // under the lock are undone.
            let stage = if before.stage == Stage::Modifying { Stage::Modifying } else { Stage::Done };
            let again = WriteRecord { stage, log: None, carried: Vec::new(), ..before.clone() };
            self.write_record(again, true)?;
            return Ok(Discarded::AfterEdit);
        }
        let is_kept = found == record.before;
        if is_kept {
            replace::copy_previous(&self.folder, &self.folder.read()?)?;
        }
        let discarded = WriteRecord {
            revision: record.revision_before,
            after: record.before,
            stage: Stage::Done,
            log: None,
            carried: Vec::new(),
            edits: before.filter(|_| !is_kept).map(|before| before.edits).unwrap_or_default(),
            ..record.clone()
        };
        self.write_record(discarded, true)?;
        Ok(Discarded::AfterWrite)
    }

    /// Restores our version over one that is based on an older revision, and keeps the other.
    pub(super) fn undo_stale_save(
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
        let kept = match replace::restore(&self.folder, revision, &ours)? {
            Replaced::Exchanged => replace::keep_temporary(&self.folder, &temporary_name(revision), "stale")?,
            Replaced::Gone => replace::keep_copy(&self.folder, "stale", &bytes)?,
        };
        let notices = vec![Notice::StaleSave { kept, based_on, current: revision }];
        Ok(CurrentFile::new(ours, Origin::Ours { scannable: record.scannable }, revision, notices))
    }

    /// Accepts a blackboard without a revision, as the schema allows it, and keeps our last version beside it.
    fn adopt(
        &mut self,
        bytes: Vec<u8>,
        record: &WriteRecord,
        committed: bool,
    ) -> Result<CurrentFile, StoreError> {
        let revision = if committed { record.revision } else { record.revision_before };
        let kept = match self.last_version(record, committed) {
            Some(ours) => Some(replace::keep_copy(&self.folder, "replaced", &ours)?),
            None => None,
        };
        let notices = vec![Notice::Adopted { kept, current: revision }];
        Ok(CurrentFile::new(bytes, Origin::Edited, revision, notices))
    }

    /// Restores a file that was deleted, emptied or cut off from the last version, or else from the one before it.
    pub(crate) fn restore_lost(&mut self) -> Result<Option<Notice>, StoreError> {
        let found = match self.folder.read_any() {
            Ok(bytes) => Some(bytes),
            Err(StoreError::Lost { .. }) => None,
            Err(error) => return Err(error),
        };
        let record = self.slots.newest().cloned();
        let last = record.as_ref().and_then(|record| {
            let committed = record.stage != Stage::Writing
                || !self.folder.path().join(temporary_name(record.revision)).exists();
            let ours = self.last_version(record, committed)?;
            Some((ours, if committed { record.revision } else { record.revision_before }))
        });
        let previous = || {
            let bytes = durable::read_file(&self.folder.previous()).ok()?;
            let revision = revision_line(&bytes)?;
            Some((bytes, revision))
        };
        let Some((version, revision)) = last.or_else(previous) else { return Ok(None) };
        let is_cut_off = |bytes: &Vec<u8>| {
            bytes.trim_ascii().is_empty() || (version.len() > bytes.len() && version.starts_with(bytes))
        };
        if found.as_ref().is_some_and(|bytes| !is_cut_off(bytes)) {
            return Ok(None);
        }
        if replace::restore(&self.folder, revision, &version)? == Replaced::Exchanged {
            replace::remove_temporaries(&self.folder)?;
        }
        Ok(Some(Notice::Restored { revision }))
    }

    /// Our last version and its revision, if a person has edited that since. Repairs nothing.
    pub(crate) fn edited_version(&self, bytes: &[u8]) -> Option<(Vec<u8>, u64)> {
        let record = self.slots.newest()?;
        let is_edited = record.stage != Stage::Modifying
            && Fingerprint::of(bytes) != record.after
            && revision_line(bytes).is_some_and(|based_on| based_on >= record.revision);
        let last = is_edited.then(|| self.last_version(record, true)).flatten()?;
        Some((last, record.revision))
    }

    /// Our last version, from the one before it and the edits in the record.
    pub(super) fn last_version(&self, record: &WriteRecord, committed: bool) -> Option<Vec<u8>> {
        let previous = durable::read_file(&self.folder.previous()).ok()?;
        let wanted = if committed { record.after } else { record.before };
        if Fingerprint::of(&previous) == wanted {
            return Some(previous);
        }
        let text = String::from_utf8(previous).ok()?;
        // The record of an interrupted write doesn't lead to the version before it; the one before that does.
        let edits =
            [Some(record), self.slots.newest()].into_iter().flatten().find(|found| found.after == wanted);
        let ours = apply(&text, &mut edits?.edits.clone()).ok()?.into_bytes();
        (Fingerprint::of(&ours) == wanted).then_some(ours)
    }

    pub(super) fn undo_modify(
        &mut self,
        bytes: Vec<u8>,
        record: &WriteRecord,
    ) -> Result<CurrentFile, StoreError> {
        let mut notices = Vec::new();
        let ours = Origin::Ours { scannable: record.scannable };
        let (bytes, origin) = if Fingerprint::of(&bytes) == record.after {
            (bytes, ours)
        } else if let Some(version) = self.last_version(record, true) {
            if replace::restore(&self.folder, record.revision, &version)? == Replaced::Exchanged {
                replace::remove_temporaries(&self.folder)?;
            }
            notices.push(Notice::ModifyUndone);
            (version, ours)
        } else {
            (bytes, Origin::Edited)
        };
        self.write_record(WriteRecord { stage: Stage::Done, log: None, ..record.clone() }, true)?;
        Ok(CurrentFile::new(bytes, origin, record.revision, notices))
    }
}

/// True if a text without a revision is a whole blackboard.
fn is_blackboard(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let is_complete = |text: &str| {
        crate::yaml::parse(text).is_ok_and(|(tree, _)| {
            crate::codec::REQUIRED.iter().all(|section| tree.get(section).is_some())
                && tree.get("revision").is_none()
        })
    };
    text.is_ok_and(is_complete)
}

/// The revision of a file that is written in braces, so that no line begins with it.
fn revision_in_braces(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains('{'))?;
    let (tree, _) = crate::yaml::parse(text).ok()?;
    tree.get("revision")?.text()?.parse().ok()
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
