//! `lock modify` in a version that we wrote: parses only the sections and tasks that the command changed.
//!
//! Must accept and refuse the same as the edit of the whole text in `text_edit.rs`, which is used for everything else.

use std::ops::Range;

use liza_core::model::{Fields, LogEntry, Revision, Section, State, TaskId, TaskRecord, Timestamp, Value};
use liza_core::rules::invariants;

use crate::codec::{self, StateView, text_without_bom};
use crate::document::{list_entries, plain_value, scan_matches, sections};
use crate::error::StoreError;
use crate::file::{Fingerprint, NewVersion, Origin};
use crate::text_edit::{Edited, FileEdit, new_misspelled, revision_stamps};
use crate::yaml;

/// The keys that name other tasks.
const NAMING_KEYS: [&str; 2] = ["depends_on", "superseded_by"];
/// The keys of a claim.
const CLAIM_KEYS: [&str; 2] = ["status", "assigned_to"];

/// What differs between two texts.
#[derive(Default)]
struct ModifiedParts {
    /// The names of the sections besides the tasks.
    sections: Vec<String>,
    old_tasks: ModifiedTasks,
    new_tasks: ModifiedTasks,
}

/// The tasks of one text that differ from the other.
#[derive(Default)]
struct ModifiedTasks {
    ids: Vec<TaskId>,
    values: Vec<Value>,
}

/// Which tasks are needed to check a change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    /// Those that changed, and these others that new ones depend on: nothing else can be wrong because of them.
    TheseTasks(Vec<TaskId>),
    AllTasks,
}

impl ModifiedParts {
    /// Which tasks of the new text are needed.
    fn scope(&self, text: &str) -> Scope {
        let names_tasks = self.sections.iter().any(|name| invariants::names_tasks(name));
        let needed = if names_tasks { None } else { self.needed_tasks(text) };
        needed.map_or(Scope::AllTasks, Scope::TheseTasks)
    }

    /// Whether a task that there was before depends on other tasks now; a new one that nothing names closes no cycle.
    fn changes_dependencies(&self) -> bool {
        let dependencies = |task: &Value| task.as_map().and_then(|fields| fields.get("depends_on").cloned());
        self.old_tasks.entries().any(|(id, old)| {
            let mut new = self.new_tasks.entries().filter(|(other, _)| *other == id);
            new.any(|(_, new)| dependencies(old) != dependencies(new))
        })
    }

    /// Whether nothing but the status and the coder of some tasks concerns other tasks.
    fn changes_only_claims(&self) -> bool {
        let only_claim =
            |(old, new): (&Value, &Value)| is_own_change(old, &with_fields_of(old, new, &CLAIM_KEYS));
        let pairs = self.old_tasks.values.iter().zip(&self.new_tasks.values);
        let names_tasks = self.sections.iter().any(|name| invariants::names_tasks(name));
        !names_tasks && self.old_tasks.ids == self.new_tasks.ids && pairs.into_iter().all(only_claim)
    }

    /// The tasks besides the changed and new ones that are needed to check these; none if all are.
    fn needed_tasks(&self, text: &str) -> Option<Vec<TaskId>> {
        let mut needed = Vec::new();
        for (id, value) in self.new_tasks.entries() {
            match self.old_tasks.value_of(id) {
                Some(old) if is_own_change(old, value) => {}
                Some(old) if is_own_change(old, &with_fields_of(old, value, &NAMING_KEYS)) => {
                    needed.extend(dependencies(value)?);
                    needed.extend(tasks_in(value, "superseded_by")?);
                }
                None if is_named(id, text, 1) => needed.extend(new_dependencies(value)?),
                Some(_) | None => return None,
            }
        }
        // A removed task that nothing names is not missed.
        let removed = self.old_tasks.ids.iter().filter(|id| !self.new_tasks.ids.contains(id));
        if !removed.into_iter().all(|id| is_named(id, text, 0)) {
            return None;
        }
        needed.retain(|id| !self.new_tasks.ids.contains(id));
        needed.sort_unstable();
        needed.dedup();
        Some(needed)
    }
}

impl ModifiedTasks {
    fn entries(&self) -> impl Iterator<Item = (&TaskId, &Value)> {
        self.ids.iter().zip(&self.values)
    }

    fn value_of(&self, id: &TaskId) -> Option<&Value> {
        self.entries().find(|(other, _)| *other == id).map(|(_, value)| value)
    }
}

/// Whether a change of a task cannot make something wrong with another one.
fn is_own_change(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_map(), new.as_map()) else { return false };
    let concerns_others =
        |name: &str| invariants::change_concerns_other_tasks(name, old.get(name), new.get(name));
    !TaskRecord::KEYS.iter().any(|name| concerns_others(name))
}

