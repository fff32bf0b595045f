//! Turns a change into operations on the file, with the old and the new values; `splice.rs` applies them.

use indexmap::IndexMap;
use liza_core::model::{
    AgentId, AgentRecord, Appended, Board, Change, Fields, Loaded, Revision, Section, State, TaskId,
    TaskRecord, Value,
};
use serde::Serialize;

use super::config::settings_to_write;
use crate::yaml::{YamlError, to_value};

/// One operation. Keys that neither the old nor the new value has do not change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    ChangeTask {
        id: TaskId,
        at: usize,
        old: Value,
        new: Value,
    },
    AddTask {
        id: TaskId,
        new: Value,
    },
    RemoveTask {
        id: TaskId,
        at: usize,
    },
    Change {
        section: &'static str,
        old: Value,
        new: Value,
    },
    Replace {
        section: &'static str,
        new: Value,
    },
    /// Entries are added to an append-only list: a section, or a key in it.
    Append {
        section: &'static str,
        key: Option<&'static str>,
        new: Vec<Value>,
    },
}

pub(crate) fn operations(board: &Board, change: &Change) -> Result<Vec<Op>, YamlError> {
    let mut ops = Vec::new();
    for (id, record) in &change.tasks {
        let new = to_value(record)?;
        let known = board.tasks.get_full(id).and_then(|(at, _, slot)| Some((at, slot.body.as_ref()?)));
        let id = id.clone();
        match known {
            Some((at, body)) => {
                ops.push(Op::ChangeTask { id, at, old: old_task(body.record(), &new, record)?, new });
            }
            None => ops.push(Op::AddTask { id, new }),
        }
    }
    agents(board, change, &mut ops)?;
    section(&mut ops, Section::Sprint, &board.sprint, change.sprint.as_ref())?;
    section(&mut ops, Section::CircuitBreaker, &board.circuit_breaker, change.circuit_breaker.as_ref())?;
    section(&mut ops, Section::Discovered, &board.discovered, change.discovered.as_ref())?;
    section(&mut ops, Section::Handoff, &board.handoff, change.handoff.as_ref())?;
    section(&mut ops, Section::DirectEdits, &board.direct_edits, change.direct_edits.as_ref())?;
    if let Some(version) = change.version {
        let (old, new) = (Value::Int(board.version.0), Value::Int(version.0));
        ops.push(Op::Change { section: "version", old, new });
    }
    goal_and_notes(board, change, &mut ops)?;
    archive(board, change, &mut ops);
    // Last, so that a new `revision` section comes after every edit at the same position.
    let (old, new) = (revision(board.revision), revision(change.revision));
    ops.push(Op::Change { section: "revision", old, new });
    Ok(ops)
}

fn revision(revision: Revision) -> Value {
    Value::Int(i64::try_from(revision.0).unwrap_or(i64::MAX))
}

/// The old value of a task; a copy of the new one if the record did not change.
fn old_task(old: &TaskRecord, new: &Value, record: &TaskRecord) -> Result<Value, YamlError> {
    if old == record { Ok(new.clone()) } else { to_value(old) }
}

fn agents(board: &Board, change: &Change, ops: &mut Vec<Op>) -> Result<(), YamlError> {
    if change.agents.is_empty() {
        return Ok(());
    }
    let empty: IndexMap<AgentId, AgentRecord> = IndexMap::new();
    let known = board.agents.ready().unwrap_or(&empty);
    let (mut old, mut new) = (Fields::new(), Fields::new());
    for (id, entry) in &change.agents {
        if let Some(before) = known.get(id) {
            old.insert(id.to_string(), to_value(before)?);
        }
        if let Some(after) = entry {
            new.insert(id.to_string(), to_value(after)?);
        }
    }
    ops.push(Op::Change { section: "agents", old: Value::Map(old), new: Value::Map(new) });
    Ok(())
}

fn section<T: Serialize>(
    ops: &mut Vec<Op>,
    section: Section,
    old: &Loaded<T>,
    new: Option<&T>,
) -> Result<(), YamlError> {
    let Some(new) = new else { return Ok(()) };
    let new = to_value(new)?;
    let op = match old {
        Loaded::Ready(old) => Op::Change { section: section.key(), old: to_value(old)?, new },
        Loaded::Absent | Loaded::Broken(_) => Op::Replace { section: section.key(), new },
    };
    ops.push(op);
    Ok(())
}

