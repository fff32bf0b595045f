//! Carries out operations on the text of the file, and checks that the result says what was meant.
//!
//! First by editing single blocks; where that is unclear or comes out wrong, by writing the whole file anew.

use liza_core::model::{AgentRecord, Fields, TaskId, TaskRecord, Value};

use super::ops::Op;
use super::read::{View, parse_part, single_handoff};
use crate::document::{
    Block, Edit, Edits, Plan, Shape, Unsure, apply, holds, line_start, merge, says, shape, untyped,
};
use crate::yaml::{self, Node, decode};

/// The new text.
pub(crate) struct Spliced {
    pub(crate) text: String,
    /// How the old text becomes the new one; none where it was written anew.
    pub(crate) edits: Edits,
}

/// Carries out the operations by editing blocks.
pub(crate) fn splice(view: &View<'_>, ops: &[Op]) -> Result<Spliced, Unsure> {
    if view.blocks.is_empty() {
        return Err(Unsure);
    }
    let mut plan = Plan::new(view.text);
    let mut added = Vec::new();
    let mut removed = 0;
    for op in ops {
        match op {
            Op::ChangeTask { at, old, new, .. } => change_task(view, &mut plan, *at, (old, new))?,
            Op::AddTask { new, .. } => added.push(new.clone()),
            Op::RemoveTask { at, .. } => {
                let item = view.items.get(*at).ok_or(Unsure)?;
                plan.remove(item.start, item.end)?;
                removed += 1;
            }
            Op::Change { section, old, new } => change_section(view, &mut plan, section, (old, new))?,
            Op::Replace { section, new } => match view.block(section) {
                Some(block) => plan.rewrite(block, new),
                None => plan.add_section(None, section, new),
            },
            Op::Append { section, key, new } => append(view, &mut plan, section, *key, new)?,
        }
    }
    // A list that loses its last entry has to say that it is empty, so it is written anew.
    if removed > 0 && (removed == view.items.len() || !added.is_empty()) {
        return Err(Unsure);
    }
    if !added.is_empty() {
        match view.block("tasks") {
            Some(block) => plan.append_to(block, &added, true)?,
            None => plan.add_section(None, "tasks", &Value::List(added)),
        }
    }
    let mut edits = plan.finish();
    let text = apply(view.text, &mut edits)?;
    Ok(Spliced { text, edits })
}

fn change_task(
    view: &View<'_>,
    plan: &mut Plan<'_>,
    at: usize,
    change: (&Value, &Value),
) -> Result<(), Unsure> {
    let item = view.items.get(at).ok_or(Unsure)?;
    let (node, _) = view.part(item.start, item.end).map_err(|_| Unsure)?;
    let task = node.items().first().ok_or(Unsure)?;
    plan.change_item(item, task, line_start(view.text, item.start), change, TaskRecord::KEYS);
    Ok(())
}

fn change_section(
    view: &View<'_>,
    plan: &mut Plan<'_>,
    section: &str,
    (old, new): (&Value, &Value),
) -> Result<(), Unsure> {
    let Some(block) = view.block(section) else {
        // The counter belongs to the head of the file, the rest to its end.
        let after = if section == "revision" { view.block("version") } else { None };
        plan.add_section(after, section, new);
        return Ok(());
    };
    let (node, _) = view.part(block.start, block.end).map_err(|_| Unsure)?;
    let value = node.get(section).ok_or(Unsure)?;
    if section == "handoff" && single_handoff(value).is_some() {
        plan.rewrite(block, new);
        return Ok(());
    }
    let old = with_old_names(section, old, value);
    plan.change(block, value, line_start(view.text, block.start), (&old, new));
    Ok(())
}

/// Counts `task`, which old files have for `current_task`, among what an agent's entry had, so that it goes.
fn with_old_names(section: &str, old: &Value, node: &Node<'_>) -> Value {
    let mut old = old.clone();
    if let (Value::Map(agents), "agents") = (&mut old, section) {
        for (id, entry) in agents.iter_mut() {
            let old_name = node.get(id).and_then(|agent| agent.get("task"));
            if let (Value::Map(fields), Some(task)) = (entry, old_name) {
                fields.shift_remove("current_task");
                fields.insert("task".to_owned(), untyped(task));
            }
        }
    }
    old
}

