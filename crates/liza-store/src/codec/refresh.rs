//! Updates a state to a new version of the file by reading only the changed blocks. Only for versions that we
//! wrote, without faults before or after; for all others the caller reads the whole file.

use std::collections::HashMap;
use std::ops::Range;

use indexmap::IndexMap;
use liza_core::model::{Section, State, TaskId, TaskSlot};

use super::tasks::task_slot;
use super::view::{StateView, fault_count, parse_part};
use crate::document::list_entries;

/// The positions of the blocks of one version.
#[derive(Debug)]
pub(crate) struct Layout {
    sections: Vec<Range<usize>>,
    /// Each from its dash to the next.
    tasks: Vec<Range<usize>>,
}

impl Layout {
    /// `None` if the version has faults, or if a line scan is not enough.
    pub(crate) fn of(view: &StateView<'_>, state: &State) -> Option<Self> {
        let layout = Self::scan(view)?;
        (fault_count(state) == 0 && layout.tasks.len() == state.board.tasks.len()).then_some(layout)
    }

    fn scan(view: &StateView<'_>) -> Option<Self> {
        let sections = view.blocks.iter().map(|block| block.start..block.end).collect();
        let tasks = list_entries(view.text, view.task_lines()?);
        Some(Self { sections, tasks })
    }
}

/// Updates an earlier state to a new version. `None` if the whole file must be read.
pub(crate) fn refresh(
    view: &mut StateView<'_>,
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
            "version" | "revision" | "archived" => {
                let board = view.board().ok()?;
                state.board.version = board.version;
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
    (view.faults.is_empty() && view.agent_faults().is_empty() && fault_count(&state) == 0)
        .then_some((state, new))
}

fn tasks(
    view: &StateView<'_>,
    new: &Layout,
    (old_text, old): (&str, &Layout),
    state: &mut State,
) -> Option<()> {
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

/// Updates the tasks when some were removed, so that the others have moved.
fn moved_tasks(
    view: &StateView<'_>,
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

fn read_task(view: &StateView<'_>, at: &Range<usize>) -> Option<(TaskId, TaskSlot)> {
    let end = at.start + view.text[at.clone()].trim_end().len();
    let (node, from) = parse_part(view.text, at.start, end).ok()?;
    task_slot(node.items().first()?, (view.text, from)).ok()
}
