//! Creates a blackboard in a database, or finds an existing one.

use std::path::Path;

use liza_store::backend::{DatabaseSettings, NewBoard, Rows, SectionRow, mismatch, stores_all_text};
use liza_store::{Address, DatabaseError, DatabaseReason, StoreError};

use crate::connection::{Connection, Pool, ResultSet, quoted};
use crate::fault::fault_of;
use crate::load::SERVER_MS;
use crate::schema;
use crate::store::DatabaseStore;
use crate::write::Statements;

/// The blackboard of that name, or the only one.
pub(crate) fn find(address: &Address, name: Option<&str>) -> Result<DatabaseSettings, StoreError> {
    let names = names_in(address)?;
    let name = match (name, names.as_slice()) {
        (Some(name), _) if names.iter().any(|known| known == name) => name.to_owned(),
        (None, [only]) => only.clone(),
        (_, []) => return Err(no_project(address, "it has none").into()),
        (_, known) => return Err(no_project(address, &format!("it has {}", known.join(", "))).into()),
    };
    let settings = DatabaseSettings { address: address.clone(), name };
    // Also checks the tables.
    DatabaseStore::new(Path::new(""), settings.clone()).connect()?;
    Ok(settings)
}

/// Inserts the rows of a new blackboard.
pub(crate) fn insert(store: &DatabaseStore, board: NewBoard<'_>) -> Result<(), StoreError> {
    let mut rows = Rows::of_text(board.text).ok_or_else(|| mismatch(store.path(), "the rows"))?;
    add_revision(&mut rows);
    let mut connection = store.pool().take()?;
    check_encoding(store, &mut connection)?;
    schema::prepare(&mut connection, store.address())?;
    let revision = board.state.board.revision;
    let name = quoted(store.name());
    let timeline = connection.timeline();
    let sql = format!(
        "BEGIN; INSERT INTO liza.projects (name, revision, layout, clock_ms, server) \
         SELECT {name}, {revision}, {revision}, {SERVER_MS}, '' ON CONFLICT DO NOTHING RETURNING id, {timeline}"
    );
    let results = connection.begin(&sql).map_err(|error| store.fault(&error))?;
    let Some(row) = results.last().and_then(ResultSet::first) else {
        return Err(store.error(DatabaseReason::ProjectExists, store.name()).into());
    };
    let (project, server) = (row.number(0), connection.server(row.text(1)));
    let mut statements = Statements::new(project);
    statements.rows(&Rows::default(), &rows, revision);
    for (id, entry) in board.state.board.agents.ready().into_iter().flatten() {
        statements.lease(*id, entry);
    }
    statements.log(&[board.log.to_owned()], revision);
    statements.server(&server);
    connection.end(&format!("{}COMMIT", statements.sql())).map_err(|error| store.fault(&error))?;
    store.pool().put(connection);
    Ok(())
}

/// Refuses a database that cannot store every letter: a later write would fail.
fn check_encoding(store: &DatabaseStore, connection: &mut Connection) -> Result<(), DatabaseError> {
    let results = connection.run("SHOW server_encoding").map_err(|error| store.fault(&error))?;
    let encoding = results.first().and_then(ResultSet::first).map(|row| row.text(0).to_owned());
    match encoding.unwrap_or_default() {
        encoding if stores_all_text(&encoding) => Ok(()),
        encoding => Err(store.error(DatabaseReason::Encoding, encoding)),
    }
}

/// Adds the row that marks the place of the revision in the text.
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

fn names_in(address: &Address) -> Result<Vec<String>, StoreError> {
    let mut connection: Connection = Pool::new(address.clone()).take()?;
    match connection.run("SELECT name FROM liza.projects ORDER BY name") {
        Ok(results) => {
            let rows = results.first().into_iter().flat_map(ResultSet::iter);
            Ok(rows.map(|row| row.text(0).to_owned()).collect())
        }
        Err(error) if error.code() == Some(&postgres::error::SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
        Err(error) => Err(fault_of(address, &error).into()),
    }
}
