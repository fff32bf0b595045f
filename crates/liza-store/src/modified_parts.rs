//! `lock modify` in a version that we wrote: parses only the sections and tasks that the command changed.
//!
//! Must accept and refuse the same as the edit of the whole text in `text_edit.rs`, which is used for everything else.

use std::ops::Range;

use liza_core::model::{Fields, LogEntry, Revision, Section, State, TaskId, Timestamp, Value};

use crate::codec::{self, StateView, text_without_bom};
use crate::document::{list_entries, plain_value, scan_matches, sections};
use crate::error::StoreError;
use crate::file::{Fingerprint, NewVersion, Origin};
use crate::text_edit::{EditSession, Edited, revision_stamps};
use crate::yaml;

/// The names of the sections and the positions of the tasks that differ.
#[derive(Default)]
struct ModifiedParts {
    sections: Vec<String>,
    old_tasks: Vec<usize>,
    new_tasks: Vec<usize>,
}

impl EditSession<'_> {
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
        let (Some((before, from)), Some((after, to))) = (
            read(&mut old, &parts.sections, &parts.old_tasks)?,
            read(&mut new, &parts.sections, &parts.new_tasks)?,
        ) else {
            return Ok(None);
        };
        new.check_version()?;
        self.check_values(&before.board, &from, &to)?;
        let violations = self.new_violations(Some(&before), &after, now);
        if !violations.is_empty() {
            return Err(StoreError::Violates(violations));
        }
        let revision = after.board.revision.max(Revision(self.current.revision)).next();
        let change = revision_stamps(Some(&before), &after, revision);
        let ops = codec::operations(&after.board, &change).map_err(|error| self.store.not_encoded(error))?;
        let spliced = codec::splice(&new, &ops).ok().filter(|spliced| codec::reads_back(&new, spliced, &ops));
        let Some(spliced) = spliced else { return Ok(None) };
        let delayed = self.locked.commit(&NewVersion {
            before: Fingerprint::of(bytes),
            after: spliced.text.as_bytes(),
            edits: &spliced.edits,
            revision_before: self.current.revision,
            revision: revision.0,
            scannable: true,
            log: Some(self.store.log_text(log, revision)?),
        })?;
        Ok(Some(Edited { revision, notices: delayed.into_iter().collect() }))
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

/// The positions of the tasks that differ, in the old and in the new text: between the first and the last that differ if
/// tasks were added or removed.
fn changed_tasks(old: &StateView<'_>, new: &StateView<'_>) -> Option<(Vec<usize>, Vec<usize>)> {
    let entries = |view: &StateView<'_>| Some(list_entries(view.text, view.task_lines()?));
    let (before, after) = (entries(old)?, entries(new)?);
    let is_same = |(before, after): &(&Range<usize>, &Range<usize>)| {
        old.text[(*before).clone()].trim_end() == new.text[(*after).clone()].trim_end()
    };
    let (old_tasks, new_tasks): (Vec<usize>, Vec<usize>) = if before.len() == after.len() {
        let differs = |n: &usize| !is_same(&(&before[*n], &after[*n]));
        let changed: Vec<usize> = (0..after.len()).filter(differs).collect();
        (changed.clone(), changed)
    } else {
        let first = before.iter().zip(&after).take_while(is_same).count();
        let rest = before.len().min(after.len()) - first;
        let last = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(is_same).count();
        ((first..before.len() - last).collect(), (first..after.len() - last).collect())
    };
    let scannable =
        |n: &usize| is_scannable(&format!("tasks:\n{}\n", new.text[after[*n].clone()].trim_end()));
    new_tasks.iter().all(scannable).then_some((old_tasks, new_tasks))
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
    tasks: &[usize],
) -> Result<Option<(State, Value)>, StoreError> {
    let mut state = State { board: view.board()?, ..State::default() };
    view.load_sections(&mut state.board, Section::ALL);
    view.load_summaries(&mut state.board, None)?;
    let count = view.task_lines().map_or(0, |range| list_entries(view.text, range).len());
    if view.tree.is_some() || view.items.len() != count || state.board.tasks.len() != count {
        return Ok(None);
    }
    let mut root = Fields::new();
    for name in sections {
        view.load_journal(&mut state.journal, name);
        let Ok(Some(value)) = view.with_section(name, |node| Ok(plain_value(node))) else { return Ok(None) };
        root.insert(name.clone(), value);
    }
    let id = |n: &usize| state.board.tasks.get_index(*n).map(|(id, _)| id.clone());
    let ids: Vec<TaskId> = tasks.iter().filter_map(id).collect();
    view.load_bodies(&mut state.board, &ids)?;
    let mut values = Vec::with_capacity(ids.len());
    for item in tasks.iter().filter_map(|n| view.items.get(*n)) {
        let Ok((node, _)) = view.part(item.start, item.end) else { return Ok(None) };
        values.extend(node.items().first().map(plain_value));
    }
    if !values.is_empty() {
        root.insert("tasks".to_owned(), Value::List(values));
    }
    state.journal.faults.extend(view.take_faults());
    Ok(Some((state, Value::Map(root))))
}
