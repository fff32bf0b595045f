//! Edits of the text of a blackboard in a database: `lock write`, `lock modify` and `edit`.
//!
//! Holds no lock while the text is edited. A write in the meantime is merged where it can be, as `liza edit` does; where
//! it cannot, nothing is written.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use liza_core::model::{LogEntry, Revision, State, Timestamp};
use liza_core::protocol::manual_edit::ManualEdit;
use liza_host::durable::replace_private_file;

use crate::checked_edit::{CheckedText, CurrentText, EditRules, read_whole};
use crate::codec::StateView;
use crate::disk::ProjectDisk;
use crate::error::StoreError;
use crate::file_store::{OVERTAKEN_LIMIT, entry_text};
use crate::text_edit::Edited;
use crate::three_way_merge::three_way_merge;
use crate::value_edit::{ValueSyntax, with_value};
use crate::value_path::ValuePath;
use crate::verify::{mismatch, not_encoded};

use super::DatabaseStore;
use super::fault::may_be_committed;
use super::load::{self, ProjectRow, Wanted};
use super::request::RequestId;
use super::rows::Rows;
use super::write::Statements;

/// An edit of the text.
pub(crate) struct DatabaseEdit<'s> {
    store: &'s DatabaseStore,
    text: String,
    revision: Revision,
    rules: EditRules,
    /// The copy that a command changes; removed with the edit.
    copy: Option<PathBuf>,
}

impl DatabaseStore {
    /// Reads the text to edit it.
    pub(crate) fn begin_edit(&self) -> Result<DatabaseEdit<'_>, StoreError> {
        let (text, revision) = self.text_and_revision()?;
        Ok(DatabaseEdit { store: self, text, revision, rules: EditRules::default(), copy: None })
    }
}

