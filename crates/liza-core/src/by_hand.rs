//! Who may change what in the file itself: `lock write`, `lock modify` and `edit`.
//!
//! A person may do anything that is valid. An agent may set fields that the program does not know, and the free text
//! of its own task; everything else has a command. What is valid is the business of `invariants`.

use std::collections::BTreeSet;

use crate::agent::Actor;
use crate::board::{Board, Head};
use crate::command::Halt;
use crate::ids::{AgentId, Revision, TaskId};
use crate::permission::fence;
use crate::record::TaskRecord;
use crate::refusal::Refusal;
use crate::time::Timestamp;
use crate::value::{Fields, Value};

/// The texts of a task that no rule reads and nobody is judged by.
const FREE_TEXT: [&str; 4] = ["description", "blocked_reason", "blocked_questions", "attempted"];

/// The sections of the file that the program knows.
const SECTIONS: [&str; 14] = [
    "version",
    "revision",
    "goal",
    "tasks",
    "agents",
    "discovered",
    "handoff",
    "human_notes",
    "spec_changes",
    "anomalies",
    "sprint",
    "circuit_breaker",
    "config",
    "archived",
];

/// Somebody who changes the file itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByHand {
    /// Who.
    pub actor: Actor,
    /// When.
    pub now: Timestamp,
    /// Which stop files stand.
    pub halt: Halt,
    /// What they had read.
    pub if_revision: Option<Revision>,
    /// By which command.
    pub verb: &'static str,
}

/// One place that a change by hand touches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A key of a task; no key where the whole task came or went.
    Task(String, Option<String>),
    /// A section, and the key in it where one is known.
    Section(String, Option<String>),
}

impl Place {
    fn path(&self) -> String {
        match self {
            Place::Task(id, None) => id.clone(),
            Place::Task(id, Some(key)) => format!("{key} of {id}"),
            Place::Section(section, None) => section.clone(),
            Place::Section(section, Some(key)) => format!("{section}.{key}"),
        }
    }
}

/// What differs between two versions of the file.
pub fn touched(old: &Value, new: &Value) -> BTreeSet<Place> {
    let mut places = BTreeSet::new();
    for name in differing(old, new) {
        let (old, new) = (get(old, &name), get(new, &name));
        if name == "tasks" {
            let (old, new) = (by_id(old), by_id(new));
            for id in differing(&old, &new) {
                let (old, new) = (get(&old, &id), get(&new, &id));
                match (old, new) {
                    (Value::Map(_), Value::Map(_)) => {
                        let keys = differing(old, new);
                        places.extend(keys.into_iter().map(|key| Place::Task(id.clone(), Some(key))));
                    }
                    _ => drop(places.insert(Place::Task(id, None))),
                }
            }
            continue;
        }
        match (old, new) {
            (Value::Map(_), Value::Map(_)) => {
                let keys = differing(old, new);
                places.extend(keys.into_iter().map(|key| Place::Section(name.clone(), Some(key))));
            }
            _ => drop(places.insert(Place::Section(name, None))),
        }
    }
    places
}

/// Holds a change by hand against the registration, the stop files, the revision and the table.
pub fn admit(board: &Board, hand: &ByHand, old: &Value, new: &Value) -> Result<(), Refusal> {
    fence(board, &hand.actor, hand.now)?;
    if hand.halt.abort && hand.actor != Actor::Human {
        return Err(Refusal::Halted { file: "ABORT", verb: hand.verb });
    }
    let places = touched(old, new);
    check_revision(board, hand.if_revision, &places)?;
    let Some(agent) = hand.actor.agent() else { return Ok(()) };
    match places.iter().find(|place| !may(board, agent, place, (old, new))) {
        Some(place) => Err(Refusal::NotByHand { actor: hand.actor.to_string(), place: place.path() }),
        None => Ok(()),
    }
}

fn check_revision(
    board: &Board,
    expected: Option<Revision>,
    places: &BTreeSet<Place>,
) -> Result<(), Refusal> {
    let Some(expected) = expected else { return Ok(()) };
    let mut tasks = places.iter().map(|place| match place {
        Place::Task(id, _) => id.parse().ok(),
        Place::Section(..) => None,
    });
    let first: Option<TaskId> = tasks.next().flatten();
    let only = first.filter(|first| tasks.all(|task| task.as_ref() == Some(first)));
    let (what, current) = match only.as_ref().and_then(|task| board.head(task)) {
        Some(head) => (head.id.to_string(), head.revision),
        None => ("the state".to_owned(), board.revision),
    };
    if current > expected { Err(Refusal::StaleRevision { what, expected, current }) } else { Ok(()) }
}

/// Whether an agent may touch that place.
fn may(board: &Board, agent: AgentId, place: &Place, (old, new): (&Value, &Value)) -> bool {
    match place {
        Place::Task(_, None) => false,
        Place::Task(id, Some(key)) if FREE_TEXT.contains(&key.as_str()) => {
            let head = id.parse().ok().and_then(|id: TaskId| board.head(&id));
            head.is_some_and(|head| is_own(head, agent))
        }
        Place::Task(_, Some(key)) => !TaskRecord::KEYS.contains(&key.as_str()),
        Place::Section(section, None) => !SECTIONS.contains(&section.as_str()),
        Place::Section(section, Some(entry)) if section == "agents" => {
            let entries = (get(get(old, section), entry), get(get(new, section), entry));
            matches!(entries, (Value::Map(_), Value::Map(_)))
                && differing(entries.0, entries.1).iter().all(|key| !AGENT_KEYS.contains(&key.as_str()))
        }
        Place::Section(section, Some(_)) => !SECTIONS.contains(&section.as_str()),
    }
}

/// The keys of an agent's entry that the program knows.
const AGENT_KEYS: [&str; 11] = [
    "role",
    "status",
    "current_task",
    "task",
    "lease_expires",
    "heartbeat",
    "terminal",
    "generation",
    "iterations_total",
    "context_percent",
    "usage",
];

fn is_own(head: &Head, agent: AgentId) -> bool {
    head.assigned_to == Some(agent) || head.reviewing_by == Some(agent)
}

fn get<'v>(value: &'v Value, key: &str) -> &'v Value {
    match value {
        Value::Map(fields) => fields.get(key).unwrap_or(&Value::Null),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Time(_)
        | Value::List(_) => &Value::Null,
    }
}

/// The keys whose values differ.
fn differing(old: &Value, new: &Value) -> Vec<String> {
    let keys: BTreeSet<&String> = keys(old).chain(keys(new)).collect();
    keys.into_iter().filter(|key| get(old, key) != get(new, key)).cloned().collect()
}

fn keys(value: &Value) -> impl Iterator<Item = &String> {
    let fields = match value {
        Value::Map(fields) => Some(fields),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Time(_)
        | Value::List(_) => None,
    };
    fields.into_iter().flat_map(Fields::keys)
}

/// The entries of a list by their `id`; those without one by their place.
fn by_id(list: &Value) -> Value {
    let Value::List(items) = list else { return Value::Map(Fields::new()) };
    let name = |n: usize, item: &Value| match get(item, "id") {
        id if id.is_blank() => format!("tasks[{n}]"),
        id => id.to_string(),
    };
    Value::Map(items.iter().enumerate().map(|(n, item)| (name(n, item), item.clone())).collect())
}
