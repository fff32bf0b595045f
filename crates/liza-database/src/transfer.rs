//! The log and the archive of a blackboard as texts, to read, to export and to import them.

use std::collections::BTreeMap;

use liza_core::model::Revision;

use crate::connection::{ResultSet, quoted};
use crate::store::DatabaseStore;
use crate::write::Statements;
use liza_store::StoreError;
use liza_store::backend::log_entries;

/// Imported entries of the log come before all others.
const EARLIER: Revision = Revision(0);

pub(crate) fn whole_log(store: &DatabaseStore) -> Result<String, StoreError> {
    let rows = store.query(|project| {
        format!("SELECT text FROM liza.log WHERE project = {project} ORDER BY revision, number")
    })?;
    let texts = rows.iter().flat_map(ResultSet::iter).map(|row| format!("{}\n", row.text(0).trim_end()));
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

pub(crate) fn archived(store: &DatabaseStore, name: &str) -> Result<Option<String>, StoreError> {
    let name = quoted(name);
    let rows = store.query(|project| {
        format!("SELECT text FROM liza.archive WHERE project = {project} AND name = {name}")
    })?;
    let found = rows.iter().flat_map(ResultSet::iter).next().map(|row| row.text(0).to_owned());
    Ok(found)
}

pub(crate) fn archive(store: &DatabaseStore) -> Result<BTreeMap<String, String>, StoreError> {
    let rows =
        store.query(|project| format!("SELECT name, text FROM liza.archive WHERE project = {project}"))?;
    let rows = rows.iter().flat_map(ResultSet::iter);
    Ok(rows.map(|row| (row.text(0).to_owned(), row.text(1).to_owned())).collect())
}

/// Adds earlier log entries and archived texts; existing ones stay.
pub(crate) fn add_earlier(
    store: &DatabaseStore,
    log: &str,
    archive: &BTreeMap<String, String>,
) -> Result<(), StoreError> {
    let texts: Vec<String> = log_entries(log).map(str::to_owned).collect();
    let archived: Vec<(String, String)> = archive.clone().into_iter().collect();
    store.query(|project| {
        let mut statements = Statements::new(project);
        statements.forget_log(EARLIER);
        statements.log(&texts, EARLIER);
        statements.archive(&archived, EARLIER);
        format!("BEGIN; {}COMMIT", statements.sql())
    })?;
    Ok(())
}
