//! The text of a blackboard as rows: one for each section, agent, task and list entry, and back. A row has
//! the YAML of its block, so that the same code reads and writes both, and unknown keys stay. A text in
//! another layout is written in ours first.

mod change;
mod read;

use std::collections::HashMap;

use liza_core::model::{Fields, Status, Value};

use crate::document::{Block, Shape, is_empty_value, list_entries, plain_value, sections, shape};
use crate::yaml;

pub use change::{RowChange, WholeRow};
pub use read::{changed_text, values_of};

pub const TASKS: &str = "tasks";
/// A mapping whose entries are rows.
pub const AGENTS: &str = "agents";
/// The sections whose list entries are rows. They only grow.
pub(crate) const LISTS: [&str; 3] = ["anomalies", "human_notes", "spec_changes"];

/// The column of entries in our layout.
const ENTRY_COLUMN: usize = 2;

/// The keys of a task that its summary has.
const SUMMARY_KEYS: [&str; 19] = [
    "id",
    "status",
    "priority",
    "created",
    "depends_on",
    "assigned_to",
    "lease_expires",
    "reservation",
    "reviewing_by",
    "review_lease_expires",
    "approved_by",
    "merge_held",
    "failed_by",
    "review_dropped_by",
    "approvals",
    "previous_coder",
    "handoff_pending",
    "superseded_by",
    "revision",
];

/// A section: its lines up to its first entry, and its entries if they are rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionRow {
    pub name: String,
    /// Without the lines of entries that are rows.
    pub text: String,
    pub entries: Vec<EntryRow>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow {
    /// The ID of a task or an agent; that of a list entry is its number.
    pub key: String,
    pub text: String,
    /// The whole entry, or only the summary of a task.
    pub whole: bool,
}

/// A blackboard, or the loaded part of it, in the order of its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows(pub Vec<SectionRow>);

impl Rows {
    /// The revision is not a row.
    pub fn text(&self, revision: u64) -> String {
        let mut out = String::new();
        for section in &self.0 {
            if section.name == "revision" {
                out.push_str(&format!("revision: {revision}\n"));
                continue;
            }
            let is_nested = !section.entries.is_empty() || section.text.lines().nth(1).is_some();
            if is_nested && !out.is_empty() {
                out.push('\n');
            }
            match section.entries.is_empty() {
                true => out.push_str(&section.text),
                false => out.push_str(&without_empty_value(&section.text)),
            }
            for entry in &section.entries {
                out.push_str(&entry.text);
            }
        }
        out
    }

    /// `None` if the text has another layout.
    pub(crate) fn split(text: &str) -> Option<Self> {
        let blocks = sections(text).ok()?;
        let first = blocks.first()?.start;
        // Lines above the first section belong to it.
        let starts: Vec<usize> =
            blocks.iter().map(|block| if block.start == first { 0 } else { block.start }).collect();
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let rows = blocks.iter().zip(starts.iter().zip(ends)).map(|(block, (start, end))| {
            let name = block.name(text);
            let entries = match name {
                TASKS => list(text, block, end, Some("id"))?,
                AGENTS => map(text, block, end)?,
                name if LISTS.contains(&name) => list(text, block, end, None)?,
                _ => Vec::new(),
            };
            let head = entries.first().map_or(end, |(_, entry)| entry.start);
            let row = |(key, range): (String, std::ops::Range<usize>)| EntryRow {
                key,
                text: tidy(&text[range]),
                whole: true,
            };
            Some(SectionRow {
                name: name.to_owned(),
                text: tidy(&text[*start..head]),
                entries: entries.into_iter().map(row).collect(),
            })
        });
        let rows = Self(rows.collect::<Option<Vec<_>>>()?);
        rows.has_unique_keys().then_some(rows)
    }

    /// Splits a whole blackboard; rewrites it first if it has another layout.
    pub fn of_text(text: &str) -> Option<Self> {
        let value = |text: &str| yaml::parse(text).ok().map(|(node, _)| plain_value(&node));
        let meant = value(text)?;
        let same = |rows: &Self| value(&rows.text(revision_of(&meant))).as_ref() == Some(&meant);
        if let Some(rows) = Self::split(text).filter(same) {
            return Some(rows);
        }
        let rewritten = yaml::document(meant.as_map()?);
        Self::split(&rewritten).filter(same)
    }

