//! The statements of a write: the differences of the rows, the leases, the log and the request.

use std::fmt::Write as _;

use liza_core::model::{AgentId, AgentRecord, Change, Revision, StopFile, Timestamp};
use liza_store::backend::{AGENTS, EntryRow, Rows, SectionRow, TASKS, TaskColumns, WholeRow};

use crate::connection::quoted;
use crate::load::ProjectRow;

/// The number of rows of one write that have distinct positions.
const POSITIONS: u64 = 1 << 16;

#[derive(Debug, Default)]
pub(crate) struct Statements {
    project: i64,
    sql: String,
}

impl Statements {
    pub(crate) fn new(project: i64) -> Self {
        Self { project, sql: String::new() }
    }

    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }

    fn add(&mut self, statement: &str) {
        self.sql.push_str(statement);
        self.sql.push_str(";\n");
    }

    /// Writes the rows that differ. Entries other than agents are removed by their own statement.
    pub(crate) fn rows(&mut self, before: &Rows, after: &Rows, revision: Revision) {
        let mut position = revision.0 * POSITIONS;
        for section in &after.0 {
            let old = before.section(&section.name);
            position += 1;
            // The number itself is in the row of the project.
            let is_same = |old: &SectionRow| old.text == section.text || section.name == "revision";
            if !old.is_some_and(is_same) {
                self.section(section, position, revision);
            }
            let empty = Vec::new();
            let old = old.map_or(&empty, |old| &old.entries);
            // Agents are always loaded in full, so one that is missing has left.
            let is_kept = |entry: &EntryRow| section.entries.iter().any(|kept| kept.key == entry.key);
            for gone in old.iter().filter(|entry| section.name == AGENTS && !is_kept(entry)) {
                self.remove_entry(AGENTS, &gone.key);
            }
            for entry in &section.entries {
                position += 1;
                let known = old.iter().find(|known| known.key == entry.key);
                if known.is_none_or(|known| known.whole && known.text != entry.text) {
                    self.entry(&section.name, entry, position, revision);
                }
            }
        }
    }

    /// Removes the entries that are not in the rows after, and gives all entries their order.
    pub(crate) fn replace_order(&mut self, before: &Rows, after: &Rows, revision: Revision) {
        for section in &before.0 {
            let new = after.section(&section.name);
            let empty = Vec::new();
            let kept = new.map_or(&empty, |new| &new.entries);
            for entry in section.entries.iter().filter(|entry| !kept.iter().any(|kept| kept.key == entry.key))
            {
                self.remove_entry(&section.name, &entry.key);
            }
            if new.is_none() {
                let (project, name) = (self.project, quoted(&section.name));
                self.add(&format!("DELETE FROM liza.sections WHERE project = {project} AND name = {name}"));
            }
        }
        let mut position = revision.0 * POSITIONS;
        for section in &after.0 {
            position += 1;
            let (project, name) = (self.project, quoted(&section.name));
            self.add(&format!(
                "UPDATE liza.sections SET position = {position} WHERE project = {project} AND name = {name}"
            ));
            let old = before
                .section(&section.name)
                .map(|old| old.entries.iter().map(|e| &e.key).collect::<Vec<_>>());
            let new: Vec<&String> = section.entries.iter().map(|entry| &entry.key).collect();
            if old.is_none_or(|old| new.starts_with(&old)) {
                position += new.len() as u64;
                continue;
            }
            for key in new {
                position += 1;
                self.move_entry(&section.name, key, position);
            }
        }
    }

    /// Adds and removes whole rows.
    pub(crate) fn whole_rows(&mut self, rows: &[WholeRow], revision: Revision) {
        for row in rows {
            match row {
                WholeRow::Added { section, entry, place } => {
                    let position = revision.0 * POSITIONS + POSITIONS / 2 + *place as u64;
                    self.entry(section, entry, position, revision);
                }
                WholeRow::RemovedTask(id) => self.remove_entry(TASKS, id.as_str()),
            }
        }
    }

    fn section(&mut self, section: &SectionRow, position: u64, revision: Revision) {
        let (project, name, text) = (self.project, quoted(&section.name), quoted(&section.text));
        self.add(&format!(
            "INSERT INTO liza.sections (project, name, position, text, revision) \
             VALUES ({project}, {name}, {position}, {text}, {revision}) \
             ON CONFLICT (project, name) DO UPDATE SET text = excluded.text, revision = excluded.revision"
        ));
    }

    /// Adds or changes an entry; a new one gets the position.
    fn entry(&mut self, section: &str, entry: &EntryRow, position: u64, revision: Revision) {
        let (project, key, text) = (self.project, quoted(&entry.key), quoted(&entry.text));
        if section != TASKS {
            let section = quoted(section);
            return self.add(&format!(
                "INSERT INTO liza.entries (project, section, key, position, text, revision) \
                 VALUES ({project}, {section}, {key}, {position}, {text}, {revision}) \
                 ON CONFLICT (project, section, key) DO UPDATE SET text = excluded.text, revision = excluded.revision"
            ));
        }
        let columns = TaskColumns::of(&entry.text);
        let (status, holder, summary) =
            (quoted(&columns.status), quoted(&columns.holder), quoted(&columns.summary));
        self.add(&format!(
            "INSERT INTO liza.tasks (project, id, position, status, holder, summary, text, revision) \
             VALUES ({project}, {key}, {position}, {status}, {holder}, {summary}, {text}, {revision}) \
             ON CONFLICT (project, id) DO UPDATE SET status = excluded.status, holder = excluded.holder, \
             summary = excluded.summary, text = excluded.text, revision = excluded.revision"
        ));
    }

    fn remove_entry(&mut self, section: &str, key: &str) {
        let (project, section_name, key) = (self.project, quoted(section), quoted(key));
        match section {
            TASKS => self.add(&format!("DELETE FROM liza.tasks WHERE project = {project} AND id = {key}")),
            _ => self.add(&format!(
                "DELETE FROM liza.entries WHERE project = {project} AND section = {section_name} AND key = {key}"
            )),
        }
    }

    fn move_entry(&mut self, section: &str, key: &str, position: u64) {
        let (project, section_name, key) = (self.project, quoted(section), quoted(key));
        match section {
            TASKS => self.add(&format!(
                "UPDATE liza.tasks SET position = {position} WHERE project = {project} AND id = {key}"
            )),
            _ => self.add(&format!(
                "UPDATE liza.entries SET position = {position} \
                 WHERE project = {project} AND section = {section_name} AND key = {key}"
            )),
        }
    }

    /// Writes the leases of the changed agents. The row of an expired registration is deleted, so that it
    /// cannot be renewed without the lock.
    pub(crate) fn leases(&mut self, change: &Change, by: Option<AgentId>, now: Timestamp) {
        for (id, entry) in &change.agents {
            match entry {
                Some(entry) if by == Some(*id) || entry.is_live(now) => self.lease(*id, entry),
                Some(_) | None => self.remove_lease(*id),
            }
        }
    }

    /// Writes the lease of an agent. A renewal in the meantime is not shortened.
    pub(crate) fn lease(&mut self, id: AgentId, entry: &AgentRecord) {
        let (Some(expires), project) = (entry.lease_expires, self.project) else { return };
        let generation = entry.generation.unwrap_or_default();
        let heartbeat = entry.heartbeat.map_or(0, Timestamp::unix);
        let (agent, expires) = (quoted(&id.to_string()), expires.unix());
        self.add(&format!(
            "INSERT INTO liza.heartbeats AS h (project, agent, generation, lease_expires, heartbeat) \
             VALUES ({project}, {agent}, {generation}, {expires}, {heartbeat}) \
             ON CONFLICT (project, agent) DO UPDATE SET generation = excluded.generation, \
             heartbeat = excluded.heartbeat, lease_expires = CASE WHEN h.generation = excluded.generation \
             THEN greatest(h.lease_expires, excluded.lease_expires) ELSE excluded.lease_expires END"
        ));
    }

    /// Writes the lease of an agent, even if it becomes shorter.
    pub(crate) fn replace_lease(&mut self, id: AgentId, entry: &AgentRecord) {
        self.remove_lease(id);
        self.lease(id, entry);
    }

    pub(crate) fn remove_lease(&mut self, id: AgentId) {
        let (project, agent) = (self.project, quoted(&id.to_string()));
        self.add(&format!("DELETE FROM liza.heartbeats WHERE project = {project} AND agent = {agent}"));
    }

    pub(crate) fn log(&mut self, texts: &[String], revision: Revision) {
        let project = self.project;
        for (number, text) in texts.iter().enumerate() {
            let text = quoted(text);
            self.add(&format!("INSERT INTO liza.log VALUES ({project}, {revision}, {number}, {text})"));
        }
    }

    pub(crate) fn forget_log(&mut self, revision: Revision) {
        let project = self.project;
        self.add(&format!("DELETE FROM liza.log WHERE project = {project} AND revision = {revision}"));
    }

    pub(crate) fn archive(&mut self, texts: &[(String, String)], revision: Revision) {
        let project = self.project;
        for (name, text) in texts {
            let (name, text) = (quoted(name), quoted(text));
            self.add(&format!(
                "INSERT INTO liza.archive VALUES ({project}, {name}, {text}, {revision}) \
                 ON CONFLICT (project, name) DO UPDATE SET text = excluded.text, revision = excluded.revision"
            ));
        }
    }

    pub(crate) fn add_stop_files(&mut self, files: &[StopFile], now: Timestamp) {
        let (project, at) = (self.project, now.unix());
        for file in files {
            let name = quoted(file.name());
            self.add(&format!(
                "INSERT INTO liza.stop_files VALUES ({project}, {name}, {at}) ON CONFLICT DO NOTHING"
            ));
        }
    }

    pub(crate) fn remove_stop_files(&mut self, files: &[StopFile]) {
        let project = self.project;
        for file in files {
            let name = quoted(file.name());
            self.add(&format!("DELETE FROM liza.stop_files WHERE project = {project} AND name = {name}"));
        }
    }

    pub(crate) fn request(
        &mut self,
        id: &str,
        command: &str,
        answer: &str,
        revision: Revision,
        now: Timestamp,
    ) {
        let (project, at) = (self.project, now.unix());
        let (id, command, answer) = (quoted(id), quoted(command), quoted(answer));
        self.add(&format!(
            "INSERT INTO liza.requests VALUES ({project}, {id}, {command}, {revision}, {answer}, {at})"
        ));
    }

    pub(crate) fn forget_requests(&mut self, before: Timestamp) {
        let (project, before) = (self.project, before.unix());
        self.add(&format!("DELETE FROM liza.requests WHERE project = {project} AND at < {before}"));
    }

    pub(crate) fn server(&mut self, server: &str) {
        let (project, server) = (self.project, quoted(server));
        self.add(&format!("UPDATE liza.projects SET server = {server} WHERE id = {project}"));
    }

    pub(crate) fn project(&mut self, row: &ProjectRow) {
        let ProjectRow { revision, layout, clock } = row;
        let mut sql = format!(
            "UPDATE liza.projects SET revision = {revision}, layout = {layout}, clock_ms = {}, ",
            clock.latest_ms
        );
        let server = quoted(&clock.server);
        let _ = write!(
            sql,
            "clock_offset_ms = {}, hold_until = {}, server = {server} WHERE id = {}",
            clock.offset_ms, clock.hold_until, self.project
        );
        self.add(&sql);
    }
}
