//! `lock modify` in a version that we wrote: parses only the sections and tasks that the command changed.
//! Must accept and refuse the same as the edit of the whole text in `edit.rs`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use liza_core::model::{Fields, Revision, Section, State, TaskId, Timestamp, Value};

use super::edit::FileEdit;
use super::related_tasks::{ModifiedTasks, changed_archive, concerns_all_tasks, related_tasks};
use crate::backend::{Backend as _, LoggedEdit};
use crate::call::Edited;
use crate::codec::{self, StateView, TaskIndex, text_without_bom};
use crate::document::{plain_value, scan_matches, sections};
use crate::edit::{EditRules, adds_none_in_part, edit_of_ended_tasks, new_misspelled, revision_stamps};
use crate::error::StoreError;
use crate::file::{Fingerprint, NewVersion, Origin};
use crate::yaml;

/// The differences between two texts.
#[derive(Default)]
struct ModifiedParts {
    /// The sections besides the tasks.
    sections: Vec<String>,
    old_tasks: ModifiedTasks,
    new_tasks: ModifiedTasks,
}

struct IndexedText<'t> {
    view: StateView<'t>,
    index: TaskIndex<'t>,
}

impl<'t> IndexedText<'t> {
    /// `None` if the whole text must be parsed.
    fn new(path: &'t Path, text: &'t str) -> Result<Option<Self>, StoreError> {
        let view = StateView::lazy(path, text)?;
        Ok(TaskIndex::of(&view).filter(|_| view.tree.is_none()).map(|index| Self { view, index }))
    }
}

impl FileEdit<'_> {
    /// Accepts the text that a command wrote; `None` if that needs the whole text.
    pub(crate) fn finish_parts(
        &mut self,
        rules: &EditRules,
        bytes: &[u8],
        LoggedEdit { entry: log, now }: LoggedEdit<'_>,
    ) -> Result<Option<Edited>, StoreError> {
        let file = self.store.files().state();
        let (old, new) = (text_without_bom(&file, &self.current.bytes)?, text_without_bom(&file, bytes)?);
        if self.current.origin != (Origin::Ours { scannable: true }) || old.1 + new.1 > 0 {
            return Ok(None);
        }
        let (Some(mut old), Some(mut new)) =
            (IndexedText::new(&file, old.0)?, IndexedText::new(&file, new.0)?)
        else {
            return Ok(None);
        };
        let Some(CheckedParts { before, after, from, to }) =
            self.checked_parts(rules, &mut old, &mut new, now)?
        else {
            return Ok(None);
        };
        let new = new.view;
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

    /// Reads the differences between two texts, with the tasks that the rules look at; `None` if the whole
    /// must be read, or if a violation is added: its reason is seen only in the whole of both texts.
    fn checked_parts(
        &self,
        rules: &EditRules,
        old: &mut IndexedText<'_>,
        new: &mut IndexedText<'_>,
        now: Timestamp,
    ) -> Result<Option<CheckedParts>, StoreError> {
        let Some(parts) = changed_parts(old, new) else { return Ok(None) };
        let section = |name: &str| {
            let value = |view: &StateView<'_>| view.with_section(name, |node| Ok(plain_value(node)));
            (value(&old.view).ok().flatten(), value(&new.view).ok().flatten())
        };
        let mut archived = Vec::new();
        for name in &parts.sections {
            let (Some(from), Some(to)) = section(name) else { return Ok(None) };
            if concerns_all_tasks(name, &from, &to) {
                return Ok(None);
            }
            archived.extend(changed_archive(name, &from, &to));
        }
        let changed = (&parts.old_tasks, &parts.new_tasks);
        let Some(related) = related_tasks((&new.view, &new.index), changed, &archived) else {
            return Ok(None);
        };
        let related: Vec<TaskId> = related.into_iter().filter_map(|n| new.index.id(n)).collect();
        let (Some((before, from)), Some((after, to))) = (
            read(old, &parts.sections, &parts.old_tasks, &related)?,
            read(new, &parts.sections, &parts.new_tasks, &related)?,
        ) else {
            return Ok(None);
        };
        new.view.check_version()?;
        rules.check_values(&before.board, &from, &to)?;
        if edit_of_ended_tasks(&from, &to).is_some() {
            return Ok(None);
        }
        let (existed, exists) = (|id: &TaskId| old.index.contains(id), |id: &TaskId| new.index.contains(id));
        let disk = self.store.disk();
        let adds_none = adds_none_in_part(&disk, (&before, &existed), (&after, &exists), now);
        Ok(adds_none.then_some(CheckedParts { before, after, from, to }))
    }
}

