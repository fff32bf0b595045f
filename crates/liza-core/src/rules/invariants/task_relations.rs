//! The other tasks that the rules of `graph.rs` and `references.rs` look at when one task changes.
//!
//! Must be kept true to these rules: an edit of a large file is checked only with the tasks named here.

use crate::model::{Status, Value};

/// The tasks that the rules look at besides one that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskRelations {
    /// Its dependencies, direct and indirect: it may close a cycle.
    pub dependencies: bool,
    /// Claimed tasks and its dependencies: no coder has two claims, a claim needs merged dependencies.
    pub claims: bool,
    /// Tasks that name it: it may be missing now. If there are such tasks, it may also close a cycle.
    pub named_by: bool,
}

impl TaskRelations {
    /// The relations of a change from the fields `old` to the fields `new`; `None` for a missing task.
    pub fn of_change(old: Option<&Value>, new: Option<&Value>) -> Self {
        let differs = |key: &str| field(old, key) != field(new, key);
        let status_counts = differs("status") && !(is_free(old) && is_free(new));
        Self {
            dependencies: old.is_some() && new.is_some() && differs("depends_on"),
            claims: new.is_some() && (status_counts || differs("assigned_to")),
            named_by: old.is_none() || new.is_none(),
        }
    }
}

fn field<'v>(task: Option<&'v Value>, key: &str) -> &'v Value {
    task.and_then(Value::as_map).and_then(|fields| fields.get(key)).unwrap_or(&Value::Null)
}

/// True if no rule about other tasks needs this status: those are about claims and merged dependencies.
fn is_free(task: Option<&Value>) -> bool {
    let is_asked_for = |status: Status| status == Status::Claimed || status == Status::Merged;
    match field(task, "status").as_text().map(str::parse) {
        Some(status) => status.is_ok_and(|status| !is_asked_for(status)),
        None => task.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Fields;

    fn task(fields: &[(&str, &str)]) -> Value {
        let field = |(key, value): &(&str, &str)| ((*key).to_owned(), Value::from(*value));
        Value::Map(fields.iter().map(field).collect::<Fields>())
    }

    /// Covers: AC-27
    #[test]
    fn a_change_needs_only_the_tasks_that_a_rule_about_it_looks_at() {
        let alone = TaskRelations::default();
        let (claims, named_by) =
            (TaskRelations { claims: true, ..alone }, TaskRelations { named_by: true, ..alone });
        let draft = task(&[("status", "DRAFT"), ("depends_on", "a")]);
        let of = |new: &[(&str, &str)]| TaskRelations::of_change(Some(&draft), Some(&task(new)));
        assert_eq!(of(&[("status", "BLOCKED"), ("depends_on", "a"), ("scope", "x")]), alone);
        assert_eq!(of(&[("status", "MERGED"), ("depends_on", "a")]), claims);
        assert_eq!(of(&[("status", "CLAIMED"), ("depends_on", "a")]), claims);
        assert_eq!(of(&[("status", "nonsense"), ("depends_on", "a")]), claims);
        assert_eq!(of(&[("depends_on", "a")]), claims);
        assert_eq!(of(&[("status", "DRAFT"), ("depends_on", "a"), ("assigned_to", "x")]), claims);
        let dependencies = TaskRelations { dependencies: true, ..alone };
        assert_eq!(of(&[("status", "DRAFT"), ("depends_on", "b")]), dependencies);
        assert_eq!(of(&[("status", "CLAIMED")]), TaskRelations { dependencies: true, ..claims });
        assert_eq!(TaskRelations::of_change(None, Some(&draft)), named_by);
        assert_eq!(TaskRelations::of_change(Some(&draft), None), named_by);
        let claimed = task(&[("status", "CLAIMED")]);
        assert_eq!(
            TaskRelations::of_change(None, Some(&claimed)),
            TaskRelations { claims: true, ..named_by }
        );
        assert_eq!(TaskRelations::of_change(Some(&claimed), None), named_by);
        assert!(TaskRelations::of_change(Some(&claimed), Some(&draft)).claims);
    }
}
