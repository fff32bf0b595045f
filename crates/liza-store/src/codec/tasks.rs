//! Reads tasks: summaries of all or some of them, and the bodies that a command needs. An invalid field is
//! one fault, and the rest of its task still loads.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use liza_core::model::{Board, Fault, TaskBody, TaskId, TaskRecord, TaskSlot, TaskSummary};

use super::summaries;
use super::task_index::TaskIndex;
use super::view::{StateView, below, fault_of};
use crate::document::{Ambiguous, Item, Shape, is_empty_value, shape};
use crate::error::StoreError;
use crate::yaml::{Node, NodeKind, YamlError, decode};

impl<'t> StateView<'t> {
    /// Loads the summaries of all tasks, or of the wanted ones.
    pub(crate) fn load_summaries(
        &mut self,
        board: &mut Board,
        wanted: Option<&[TaskId]>,
    ) -> Result<(), StoreError> {
        if self.tree.is_some() { self.tasks_from_tree(board) } else { self.tasks_from_lines(board, wanted) }
    }

    /// Loads the summaries of these entries of an index.
    pub(crate) fn load_indexed(
        &mut self,
        board: &mut Board,
        index: &TaskIndex<'t>,
        wanted: impl IntoIterator<Item = usize>,
    ) -> Result<(), StoreError> {
        let entries = wanted.into_iter().filter_map(|n| index.entries().get(n));
        let scanned: Result<Vec<_>, Ambiguous> =
            entries.map(|entry| summaries::scan(self.text, entry.clone(), None)).collect();
        let Ok(scanned) = scanned else {
            self.parse_all()?;
            return self.tasks_from_tree(board);
        };
        self.add_scanned(board, scanned.into_iter().flatten())
    }

    /// `None` if the task is invalid.
    pub(super) fn summary_at(&self, entry: &Range<usize>) -> Option<TaskSummary> {
        let scanned = summaries::scan(self.text, entry.clone(), None).ok()?.pop()?;
        match scanned.summary() {
            (_, Ok(summary)) => Some(summary),
            (item, Err(summaries::NeedsParser)) => {
                self.parsed_summary(&item).ok()?.ok().map(|(_, slot)| slot.summary)
            }
        }
    }

    /// `None` if the tasks are not a block list.
    pub(crate) fn task_lines(&self) -> Option<Range<usize>> {
        let block = self.block("tasks")?;
        let rest = &self.text[block.after..block.end];
        let (first, below) = rest.split_once('\n').unwrap_or((rest, ""));
        let first = first.trim();
        let is_list = first.is_empty() || first.starts_with('#') || is_empty_value(rest);
        is_list.then_some(block.end - below.len()..block.end)
    }

    fn tasks_from_lines(&mut self, board: &mut Board, wanted: Option<&[TaskId]>) -> Result<(), StoreError> {
        if self.block("tasks").is_none() {
            return Ok(());
        }
        let scanned = self.task_lines().ok_or(Ambiguous).and_then(|range| {
            // If a task does not begin with its ID, all summaries are read.
            summaries::scan(self.text, range.clone(), wanted)
                .or_else(|_| summaries::scan(self.text, range, None))
        });
        let Ok(scanned) = scanned else {
            self.parse_all()?;
            return self.tasks_from_tree(board);
        };
        board.tasks.reserve(scanned.len());
        self.items.reserve(scanned.len());
        self.add_scanned(board, scanned)
    }

    fn add_scanned(
        &mut self,
        board: &mut Board,
        scanned: impl IntoIterator<Item = summaries::ScannedTask>,
    ) -> Result<(), StoreError> {
        for (item, summary) in scanned.into_iter().map(summaries::ScannedTask::summary) {
            let slot = match summary {
                Ok(summary) => Ok((summary.id.clone(), TaskSlot { summary, body: None })),
                Err(summaries::NeedsParser) => self.parsed_summary(&item)?,
            };
            self.add_task(board, slot, Some(item));
        }
        Ok(())
    }

    fn parsed_summary(&self, item: &Item) -> Result<Result<(TaskId, TaskSlot), Fault>, StoreError> {
        let (node, from) = self.parse_item(item)?;
        Ok(match node.items().first() {
            Some(node) => task_slot(node, (self.text, from))
                .map(|(id, slot)| (id, TaskSlot { summary: slot.summary, body: None })),
            None => Err(Fault { field: "tasks".to_owned(), message: "an entry is empty".to_owned() }),
        })
    }

