//! Makes a blackboard in a database, or uses one that is there.

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
use crate::codec::{self, StateView};
use crate::database_error::{DatabaseError, DatabaseReason};
use crate::error::StoreError;
use crate::file_store::entry_text;
use crate::verify::{check_same, mismatch, not_encoded};
use crate::yaml;

/// Everything that a blackboard consists of, as texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardContent {
    /// The blackboard, as the file has it.
    pub state: String,
    /// The entries of the log, each with the revision of its write.
    pub log: Vec<(u64, String)>,
    /// What was archived: names and texts.
    pub archive: Vec<(String, String)>,
}

impl DatabaseStore {
    /// Creates a blackboard from texts, and writes the file that names it.
    pub(crate) fn import(
        root: &Path,
        address: &Address,
        name: &str,
        content: &BoardContent,
    ) -> Result<Self, StoreError> {
        let store = Self::new(root, Settings { address: address.clone(), name: name.to_owned() });
        let mut view = StateView::full(store.path(), &content.state)?;
        view.check_version()?;
        let state = view.state()?;
        store.insert(content, &state)?;
        settings::write(root, &store.shared.settings)?;
        Ok(store)
    }

    /// The whole content: the text, then the log and the archive of a moment later.
    pub(crate) fn content(&self) -> Result<BoardContent, StoreError> {
        let (state, revision) = self.text_and_revision()?;
        let results = self.query(|project| {
            format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                 SELECT revision, text FROM liza.log WHERE project = {project} AND revision <= {revision} \
                 ORDER BY revision, number; \
                 SELECT name, text FROM liza.archive WHERE project = {project} ORDER BY name; COMMIT"
            )
        })?;
        let rows = |at: usize| results.get(at).into_iter().flat_map(ResultSet::iter);
        let revision = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(BoardContent {
            state,
            log: rows(1).map(|row| (revision(row.number(0)), row.text(1).to_owned())).collect(),
            archive: rows(2).map(|row| (row.text(0).to_owned(), row.text(1).to_owned())).collect(),
        })
    }

    /// Creates a blackboard, and writes the file that names it.
    pub(crate) fn create(
        root: &Path,
        address: &Address,
        name: &str,
        state: &State,
        log: &LogEntry,
    ) -> Result<Self, StoreError> {
        let store = Self::new(root, Settings { address: address.clone(), name: name.to_owned() });
        let fields = codec::document_fields(state).map_err(|error| not_encoded(store.path(), error))?;
        let text = yaml::document(&fields);
        let read = StateView::full(store.path(), &text)?.state()?;
        check_same(store.path(), state, &read)?;
        let log = entry_text(log, state.board.revision).map_err(|error| not_encoded(store.path(), error))?;
        let log = vec![(state.board.revision.0, log)];
        store.insert(&BoardContent { state: text, log, archive: Vec::new() }, state)?;
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
    fn insert(&self, content: &BoardContent, state: &State) -> Result<(), StoreError> {
        let mut rows = Rows::of_text(&content.state).ok_or_else(|| mismatch(self.path(), "the rows"))?;
        add_revision(&mut rows);
        let mut connection = self.pool().take()?;
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
        statements.imported_log(&content.log);
        statements.archive(&content.archive, revision);
        statements.server(&server);
        connection.end(&format!("{}COMMIT", statements.sql())).map_err(|error| self.fault(&error))?;
        self.pool().put(connection);
        Ok(())
    }
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
