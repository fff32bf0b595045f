//! Creates a blackboard in a database, or uses an existing one.

use std::path::Path;

use liza_core::model::{LogEntry, State};

use super::DatabaseStore;
use super::address::Address;
use super::connection::{ResultSet, quoted};
use super::load::SERVER_MS;
use super::rows::{Rows, SectionRow};
use super::settings::{self, Settings};
use super::write::Statements;
use super::{Connection, Pool, schema};
use crate::database_error::{DatabaseError, DatabaseReason};
use crate::error::StoreError;
use crate::file_store::entry_text;
use crate::verify::{mismatch, new_document, not_encoded};

impl DatabaseStore {
    /// Creates a blackboard, and writes the file that names it.
    pub(crate) fn create(
        root: &Path,
        address: &Address,
        name: &str,
        state: &State,
        log: &LogEntry,
    ) -> Result<Self, StoreError> {
        let store = Self::new(root, Settings { address: address.clone(), name: name.to_owned() });
        let text = new_document(store.path(), state)?;
        let log = entry_text(log, state.board.revision).map_err(|error| not_encoded(store.path(), error))?;
        store.insert(&text, &[log], state)?;
        settings::write(root, &store.shared.settings)?;
        Ok(store)
    }

    /// Uses the blackboard of that name, or the only one, and writes the file that names it.
    pub(crate) fn join(root: &Path, address: &Address, name: Option<&str>) -> Result<Self, StoreError> {
        let names = names_in(address)?;
        let name = match (name, names.as_slice()) {
            (Some(name), _) if names.iter().any(|known| known == name) => name.to_owned(),
            (None, [only]) => only.clone(),
            (_, []) => return Err(no_project(address, "it has none").into()),
            (_, known) => return Err(no_project(address, &format!("it has {}", known.join(", "))).into()),
        };
        let store = Self::new(root, Settings { address: address.clone(), name });
        store.connect()?;
        settings::write(root, &store.shared.settings)?;
        Ok(store)
    }

    /// Inserts the rows of a blackboard that is not there yet.
    fn insert(&self, text: &str, log: &[String], state: &State) -> Result<(), StoreError> {
        let mut rows = Rows::of_text(text).ok_or_else(|| mismatch(self.path(), "the rows"))?;
        add_revision(&mut rows);
        let mut connection = self.pool().take()?;
        self.check_encoding(&mut connection)?;
        schema::prepare(&mut connection, self.address())?;
        let revision = state.board.revision;
        let name = quoted(self.name());
        let timeline = connection.timeline();
        let sql = format!(
            "BEGIN; INSERT INTO liza.projects (name, revision, layout, clock_ms, server) \
             SELECT {name}, {revision}, {revision}, {SERVER_MS}, '' ON CONFLICT DO NOTHING RETURNING id, {timeline}"
        );
        let results = connection.begin(&sql).map_err(|error| self.fault(&error))?;
        let Some(row) = results.last().and_then(ResultSet::first) else {
            return Err(self.error(DatabaseReason::ProjectExists, self.name()).into());
        };
        let (project, server) = (row.number(0), connection.server(row.text(1)));
        let mut statements = Statements::new(project);
        statements.rows(&Rows::default(), &rows, revision);
        for (id, entry) in state.board.agents.ready().into_iter().flatten() {
            statements.lease(*id, entry);
        }
        statements.log(log, revision);
        statements.server(&server);
        connection.end(&format!("{}COMMIT", statements.sql())).map_err(|error| self.fault(&error))?;
        self.pool().put(connection);
        Ok(())
    }

    /// Refuses a database that cannot store every letter: a later write would fail.
    fn check_encoding(&self, connection: &mut Connection) -> Result<(), DatabaseError> {
        let results = connection.run("SHOW server_encoding").map_err(|error| self.fault(&error))?;
        let encoding = results.first().and_then(ResultSet::first).map(|row| row.text(0).to_owned());
        match encoding.unwrap_or_default() {
            encoding if stores_all_text(&encoding) => Ok(()),
            encoding => Err(self.error(DatabaseReason::Encoding, encoding)),
        }
    }
}

/// Whether a database with that encoding can store every text.
pub(super) fn stores_all_text(encoding: &str) -> bool {
    ["UTF8", "SQL_ASCII"].contains(&encoding)
}

/// Adds the row that says where the revision is in the text.
fn add_revision(rows: &mut Rows) {
    if rows.section("revision").is_none() {
        let at = rows.0.iter().position(|section| section.name == "version").map_or(0, |at| at + 1);
        let row = SectionRow { name: "revision".to_owned(), text: String::new(), entries: Vec::new() };
        rows.0.insert(at, row);
    }
}

fn no_project(address: &Address, detail: &str) -> DatabaseError {
    DatabaseError::new(address, DatabaseReason::NoProject, detail)
}

/// The names of the blackboards in a database.
fn names_in(address: &Address) -> Result<Vec<String>, StoreError> {
    let mut connection: Connection = Pool::new(address.clone()).take()?;
    match connection.run("SELECT name FROM liza.projects ORDER BY name") {
        Ok(results) => {
            let rows = results.first().into_iter().flat_map(ResultSet::iter);
            Ok(rows.map(|row| row.text(0).to_owned()).collect())
        }
        Err(error) if error.code() == Some(&postgres::error::SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
        Err(error) => Err(DatabaseError::of(address, &error).into()),
    }
}