/// A task's new fields, with these of the old ones.
fn with_fields_of(old: &Value, new: &Value, keys: &[&str]) -> Value {
    let (Some(old), Some(mut fields)) = (old.as_map(), new.as_map().cloned()) else { return new.clone() };
    for key in keys {
        match old.get(*key) {
            Some(before) => drop(fields.insert((*key).to_owned(), before.clone())),
            None => drop(fields.shift_remove(*key)),
        }
    }
    Value::Map(fields)
}

/// Whether an ID is in a text just so many times.
fn is_named(id: &TaskId, text: &str, times: usize) -> bool {
    memchr::memmem::find_iter(text.as_bytes(), id.as_str()).take(times + 1).count() == times
}

/// What a new task depends on; none if it needs more than that to be checked.
fn new_dependencies(task: &Value) -> Option<Vec<TaskId>> {
    task.as_map().filter(|fields| invariants::needs_only_dependencies(fields))?;
    dependencies(task)
}

/// What a task depends on; none if that is not a list of IDs.
fn dependencies(task: &Value) -> Option<Vec<TaskId>> {
    tasks_in(task, "depends_on")
}

/// The tasks that a field of a task names; none if it is not a list of IDs.
fn tasks_in(task: &Value, key: &str) -> Option<Vec<TaskId>> {
    match task.as_map()?.get(key) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::List(items)) => items.iter().map(|item| item.as_text()?.parse().ok()).collect(),
        Some(
            Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Time(_)
            | Value::Map(_),
        ) => None,
    }
}

impl FileEdit<'_> {
    /// Accepts the text that a command wrote, if that needs only a part of it; none if it needs the whole.
    pub(crate) fn finish_in_part(
        &mut self,
        bytes: &[u8],
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Option<Edited>, StoreError> {
        let file = self.store.files().state();
        let (old, new) = (text_without_bom(&file, &self.current.bytes)?, text_without_bom(&file, bytes)?);
        if self.current.origin != (Origin::Ours { scannable: true }) || old.1 + new.1 > 0 {
            return Ok(None);
        }
        let (mut old, mut new) = (StateView::lazy(&file, old.0)?, StateView::lazy(&file, new.0)?);
        let Some(parts) = changed_parts(&old, &new) else { return Ok(None) };
        let scope = match parts.scope(new.text) {
            // A cycle that a changed task closes goes through what it depends on.
            Scope::TheseTasks(others) if parts.changes_dependencies() => {
                let reached = new.with_dependencies([&parts.new_tasks.ids[..], &others].concat())?;
                let besides = |ids: Vec<TaskId>| {
                    ids.into_iter().filter(|id| !parts.new_tasks.ids.contains(id)).collect()
                };
                reached.map_or(Scope::AllTasks, |ids| Scope::TheseTasks(besides(ids)))
            }
            Scope::AllTasks if parts.changes_only_claims() => {
                let mut near = Vec::new();
                let mut is_known = true;
                for id in &parts.new_tasks.ids {
                    let found = new.neighbours(id)?;
                    is_known &= found.is_some();
                    near.extend(found.into_iter().flatten());
                }
                near.sort_unstable();
                near.dedup();
                near.retain(|id| !parts.new_tasks.ids.contains(id));
                if is_known { Scope::TheseTasks(near) } else { Scope::AllTasks }
            }
            scope @ (Scope::TheseTasks(_) | Scope::AllTasks) => scope,
        };
        let others = match &scope {
            Scope::TheseTasks(others) => others.clone(),
            Scope::AllTasks => Vec::new(),
        };
        let (Some((before, from)), Some((after, to))) = (
            read(&mut old, &parts.sections, &parts.old_tasks, &Scope::TheseTasks(others))?,
            read(&mut new, &parts.sections, &parts.new_tasks, &scope)?,
        ) else {
            return Ok(None);
        };
        new.check_version()?;
        self.check_values(&before.board, &from, &to)?;
        let adds_none = match scope {
            Scope::TheseTasks(_) => self.adds_none_in_part(&before, &after, now),
            Scope::AllTasks => self.is_valid(&after, now),
        };
        if !adds_none {
            // What is new, and why, is seen only in the whole of both texts.
            return Ok(None);
        }
        let revision = after.board.revision.max(Revision(self.current.revision)).next();
        let change = revision_stamps(Some(&before), &after, revision);
        let ops = codec::operations(&after.board, &change).map_err(|error| self.store.not_encoded(error))?;
        let spliced = codec::splice(&new, &ops).ok().filter(|spliced| codec::reads_back(&new, spliced, &ops));
        let Some(spliced) = spliced else { return Ok(None) };
        let delayed = self.locked.commit(&NewVersion {
            before: Fingerprint::of(bytes),
            on_disk: bytes,
            after: spliced.text.as_bytes(),
            edits: &spliced.edits,
            revision_before: self.current.revision,
            revision: revision.0,
            scannable: true,
            log: Some(self.store.log_text(log, revision)?),
        })?;
        let misspelled = new_misspelled(&from, &to);
        Ok(Some(Edited { revision, notices: delayed.into_iter().collect(), misspelled }))
    }
}

