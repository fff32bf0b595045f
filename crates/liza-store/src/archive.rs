//! Archives removed records: one file per task, goal and sprint in `.liza/archive/`, or rows of a database.
//! Runs before the blackboard is written, so a crash can leave an extra copy, but never lose the only one.

use std::path::Path;

use liza_core::model::{Board, Change, Fields, TaskId, TaskRecord, Value};
use liza_host::durable::{replace_private_file, sync_folder};
use liza_host::private;

use crate::codec::StateView;
use crate::document::{EditPlan, apply, line_start, merge, node_equals, plain_value, sections};
use crate::error::StoreError;
use crate::yaml::{self, to_value};

/// Writes the files for the records that the change removes.
pub(crate) fn store(
    folder: &Path,
    view: &StateView<'_>,
    board: &Board,
    change: &Change,
) -> Result<(), StoreError> {
    let texts = texts(view, board, change);
    if texts.is_empty() {
        return Ok(());
    }
    let archive = folder.join("archive");
    private::create_folder(&archive).map_err(StoreError::io("create", &archive))?;
    for (name, text) in texts {
        let path = archive.join(format!("{name}.yaml"));
        replace_private_file(&path, text.as_bytes()).map_err(StoreError::io("write", &path))?;
    }
    sync_folder(&archive).map_err(StoreError::io("sync", &archive))
}

/// The name of an archived goal or sprint: `goal-1`, `sprint-1`. Other IDs in the file may be unsafe as file
/// names, or clash with a task.
pub(crate) fn record_name(kind: &str, id: &str) -> String {
    if is_numbered(kind, id) {
        return id.to_owned();
    }
    let safe: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    format!("{kind}_{safe}")
}

/// The name of an archived task; one that is called like a goal or a sprint gets a name that no ID can be.
pub(crate) fn task_name(id: &TaskId) -> String {
    let is_taken = ["goal", "sprint"].iter().any(|kind| is_numbered(kind, id.as_str()));
    if is_taken { format!("task_{id}") } else { id.to_string() }
}

fn is_numbered(kind: &str, id: &str) -> bool {
    let number = id.strip_prefix(kind).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The names and texts of the records that the change removes.
pub(crate) fn texts(view: &StateView<'_>, board: &Board, change: &Change) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for id in &change.archived {
        if let Some(record) = task_value(view, board, change, id) {
            let kept = task_text(view, board, id, &record);
            texts.push(named_text(task_name(id), &record, kept));
        }
    }
    if let Some(goal) = &change.closed_goal {
        // From the file, with its history and fields that the program does not know.
        let current = view.with_section("goal", |node| Ok(plain_value(node))).ok().flatten();
        let value = current.or_else(|| to_value(goal).ok()).unwrap_or(Value::Null);
        texts.push(named_text(record_name("goal", &goal.id), &value, None));
    }
    if let Some(sprint) = &change.closed_sprint {
        let value = to_value(sprint).unwrap_or(Value::Null);
        texts.push(named_text(record_name("sprint", &sprint.id), &value, None));
    }
    texts
}

/// The last record of a task, with the fields that the program doesn't know.
fn task_value(view: &StateView<'_>, board: &Board, change: &Change, id: &TaskId) -> Option<Value> {
    let new = change.tasks.get(id).and_then(|record| to_value(record).ok());
    let Some(item) = board.tasks.get_index_of(id).and_then(|at| view.items.get(at)) else { return new };
    let (node, _) = view.part(item.start, item.end).ok()?;
    let node = node.items().first()?;
    match new {
        Some(new) => Some(merge(node, (&known_keys(&plain_value(node)), &new))),
        None => Some(plain_value(node)),
    }
}

/// The fields that the program knows, as the old value of a merge: those missing in the new value are removed.
fn known_keys(value: &Value) -> Value {
    let Value::Map(fields) = value else { return value.clone() };
    let known = |key: &str| TaskRecord::KEYS.contains(&key);
    Value::Map(fields.iter().filter(|(key, _)| known(key)).map(|(k, v)| (k.clone(), v.clone())).collect())
}

/// The lines of a task as a document of its own, with its comments; none if they cannot be edited in place.
fn task_text(view: &StateView<'_>, board: &Board, id: &TaskId, record: &Value) -> Option<String> {
    let item = board.tasks.get_index_of(id).and_then(|at| view.items.get(at))?;
    let text = as_document(&view.text[line_start(view.text, item.start)..item.end], item.indent)?;
    let (node, _) = yaml::parse(&text).ok()?;
    let (Value::Map(old), Value::Map(new)) = (plain_value(&node), record) else { return None };
    let mut plan = EditPlan::new(&text);
    plan.change_map(&sections(&text).ok()?, &node, 0, (&old, new), TaskRecord::KEYS).ok()?;
    let text = apply(&text, &mut plan.finish(|_| 0..text.len()).ok()?).ok()?;
    let (read, _) = yaml::parse(&text).ok()?;
    node_equals(&read, record).then_some(text)
}

/// The lines of a list entry, moved to the left by its dash.
fn as_document(lines: &str, indent: usize) -> Option<String> {
    let column = indent + lines[indent..].find(|c: char| c != '-' && c != ' ')?;
    let mut text = String::with_capacity(lines.len());
    for (n, line) in lines.lines().enumerate() {
        let content = line.trim_start_matches(' ');
        let spaces = line.len() - content.len();
        if n == 0 {
            text.push_str(&line[column..]);
        } else {
            text.extend(std::iter::repeat_n(' ', spaces.saturating_sub(column)));
            text.push_str(content);
        }
        text.push('\n');
    }
    Some(text)
}

fn named_text(name: String, value: &Value, kept: Option<String>) -> (String, String) {
    let empty = Fields::new();
    let written = || yaml::document(if let Value::Map(fields) = value { fields } else { &empty });
    (name, kept.unwrap_or_else(written))
}
