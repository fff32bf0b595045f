//! Edits of the file under the lock: `lock write`, `lock modify` and `edit`, for changes without a command.
//! An edit that adds a violation is undone.

use std::path::{Path, PathBuf};

use liza_core::model::{LogEntry, Revision, State, Timestamp, Value};

use super::FileStore;
use super::direct_edit;
use crate::backend::{Backend as _, LoggedEdit, TextEdit};
use crate::call::Edited;
use crate::codec::text_without_bom;
use crate::codec::verify;
use crate::document::Edit;
use crate::document::ValuePath;
use crate::edit::ValueSyntax;
use crate::edit::{CheckedText, CurrentText, EditRules, read_whole};
use crate::error::StoreError;
use crate::file::{CurrentFile, EditBase, Fingerprint, LockedFolder, NewVersion, Notice};

/// The mark that some editors put before a text.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Holds the lock until dropped.
pub(crate) struct FileEdit<'s> {
    pub(crate) store: &'s FileStore,
    pub(crate) locked: LockedFolder,
    pub(crate) current: CurrentFile,
    modifying: bool,
}

impl<'s> FileEdit<'s> {
    pub(crate) fn begin(store: &'s FileStore) -> Result<Self, StoreError> {
        let mut locked = store.lock()?;
        let current = locked.current()?;
        Ok(Self { store, locked, current, modifying: false })
    }

    /// Writes a direct edit as a separate version: the copy for the command replaces its base.
    fn record_direct_edit(&mut self, rules: &EditRules, now: Timestamp) -> Result<(), StoreError> {
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
        let edited = self.write_checked(rules, &bytes, (None, now), false)?;
        self.current = self.locked.current()?;
        self.current.notices.extend(edited.notices);
        Ok(())
    }

    fn restore(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.modifying) { self.locked.end_modify() } else { Ok(()) }
    }

    /// Writes a text with the next revision, if it adds no violation.
    fn write_checked(
        &mut self,
        rules: &EditRules,
        bytes: &[u8],
        (log, now): (Option<&LogEntry>, Timestamp),
        rewritten: bool,
    ) -> Result<Edited, StoreError> {
        let file = self.store.files().state();
        let (text, bom) = text_without_bom(&file, bytes)?;
        let before = self.before(&file);
        let found = direct_edit::find(&file, &self.current, before.as_ref().map(|(_, value)| value));
        let mut edit = None;
        let current =
            CurrentText { path: &file, before: before.as_ref(), revision: Revision(self.current.revision) };
        let disk = self.store.disk();
        let checked = rules.check(&current, text, &disk, now, |board, change| {
            edit = direct_edit::record(found, board, change, now);
        })?;
        let CheckedText { revision, spliced, scannable, misspelled, .. } = checked;
        let after = [&bytes[..bom], spliced.text.as_bytes()].concat();
        let mut log = self.store.log_texts(edit.iter().chain(log), revision)?;
        // Only a command has changed the file in place.
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

    fn before(&self, file: &Path) -> Option<(State, Value)> {
        read_whole(file, text_without_bom(file, &self.current.bytes).ok()?.0)
    }
}

impl TextEdit for FileEdit<'_> {
    fn text(&self) -> Result<String, StoreError> {
        Ok(text_without_bom(&self.store.files().state(), &self.current.bytes)?.0.to_owned())
    }

    fn revision(&self) -> Revision {
        Revision(self.current.revision)
    }

    fn reload(&mut self) -> Result<(), StoreError> {
        self.current = self.locked.current()?;
        Ok(())
    }

    fn notices(&self) -> &[Notice] {
        &self.current.notices
    }

    fn name(&self) -> PathBuf {
        self.store.files().state()
    }

    fn with_mark(&self, text: String) -> String {
        match self.current.bytes.starts_with(BYTE_ORDER_MARK.as_bytes()) {
            true => format!("{BYTE_ORDER_MARK}{text}"),
            false => text,
        }
    }

    fn write(
        &mut self,
        rules: &EditRules,
        text: &str,
        LoggedEdit { entry, now }: LoggedEdit<'_>,
        rewritten: bool,
    ) -> Result<Edited, StoreError> {
        self.write_checked(rules, text.as_bytes(), (Some(entry), now), rewritten)
    }

    fn set_in_part(
        &mut self,
        rules: &EditRules,
        path: &ValuePath,
        value: (&str, ValueSyntax),
        log: LoggedEdit<'_>,
    ) -> Result<Option<Edited>, StoreError> {
        self.set_part(rules, path, value, log)
    }

    fn modified_file(&self) -> PathBuf {
        self.store.files().state()
    }

    /// If this process is killed, the next lock holder undoes the change.
    fn begin_modify(&mut self, rules: &EditRules, now: Timestamp) -> Result<(), StoreError> {
        self.record_direct_edit(rules, now)?;
        self.modifying = true;
        self.locked.begin_modify(&self.current)
    }

    fn modified_text(&self) -> Result<String, StoreError> {
        let (path, bytes) = (self.store.files().state(), self.store.files().read()?);
        // The error of a file that is not text names the place.
        text_without_bom(&path, &bytes)?;
        String::from_utf8(bytes).map_err(|_| verify::mismatch(&path, "its text"))
    }

    fn finish_in_part(
        &mut self,
        rules: &EditRules,
        text: &str,
        log: LoggedEdit<'_>,
    ) -> Result<Option<Edited>, StoreError> {
        self.finish_parts(rules, text.as_bytes(), log)
    }

    fn end_modify(&mut self, is_written: bool) -> Result<(), StoreError> {
        if !is_written {
            return self.restore();
        }
        self.modifying = false;
        Ok(())
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
