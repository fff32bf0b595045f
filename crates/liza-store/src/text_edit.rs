//! Edits of the text under the lock: `lock write`, `lock modify` and `edit`, for what no command does.
//!
//! Must not bypass the rules: an edit that adds a violation is undone.

use std::path::{Path, PathBuf};

use liza_core::model::{LogEntry, Revision, State, Timestamp, Value};
use liza_core::protocol::manual_edit::ManualEdit;
use liza_core::rules::misspelled::MisspelledKey;

use crate::checked_edit::{CheckedText, CurrentText, EditRules, read_whole};
use crate::codec::{StateView, text_without_bom};
use crate::direct_edit;
use crate::disk::ProjectDisk;
use crate::document::{Edit, plain_value};
use crate::error::StoreError;
use crate::file::{CurrentFile, EditBase, Fingerprint, LockedFolder, NewVersion, Notice};
use crate::file_store::{FileStore, OVERTAKEN_LIMIT};
use crate::value_edit::{ValueSyntax, with_value};
use crate::value_path::ValuePath;

/// An edit of the text, with the lock held until dropped.
pub(crate) struct FileEdit<'s> {
    pub(crate) store: &'s FileStore,
    pub(crate) locked: LockedFolder,
    pub(crate) current: CurrentFile,
    pub(crate) modifying: bool,
    pub(crate) rules: EditRules,
}

/// The outcome of an edit.
#[derive(Debug)]
pub struct Edited {
    /// The new revision.
    pub revision: Revision,
    /// What the caller should report: the write lost the form of the file, or its log entry is delayed.
    pub notices: Vec<Notice>,
    /// The keys that the edit added and that are probably misspelled.
    pub misspelled: Vec<MisspelledKey>,
}

impl FileStore {
    /// Takes the lock to edit the text.
    ///
    /// # Errors
    /// When the lock is not free, or the file cannot be read.
    pub(crate) fn begin_edit(&self) -> Result<FileEdit<'_>, StoreError> {
        let mut locked = self.lock()?;
        let current = locked.current()?;
        Ok(FileEdit { store: self, locked, current, modifying: false, rules: EditRules::default() })
    }

    /// The values that match a path; the whole file for the empty path.
    ///
    /// # Errors
    /// When the file cannot be read, or the path is invalid.
    pub(crate) fn read_path(&self, path: &str) -> Result<Vec<Value>, StoreError> {
        let path: ValuePath = path.parse()?;
        let bytes = self.files().read()?;
        let file = self.files().state();
        let view = self.tree_view(&file, &bytes)?;
        let root = view.tree.as_ref().map(plain_value).unwrap_or(Value::Null);
        Ok(path.find(&root).into_iter().cloned().collect())
    }
}