fn goal_and_notes(board: &Board, change: &Change, ops: &mut Vec<Op>) -> Result<(), YamlError> {
    let mut lists: IndexMap<(&'static str, Option<&'static str>), Vec<Value>> = IndexMap::new();
    for note in &change.appended {
        let (list, value) = match note {
            Appended::Anomaly(anomaly) => (("anomalies", None), to_value(anomaly)?),
            Appended::HumanNote(note) => (("human_notes", None), to_value(note)?),
            Appended::SpecChange(change) => (("spec_changes", None), to_value(change)?),
            Appended::Alignment(entry) => (("goal", Some("alignment_history")), to_value(entry)?),
        };
        lists.entry(list).or_default().push(value);
    }
    // A new goal replaces the old one, whose history is archived with it.
    if let (Some(goal), Some(_)) = (&change.goal, &change.closed_goal) {
        let mut new = to_value(goal)?;
        if let (Value::Map(fields), Some(history)) =
            (&mut new, lists.shift_remove(&("goal", Some("alignment_history"))))
        {
            fields.insert("alignment_history".to_owned(), Value::List(history));
        }
        ops.push(Op::Replace { section: "goal", new });
    }
    // Before the goal itself: at the same position, the entry belongs to the list that ends there.
    ops.extend(lists.into_iter().map(|((section, key), new)| Op::Append { section, key, new }));
    match &change.closed_goal {
        None => section(ops, Section::Goal, &board.goal, change.goal.as_ref()),
        Some(_) => Ok(()),
    }
}

fn archive(board: &Board, change: &Change, ops: &mut Vec<Op>) {
    if change.archived.is_empty() {
        return;
    }
    let mut new = Fields::new();
    for id in &change.archived {
        ops.retain(|op| !matches!(op, Op::ChangeTask { id: changed, .. } if changed == id));
        ops.extend(board.tasks.get_index_of(id).map(|at| Op::RemoveTask { id: id.clone(), at }));
        let status = change.tasks.get(id).and_then(|record| record.status);
        let status = status.or_else(|| board.status(id)).unwrap_or(liza_core::model::Status::Abandoned);
        new.insert(id.to_string(), Value::from(status.name()));
    }
    ops.push(Op::Change { section: "archived", old: Value::Map(Fields::new()), new: Value::Map(new) });
}

/// The sections of a file with the whole blackboard.
pub(crate) fn document_fields(state: &State) -> Result<Fields, YamlError> {
    let board = &state.board;
    let mut file = Fields::new();
    let mut put = |key: &str, value: Value| drop(file.insert(key.to_owned(), value));
    put("version", Value::Int(board.version.0));
    put("revision", revision(board.revision));
    let mut goal = loaded(&board.goal)?;
    if let Value::Map(fields) = &mut goal {
        fields.insert("alignment_history".to_owned(), to_value(&state.journal.alignment_history)?);
    }
    put("goal", goal);
    let tasks =
        board.tasks.values().filter_map(|slot| slot.body.as_ref()).map(|body| to_value(body.record()));
    put("tasks", Value::List(tasks.collect::<Result<_, _>>()?));
    put("agents", loaded(&board.agents)?);
    put("discovered", loaded(&board.discovered)?);
    put("handoff", loaded(&board.handoff)?);
    put("human_notes", to_value(&state.journal.human_notes)?);
    put("spec_changes", to_value(&state.journal.spec_changes)?);
    put("anomalies", to_value(&state.journal.anomalies)?);
    put("sprint", loaded(&board.sprint)?);
    put("circuit_breaker", loaded(&board.circuit_breaker)?);
    put("config", board.config.ready().map_or(Ok(Value::Map(Fields::new())), settings_to_write)?);
    if board.direct_edits.ready().is_some_and(|edits| !edits.is_empty()) {
        put("direct_edits", loaded(&board.direct_edits)?);
    }
    if !board.archived.is_empty() {
        put("archived", to_value(&board.archived)?);
    }
    Ok(file)
}

fn loaded<T: Serialize>(section: &Loaded<T>) -> Result<Value, YamlError> {
    section.ready().map_or(Ok(Value::Map(Fields::new())), to_value)
}
