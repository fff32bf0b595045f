//! A change of the board as a change of rows.

use std::path::Path;

use liza_core::model::{Board, Change, Revision, TaskId};

use super::{EntryRow, LISTS, Rows, TASKS, list_entry};
use crate::archive;
use crate::codec::verify::{mismatch, not_encoded};
use crate::codec::{self, Op, StateView};
use crate::error::StoreError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WholeRow {
    /// A new entry of a section, and its place among the new rows of the change.
    Added {
        section: &'static str,
        entry: EntryRow,
        place: usize,
    },
    RemovedTask(TaskId),
}

#[derive(Debug)]
pub struct RowChange {
    /// Without the tasks that were not loaded in full.
    pub before: Rows,
    pub after: Rows,
    pub whole: Vec<WholeRow>,
    pub archived: Vec<(String, String)>,
}

impl Rows {
    /// Applies a change, and returns the difference.
    pub fn change(
        &mut self,
        path: &Path,
        revision: Revision,
        mut board: Board,
        change: &Change,
    ) -> Result<RowChange, StoreError> {
        board.tasks.retain(|_, slot| slot.body.is_some());
        let is_loaded = |key: &str| key.parse().is_ok_and(|id: TaskId| board.tasks.contains_key(&id));
        let before = self.with_tasks(is_loaded);
        let text = before.text(revision.0);
        let mut view = StateView::lazy(path, &text)?;
        view.load_summaries(&mut Board::default(), None)?;
        let ops = codec::operations(&board, change).map_err(|error| not_encoded(path, error))?;
        // New and removed rows need no text around them.
        let (own, in_text): (Vec<Op>, Vec<Op>) = ops.into_iter().partition(is_whole_row);
        let spliced = codec::splice(&view, &in_text).ok();
        let spliced = spliced.filter(|spliced| codec::reads_back(&view, spliced, &in_text));
        let changed = match spliced {
            Some(spliced) => spliced.text,
            None => {
                let full = StateView::full(path, &text)?;
                codec::rewrite(&full, &in_text).ok_or_else(|| mismatch(path, "a section"))?
            }
        };
        let after = Rows::split(&changed).ok_or_else(|| mismatch(path, "the rows"))?;
        let archived = archive::texts(&view, &board, change);
        self.update(after.clone());
        let whole: Vec<WholeRow> =
            own.iter().enumerate().flat_map(|(n, op)| whole_rows(op, change.revision, n)).collect();
        for row in &whole {
            self.update_whole(row);
        }
        Ok(RowChange { before, after, whole, archived })
    }

    fn update_whole(&mut self, row: &WholeRow) {
        // Lists are not loaded.
        let Some(tasks) = self.0.iter_mut().find(|section| section.name == TASKS) else { return };
        match row {
            WholeRow::Added { section: TASKS, entry, .. } => tasks.entries.push(entry.clone()),
            WholeRow::Added { .. } => {}
            WholeRow::RemovedTask(id) => tasks.entries.retain(|entry| entry.key != id.as_str()),
        }
    }
}

/// True if an operation adds or removes whole rows.
fn is_whole_row(op: &Op) -> bool {
    match op {
        Op::AddTask { .. } | Op::RemoveTask { .. } => true,
        Op::Append { section, key: None, .. } => LISTS.contains(section),
        Op::Append { .. } | Op::ChangeTask { .. } | Op::Change { .. } | Op::Replace { .. } => false,
    }
}

/// The rows that the nth operation adds or removes.
fn whole_rows(op: &Op, revision: Revision, n: usize) -> Vec<WholeRow> {
    let added = |section, key: String, text: String, place| WholeRow::Added {
        section,
        entry: EntryRow { key, text, whole: true },
        place,
    };
    match op {
        Op::AddTask { id, new } => vec![added(TASKS, id.to_string(), list_entry(new), n)],
        Op::RemoveTask { id, .. } => vec![WholeRow::RemovedTask(id.clone())],
        Op::Append { section, new, .. } => {
            let entry =
                |(item, value)| added(section, format!("{revision}.{n}.{item}"), list_entry(value), n + item);
            new.iter().enumerate().map(entry).collect()
        }
        Op::ChangeTask { .. } | Op::Change { .. } | Op::Replace { .. } => Vec::new(),
    }
}
