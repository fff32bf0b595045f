//! An edit of the text of the blackboard, of either store.

use std::path::PathBuf;

use liza_core::model::{LogEntry, Revision, Timestamp};
use liza_core::protocol::manual_edit::ManualEdit;

use crate::database::DatabaseEdit;
use crate::error::StoreError;
use crate::file::Notice;
use crate::text_edit::{Edited, FileEdit};
use crate::value_edit::ValueSyntax;

/// An edit of the text. A file stays locked until it is dropped.
pub struct EditSession<'s>(EditOf<'s>);

enum EditOf<'s> {
    File(Box<FileEdit<'s>>),
    Database(Box<DatabaseEdit<'s>>),
}

impl<'s> EditSession<'s> {
    pub(super) fn of_file(edit: FileEdit<'s>) -> Self {
        Self(EditOf::File(Box::new(edit)))
    }

    pub(super) fn of_database(edit: DatabaseEdit<'s>) -> Self {
        Self(EditOf::Database(Box::new(edit)))
    }

    /// Allows only what this caller may change.
    #[must_use]
    pub fn restricted_to(self, permission: ManualEdit) -> Self {
        match self.0 {
            EditOf::File(edit) => Self::of_file(edit.restricted_to(permission)),
            EditOf::Database(edit) => Self::of_database(edit.restricted_to(permission)),
        }
    }

    /// Also writes a text with violations: an imported blackboard may be old.
    #[must_use]
    pub(crate) fn accepting_violations(self) -> Self {
        match self.0 {
            EditOf::File(edit) => Self::of_file(edit.accepting_violations()),
            EditOf::Database(edit) => Self::of_database(edit.accepting_violations()),
        }
    }

    /// The current text.
    ///
    /// # Errors
    /// When the file is not text.
    pub fn text(&self) -> Result<String, StoreError> {
        match &self.0 {
            EditOf::File(edit) => edit.text(),
            EditOf::Database(edit) => Ok(edit.text().to_owned()),
        }
    }

    /// The current revision.
    pub fn revision(&self) -> Revision {
        match &self.0 {
            EditOf::File(edit) => edit.revision(),
            EditOf::Database(edit) => edit.revision(),
        }
    }

    /// What was repaired when the lock was taken.
    pub fn notices(&self) -> &[Notice] {
        match &self.0 {
            EditOf::File(edit) => edit.notices(),
            EditOf::Database(_) => &[],
        }
    }

    /// The file that a command may change between [`EditSession::begin_modify`] and [`EditSession::finish_modify`].
    pub fn path(&self) -> PathBuf {
        match &self.0 {
            EditOf::File(edit) => edit.path(),
            EditOf::Database(edit) => edit.path(),
        }
    }

    /// Prepares for a command that changes the file in place. If this process is killed, the change is undone or has not
    /// happened.
    ///
    /// # Errors
    /// When no copy can be kept.
    pub fn begin_modify(&mut self, now: Timestamp) -> Result<(), StoreError> {
        match &mut self.0 {
            EditOf::File(edit) => edit.begin_modify(now),
            EditOf::Database(edit) => edit.begin_modify(),
        }
    }

    /// Restores the version before the command.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn undo_modify(self) -> Result<(), StoreError> {
        match self.0 {
            EditOf::File(edit) => edit.undo_modify(),
            EditOf::Database(_) => Ok(()),
        }
    }

    /// Accepts the text that the command wrote, or undoes it if it is invalid.
    ///
    /// # Errors
    /// When it is invalid. The previous version is restored then.
    pub fn finish_modify(self, log: &LogEntry, now: Timestamp) -> Result<Edited, StoreError> {
        match self.0 {
            EditOf::File(edit) => edit.finish_modify(log, now),
            EditOf::Database(edit) => edit.finish_modify(log),
        }
    }

    /// Replaces the whole text.
    ///
    /// # Errors
    /// When it is invalid. Nothing is written then.
    pub fn replace(self, text: &str, log: &LogEntry, now: Timestamp) -> Result<Edited, StoreError> {
        match self.0 {
            EditOf::File(edit) => edit.replace(text, log, now),
            EditOf::Database(edit) => edit.replace(text, log),
        }
    }

    /// Sets the values that match a path.
    ///
    /// # Errors
    /// When the path matches nothing, or the result is invalid. Nothing is written then.
    pub fn set(
        self,
        path: &str,
        value: &str,
        syntax: ValueSyntax,
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Edited, StoreError> {
        match self.0 {
            EditOf::File(edit) => edit.set(path, value, syntax, log, now),
            EditOf::Database(edit) => edit.set(path, value, syntax, log),
        }
    }
}