fn append(
    view: &View<'_>,
    plan: &mut Plan<'_>,
    section: &str,
    key: Option<&str>,
    new: &[Value],
) -> Result<(), Unsure> {
    let Some(block) = view.block(section) else {
        let list = Value::List(new.to_vec());
        let value = match key {
            Some(key) => Value::Map(Fields::from_iter([(key.to_owned(), list)])),
            None => list,
        };
        plan.add_section(None, section, &value);
        return Ok(());
    };
    let Some(key) = key else { return append_or_rewrite(view, plan, block, new) };
    let Shape::Map(blocks) = shape(view.text, block)? else {
        let (node, _) = view.part(block.start, block.end).map_err(|_| Unsure)?;
        let Value::Map(mut fields) = untyped(node.get(section).ok_or(Unsure)?) else { return Err(Unsure) };
        extend(&mut fields, key, new);
        plan.rewrite(block, &Value::Map(fields));
        return Ok(());
    };
    match blocks.iter().find(|inner| inner.name(view.text) == key) {
        Some(inner) => append_or_rewrite(view, plan, inner, new),
        None => {
            let (node, _) = view.part(block.start, block.end).map_err(|_| Unsure)?;
            let value = node.get(section).ok_or(Unsure)?;
            let added = Fields::from_iter([(key.to_owned(), Value::List(new.to_vec()))]);
            plan.change_map(&blocks, value, line_start(view.text, block.start), (&Fields::new(), &added), &[])
        }
    }
}

fn append_or_rewrite(
    view: &View<'_>,
    plan: &mut Plan<'_>,
    block: &Block,
    new: &[Value],
) -> Result<(), Unsure> {
    if plan.append_to(block, new, false).is_ok() {
        return Ok(());
    }
    let (node, _) = view.part(block.start, block.end).map_err(|_| Unsure)?;
    let value = node.get(block.name(view.text)).ok_or(Unsure)?;
    let all = value.items().iter().map(untyped).chain(new.iter().cloned()).collect();
    plan.rewrite(block, &Value::List(all));
    Ok(())
}

/// Writes the whole file anew from its parsed tree. Of the comments, those at its head survive this.
pub(crate) fn rewrite(view: &View<'_>, ops: &[Op]) -> Option<String> {
    let tree = view.tree.as_ref()?;
    let Value::Map(mut file) = untyped(tree) else { return None };
    for op in ops {
        rewrite_op(tree, &mut file, op);
    }
    let is_head = |line: &&str| line.trim().is_empty() || line.starts_with('#');
    let head: String = view.text.split_inclusive('\n').take_while(is_head).collect();
    Some(head + &yaml::document(&file))
}

fn rewrite_op(tree: &Node<'_>, file: &mut Fields, op: &Op) {
    let is = |node: &Value, id: &TaskId| matches!(node, Value::Map(f) if f.get("id").is_some_and(|v| v.to_string() == id.as_str()));
    match op {
        Op::ChangeTask { id, old, new, .. } => {
            let nodes = tree.get("tasks").map(Node::items).unwrap_or_default();
            let node = nodes.iter().find(|node| node.get("id").and_then(Node::text) == Some(id.as_str()));
            if let (Some(node), Some(Value::List(tasks))) = (node, file.get_mut("tasks"))
                && let Some(task) = tasks.iter_mut().find(|task| is(task, id))
            {
                *task = merge(node, (old, new));
            }
        }
        Op::AddTask { new, .. } => extend(file, "tasks", std::slice::from_ref(new)),
        Op::RemoveTask { id, .. } => {
            if let Some(Value::List(tasks)) = file.get_mut("tasks") {
                tasks.retain(|task| !is(task, id));
            }
        }
        Op::Change { section, old, new } => {
            let node =
                tree.get(section).filter(|node| *section != "handoff" || single_handoff(node).is_none());
            let value = match node {
                Some(node) => merge(node, (&with_old_names(section, old, node), new)),
                None => new.clone(),
            };
            file.insert((*section).to_owned(), value);
        }
        Op::Replace { section, new } => drop(file.insert((*section).to_owned(), new.clone())),
        Op::Append { section, key: None, new } => extend(file, section, new),
        Op::Append { section, key: Some(key), new } => {
            let inner = file.entry((*section).to_owned()).or_insert_with(|| Value::Map(Fields::new()));
            if let Value::Map(fields) = inner {
                extend(fields, key, new);
            }
        }
    }
}

fn extend(fields: &mut Fields, key: &str, values: &[Value]) {
    match fields.get_mut(key) {
        Some(Value::List(items)) => items.extend_from_slice(values),
        _ => drop(fields.insert(key.to_owned(), Value::List(values.to_vec()))),
    }
}

