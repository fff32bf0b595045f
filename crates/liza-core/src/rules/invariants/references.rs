//! Names on the blackboard that refer to nothing, and IDs that are used twice.
//!
//! Only reported, and refused in a manual edit: no command may be blocked by them.

use std::collections::BTreeSet;

use indexmap::IndexSet;

use crate::model::{State, TaskId};

use super::{BoardView, Violation};

/// Adds every name that leads nowhere.
pub(super) fn check(view: &BoardView<'_>, found: &mut Vec<Violation>) {
    let board = view.board;
    for (id, entry) in board.agents.entries() {
        if let Some(task) = unknown(view, entry.current_task.as_ref()) {
            found.push(Violation::agent(*id, format!("current_task names {task}, which does not exist")));
        }
    }
    for (id, slot) in &board.tasks {
        let missing = slot.summary.superseded_by.iter().filter_map(|task| unknown(view, Some(task)));
        found
            .extend(missing.map(|task| {
                Violation::task(id, format!("superseded_by names {task}, which does not exist"))
            }));
    }
    // A planner's notes are kept under the goal's name.
    let goal = board.goal.ready().map(|goal| goal.id.as_str());
    let notes = board.handoff.entries().map(|(task, _)| task);
    for task in notes.filter(|task| Some(task.as_str()) != goal) {
        if let Some(task) = unknown(view, Some(task)) {
            found.push(Violation::section("handoff", format!("{task} does not exist")));
        }
    }
    check_discoveries(view, found);
}

/// Adds every dependency that a task names twice.
pub(super) fn check_repeated(state: &State, found: &mut Vec<Violation>) {
    for (id, slot) in &state.board.tasks {
        let (mut seen, dependencies) = (IndexSet::new(), slot.summary.depends_on.as_slice());
        let several = dependencies.iter().filter(|_| dependencies.len() > 1);
        let twice = several.filter(|task| !seen.insert(*task));
        found.extend(twice.map(|task| Violation::task(id, format!("depends_on names {task} twice"))));
    }
}

fn check_discoveries(view: &BoardView<'_>, found: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    for discovery in view.board.discovered.entries() {
        let id = discovery.id.to_string();
        for (field, task) in
            [("during", &discovery.during), ("converted_to_task", &discovery.converted_to_task)]
        {
            if let Some(task) = unknown(view, task.as_ref()) {
                let message = format!("{field} of {id} names {task}, which does not exist");
                found.push(Violation::section("discovered", message));
            }
        }
        if !seen.insert(id.clone()) {
            found.push(Violation::section("discovered", format!("the ID {id} is used twice")));
        }
    }
}

fn unknown<'t>(view: &BoardView<'_>, task: Option<&'t TaskId>) -> Option<&'t TaskId> {
    task.filter(|task| !view.knows(task))
}