/// What differs between two texts; none if that cannot be said by their lines alone.
fn changed_parts(old: &StateView<'_>, new: &StateView<'_>) -> Option<ModifiedParts> {
    if old.blocks.len() != new.blocks.len() || old.tree.is_some() || new.tree.is_some() {
        return None;
    }
    let mut parts = ModifiedParts::default();
    for (before, after) in old.blocks.iter().zip(&new.blocks) {
        let name = after.name(new.text);
        if before.name(old.text) != name {
            return None;
        }
        let text = &new.text[after.start..after.end];
        if old.text[before.start..before.end] == *text {
            continue;
        }
        if name == "tasks" {
            (parts.old_tasks, parts.new_tasks) = changed_tasks(old, new)?;
        } else if is_scannable(text) {
            parts.sections.push(name.to_owned());
        } else {
            return None;
        }
    }
    Some(parts)
}

/// The tasks that differ, in the old and in the new text: all between the first and the last that differ if tasks were added
/// or removed.
fn changed_tasks(old: &StateView<'_>, new: &StateView<'_>) -> Option<(ModifiedTasks, ModifiedTasks)> {
    let entries = |view: &StateView<'_>| Some(list_entries(view.text, view.task_lines()?));
    let (before, after) = (entries(old)?, entries(new)?);
    let is_same = |(before, after): &(&Range<usize>, &Range<usize>)| {
        old.text[(*before).clone()].trim_end() == new.text[(*after).clone()].trim_end()
    };
    if before.len() == after.len() {
        let differing = || before.iter().zip(&after).filter(|pair| !is_same(pair));
        let old_tasks = read_tasks(old, differing().map(|(before, _)| before))?;
        return Some((old_tasks, read_scannable(new, differing().map(|(_, after)| after))?));
    }
    let first = before.iter().zip(&after).take_while(is_same).count();
    let rest = before.len().min(after.len()) - first;
    let last = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(is_same).count();
    let old_tasks = read_tasks(old, &before[first..before.len() - last])?;
    Some((old_tasks, read_scannable(new, &after[first..after.len() - last])?))
}

/// The tasks in these lines of a text that a command wrote.
fn read_scannable<'r>(
    view: &StateView<'_>,
    entries: impl IntoIterator<Item = &'r Range<usize>> + Clone,
) -> Option<ModifiedTasks> {
    let is_scannable =
        |entry: &Range<usize>| is_scannable(&format!("tasks:\n{}\n", view.text[entry.clone()].trim_end()));
    entries.clone().into_iter().all(is_scannable).then(|| read_tasks(view, entries)).flatten()
}

/// The tasks in these lines.
fn read_tasks<'r>(
    view: &StateView<'_>,
    entries: impl IntoIterator<Item = &'r Range<usize>>,
) -> Option<ModifiedTasks> {
    let mut tasks = ModifiedTasks::default();
    for entry in entries {
        let end = entry.start + view.text[entry.clone()].trim_end().len();
        let (node, _) = view.part(entry.start, end).ok()?;
        let node = node.items().first()?;
        tasks.ids.push(node.get("id")?.text()?.parse().ok()?);
        tasks.values.push(plain_value(node));
    }
    Some(tasks)
}

/// Whether a scan of the lines finds the same blocks as the parser in a text with one section.
pub(crate) fn is_scannable(text: &str) -> bool {
    let (Ok(blocks), Ok((node, non_local))) = (sections(text), yaml::parse(text)) else { return false };
    let ([block], [(_, value)]) = (&blocks[..], node.entries()) else { return false };
    non_local.is_none() && scan_matches(text, block, value)
}

