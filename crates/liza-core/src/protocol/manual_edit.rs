//! lock write, lock modify, edit: the right to change the file itself.
//!
//! A person may make any valid change. An agent may set fields that the program does not know, and its own
//! notes on its own task; everything else has a command. `rules/invariants` decides what is valid.

use crate::model::{
    Actor, AgentId, AgentRecord, Board, Fields, Refusal, Revision, StopFile, StopFiles, TOP_KEYS, TaskId,
    TaskRecord, TaskSummary, Timestamp, Value,
};
use liza_ids::order::{sort_by, sort_by_key};

use super::admission::check_fence;

/// The texts of a task that are its agent's own notes. The criteria of its work are not among them.
const OWN_NOTES: [&str; 3] = ["blocked_reason", "blocked_questions", "attempted"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManualEdit {
    pub actor: Actor,
    pub now: Timestamp,
    pub stop_files: StopFiles,
    /// The revision that the editor had read.
    pub if_revision: Option<Revision>,
    pub verb: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum EditedPlace {
    /// A key of a task; no key if the whole task was added or removed.
    Task(String, Option<String>),
    /// A section, and the key in it if one is known.
    Section(String, Option<String>),
}

impl EditedPlace {
    fn path(&self) -> String {
        match self {
            EditedPlace::Task(id, None) => id.clone(),
            EditedPlace::Task(id, Some(key)) => format!("{key} of {id}"),
            EditedPlace::Section(section, None) => section.clone(),
            EditedPlace::Section(section, Some(key)) => format!("{section}.{key}"),
        }
    }
}

/// The differences between two versions of the file.
pub fn edited_places(old: &Value, new: &Value) -> Vec<EditedPlace> {
    let mut places = Vec::new();
    for name in differing(old, new) {
        let (old, new) = (get(old, &name), get(new, &name));
        if name == "tasks" {
            let (old, new) = (by_id(old), by_id(new));
            for id in differing(&old, &new) {
                let (old, new) = (get(&old, &id), get(&new, &id));
                match (old, new) {
                    (Value::Map(_), Value::Map(_)) => {
                        let keys = differing(old, new);
                        places.extend(keys.into_iter().map(|key| EditedPlace::Task(id.clone(), Some(key))));
                    }
                    _ => places.push(EditedPlace::Task(id, None)),
                }
            }
            continue;
        }
        match (old, new) {
            (Value::Map(_), Value::Map(_)) => {
                let keys = differing(old, new);
                places.extend(keys.into_iter().map(|key| EditedPlace::Section(name.clone(), Some(key))));
            }
            _ => places.push(EditedPlace::Section(name, None)),
        }
    }
    sort_by(&mut places, &EditedPlace::cmp);
    places
}

/// Checks an edit against the registration, the stop files, the revision and the table.
pub fn admit(board: &Board, edit: &ManualEdit, old: &Value, new: &Value) -> Result<(), Refusal> {
    check_fence(board, &edit.actor, edit.now)?;
    if edit.stop_files.abort && edit.actor != Actor::Human {
        return Err(Refusal::Halted { file: StopFile::Abort, verb: edit.verb });
    }
    let places = edited_places(old, new);
    check_revision(board, edit.if_revision, &places)?;
    let Some(agent) = edit.actor.agent() else { return Ok(()) };
    match places.iter().find(|place| !may(board, agent, place, (old, new))) {
        Some(place) => Err(Refusal::EditNotPermitted { actor: edit.actor.to_string(), place: place.path() }),
        None => Ok(()),
    }
}

fn check_revision(board: &Board, expected: Option<Revision>, places: &[EditedPlace]) -> Result<(), Refusal> {
    let Some(expected) = expected else { return Ok(()) };
    let mut tasks = places.iter().map(|place| match place {
        EditedPlace::Task(id, _) => id.parse().ok(),
        EditedPlace::Section(..) => None,
    });
    let first: Option<TaskId> = tasks.next().flatten();
    let only = first.filter(|first| tasks.all(|task| task.as_ref() == Some(first)));
    let (what, current) = match only.as_ref().and_then(|task| board.summary(task)) {
        Some(summary) => (summary.id.to_string(), summary.revision),
        None => ("the state".to_owned(), board.revision),
    };
    if current > expected { Err(Refusal::StaleRevision { what, expected, current }) } else { Ok(()) }
}

/// True if an agent may touch that place.
fn may(board: &Board, agent: AgentId, place: &EditedPlace, (old, new): (&Value, &Value)) -> bool {
    match place {
        EditedPlace::Task(_, None) => false,
        EditedPlace::Task(id, Some(key)) => {
            let summary = id.parse().ok().and_then(|id: TaskId| board.summary(&id));
            let own = summary.is_some_and(|summary| is_own(summary, agent));
            !TaskRecord::KEYS.contains(&key.as_str()) || (own && OWN_NOTES.contains(&key.as_str()))
        }
        EditedPlace::Section(section, None) => !TOP_KEYS.contains(&section.as_str()),
        EditedPlace::Section(section, Some(entry)) if section == "agents" => {
            let entries = (get(get(old, section), entry), get(get(new, section), entry));
            matches!(entries, (Value::Map(_), Value::Map(_)))
                && differing(entries.0, entries.1).iter().all(|key| !is_agent_key(key))
        }
        EditedPlace::Section(section, Some(_)) => !TOP_KEYS.contains(&section.as_str()),
    }
}

/// True if the program knows that key of an agent's entry; old files say `task`.
fn is_agent_key(key: &str) -> bool {
    key == "task" || AgentRecord::KEYS.contains(&key)
}

fn is_own(task: &TaskSummary, agent: AgentId) -> bool {
    task.assigned_to == Some(agent) || task.reviewing_by == Some(agent)
}

pub(super) fn get<'v>(value: &'v Value, key: &str) -> &'v Value {
    value.as_map().and_then(|fields| fields.get(key)).unwrap_or(&Value::Null)
}

pub(super) fn differing(old: &Value, new: &Value) -> Vec<String> {
    let mut keys: Vec<&String> = keys(old).chain(keys(new)).collect();
    sort_by_key(&mut keys, |key| *key);
    keys.dedup();
    keys.into_iter().filter(|key| get(old, key) != get(new, key)).cloned().collect()
}

fn keys(value: &Value) -> impl Iterator<Item = &String> {
    value.as_map().into_iter().flat_map(Fields::keys)
}

/// The entries of a list by their `id`; by position without one, or with that of an earlier entry.
pub(super) fn by_id(list: &Value) -> Value {
    let Value::List(items) = list else { return Value::Map(Fields::new()) };
    let mut entries = Fields::new();
    for (n, item) in items.iter().enumerate() {
        let id = get(item, "id").to_string();
        // The program reads the first of two: the second must not hide a change of it.
        let is_free = !get(item, "id").is_blank() && !entries.contains_key(&id);
        entries.insert(if is_free { id } else { format!("tasks[{n}]") }, item.clone());
    }
    Value::Map(entries)
}