/// Times as the text that they are read back as.
pub(crate) fn flat(value: &Value) -> Value {
    match value {
        Value::Time(time) => Value::Text(time.to_string()),
        Value::List(items) => Value::List(items.iter().map(flat).collect()),
        Value::Map(fields) => {
            Value::Map(fields.iter().map(|(key, value)| (key.clone(), flat(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => value.clone(),
    }
}

/// Where a position of the old text stands in the new one; what was inserted right there comes before it.
fn moved(at: usize, edits: &[Edit], inclusive: bool) -> usize {
    let before =
        edits.iter().filter(|edit| if inclusive { edit.range.end <= at } else { edit.range.end < at });
    let (added, gone) =
        before.fold((0, 0), |(added, gone), edit| (added + edit.text.len(), gone + edit.range.len()));
    at + added - gone
}

/// Checks the changed blocks of a spliced file: each is parsed again and compared with what was meant.
pub(crate) fn verify(view: &View<'_>, spliced: &Spliced, ops: &[Op]) -> Result<(), String> {
    for op in ops {
        verify_op(view, spliced, op)?;
    }
    Ok(())
}

fn verify_op(view: &View<'_>, spliced: &Spliced, op: &Op) -> Result<(), String> {
    match op {
        Op::ChangeTask { id, at, old, new } => {
            let item = view.items.get(*at).ok_or("a task is gone")?;
            check_part(view, spliced, id.as_str(), (item.start, item.end), |before, after| {
                let (before, after) = (before.items().first()?, after.items().first()?);
                decode::<TaskRecord>(after).ok()?;
                Some(says(before, (old, new), after))
            })
        }
        Op::Change { section, old, new } => {
            let Some(block) = view.block(section) else { return Ok(()) };
            check_part(view, spliced, section, (block.start, block.end), |before, after| {
                let (before, after) = (before.get(section)?, after.get(section)?);
                if let (Value::Map(agents), "agents") = (new, *section) {
                    // The others are as they were.
                    agents.keys().try_for_each(|id| decode::<AgentRecord>(after.get(id)?).ok().map(drop))?;
                }
                let single = *section == "handoff" && single_handoff(before).is_some();
                Some(if single {
                    holds(after, new)
                } else {
                    says(before, (&with_old_names(section, old, before), new), after)
                })
            })
        }
        // New blocks stand at the end of a list or of the file; what is written there is what `yaml` emits.
        Op::AddTask { .. } | Op::Append { .. } => check_tail(view, spliced, op),
        Op::RemoveTask { .. } | Op::Replace { .. } => Ok(()),
    }
}

/// Parses a changed block again and asks whether it says what it should.
fn check_part(
    view: &View<'_>,
    spliced: &Spliced,
    what: &str,
    (start, end): (usize, usize),
    is_right: impl Fn(&Node<'_>, &Node<'_>) -> Option<bool>,
) -> Result<(), String> {
    let (old, _) = view.part(start, end).map_err(|error| error.to_string())?;
    let from = line_start(&spliced.text, moved(start, &spliced.edits, true));
    let to = moved(end, &spliced.edits, true);
    let (new, _) = parse_part(&spliced.text, from, to).map_err(|error| format!("{what}: {error}"))?;
    if is_right(&old, &new) == Some(true) { Ok(()) } else { Err(what.to_owned()) }
}

/// Checks that the last entries of a list are those that were added.
fn check_tail(view: &View<'_>, spliced: &Spliced, op: &Op) -> Result<(), String> {
    let (section, key, new): (&str, Option<&str>, &[Value]) = match op {
        Op::AddTask { new, .. } => ("tasks", None, std::slice::from_ref(new)),
        Op::Append { section, key, new } => (section, *key, new),
        Op::ChangeTask { .. } | Op::RemoveTask { .. } | Op::Change { .. } | Op::Replace { .. } => {
            return Ok(());
        }
    };
    let Some(block) = view.block(section) else { return Ok(()) };
    let inner = match (key, shape(view.text, block)) {
        (None, _) => block.clone(),
        (Some(key), Ok(Shape::Map(blocks))) => {
            match blocks.into_iter().find(|inner| inner.name(view.text) == key) {
                Some(inner) => inner,
                None => return Ok(()),
            }
        }
        (Some(_), _) => return Ok(()),
    };
    let start = match shape(view.text, &inner) {
        Ok(Shape::List(items)) => items.last().map_or(inner.start, |item| item.start),
        _ => inner.start,
    };
    let from = line_start(&spliced.text, moved(start, &spliced.edits, true));
    let to = moved(inner.end, &spliced.edits, true);
    let (node, _) = parse_part(&spliced.text, from, to).map_err(|error| format!("{section}: {error}"))?;
    let list = node.get(inner.name(view.text)).unwrap_or(&node);
    let all_there = new.iter().all(|value| list.items().iter().any(|node| holds(node, value)));
    if all_there { Ok(()) } else { Err(section.to_owned()) }
}

/// The sections that no operation touches.
pub(crate) fn untouched(view: &View<'_>, ops: &[Op]) -> Vec<String> {
    let touched = |name: &str| {
        ops.iter().any(|op| match op {
            Op::ChangeTask { .. } | Op::AddTask { .. } | Op::RemoveTask { .. } => name == "tasks",
            Op::Change { section, .. } | Op::Replace { section, .. } | Op::Append { section, .. } => {
                *section == name
            }
        })
    };
    let entries = view.tree.as_ref().map(Node::entries).unwrap_or_default();
    let names = entries.iter().filter_map(|(key, _)| key.text());
    names.filter(|name| !touched(name)).map(str::to_owned).collect()
}