/// The state as far as it concerns the parts, and their values; none if the whole text must be parsed.
fn read(
    view: &mut StateView<'_>,
    sections: &[String],
    tasks: &ModifiedTasks,
    scope: &Scope,
) -> Result<Option<(State, Value)>, StoreError> {
    let mut state = State { board: view.board()?, ..State::default() };
    view.load_sections(&mut state.board, Section::ALL);
    let count = match scope {
        Scope::TheseTasks(others) => {
            let wanted = [&tasks.ids[..], others].concat();
            view.load_summaries(&mut state.board, Some(&wanted))?;
            wanted.len()
        }
        Scope::AllTasks => {
            view.load_summaries(&mut state.board, None)?;
            view.task_lines().map_or(0, |range| list_entries(view.text, range).len())
        }
    };
    if view.tree.is_some() || view.items.len() != count || state.board.tasks.len() != count {
        return Ok(None);
    }
    let mut root = Fields::new();
    for name in sections {
        view.load_journal(&mut state.journal, name);
        let Ok(Some(value)) = view.with_section(name, |node| Ok(plain_value(node))) else { return Ok(None) };
        root.insert(name.clone(), value);
    }
    view.load_bodies(&mut state.board, &tasks.ids)?;
    if !tasks.values.is_empty() {
        root.insert("tasks".to_owned(), Value::List(tasks.values.clone()));
    }
    state.journal.faults.extend(view.take_faults());
    Ok(Some((state, Value::Map(root))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(list: &[&str]) -> ModifiedTasks {
        let mut tasks = ModifiedTasks::default();
        for text in list {
            let value = plain_value(&yaml::parse(text).unwrap().0);
            tasks.ids.push(value.as_map().unwrap()["id"].as_text().unwrap().parse().unwrap());
            tasks.values.push(value);
        }
        tasks
    }

    fn scope(old: &[&str], new: &[&str]) -> Scope {
        let parts = ModifiedParts { sections: Vec::new(), old_tasks: tasks(old), new_tasks: tasks(new) };
        parts.scope(&format!("{}\nplanned: [mentioned]", new.join("\n")))
    }

    /// Covers: AC-27
    #[test]
    fn only_what_concerns_other_tasks_needs_them() {
        let old = "{id: a, status: DRAFT, depends_on: [b]}";
        for new in
            ["{id: a, status: BLOCKED, depends_on: [b]}", "{id: a, status: DRAFT, depends_on: [b], scope: x}"]
        {
            assert_eq!(scope(&[old], &[new]), Scope::TheseTasks(Vec::new()), "{new}");
        }
        let others = Scope::TheseTasks(vec!["c".parse().unwrap()]);
        assert_eq!(scope(&[old], &["{id: a, status: DRAFT, depends_on: [c]}"]), others);
        let all = [
            "{id: a, status: MERGED, depends_on: [b]}",
            "{id: a, status: CLAIMED, depends_on: [b]}",
            "{id: a, status: none, depends_on: [b]}",
            "{id: a, status: CLAIMED, depends_on: [c]}",
            "{id: c, status: DRAFT, depends_on: [b]}",
        ];
        for new in all {
            assert_eq!(scope(&[old], &[new]), Scope::AllTasks, "{new}");
        }
        assert_eq!(scope(&["{id: a, status: MERGED}"], &["{id: a, status: DRAFT}"]), Scope::AllTasks);
        assert_eq!(scope(&[old, "{id: x}"], &[old]), Scope::TheseTasks(Vec::new()), "removed");
        assert_eq!(scope(&[old, "{id: mentioned}"], &[old]), Scope::AllTasks, "removed, but named");
        let replaced = "{id: a, status: DRAFT, depends_on: [b], superseded_by: [c]}";
        let named = ["b", "c"].map(|id| id.parse().unwrap()).to_vec();
        assert_eq!(scope(&[old], &[replaced]), Scope::TheseTasks(named));
    }

    /// Covers: AC-27
    #[test]
    fn a_new_task_that_nothing_names_needs_no_other() {
        let old = "{id: a, status: DRAFT}";
        for new in
            ["{id: new, status: DRAFT}", "{id: new, status: UNCLAIMED, depends_on: [], superseded_by: }"]
        {
            assert_eq!(scope(&[], &[new]), Scope::TheseTasks(Vec::new()), "{new}");
            assert_eq!(scope(&[old], &[new, old]), Scope::TheseTasks(Vec::new()), "{new}");
        }
        let all = [
            "{id: mentioned, status: DRAFT}",
            "{id: new, status: CLAIMED}",
            "{id: new, status: DRAFT, depends_on: a}",
            "{id: new, status: DRAFT, superseded_by: [a]}",
            "{id: new, status: DRAFT, assigned_to: coder-1}",
            "{id: new}",
        ];
        for new in all {
            assert_eq!(scope(&[old], &[old, new]), Scope::AllTasks, "{new}");
        }
        let others = [
            "{id: new, status: DRAFT, depends_on: [z, y, next]}",
            "{id: next, status: DRAFT, depends_on: [z]}",
        ];
        let needed = ["y", "z"].map(|id| id.parse().unwrap()).to_vec();
        assert_eq!(
            scope(&[], &others[..1]),
            Scope::TheseTasks([&["next".parse().unwrap()], &needed[..]].concat())
        );
        assert_eq!(scope(&[], &others), Scope::AllTasks, "one names the other");
        assert_eq!(
            scope(&[], &["{id: new, status: DRAFT}", "{id: new, status: DRAFT}"]),
            Scope::AllTasks,
            "twice"
        );
    }
}