impl FileEdit<'_> {
    /// Allows only what this caller may change.
    #[must_use]
    pub(crate) fn restricted_to(mut self, permission: ManualEdit) -> Self {
        self.rules.permission = Some(permission);
        self
    }

    /// Also writes a text with violations.
    pub(crate) fn accepting_violations(mut self) -> Self {
        self.rules.accepts_violations = true;
        self
    }

    /// The current text.
    ///
    /// # Errors
    /// When the file is not text.
    pub(crate) fn text(&self) -> Result<String, StoreError> {
        Ok(text_without_bom(&self.store.files().state(), &self.current.bytes)?.0.to_owned())
    }

    /// The current revision.
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.current.revision)
    }

    /// What was repaired when the lock was taken.
    pub(crate) fn notices(&self) -> &[Notice] {
        &self.current.notices
    }

    /// The file that a command may change between [`FileEdit::begin_modify`] and [`FileEdit::finish_modify`].
    pub(crate) fn path(&self) -> PathBuf {
        self.store.files().state()
    }

    /// Prepares for a command that changes the file in place. If this process is killed, the next lock holder undoes the
    /// change.
    ///
    /// # Errors
    /// When no copy can be kept.
    pub(crate) fn begin_modify(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.record_direct_edit(now)?;
        self.modifying = true;
        self.locked.begin_modify(&self.current)
    }

    /// Writes a direct edit as a version of its own: the copy for the command replaces what it is compared with.
    fn record_direct_edit(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if matches!(self.current.base, EditBase::Unedited) {
            return Ok(());
        }
        let file = self.store.files().state();
        let before = self.before(&file).map(|(_, value)| value);
        let edit = direct_edit::find(&file, &self.current, before.as_ref());
        // A file that cannot be read is recorded with the command that repairs it.
        if edit.is_none() || before.is_none() {
            return Ok(());
        }
        let bytes = self.current.bytes.clone();
        let edited = self.write_checked(&bytes, None, now, false)?;
        self.current = self.locked.current()?;
        self.current.notices.extend(edited.notices);
        Ok(())
    }

    /// Restores the version before the command.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn undo_modify(mut self) -> Result<(), StoreError> {
        self.restore()
    }

    fn restore(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.modifying) { self.locked.end_modify() } else { Ok(()) }
    }

    /// Accepts the text that the command wrote, or undoes it if it is invalid.
    ///
    /// # Errors
    /// When it is invalid. The previous version is restored then.
    pub(crate) fn finish_modify(mut self, log: &LogEntry, now: Timestamp) -> Result<Edited, StoreError> {
        let done =
            self.store.files().read().and_then(|bytes| match self.finish_in_part(&bytes, log, now)? {
                Some(edited) => Ok(edited),
                None => self.write_checked(&bytes, Some(log), now, false),
            });
        if done.is_err() {
            self.restore()?;
        } else {
            self.modifying = false;
        }
        done
    }

    /// Replaces the whole text.
    ///
    /// # Errors
    /// When it is invalid. Nothing is written then.
    pub(crate) fn replace(
        mut self,
        text: &str,
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Edited, StoreError> {
        self.write_checked(text.as_bytes(), Some(log), now, false)
    }

    /// Sets the values that match a path.
    ///
    /// # Errors
    /// When the path matches nothing, or the result is invalid. Nothing is written then.
    pub(crate) fn set(
        mut self,
        path: &str,
        value: &str,
        syntax: ValueSyntax,
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Edited, StoreError> {
        let path: ValuePath = path.parse()?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.try_set(&path, value, syntax, log, now) {
                // A person saved the file meanwhile: set the value in what they saved.
                Err(StoreError::Overtaken { .. }) if attempts < OVERTAKEN_LIMIT => {
                    self.current = self.locked.current()?;
                }
                other => return other,
            }
        }
    }

    fn try_set(
        &mut self,
        path: &ValuePath,
        value: &str,
        syntax: ValueSyntax,
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Edited, StoreError> {
        if let Some(edited) = self.set_in_part(path, (value, syntax), log, now)? {
            return Ok(edited);
        }
        let bytes = self.current.bytes.clone();
        let file = self.store.files().state();
        let (text, bom) = text_without_bom(&file, &bytes)?;
        let view = StateView::full(&file, text)?;
        let (text, rewritten) = with_value(&view, path, value, syntax)?;
        let new = [&bytes[..bom], text.as_bytes()].concat();
        self.write_checked(&new, Some(log), now, rewritten)
    }

    /// Writes a text with the next revision, if it adds no violation.
    fn write_checked(
        &mut self,
        bytes: &[u8],
        log: Option<&LogEntry>,
        now: Timestamp,
        rewritten: bool,
    ) -> Result<Edited, StoreError> {
        let file = self.store.files().state();
        let (text, bom) = text_without_bom(&file, bytes)?;
        let before = self.before(&file);
        let found = direct_edit::find(&file, &self.current, before.as_ref().map(|(_, value)| value));
        let mut edit = None;
        let current = CurrentText { path: &file, before: before.as_ref(), revision: self.revision() };
        let disk = ProjectDisk::new(self.store.root());
        let checked = self.rules.check(&current, text, &disk, now, |board, change| {
            edit = direct_edit::record(found, board, change, now);
        })?;
        let CheckedText { revision, spliced, scannable, misspelled, .. } = checked;
        let after = [&bytes[..bom], spliced.text.as_bytes()].concat();
        let mut log = self.store.log_texts(edit.iter().chain(log), revision)?;
        // A command has changed the file in place; everything else has not.
        let (replaced, on_disk, edits) = match self.modifying {
            true => (Fingerprint::of(bytes), bytes, shifted(&spliced.edits, bom)),
            false => (self.current.fingerprint, &self.current.bytes[..], Vec::new()),
        };
        let mut notices = Vec::new();
        if rewritten || spliced.rewritten {
            let old = if rewritten { &self.current.bytes[..] } else { bytes };
            notices.push(self.store.keep_before_rewrite(&self.locked, old, now, revision, &mut log)?);
        }
        let delayed = self.locked.commit(&NewVersion {
            before: replaced,
            on_disk,
            after: &after,
            edits: &edits,
            revision_before: self.current.revision,
            revision: revision.0,
            scannable,
            log,
        })?;
        notices.extend(delayed);
        Ok(Edited { revision, notices, misspelled })
    }

    /// The state before, if it can be read.
    fn before(&self, file: &Path) -> Option<(State, Value)> {
        read_whole(file, text_without_bom(file, &self.current.bytes).ok()?.0)
    }
}

/// Edits of a text, as edits of the file with a byte order mark before it.
pub(crate) fn shifted(edits: &[Edit], bom: usize) -> Vec<Edit> {
    let shift =
        |edit: &Edit| Edit { range: edit.range.start + bom..edit.range.end + bom, text: edit.text.clone() };
    edits.iter().map(shift).collect()
}

impl Drop for FileEdit<'_> {
    fn drop(&mut self) {
        // No caller is left for the error; the next lock holder tries again.
        let _ = self.restore();
    }
}