/// The differing parts of two texts, and the facts to check them.
struct CheckedParts {
    before: State,
    after: State,
    from: Value,
    to: Value,
}

/// The differences between two texts; `None` if their lines alone don't show them.
fn changed_parts(old: &IndexedText<'_>, new: &IndexedText<'_>) -> Option<ModifiedParts> {
    let (before, after) = (&old.view, &new.view);
    if before.blocks.len() != after.blocks.len() {
        return None;
    }
    let mut parts = ModifiedParts::default();
    for (old_block, new_block) in before.blocks.iter().zip(&after.blocks) {
        let name = new_block.name(after.text);
        if old_block.name(before.text) != name {
            return None;
        }
        let text = &after.text[new_block.start..new_block.end];
        if before.text[old_block.start..old_block.end] == *text {
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

/// The tasks that differ, in the old and in the new text, wherever they are in the list.
fn changed_tasks(old: &IndexedText<'_>, new: &IndexedText<'_>) -> Option<(ModifiedTasks, ModifiedTasks)> {
    let differing = |of: &TaskIndex<'_>, other: &TaskIndex<'_>| -> Vec<Range<usize>> {
        let is_same = |n: usize| {
            let lines = of.lines(n);
            // Most tasks have kept their place.
            lines == other.lines(n)
                || of.name(n).and_then(|id| other.position(id)).is_some_and(|at| lines == other.lines(at))
        };
        let entries = of.entries().iter().enumerate().filter(|(n, _)| !is_same(*n));
        entries.map(|(_, entry)| entry.clone()).collect()
    };
    let old_tasks = read_tasks(&old.view, &differing(&old.index, &new.index))?;
    Some((old_tasks, read_scannable(&new.view, &differing(&new.index, &old.index))?))
}

/// The tasks in these lines of a text that a command wrote.
fn read_scannable(view: &StateView<'_>, entries: &[Range<usize>]) -> Option<ModifiedTasks> {
    let is_scannable =
        |entry: &Range<usize>| is_scannable(&format!("tasks:\n{}\n", view.text[entry.clone()].trim_end()));
    entries.iter().all(is_scannable).then(|| read_tasks(view, entries)).flatten()
}

/// The tasks in these lines.
fn read_tasks(view: &StateView<'_>, entries: &[Range<usize>]) -> Option<ModifiedTasks> {
    let mut tasks = ModifiedTasks::default();
    for entry in entries {
        let end = entry.start + view.text[entry.clone()].trim_end().len();
        let (node, _) = view.part(entry.start, end).ok()?;
        let node = node.items().first()?;
        tasks.push(node.get("id")?.text()?.parse().ok()?, plain_value(node));
    }
    Some(tasks)
}

/// True if a scan of the lines finds the same blocks as the parser in a text with one section.
pub(crate) fn is_scannable(text: &str) -> bool {
    let (Ok(blocks), Ok((node, non_local))) = (sections(text), yaml::parse(text)) else { return false };
    let ([block], [(_, value)]) = (&blocks[..], node.entries()) else { return false };
    non_local.is_none() && scan_matches(text, block, value)
}

/// The state around the parts, and their values; `None` if the whole text must be parsed.
fn read(
    text: &mut IndexedText<'_>,
    sections: &[String],
    tasks: &ModifiedTasks,
    related: &[TaskId],
) -> Result<Option<(State, Value)>, StoreError> {
    let IndexedText { view, index } = text;
    let mut state = State { board: view.board()?, ..State::default() };
    view.load_sections(&mut state.board, Section::ALL);
    let wanted: BTreeSet<usize> =
        tasks.ids.iter().chain(related).filter_map(|id| index.position(id.as_str())).collect();
    let count = wanted.len();
    view.load_indexed(&mut state.board, index, wanted)?;
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
