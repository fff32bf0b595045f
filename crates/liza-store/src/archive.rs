//! What leaves the blackboard for good: one file per task, goal and sprint below `.liza/archive/`.
//!
//! Written before the blackboard forgets it. A crash in between leaves a copy too many, never one too few.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use liza_core::model::{Board, Change, Fields, TaskId, Value};

use crate::document::{merge, untyped};
use crate::error::StoreError;
use crate::wire::View;
use crate::yaml::{self, to_value};

/// Writes the files for what the change takes away.
pub(crate) fn store(
    folder: &Path,
    view: &View<'_>,
    board: &Board,
    change: &Change,
) -> Result<(), StoreError> {
    if change.archived.is_empty() && change.closed_goal.is_none() && change.closed_sprint.is_none() {
        return Ok(());
    }
    let archive = folder.join("archive");
    fs::create_dir_all(&archive).map_err(StoreError::io("create", &archive))?;
    for id in &change.archived {
        if let Some(record) = task_value(view, board, change, id) {
            write(&archive, id.as_str(), &record)?;
        }
    }
    if let Some(goal) = &change.closed_goal {
        // With its history and whatever else a person had put there.
        let whole = view.with_section("goal", |node| Ok(untyped(node))).ok().flatten();
        let value = whole.or_else(|| to_value(goal).ok()).unwrap_or(Value::Null);
        write(&archive, &goal.id, &value)?;
    }
    if let Some(sprint) = &change.closed_sprint {
        write(&archive, &sprint.id, &to_value(sprint).unwrap_or(Value::Null))?;
    }
    let sync = || fs::File::open(&archive)?.sync_all();
    sync().map_err(StoreError::io("sync", &archive))
}

/// The last record of a task, with the fields that only the file knows.
fn task_value(view: &View<'_>, board: &Board, change: &Change, id: &TaskId) -> Option<Value> {
    let new = change.tasks.get(id).and_then(|record| to_value(record).ok());
    let Some(item) = board.tasks.get_index_of(id).and_then(|at| view.items.get(at)) else { return new };
    let (node, _) = view.part(item.start, item.end).ok()?;
    let node = node.items().first()?;
    match new {
        Some(new) => Some(merge(node, (&known_keys(&untyped(node)), &new))),
        None => Some(untyped(node)),
    }
}

/// The keys that the program knows, so that those it has dropped do not come back.
fn known_keys(value: &Value) -> Value {
    let Value::Map(fields) = value else { return value.clone() };
    let known = |key: &str| liza_core::model::TaskRecord::KEYS.contains(&key);
    Value::Map(fields.iter().filter(|(key, _)| known(key)).map(|(k, v)| (k.clone(), v.clone())).collect())
}

fn write(archive: &Path, name: &str, value: &Value) -> Result<(), StoreError> {
    // IDs of goals and sprints come from the file, so they are not to be trusted as names.
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let (path, step) = (archive.join(format!("{name}.yaml")), archive.join(format!("{name}.yaml.tmp")));
    let nothing = Fields::new();
    let text = yaml::document(if let Value::Map(fields) = value { fields } else { &nothing });
    let put = || {
        let mut file = fs::File::create(&step)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&step, &path)
    };
    put().map_err(StoreError::io("write", &path))
}
