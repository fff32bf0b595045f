//! A look at the blackboard that builds on the one before: only blocks whose bytes have changed are read.
//!
//! For versions that we wrote, without a fault before or after. Everything else is read as a whole by whoever calls.

use std::collections::HashMap;
use std::ops::Range;

use indexmap::IndexMap;
use liza_core::model::{Loaded, Section, State, TaskId, TaskSlot};

use super::read::{View, parse_part, task_slot};
use crate::document::{Block, entries};

/// Where the blocks of one version stand.
#[derive(Debug)]
pub(crate) struct Layout {
    sections: Vec<Range<usize>>,
    /// From one dash to the next.
    tasks: Vec<Range<usize>>,
}

impl Layout {
    /// Where the blocks of a version stand that was read without a fault; nothing where a line scan cannot tell.
    pub(crate) fn of(view: &View<'_>, state: &State) -> Option<Self> {
        let layout = Self::scan(view)?;
        (is_clean(state) && layout.tasks.len() == state.board.tasks.len()).then_some(layout)
    }

    fn scan(view: &View<'_>) -> Option<Self> {
        let sections = view.blocks.iter().map(|block| block.start..block.end).collect();
        let tasks = items(view.text, view.block("tasks")?)?;
        Some(Self { sections, tasks })
    }
}

/// Where the tasks stand; nothing where they are not in a block list.
fn items(text: &str, block: &Block) -> Option<Vec<Range<usize>>> {
    let rest = &text[block.after..block.end];
    let (first, below) = rest.split_once('\n').unwrap_or((rest, ""));
    let found = entries(text, block.end - below.len()..block.end);
    match first.trim() {
        "[]" => found.is_empty().then_some(found),
        first => (first.is_empty() || first.starts_with('#')).then_some(found),
    }
}

/// Whether everything could be understood. A fault names its line, and lines move.
fn is_clean(state: &State) -> bool {
    let board = &state.board;
    let whole = |slot: &TaskSlot| slot.body.as_ref().is_some_and(|body| body.faults().is_empty());
    state.journal.faults.is_empty()
        && board.tasks.values().all(whole)
        && is_ready(&board.agents)
        && is_ready(&board.config)
        && is_ready(&board.goal)
        && is_ready(&board.sprint)
        && is_ready(&board.circuit_breaker)
        && is_ready(&board.discovered)
        && is_ready(&board.handoff)
}

fn is_ready<T>(section: &Loaded<T>) -> bool {
    section.ready().is_some()
}

/// The state of a new version, from that of an earlier one. Nothing where it has to be read as a whole.
pub(crate) fn refresh(
    view: &mut View<'_>,
    (old_text, old, state): (&str, &Layout, &State),
) -> Option<(State, Layout)> {
    let new = Layout::scan(view)?;
    if old.sections.len() != new.sections.len() {
        return None;
    }
    let mut state = state.clone();
    for (n, (before, after)) in old.sections.iter().zip(&new.sections).enumerate() {
        if old_text[before.clone()] == view.text[after.clone()] {
            continue;
        }
        let name = view.blocks.get(n)?.name(view.text);
        let key = name.len() + 1;
        if old_text[before.clone()].get(..key) != view.text[after.clone()].get(..key) {
            return None;
        }
        match name {
            "tasks" => tasks(view, &new, (old_text, old), &mut state)?,
            "revision" | "archived" => {
                let board = view.board().ok()?;
                (state.board.revision, state.board.archived) = (board.revision, board.archived);
            }
            _ => {
                let sections: Vec<Section> =
                    Section::ALL.iter().copied().filter(|section| section.key() == name).collect();
                view.load_sections(&mut state.board, &sections);
                view.load_journal(&mut state.journal, name);
            }
        }
    }
    (view.faults.is_empty() && is_clean(&state)).then_some((state, new))
}

/// Brings the tasks up to date.
fn tasks(view: &View<'_>, new: &Layout, (old_text, old): (&str, &Layout), state: &mut State) -> Option<()> {
    if new.tasks.len() < old.tasks.len() {
        return moved_tasks(view, new, (old_text, old), state);
    }
    let tasks = &mut state.board.tasks;
    for (n, at) in new.tasks.iter().enumerate() {
        let before = old.tasks.get(n).map(|at| old_text[at.clone()].trim_end());
        if before == Some(view.text[at.clone()].trim_end()) {
            continue;
        }
        let (id, slot) = read_task(view, at)?;
        match tasks.get_index_of(&id) {
            Some(known) if known == n => tasks[n] = slot,
            None if n == tasks.len() => drop(tasks.insert(id, slot)),
            Some(_) | None => return None,
        }
    }
    Some(())
}

/// The same where tasks are gone, so that the others stand elsewhere.
fn moved_tasks(
    view: &View<'_>,
    new: &Layout,
    (old_text, old): (&str, &Layout),
    state: &mut State,
) -> Option<()> {
    let known: HashMap<&str, usize> =
        old.tasks.iter().enumerate().map(|(n, at)| (old_text[at.clone()].trim_end(), n)).collect();
    let mut tasks: IndexMap<TaskId, TaskSlot> = IndexMap::with_capacity(new.tasks.len());
    for at in &new.tasks {
        let (id, slot) = match known.get(view.text[at.clone()].trim_end()) {
            Some(n) => state.board.tasks.get_index(*n).map(|(id, slot)| (id.clone(), slot.clone()))?,
            None => read_task(view, at)?,
        };
        if tasks.insert(id, slot).is_some() {
            return None;
        }
    }
    state.board.tasks = tasks;
    Some(())
}

fn read_task(view: &View<'_>, at: &Range<usize>) -> Option<(TaskId, TaskSlot)> {
    let end = at.start + view.text[at.clone()].trim_end().len();
    let (node, from) = parse_part(view.text, at.start, end).ok()?;
    task_slot(node.items().first()?, (view.text, from)).ok()
}
