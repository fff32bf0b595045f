//! Reads the rows that a command or a screen needs, in one round trip. Without the lock all of it is one
//! snapshot; with the lock the row of the project comes first, then the clock.

use liza_core::model::{Revision, StopFile, StopFiles, TaskId};
use liza_store::backend::{AGENTS, EntryRow, LoadScope, Rows, SectionRow, TASKS, TaskExtent};

use crate::connection::{Fields, ResultSet, quoted, quoted_list};
use crate::time::Clock;

/// The sections that every command loads: small, and needed to place what it writes.
const ALWAYS: [&str; 8] = ["version", "revision", "archived", "goal", "sprint", "config", AGENTS, TASKS];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProjectRow {
    pub(crate) revision: u64,
    pub(crate) layout: u64,
    pub(crate) clock: Clock,
}

/// The lease of an agent's registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeartbeatRow {
    pub(crate) agent: String,
    pub(crate) generation: i64,
    pub(crate) lease_expires: i64,
    pub(crate) heartbeat: i64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct LoadedRows {
    pub(crate) project: ProjectRow,
    /// The version of the tables: a newer program may have changed them since this one began.
    pub(crate) tables: i64,
    pub(crate) server_ms: i64,
    pub(crate) timeline: String,
    pub(crate) rows: Rows,
    pub(crate) heartbeats: Vec<HeartbeatRow>,
    pub(crate) stop_files: StopFiles,
}

impl LoadedRows {
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.project.revision)
    }
}

const PROJECT_COLUMNS: &str =
    "revision, layout, clock_ms, clock_offset_ms, hold_until, server, (SELECT max(version) FROM liza.meta)";

/// The server's clock in milliseconds, read when the statement runs.
pub(crate) const SERVER_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The statements that read everything wanted in one snapshot, as a whole transaction.
pub(crate) fn snapshot_statements(project: i64, wanted: &LoadScope) -> String {
    format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
         SET LOCAL statement_timeout = '10s'; \
         SELECT {PROJECT_COLUMNS} FROM liza.projects WHERE id = {project}; \
         SELECT {SERVER_MS}, ''; {}; COMMIT",
        row_statements(project, wanted)
    )
}

/// The number of results of [`snapshot_statements`] before the row of the project.
pub(crate) const SNAPSHOT_LEAD: usize = 2;

/// Statements that begin a write: take the lock, read the clock, lock expired rows, read everything wanted.
pub(crate) fn lock_statements(project: i64, wanted: &LoadScope, timeline: &str) -> String {
    format!(
        "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '10s'; \
         SET LOCAL idle_in_transaction_session_timeout = '5s'; \
         SELECT {PROJECT_COLUMNS} FROM liza.projects WHERE id = {project} FOR UPDATE; \
         SELECT {SERVER_MS}, {timeline}; \
         SELECT agent FROM liza.heartbeats WHERE project = {project} AND lease_expires * 1000 < \
           {SERVER_MS} + (SELECT clock_offset_ms FROM liza.projects WHERE id = {project}) FOR UPDATE; {}",
        row_statements(project, wanted)
    )
}

/// The number of results of [`lock_statements`] before the project's row, and between the clock and the rows.
pub(crate) const LOCK_LEAD: usize = 4;
pub(crate) const LOCK_GAP: usize = 1;

fn row_statements(project: i64, wanted: &LoadScope) -> String {
    let whole = wanted.extent == TaskExtent::Whole;
    let names = quoted_list(ALWAYS.into_iter().chain(wanted.sections.iter().map(String::as_str)));
    let of_sections = if whole { String::new() } else { format!(" AND name IN ({names})") };
    let of_entries = if whole { String::new() } else { format!(" AND section IN ({names})") };
    let ids = quoted_list(wanted.tasks.iter().map(TaskId::as_str));
    let tasks = match wanted.extent {
        TaskExtent::Whole => format!("SELECT id, text, true FROM liza.tasks WHERE project = {project}"),
        TaskExtent::Summaries => format!(
            "SELECT id, CASE WHEN id IN ({ids}) THEN text ELSE summary END, id IN ({ids}) \
             FROM liza.tasks WHERE project = {project}"
        ),
        TaskExtent::Named => {
            format!("SELECT id, text, true FROM liza.tasks WHERE project = {project} AND id IN ({ids})")
        }
    };
    format!(
        "SELECT name, text FROM liza.sections WHERE project = {project}{of_sections} ORDER BY position; \
         SELECT section, key, text FROM liza.entries WHERE project = {project}{of_entries} ORDER BY position; \
         {tasks} ORDER BY position; \
         SELECT agent, generation, lease_expires, heartbeat FROM liza.heartbeats WHERE project = {project}; \
         SELECT name FROM liza.stop_files WHERE project = {project}"
    )
}

/// Decodes the results from the project's row on; `gap` results follow the clock. `None` without the project.
pub(crate) fn decoded(results: &[ResultSet], gap: usize) -> Option<LoadedRows> {
    let [project, clock, rest @ ..] = results else { return None };
    let [sections, entries, tasks, heartbeats, stop_files, ..] = rest.get(gap..)? else { return None };
    let (project, clock) = (project.first()?, clock.first()?);
    let mut rows = Rows(sections.iter().map(section_row).collect());
    for row in entries.iter() {
        let section = row.text(0);
        if let Some(section) = rows.0.iter_mut().find(|known| known.name == section) {
            section.entries.push(entry_row(row.text(1), row.text(2), true));
        }
    }
    if let Some(section) = rows.0.iter_mut().find(|section| section.name == TASKS) {
        section.entries =
            tasks.iter().map(|row| entry_row(row.text(0), row.text(1), row.is_true(2))).collect();
    }
    Some(LoadedRows {
        project: project_row(project),
        tables: project.number(6),
        server_ms: clock.number(0),
        timeline: clock.text(1).to_owned(),
        rows,
        heartbeats: heartbeats.iter().map(heartbeat_row).collect(),
        stop_files: stop_files_of(stop_files),
    })
}

fn project_row(row: Fields<'_>) -> ProjectRow {
    let clock = Clock {
        latest_ms: row.number(2),
        offset_ms: row.number(3),
        hold_until: row.number(4),
        server: row.text(5).to_owned(),
    };
    let unsigned = |at: usize| u64::try_from(row.number(at)).unwrap_or(0);
    ProjectRow { revision: unsigned(0), layout: unsigned(1), clock }
}

fn section_row(row: Fields<'_>) -> SectionRow {
    SectionRow { name: row.text(0).to_owned(), text: row.text(1).to_owned(), entries: Vec::new() }
}

fn entry_row(key: &str, text: &str, whole: bool) -> EntryRow {
    EntryRow { key: key.to_owned(), text: text.to_owned(), whole }
}

fn heartbeat_row(row: Fields<'_>) -> HeartbeatRow {
    HeartbeatRow {
        agent: row.text(0).to_owned(),
        generation: row.number(1),
        lease_expires: row.number(2),
        heartbeat: row.number(3),
    }
}

pub(crate) fn stop_files_of(rows: &ResultSet) -> StopFiles {
    let has = |file: StopFile| rows.iter().any(|row| row.text(0) == file.name());
    StopFiles {
        pause: has(StopFile::Pause),
        checkpoint: has(StopFile::Checkpoint),
        abort: has(StopFile::Abort),
    }
}

pub(crate) fn by_name(name: &str) -> String {
    format!("name = {}", quoted(name))
}

/// Only the rows that every read has.
pub(crate) fn least() -> LoadScope {
    LoadScope::of([], TaskExtent::Named, [])
}
