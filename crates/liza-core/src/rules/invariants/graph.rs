//! Invariants between tasks: dependencies exist, form no cycle and are met; no coder has two claims.

use indexmap::IndexMap;

use crate::model::{AgentId, Status, TaskId};

use super::{BoardView, Violation};

/// Adds the violations between these tasks and the others.
pub(super) fn check<'t>(view: &BoardView<'t>, tasks: &[&'t TaskId], found: &mut Vec<Violation>) {
    for id in tasks {
        check_dependencies(view, id, found);
    }
    check_cycles(view, tasks, found);
    check_claims(view, found);
}

fn check_dependencies(view: &BoardView<'_>, id: &TaskId, found: &mut Vec<Violation>) {
    let dependencies = view.depends_on(id);
    let is_claimed = !dependencies.is_empty() && view.is(id, Status::Claimed);
    for dependency in dependencies {
        if !view.knows(dependency) {
            found.push(Violation::task(id, format!("depends_on names {dependency}, which does not exist")));
        } else if is_claimed && view.status(dependency) != Some(Status::Merged) {
            // Without its status: another one that is just as wrong is no new violation.
            found
                .push(Violation::task(id, format!("CLAIMED, but its dependency {dependency} is not MERGED")));
        }
    }
}

/// Walks the dependencies from these tasks, each edge once, and reports each cycle where it closes.
fn check_cycles<'t>(view: &BoardView<'t>, tasks: &[&'t TaskId], found: &mut Vec<Violation>) {
    let mut done: IndexMap<&TaskId, bool> = IndexMap::with_capacity(tasks.len());
    for start in tasks.iter().copied() {
        if done.contains_key(start) {
            continue;
        }
        // A path of (task, dependencies still to visit); on the stack means `false` in `done`.
        let mut path: Vec<(&TaskId, &[TaskId])> = vec![(start, view.depends_on(start))];
        done.insert(start, false);
        while let Some((current, open)) = path.last_mut() {
            let Some((next, rest)) = open.split_last() else {
                done.insert(current, true);
                path.pop();
                continue;
            };
            *open = rest;
            match done.get(next) {
                Some(true) => {}
                Some(false) => {
                    let cycle = path.iter().map(|(id, _)| *id).skip_while(|id| *id != next);
                    let names: Vec<&str> = cycle.map(TaskId::as_str).collect();
                    let text = format!("depends_on has a cycle: {} → {next}", names.join(" → "));
                    found.push(Violation::task(next, text));
                }
                None => {
                    done.insert(next, false);
                    path.push((next, view.depends_on(next)));
                }
            }
        }
    }
}

fn check_claims(view: &BoardView<'_>, found: &mut Vec<Violation>) {
    let mut claims: IndexMap<AgentId, TaskId> = IndexMap::new();
    let changed = |id: &TaskId| view.change.is_some_and(|change| change.tasks.contains_key(id));
    let old = view.board.summaries().filter(|summary| !changed(&summary.id) && summary.is(Status::Claimed));
    let old = old.map(|summary| (summary.id.clone(), summary.assigned_to));
    let new = view.change.into_iter().flat_map(|change| &change.tasks);
    let new = new.filter(|(_, record)| record.status == Some(Status::Claimed));
    let new = new.map(|(id, record)| (id.clone(), record.assigned_to));
    for (id, coder) in old.chain(new) {
        let Some(coder) = coder else { continue };
        match claims.get(&coder) {
            Some(other) => {
                let (first, second) = if *other < id { (other.clone(), id) } else { (id, other.clone()) };
                found.push(Violation::agent(coder, format!("has two CLAIMED tasks, {first} and {second}")));
            }
            None => drop(claims.insert(coder, id)),
        }
    }
}