    fn tasks_from_tree(&mut self, board: &mut Board) -> Result<(), StoreError> {
        let Some(tree) = self.tree.take() else { return Ok(()) };
        let outcome = self.read_tasks(&tree, board);
        self.tree = Some(tree);
        outcome
    }

    fn read_tasks(&mut self, tree: &Node<'t>, board: &mut Board) -> Result<(), StoreError> {
        let Some(tasks) = tree.get("tasks") else { return Ok(()) };
        if !matches!(tasks.kind, NodeKind::List(..)) && !tasks.is_null() {
            let message = format!("expected a list of tasks, found {}", tasks.describe());
            let error = YamlError { key: Some("tasks".to_owned()), ..YamlError::at(message, tasks.position) };
            return Err(self.broken(error));
        }
        let items = match self.block("tasks").map(|block| shape(self.text, block)) {
            Some(Ok(Shape::List(items))) if items.len() == tasks.items().len() => items,
            _ => Vec::new(),
        };
        for (n, node) in tasks.items().iter().enumerate() {
            let slot = task_slot(node, (self.text, 0));
            self.add_task(board, slot, items.get(n).cloned());
        }
        Ok(())
    }

    fn add_task(&mut self, board: &mut Board, slot: Result<(TaskId, TaskSlot), Fault>, item: Option<Item>) {
        match slot {
            Ok((id, _)) if board.tasks.contains_key(&id) => {
                let message = format!(
                    "the task ID {id} is used twice; the second task is ignored until it has another ID"
                );
                self.faults.push(Fault { field: "tasks".to_owned(), message });
            }
            Ok((id, slot)) => {
                self.items.extend(item);
                board.tasks.insert(id, slot);
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    fn parse_item(&self, item: &Item) -> Result<(Rc<Node<'t>>, usize), StoreError> {
        self.part(item.start, item.end).map_err(|error| self.broken(error))
    }

    pub(crate) fn load_bodies(&self, board: &mut Board, tasks: &[TaskId]) -> Result<(), StoreError> {
        for id in tasks {
            let Some((at, _, slot)) = board.tasks.get_full_mut(id).filter(|(_, _, slot)| slot.body.is_none())
            else {
                continue;
            };
            let Some(item) = self.items.get(at) else { continue };
            let (node, from) = self.parse_item(item)?;
            if let Some(node) = node.items().first() {
                slot.body = Some(Arc::new(task_body(node, (self.text, from))));
            }
        }
        Ok(())
    }
}

/// Reads a task; if it has errors, key by key, so that one invalid field is one fault.
fn task_body(node: &Node<'_>, (text, from): (&str, usize)) -> TaskBody {
    let whole = match decode::<TaskRecord>(node) {
        Ok(record) => return TaskBody::new(record, Vec::new()),
        Err(whole) => whole,
    };
    let mut faults = Vec::new();
    let mut valid = Vec::new();
    for entry in node.entries() {
        let alone = node.with_entries(vec![entry.clone()]);
        match decode::<TaskRecord>(&alone) {
            Ok(_) => valid.push(entry.clone()),
            Err(error) => faults.push(fault_of(entry.0.text().unwrap_or("task"), below(error, text, from))),
        }
    }
    if faults.is_empty() {
        faults.push(fault_of("task", below(whole, text, from)));
    }
    let rest = node.with_entries(valid);
    TaskBody::new(decode(&rest).unwrap_or_default(), faults)
}

pub(super) fn task_slot(node: &Node<'_>, file: (&str, usize)) -> Result<(TaskId, TaskSlot), Fault> {
    let body = task_body(node, file);
    let Some(id) = body.record().id.clone() else {
        let invalid = body.faults().iter().find(|fault| fault.field == "id").cloned();
        let missing =
            || fault_of("id", below(YamlError::at("the task has no ID", node.position), file.0, file.1));
        return Err(invalid.unwrap_or_else(missing));
    };
    let summary = TaskSummary::of(&id, body.record());
    Ok((id, TaskSlot { summary, body: Some(Arc::new(body)) }))
}
