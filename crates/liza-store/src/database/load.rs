//! Reads the rows that a command or a screen needs, in one round trip.
//!
//! Without the lock all of it is one snapshot; with the lock the row of the project comes first, then the clock.

use std::collections::BTreeSet;

use liza_core::model::{StopFile, StopFiles, TaskId};

use super::connection::{Fields, ResultSet, quoted, quoted_list};
use super::rows::{AGENTS, EntryRow, Rows, SectionRow, TASKS};
use super::time::Clock;

/// The sections that every command loads: small, and needed to place what it writes.
const ALWAYS: [&str; 7] = ["version", "revision", "archived", "goal", "sprint", "config", AGENTS];

/// Which tasks to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TaskExtent {
    /// Those that are named.
    Named,
    /// Summaries of all, and those that are named in full.
    Summaries,
    /// All in full.
    Whole,
}

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The sections; all of them if the extent is whole.
    pub(super) sections: BTreeSet<String>,
    pub(super) extent: TaskExtent,
    /// The tasks to read in full.
    pub(super) tasks: BTreeSet<TaskId>,
}

impl Wanted {
    /// These sections and tasks, and what every command loads.
    pub(super) fn of(
        sections: impl IntoIterator<Item = &'static str>,
        extent: TaskExtent,
        tasks: impl IntoIterator<Item = TaskId>,
    ) -> Self {
        let sections = ALWAYS.into_iter().chain([TASKS]).chain(sections).map(str::to_owned).collect();
        Self { sections, extent, tasks: tasks.into_iter().collect() }
    }

    /// The whole blackboard.
    pub(super) fn everything() -> Self {
        Self { sections: BTreeSet::new(), extent: TaskExtent::Whole, tasks: BTreeSet::new() }
    }

    /// What this and another one want.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.sections.extend(other.sections);
        self.tasks.extend(other.tasks);
        self.extent = self.extent.max(other.extent);
        self
    }

    /// Whether this has all that another one wants.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.extent == TaskExtent::Whole
            || (self.extent >= other.extent
                && self.sections.is_superset(&other.sections)
                && self.tasks.is_superset(&other.tasks))
    }
}

/// The row of the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProjectRow {
    pub(super) revision: u64,
    pub(super) layout: u64,
    pub(super) clock: Clock,
}

/// The lease of an agent's registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeartbeatRow {
    pub(super) agent: String,
    pub(super) generation: i64,
    pub(super) lease_expires: i64,
    pub(super) heartbeat: i64,
}

/// What was read.
#[derive(Debug, Clone, Default)]
pub(super) struct LoadedRows {
    pub(super) project: ProjectRow,
    /// The version of the tables: a newer program may have changed them since this one began.
    pub(super) tables: i64,
    /// The server's clock, and the timeline of the server.
    pub(super) server_ms: i64,
    pub(super) timeline: String,
    pub(super) rows: Rows,
    pub(super) heartbeats: Vec<HeartbeatRow>,
    pub(super) stop_files: StopFiles,
}

/// The columns of the row of a project.
const PROJECT_COLUMNS: &str =
    "revision, layout, clock_ms, clock_offset_ms, hold_until, server, (SELECT max(version) FROM liza.meta)";

/// The server's clock in milliseconds, read when the statement is carried out.
pub(super) const SERVER_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The statements that read everything wanted in one snapshot, as a whole transaction.
pub(super) fn snapshot_statements(project: i64, wanted: &Wanted) -> String {
    format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
         SET LOCAL statement_timeout = '10s'; \
         SELECT {PROJECT_COLUMNS} FROM liza.projects WHERE id = {project}; \
         SELECT {SERVER_MS}, ''; {}; COMMIT",
        row_statements(project, wanted)
    )
}

/// How many results of [`snapshot_statements`] come before the row of the project.
pub(super) const SNAPSHOT_LEAD: usize = 2;

/// The statements that begin a write: take the lock, read the clock, lock what has expired, and read everything wanted.
pub(super) fn lock_statements(project: i64, wanted: &Wanted, timeline: &str) -> String {
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

/// How many results of [`lock_statements`] come before the row of the project, and between the clock and the rows.
pub(super) const LOCK_LEAD: usize = 4;
pub(super) const LOCK_GAP: usize = 1;

fn row_statements(project: i64, wanted: &Wanted) -> String {
    let whole = wanted.extent == TaskExtent::Whole;
    let names = quoted_list(wanted.sections.iter().map(String::as_str));
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

/// The rows in the results from the row of the project on; `gap` results follow the clock. None if there is no such
/// project.
pub(super) fn decoded(results: &[ResultSet], gap: usize) -> Option<LoadedRows> {
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

/// The stop files that are rows.
pub(super) fn stop_files_of(rows: &ResultSet) -> StopFiles {
    let has = |file: StopFile| rows.iter().any(|row| row.text(0) == file.name());
    StopFiles {
        pause: has(StopFile::Pause),
        checkpoint: has(StopFile::Checkpoint),
        abort: has(StopFile::Abort),
    }
}

/// The condition on a row of the project.
pub(super) fn by_name(name: &str) -> String {
    format!("name = {}", quoted(name))
}