    fn with_tasks(&self, is_wanted: impl Fn(&str) -> bool) -> Self {
        let stays = |section: &SectionRow, entry: &EntryRow| section.name != TASKS || is_wanted(&entry.key);
        let section = |section: &SectionRow| SectionRow {
            name: section.name.clone(),
            text: section.text.clone(),
            entries: section.entries.iter().filter(|entry| stays(section, entry)).cloned().collect(),
        };
        Self(self.0.iter().map(section).collect())
    }

    /// Takes over the rows after a change. Tasks that it did not have stay.
    pub fn update(&mut self, after: Self) {
        for new in after.0 {
            let Some(old) = self.0.iter_mut().find(|old| old.name == new.name) else {
                self.0.push(new);
                continue;
            };
            old.text = new.text;
            if new.name != TASKS {
                old.entries = new.entries;
                continue;
            }
            for entry in new.entries {
                if let Some(known) = old.entries.iter_mut().find(|known| known.key == entry.key) {
                    *known = entry;
                }
            }
        }
    }

    pub fn section(&self, name: &str) -> Option<&SectionRow> {
        self.0.iter().find(|section| section.name == name)
    }

    fn has_unique_keys(&self) -> bool {
        self.0.iter().all(|section| {
            let mut seen = HashMap::new();
            section.entries.iter().all(|entry| seen.insert(&entry.key, ()).is_none())
        })
    }
}

fn revision_of(value: &Value) -> u64 {
    match value.as_map().and_then(|fields| fields.get("revision")) {
        Some(Value::Int(number)) => u64::try_from(*number).unwrap_or(0),
        Some(_) | None => 0,
    }
}

/// A text without blank lines at its end, which have no meaning except after `|+`.
fn tidy(text: &str) -> String {
    let keeps_blank_lines = text.lines().any(|line| line.ends_with('+'));
    if keeps_blank_lines { text.to_owned() } else { format!("{}\n", text.trim_end()) }
}

/// The lines of a section without a value such as `[]`, since entries follow. Comments may be above it and after it.
fn without_empty_value(text: &str) -> String {
    let at = text.lines().take_while(|line| line.trim().is_empty() || line.starts_with('#')).count();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(line) = lines.get_mut(at)
        && let Some((key, value)) = line.split_once(':')
    {
        let comment = value.find('#').map(|comment| &value[comment..]);
        if is_empty_value(value) {
            *line = comment.map_or_else(|| format!("{key}:"), |comment| format!("{key}: {comment}"));
        }
    }
    lines.join("\n") + "\n"
}

type Entries = Vec<(String, std::ops::Range<usize>)>;

/// The entries of a list in our layout. `key` is the field with the ID of an entry.
fn list(text: &str, block: &Block, end: usize, key: Option<&str>) -> Option<Entries> {
    let value = &text[block.after..block.end];
    if is_empty_value(value) {
        return Some(Vec::new());
    }
    let below = block.after + value.find('\n')? + 1;
    let first = text[block.after..below].trim();
    if !first.is_empty() && !first.starts_with('#') {
        return None;
    }
    let entries = list_entries(text, below..end);
    let dash = format!("{}- ", " ".repeat(ENTRY_COLUMN));
    let named = entries.into_iter().enumerate().map(|(n, range)| {
        let lines = &text[range.clone()];
        if !lines.starts_with(&dash) {
            return None;
        }
        let key = match key {
            Some(key) => id_of(lines, key).unwrap_or_else(|| format!("?{n}")),
            None => n.to_string(),
        };
        Some((key, range))
    });
    named.collect()
}

fn id_of(lines: &str, key: &str) -> Option<String> {
    let value = value_of(lines)?;
    Some(value.as_map()?.get(key)?.as_text()?.to_owned())
}

fn value_of(lines: &str) -> Option<Value> {
    let node = yaml::parse_fast(lines).or_else(|| Some(yaml::parse(lines).ok()?.0))?;
    node.items().first().map(plain_value)
}