impl DatabaseEdit<'_> {
    pub(crate) fn restricted_to(mut self, permission: ManualEdit) -> Self {
        self.rules.permission = Some(permission);
        self
    }

    /// Also writes a text with violations.
    pub(crate) fn accepting_violations(mut self) -> Self {
        self.rules.accepts_violations = true;
        self
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// The file for a command.
    pub(crate) fn path(&self) -> PathBuf {
        let name = format!("state.yaml.edit-{}", std::process::id());
        self.copy.clone().unwrap_or_else(|| self.store.folder().join(name))
    }

    pub(crate) fn begin_modify(&mut self) -> Result<(), StoreError> {
        let path = self.path();
        replace_private_file(&path, self.text.as_bytes()).map_err(StoreError::io("write", &path))?;
        self.copy = Some(path);
        Ok(())
    }

    pub(crate) fn finish_modify(self, log: &LogEntry) -> Result<Edited, StoreError> {
        let path = self.path();
        let text = fs::read_to_string(&path).map_err(StoreError::io("read", &path))?;
        self.replace(&text, log)
    }

    /// Replaces the text by one that was made from it.
    pub(crate) fn replace(mut self, text: &str, log: &LogEntry) -> Result<Edited, StoreError> {
        let mut text = text.to_owned();
        for _ in 0..OVERTAKEN_LIMIT {
            match self.write(&text, log) {
                Err(StoreError::Overtaken { .. }) => {}
                result => return result,
            }
            let (current, revision) = self.store.text_and_revision()?;
            text = three_way_merge(&self.text, &text, &current).map_err(|_| self.overtaken())?;
            (self.text, self.revision) = (current, revision);
        }
        Err(self.overtaken())
    }

    /// Sets the values that match a path.
    pub(crate) fn set(
        mut self,
        path: &str,
        value: &str,
        syntax: ValueSyntax,
        log: &LogEntry,
    ) -> Result<Edited, StoreError> {
        let path: ValuePath = path.parse()?;
        for _ in 0..OVERTAKEN_LIMIT {
            let view = StateView::full(self.store.path(), &self.text)?;
            let (text, _) = with_value(&view, &path, value, syntax)?;
            match self.write(&text, log) {
                Err(StoreError::Overtaken { .. }) => {}
                result => return result,
            }
            (self.text, self.revision) = self.store.text_and_revision()?;
        }
        Err(self.overtaken())
    }

    fn overtaken(&self) -> StoreError {
        StoreError::Overtaken { path: self.store.path().to_owned() }
    }

    /// Writes a text that was made from the current one, if it adds no violation.
    fn write(&self, text: &str, log: &LogEntry) -> Result<Edited, StoreError> {
        let now = self.store.now()?;
        let before = read_whole(self.store.path(), &self.text);
        let current =
            CurrentText { path: self.store.path(), before: before.as_ref(), revision: self.revision };
        let disk = ProjectDisk::of_several_machines(self.store.root());
        let checked = self.rules.check(&current, text, &disk, now, |_, _| {})?;
        let CheckedText { revision, state, spliced, misspelled, .. } = checked;
        let rows = Rows::of_text(&spliced.text).ok_or_else(|| mismatch(self.store.path(), "the rows"))?;
        let log = entry_text(&LogEntry { timestamp: now, ..log.clone() }, revision)
            .map_err(|error| not_encoded(self.store.path(), error))?;
        self.commit(&rows, &state, before.as_ref().map(|(state, _)| state), (&log, revision, now))?;
        Ok(Edited { revision, notices: Vec::new(), misspelled })
    }

    /// Writes the rows that differ, unless there was another write in the meantime.
    fn commit(
        &self,
        rows: &Rows,
        state: &State,
        before: Option<&State>,
        (log, revision, now): (&str, Revision, Timestamp),
    ) -> Result<(), StoreError> {
        let store = self.store;
        let (project, mut connection) = store.connect()?;
        let sql = load::lock_statements(project, &Wanted::everything(), connection.timeline());
        let results = connection.begin(&sql).map_err(|error| store.fault(&error))?;
        let loaded = store.checked(results.get(load::LOCK_LEAD..).unwrap_or_default(), load::LOCK_GAP)?;
        if loaded.project.revision != self.revision.0 {
            store.pool().put(connection);
            return Err(self.overtaken());
        }
        let server = connection.server(&loaded.timeline);
        let mut statements = Statements::new(project);
        statements.rows(&loaded.rows, rows, revision);
        statements.replace_order(&loaded.rows, rows, revision);
        edited_leases(&mut statements, before, state);
        statements.log(&[log.to_owned()], revision);
        let request = RequestId::new().to_string();
        statements.request(&request, "edit", "", revision, now);
        let clock = store.clock_of(&loaded, &server);
        statements.project(&ProjectRow { revision: revision.0, layout: revision.0, clock });
        let error = match connection.end(&format!("{}COMMIT", statements.sql())) {
            Ok(_) => {
                store.announce(&mut connection, revision.0);
                store.pool().put(connection);
                return Ok(());
            }
            Err(error) => error,
        };
        let fault = store.fault(&error);
        if !may_be_committed(&error) {
            return Err(fault.into());
        }
        drop(connection);
        match store.was_committed(&request, Instant::now() + store.retry_limit(), &fault)? {
            true => Ok(()),
            // It is written again, on what is there now.
            false => Err(self.overtaken()),
        }
    }
}

/// Writes the leases that an edit has changed.
fn edited_leases(statements: &mut Statements, before: Option<&State>, after: &State) {
    let agents = |state: &State| state.board.agents.ready().cloned().unwrap_or_default();
    let (old, new) = (before.map(agents).unwrap_or_default(), agents(after));
    for (id, entry) in &new {
        let known = old.get(id);
        if known.map(|known| (known.lease_expires, known.generation))
            != Some((entry.lease_expires, entry.generation))
        {
            statements.replace_lease(*id, entry);
        }
    }
    for id in old.keys().filter(|id| !new.contains_key(*id)) {
        statements.remove_lease(*id);
    }
}

impl Drop for DatabaseEdit<'_> {
    fn drop(&mut self) {
        if let Some(copy) = &self.copy {
            // It is only a copy.
            let _ = fs::remove_file(copy);
        }
    }
}
