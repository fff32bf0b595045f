//! The tasks that are read to check an edit: the changed ones, and those that the rules look at because of
//! them. The relations come from `TaskRelations` of the core, the tasks from the index of a version.

use std::collections::BTreeSet;

use liza_core::model::{TaskId, Value};
use liza_core::rules::invariants::TaskRelations;

use crate::codec::{StateView, TaskIndex};

#[derive(Debug, Default)]
pub(crate) struct ModifiedTasks {
    pub(crate) ids: Vec<TaskId>,
    pub(crate) values: Vec<Value>,
}

impl ModifiedTasks {
    pub(crate) fn push(&mut self, id: TaskId, value: Value) {
        self.ids.push(id);
        self.values.push(value);
    }

    fn entries(&self) -> impl Iterator<Item = (&TaskId, &Value)> {
        self.ids.iter().zip(&self.values)
    }

    fn value_of(&self, id: &TaskId) -> Option<&Value> {
        self.entries().find(|(other, _)| *other == id).map(|(_, value)| value)
    }
}

/// The entries of an index that the rules look at when these or archived tasks change; `None` if that is
/// unknown. The index may be that of either version: relations of the changed tasks come from their values.
pub(crate) fn related_tasks<'t>(
    (view, index): (&StateView<'t>, &TaskIndex<'t>),
    (old, new): (&ModifiedTasks, &ModifiedTasks),
    archived: &[TaskId],
) -> Option<BTreeSet<usize>> {
    let mut related: BTreeSet<usize> = archived.iter().flat_map(|id| index.naming(id)).collect();
    let (mut follow, mut concerns_claims) = (Vec::new(), false);
    for (id, value) in new.entries() {
        let relations = TaskRelations::of_change(old.value_of(id), Some(value));
        let naming = if relations.named_by { index.naming(id) } else { BTreeSet::new() };
        if relations.dependencies || !naming.is_empty() {
            follow.extend(dependencies(value)?);
        }
        if relations.claims {
            let direct = dependencies(value)?;
            related.extend(direct.iter().filter_map(|id| index.position(id.as_str())));
        }
        related.extend(naming);
        concerns_claims |= relations.claims;
    }
    for (id, value) in old.entries().filter(|(id, _)| new.value_of(id).is_none()) {
        if TaskRelations::of_change(Some(value), None).named_by {
            related.extend(index.naming(id));
        }
    }
    if concerns_claims {
        related.extend(index.claimed());
    }
    related.extend(index.reached(view, follow)?);
    Some(related)
}

/// `None` if the dependencies are not a list of IDs.
fn dependencies(task: &Value) -> Option<Vec<TaskId>> {
    match task.as_map()?.get("depends_on") {
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

/// The archived tasks that a change of a section adds, removes or changes.
pub(crate) fn changed_archive(section: &str, old: &Value, new: &Value) -> Vec<TaskId> {
    let keys = |value: &Value| -> Vec<String> {
        value.as_map().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
    };
    let field = |value: &Value, key: &str| value.as_map().and_then(|fields| fields.get(key).cloned());
    let all: BTreeSet<String> = keys(old).into_iter().chain(keys(new)).collect();
    let changed = all.into_iter().filter(|key| section == "archived" && field(old, key) != field(new, key));
    changed.filter_map(|key| key.parse().ok()).collect()
}

/// True if a change of a section can affect any task: with a remote, worktrees may be on other machines.
pub(crate) fn concerns_all_tasks(section: &str, old: &Value, new: &Value) -> bool {
    let remote = |value: &Value| value.as_map().and_then(|fields| fields.get("remote").cloned());
    section == "config" && remote(old) != remote(new)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::document::plain_value;
    use crate::yaml;

    const TASKS: &str = "\
tasks:
  - id: a
    status: MERGED
  - id: b
    status: CLAIMED
    depends_on: [a]
  - id: c
    status: DRAFT
    depends_on: [b]
    description: not b-2, but e
  - id: d
    status: UNCLAIMED
    depends_on: [c]
  - id: e-2
    status: DRAFT
";

    fn tasks(list: &[&str]) -> ModifiedTasks {
        let mut tasks = ModifiedTasks::default();
        for text in list {
            let value = plain_value(&yaml::parse(text).unwrap().0);
            tasks.push(value.as_map().unwrap()["id"].as_text().unwrap().parse().unwrap(), value);
        }
        tasks
    }

    fn related(old: &[&str], new: &[&str]) -> Option<Vec<String>> {
        let view = StateView::lazy(Path::new("state.yaml"), TASKS).unwrap();
        let index = TaskIndex::of(&view).unwrap();
        let found = related_tasks((&view, &index), (&tasks(old), &tasks(new)), &[])?;
        let name = |n: usize| index.lines(n).split_whitespace().nth(2).unwrap().to_owned();
        Some(found.into_iter().map(name).collect())
    }

    /// Covers: AC-27
    #[test]
    fn only_the_tasks_that_the_rules_look_at_are_read() {
        let d = "{id: d, status: UNCLAIMED, depends_on: [c]}";
        for (old, new, expected) in [
            (d, "{id: d, status: DRAFT, depends_on: [c], superseded_by: [a]}", vec![]),
            (d, "{id: d, status: CLAIMED, depends_on: [c]}", vec!["b", "c"]),
            (d, "{id: d, status: UNCLAIMED, depends_on: [c], assigned_to: coder-1}", vec!["b", "c"]),
            (d, "{id: d, status: UNCLAIMED, depends_on: [b]}", vec!["a", "b"]),
            (d, "{id: d, status: UNCLAIMED, depends_on: [e-2, gone]}", vec!["e-2"]),
            // A new ID that is named, and one that is not.
            (d, "{id: e, status: UNCLAIMED, depends_on: [b]}", vec!["a", "b", "c"]),
            (d, "{id: f, status: UNCLAIMED, depends_on: [c]}", vec![]),
            // An old ID that is named.
            ("{id: c, status: DRAFT}", "{id: f, status: DRAFT}", vec!["d"]),
        ] {
            assert_eq!(related(&[old], &[new]).unwrap(), expected, "{new}");
        }
        assert_eq!(related(&["{id: b}"], &[]).unwrap(), ["c"], "removed");
        assert_eq!(related(&[d], &["{id: d, status: UNCLAIMED, depends_on: c}"]), None, "not a list");
    }

    /// Covers: AC-27
    #[test]
    fn an_id_that_is_used_twice_needs_the_parser() {
        for text in ["tasks:\n  - id: a\n  - id: a\n", "tasks:\n  - status: DRAFT\n    id: a\n"] {
            let view = StateView::lazy(Path::new("state.yaml"), text).unwrap();
            assert!(TaskIndex::of(&view).is_none(), "{text}");
        }
    }
}