/// The entries of a mapping in our layout.
fn map(text: &str, block: &Block, end: usize) -> Option<Entries> {
    if is_empty_value(&text[block.after..block.end]) {
        return Some(Vec::new());
    }
    let Shape::Map(blocks) = shape(text, block).ok()? else { return None };
    if blocks.iter().any(|entry| entry.indent != ENTRY_COLUMN) {
        return None;
    }
    let start = |entry: &Block| entry.start - entry.indent;
    let ends = blocks.iter().skip(1).map(start).chain([end]);
    let entries = blocks.iter().zip(ends);
    Some(entries.map(|(entry, end)| (entry.name(text).to_owned(), start(entry)..end)).collect())
}

/// The columns of a task besides its text.
pub struct TaskColumns {
    /// For people who look at the table.
    pub status: String,
    /// Its coder or its code reviewer.
    pub holder: String,
    /// The lines that decisions about other tasks need.
    pub summary: String,
}

impl TaskColumns {
    pub fn of(text: &str) -> Self {
        let unknown = || Self { status: String::new(), holder: String::new(), summary: text.to_owned() };
        let Some(Value::Map(fields)) = value_of(text) else { return unknown() };
        let get = |key: &str| fields.get(key).and_then(Value::as_text).unwrap_or_default().to_owned();
        let status = get("status");
        let holder = match status.parse() {
            Ok(Status::Claimed) => get("assigned_to"),
            Ok(Status::ReadyForReview) => get("reviewing_by"),
            Ok(_) | Err(_) => String::new(),
        };
        let summary: Fields = SUMMARY_KEYS
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), fields.get(*key)?.clone())))
            .collect();
        let lines = yaml::item(&Value::Map(summary), ENTRY_COLUMN);
        Self { status, holder, summary: format!("{}{lines}\n", " ".repeat(ENTRY_COLUMN)) }
    }
}

/// A list entry as a row.
pub(crate) fn list_entry(value: &Value) -> String {
    format!("{}{}\n", " ".repeat(ENTRY_COLUMN), yaml::item(value, ENTRY_COLUMN))
}

#[cfg(test)]
mod tests {
    use liza_core::model::TaskRecord;

    use super::*;

    const TEXT: &str = "# top\nversion: 2\nrevision: 7\n\ngoal:\n  id: g\n\ntasks: # all\n  # first\n  - id: a\n    status: CLAIMED\n    assigned_to: coder-1\n    own: 1\n  - id: b\n    text: |\n      one\n\n      two\n\nagents:\n  coder-1:\n    role: coder\n  coder-2: {role: coder}\n\nhuman_notes: []\nconfig:\n  own: # why\n    - x\n";

    /// Covers: MM-09
    #[test]
    fn a_text_is_the_same_after_it_was_rows() {
        let rows = Rows::of_text(TEXT).unwrap();
        let keys = |name: &str| -> Vec<String> {
            rows.section(name).unwrap().entries.iter().map(|entry| entry.key.clone()).collect()
        };
        assert_eq!(keys("tasks"), ["a", "b"]);
        assert_eq!(keys("agents"), ["coder-1", "coder-2"]);
        assert!(keys("human_notes").is_empty());
        assert_eq!(rows.text(7).replace("\n\n", "\n"), TEXT.replace("\n\n", "\n"));
        assert_eq!(Rows::of_text(&rows.text(7)).unwrap(), rows);
    }

    /// Covers: MM-09
    #[test]
    fn another_layout_keeps_its_values() {
        for text in [
            "{version: 2, tasks: [{id: a, own: 1}], agents: {}}",
            "version: 2\ntasks:\n- id: a\n  own: 1\nagents: {}\n",
        ] {
            let rows = Rows::of_text(text).unwrap();
            let value = |text: &str| plain_value(&yaml::parse(text).unwrap().0);
            assert_eq!(value(&rows.text(0)), value(text));
            assert_eq!(rows.section("tasks").unwrap().entries[0].key, "a");
        }
    }

    /// Covers: MM-02
    #[test]
    fn a_summary_has_what_decisions_about_other_tasks_need() {
        let columns =
            TaskColumns::of("  - id: a\n    description: d\n    status: CLAIMED\n    assigned_to: coder-1\n");
        assert_eq!((columns.status.as_str(), columns.holder.as_str()), ("CLAIMED", "coder-1"));
        assert_eq!(columns.summary, "  - id: a\n    status: CLAIMED\n    assigned_to: coder-1\n");
        for key in SUMMARY_KEYS {
            assert!(TaskRecord::KEYS.contains(&key), "{key}");
        }
    }
}
