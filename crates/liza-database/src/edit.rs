//! Edits of the text of a blackboard in a database. Holds no lock: concurrent writes are found at the end.

use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

use liza_core::model::{LogEntry, Revision, State, Timestamp};
use liza_host::durable::{self, Open, replace_private_file};
use liza_store::backend::{
    AcceptedText, Backend as _, EditRules, LoadScope, LoggedEdit, Rows, TextEdit, log_entry_text, mismatch,
};
use liza_store::{Edited, RequestId, StoreError};

use crate::fault::may_be_committed;
use crate::load::{self, ProjectRow};
use crate::read::text_and_revision;
use crate::requests::was_committed;
use crate::store::DatabaseStore;
use crate::write::Statements;

pub(crate) struct DatabaseEdit<'s> {
    store: &'s DatabaseStore,
    text: String,
    revision: Revision,
    /// The lock of the copy that a command changes, which is removed with the edit.
    copy: Option<File>,
}

impl<'s> DatabaseEdit<'s> {
    pub(crate) fn begin(store: &'s DatabaseStore) -> Result<Self, StoreError> {
        let (text, revision) = text_and_revision(store)?;
        Ok(Self { store, text, revision, copy: None })
    }
}

impl TextEdit for DatabaseEdit<'_> {
    fn text(&self) -> Result<String, StoreError> {
        Ok(self.text.clone())
    }

    fn revision(&self) -> Revision {
        self.revision
    }

    fn reload(&mut self) -> Result<(), StoreError> {
        (self.text, self.revision) = text_and_revision(self.store)?;
        Ok(())
    }

    fn is_merged(&self) -> bool {
        true
    }

    fn name(&self) -> PathBuf {
        self.store.path().to_owned()
    }

    fn write(
        &mut self,
        rules: &EditRules,
        text: &str,
        LoggedEdit { entry, .. }: LoggedEdit<'_>,
        _rewritten: bool,
    ) -> Result<Edited, StoreError> {
        let (path, now) = (self.store.path(), self.store.now()?);
        let current = (self.text.as_str(), self.revision);
        let accepted = rules.accept(path, current, text, &self.store.disk(), now)?;
        let AcceptedText { revision, before, state, text, misspelled } = accepted;
        let rows = Rows::of_text(&text).ok_or_else(|| mismatch(path, "the rows"))?;
        let log = log_entry_text(path, &LogEntry { timestamp: now, ..entry.clone() }, revision)?;
        self.commit(&rows, &state, before.as_ref(), (&log, revision, now))?;
        Ok(Edited { revision, notices: Vec::new(), misspelled })
    }

    /// A copy by the name that commands know. It is there only while one of them runs.
    fn modified_file(&self) -> PathBuf {
        self.store.folder().join("state.yaml")
    }

    fn begin_modify(&mut self, _: &EditRules, _: Timestamp) -> Result<(), StoreError> {
        let (path, lock) = (self.modified_file(), self.store.folder().join("modify.lock"));
        let locked = durable::open(Open::Update, &lock);
        let locked = locked.and_then(|file| file.lock().map(|()| file));
        self.copy = Some(locked.map_err(StoreError::io("lock", &lock))?);
        // Not older than the last command that had the copy.
        self.reload()?;
        replace_private_file(&path, self.text.as_bytes()).map_err(StoreError::io("write", &path))
    }

    fn modified_text(&self) -> Result<String, StoreError> {
        let path = self.modified_file();
        durable::read_text(&path).map_err(StoreError::io("read", &path))
    }
}

impl DatabaseEdit<'_> {
    fn overtaken(&self) -> StoreError {
        StoreError::Overtaken { path: self.name() }
    }

    /// Writes the rows that differ, unless there was a concurrent write.
    fn commit(
        &self,
        rows: &Rows,
        state: &State,
        before: Option<&State>,
        (log, revision, now): (&str, Revision, Timestamp),
    ) -> Result<(), StoreError> {
        let store = self.store;
        let (project, mut connection) = store.connect()?;
        let sql = load::lock_statements(project, &LoadScope::everything(), connection.timeline());
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
        let request = RequestId::new();
        statements.request(&request.to_string(), "edit", "", revision, now);
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
        match was_committed(store, &request, Instant::now() + store.retry_limit, &fault)? {
            true => Ok(()),
            // The edit is repeated on the new rows.
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
        if self.copy.is_some() {
            // It is only a copy.
            let _ = durable::remove_if_present(&self.modified_file());
        }
    }
}
