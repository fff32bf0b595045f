//! The plan that waits for approval, as a person reads it: each task after those that it waits for.

use indexmap::IndexMap;
use serde::Serialize;

use liza_core::model::{DEFAULT_PRIORITY, State, TaskId, TaskRecord};
use liza_core::rules::triggers::proposed_tasks;
use liza_ids::order::sort_by_key;

/// A task of a proposed plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedTask {
    pub task: TaskId,
    pub description: String,
    pub done_when: Option<String>,
    pub depends_on: Vec<TaskId>,
    /// The commands that validate it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub validation: Vec<String>,
}

impl PlannedTask {
    /// The task in one line: `t-2: Retry orders. Done when: it retries. After: t-1`.
    pub fn line(&self) -> String {
        let done =
            self.done_when.as_deref().map(|done| format!(" Done when: {}.", done.trim_end_matches('.')));
        let names: Vec<&str> = self.depends_on.iter().map(TaskId::as_str).collect();
        let after = if names.is_empty() { String::new() } else { format!(" After: {}", names.join(", ")) };
        let what = self.description.trim_end_matches('.');
        let validated = self.validation.join("; ");
        let validated = if validated.is_empty() { validated } else { format!(" Validated by: {validated}.") };
        format!("{}: {what}.{}{validated}{after}", self.task, done.unwrap_or_default())
    }
}

/// The proposed tasks in the order in which they can be done.
pub(super) fn proposed_plan(state: &State) -> Vec<PlannedTask> {
    let mut tasks: Vec<(&TaskId, &TaskRecord)> =
        proposed_tasks(state).map(|(id, body)| (id, body.record())).collect();
    sort_by_key(&mut tasks, |(_, record)| (record.priority.unwrap_or(DEFAULT_PRIORITY), record.created));
    let mut left: IndexMap<&TaskId, &TaskRecord> = tasks.into_iter().collect();
    let mut plan = Vec::new();
    while !left.is_empty() {
        let is_next =
            |record: &&TaskRecord| !record.depends_on.iter().flatten().any(|task| left.contains_key(task));
        // A circle is refused elsewhere; here nothing is left out.
        let next = left.values().position(is_next).unwrap_or(0);
        plan.extend(left.shift_remove_index(next).map(|(id, record)| planned(id, record)));
    }
    plan
}

fn planned(id: &TaskId, record: &TaskRecord) -> PlannedTask {
    PlannedTask {
        task: id.clone(),
        description: record.description.clone().unwrap_or_default(),
        done_when: record.done_when.clone(),
        depends_on: record.depends_on.clone().unwrap_or_default(),
        validation: record.validation.clone().unwrap_or_default(),
    }
}
