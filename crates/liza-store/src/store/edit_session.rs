//! An edit of the text of the blackboard: `lock write`, `lock modify` and `edit`; the same for every back end.

use std::path::PathBuf;

use liza_core::model::{LogEntry, Revision, Timestamp};
use liza_core::protocol::manual_edit::ManualEdit;

use super::submit::RESTARTS;
use crate::backend::{LoggedEdit, TextEdit};
use crate::call::Edited;
use crate::codec::StateView;
use crate::document::ValuePath;
use crate::edit::EditRules;
use crate::edit::three_way_merge;
use crate::edit::{ValueSyntax, with_value};
use crate::error::StoreError;
use crate::file::Notice;

/// A file stays locked until it is dropped.
pub struct EditSession<'s> {
    rules: EditRules,
    edit: Box<dyn TextEdit + 's>,
}

impl<'s> EditSession<'s> {
    pub(super) fn new(edit: Box<dyn TextEdit + 's>) -> Self {
        Self { rules: EditRules::default(), edit }
    }

    #[must_use]
    pub fn restricted_to(mut self, permission: ManualEdit) -> Self {
        self.rules.permission = Some(permission);
        self
    }

    /// Also writes a text with violations: an imported blackboard may be old.
    #[must_use]
    pub(crate) fn accepting_violations(mut self) -> Self {
        self.rules.accepts_violations = true;
        self
    }

    pub fn text(&self) -> Result<String, StoreError> {
        self.edit.text()
    }

    pub fn revision(&self) -> Revision {
        self.edit.revision()
    }

    pub fn notices(&self) -> &[Notice] {
        self.edit.notices()
    }

    /// The file that a command may change between [`EditSession::begin_modify`] and [`EditSession::finish_modify`].
    pub fn path(&self) -> PathBuf {
        self.edit.modified_file()
    }

    /// Prepares for a command that changes the file in place. A kill of this process undoes the change.
    pub fn begin_modify(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.edit.begin_modify(&self.rules, now)
    }

    pub fn undo_modify(mut self) -> Result<(), StoreError> {
        self.edit.end_modify(false)
    }

    /// Accepts the text that the command wrote, or undoes it if it is invalid.
    pub fn finish_modify(mut self, log: &LogEntry, now: Timestamp) -> Result<Edited, StoreError> {
        let done = self.write_modified(LoggedEdit { entry: log, now });
        self.edit.end_modify(done.is_ok())?;
        done
    }

    fn write_modified(&mut self, log: LoggedEdit<'_>) -> Result<Edited, StoreError> {
        let text = self.edit.modified_text()?;
        match self.edit.finish_in_part(&self.rules, &text, log)? {
            Some(edited) => Ok(edited),
            None => self.write_merged(text, log),
        }
    }

    pub fn replace(mut self, text: &str, log: &LogEntry, now: Timestamp) -> Result<Edited, StoreError> {
        self.write_merged(text.to_owned(), LoggedEdit { entry: log, now })
    }

    /// Writes a text made from the current one. Without a lock, concurrent changes of others are merged.
    fn write_merged(&mut self, mut text: String, log: LoggedEdit<'_>) -> Result<Edited, StoreError> {
        for _ in 0..RESTARTS {
            match self.edit.write(&self.rules, &text, log, false) {
                Err(StoreError::Overtaken { .. }) if self.edit.is_merged() => {}
                result => return result,
            }
            let base = self.edit.text()?;
            self.edit.reload()?;
            text = three_way_merge(&base, &text, &self.edit.text()?).map_err(|_| self.overtaken())?;
        }
        Err(self.overtaken())
    }

    pub fn set(
        mut self,
        path: &str,
        value: &str,
        syntax: ValueSyntax,
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Edited, StoreError> {
        let path: ValuePath = path.parse()?;
        for _ in 0..RESTARTS {
            match self.try_set(&path, (value, syntax), LoggedEdit { entry: log, now }) {
                // The value is set in the newer text of others.
                Err(StoreError::Overtaken { .. }) => self.edit.reload()?,
                result => return result,
            }
        }
        Err(self.overtaken())
    }

    fn try_set(
        &mut self,
        path: &ValuePath,
        value: (&str, ValueSyntax),
        log: LoggedEdit<'_>,
    ) -> Result<Edited, StoreError> {
        if let Some(edited) = self.edit.set_in_part(&self.rules, path, value, log)? {
            return Ok(edited);
        }
        let (name, text) = (self.edit.name(), self.edit.text()?);
        let (text, rewritten) = with_value(&StateView::full(&name, &text)?, path, value.0, value.1)?;
        let text = self.edit.with_mark(text);
        self.edit.write(&self.rules, &text, log, rewritten)
    }

    fn overtaken(&self) -> StoreError {
        StoreError::Overtaken { path: self.edit.name() }
    }
}
