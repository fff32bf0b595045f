//! Applies operations to the text of the file, and checks that the result reads as intended. Edits single
//! blocks if possible; the caller falls back to a rewrite of the whole file.

use std::ops::Range;

use liza_core::model::{AgentRecord, Fields, TaskId, TaskRecord, Value};

use super::ops::Op;
use super::sections::single_handoff;
use super::view::{StateView, parse_part};
use crate::document::{
    Ambiguous, Block, Edit, EditPlan, Edits, Shape, apply, line_start, merge, node_equals, plain_value, shape,
};
use crate::yaml::{self, Node, decode};

pub(crate) struct Spliced {
    pub(crate) text: String,
    /// The edits from the old text to the new one; none after a rewrite.
    pub(crate) edits: Edits,
    /// The whole file was rewritten, without the comments below its top.
    pub(crate) rewritten: bool,
}

impl Spliced {
    /// The block that was at this position in the old text.
    fn part(&self, start: usize, end: usize) -> Option<Node<'_>> {
        let from = line_start(&self.text, moved(start, &self.edits));
        parse_part(&self.text, from, moved(end, &self.edits)).ok().map(|(node, _)| node)
    }
}

pub(crate) fn splice(view: &StateView<'_>, ops: &[Op]) -> Result<Spliced, Ambiguous> {
    if view.blocks.is_empty() {
        return Err(Ambiguous);
    }
    let mut plan = EditPlan::new(view.text);
    if change_tasks(view, &mut plan, ops).is_err() {
        plan.clear();
        rewrite_tasks(view, &mut plan, ops)?;
    }
    for op in ops {
        match op {
            Op::ChangeTask { .. } | Op::AddTask { .. } | Op::RemoveTask { .. } => {}
            Op::Change { section, old, new } => change_section(view, &mut plan, section, (old, new))?,
            Op::Replace { section, new } => match view.block(section) {
                Some(block) => plan.rewrite(block, new),
                None => plan.add_section(None, section, new),
            },
            Op::Append { section, key, new } => append(view, &mut plan, section, *key, new)?,
        }
    }
    let mut edits = plan.finish(|range| part_around(view, range))?;
    let text = apply(view.text, &mut edits)?;
    Ok(Spliced { text, edits, rewritten: false })
}

/// The task, or else the section, that contains a range.
pub(crate) fn part_around(view: &StateView<'_>, range: &Range<usize>) -> Range<usize> {
    let contains =
        |start: usize, end: usize| line_start(view.text, start) <= range.start && range.start <= end;
    let item = view.items.iter().find(|item| contains(item.start, item.end) && range.end <= item.end + 1);
    let block = || view.blocks.iter().find(|block| contains(block.start, block.end));
    match item {
        Some(item) => item.start..item.end,
        None => block().map_or(0..view.text.len(), |block| block.start..block.end),
    }
}

/// Changes, removes and adds tasks, each in its own lines.
fn change_tasks(view: &StateView<'_>, plan: &mut EditPlan<'_>, ops: &[Op]) -> Result<(), Ambiguous> {
    let mut added = Vec::new();
    let mut removed = 0;
    for op in ops {
        match op {
            Op::ChangeTask { at, old, new, .. } => change_task(view, plan, *at, (old, new))?,
            Op::AddTask { new, .. } => added.push(new.clone()),
            Op::RemoveTask { at, .. } => {
                let item = view.items.get(*at).ok_or(Ambiguous)?;
                plan.remove(item.start, item.end)?;
                removed += 1;
            }
            Op::Change { .. } | Op::Replace { .. } | Op::Append { .. } => {}
        }
    }
    // A list that becomes empty has another form.
    if removed > 0 && (removed == view.items.len() || !added.is_empty()) {
        return Err(Ambiguous);
    }
    if !added.is_empty() {
        match view.block("tasks") {
            Some(block) => plan.append_to(block, &added, true)?,
            None => plan.add_section(None, "tasks", &Value::List(added)),
        }
    }
    Ok(())
}

/// Writes the whole list of tasks, if it is not a block list or becomes empty.
fn rewrite_tasks(view: &StateView<'_>, plan: &mut EditPlan<'_>, ops: &[Op]) -> Result<(), Ambiguous> {
    let (Some(tree), Some(block)) = (&view.tree, view.block("tasks")) else { return Err(Ambiguous) };
    let old = tree.get("tasks").ok_or(Ambiguous)?;
    let mut file = Fields::from_iter([("tasks".to_owned(), plain_value(old))]);
    for op in ops {
        match op {
            Op::ChangeTask { .. } | Op::AddTask { .. } | Op::RemoveTask { .. } => {
                rewrite_op(tree, &mut file, op);
            }
            Op::Change { .. } | Op::Replace { .. } | Op::Append { .. } => {}
        }
    }
    plan.rewrite(block, file.get("tasks").ok_or(Ambiguous)?);
    Ok(())
}

fn change_task(
    view: &StateView<'_>,
    plan: &mut EditPlan<'_>,
    at: usize,
    change: (&Value, &Value),
) -> Result<(), Ambiguous> {
    let item = view.items.get(at).ok_or(Ambiguous)?;
    let (node, _) = view.part(item.start, item.end).map_err(|_| Ambiguous)?;
    let task = node.items().first().ok_or(Ambiguous)?;
    plan.change_item(item, task, line_start(view.text, item.start), change, TaskRecord::KEYS);
    Ok(())
}

fn change_section(
    view: &StateView<'_>,
    plan: &mut EditPlan<'_>,
    section: &str,
    (old, new): (&Value, &Value),
) -> Result<(), Ambiguous> {
    let Some(block) = view.block(section) else {
        // The revision goes to the top of the file, other sections to its end.
        let after = if section == "revision" { view.block("version") } else { None };
        plan.add_section(after, section, new);
        return Ok(());
    };
    let (node, _) = view.part(block.start, block.end).map_err(|_| Ambiguous)?;
    let value = node.get(section).ok_or(Ambiguous)?;
    if is_single_handoff(section, value) {
        plan.rewrite(block, new);
        return Ok(());
    }
    let old = with_legacy_keys(section, old, value);
    plan.change(block, value, line_start(view.text, block.start), (&old, new));
    Ok(())
}

/// True for the old form of the handoff section, which is replaced as a whole.
fn is_single_handoff(section: &str, node: &Node<'_>) -> bool {
    section == "handoff" && single_handoff(node).is_some()
}

fn changed_section(node: &Node<'_>, section: &str, (old, new): (&Value, &Value)) -> Value {
    if is_single_handoff(section, node) {
        return new.clone();
    }
    merge(node, (&with_legacy_keys(section, old, node), new))
}

/// Adds `task`, the name of `current_task` in old files, to the old value of an agent, so that it is removed.
fn with_legacy_keys(section: &str, old: &Value, node: &Node<'_>) -> Value {
    let mut old = old.clone();
    if let (Value::Map(agents), "agents") = (&mut old, section) {
        for (id, entry) in agents.iter_mut() {
            let legacy = node.get(id).and_then(|agent| agent.get("task"));
            if let (Value::Map(fields), Some(task)) = (entry, legacy) {
                fields.shift_remove("current_task");
                fields.insert("task".to_owned(), plain_value(task));
            }
        }
    }
    old
}

fn append(
    view: &StateView<'_>,
    plan: &mut EditPlan<'_>,
    section: &str,
    key: Option<&str>,
    new: &[Value],
) -> Result<(), Ambiguous> {
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
        let (node, _) = view.part(block.start, block.end).map_err(|_| Ambiguous)?;
        let Value::Map(mut fields) = plain_value(node.get(section).ok_or(Ambiguous)?) else {
            return Err(Ambiguous);
        };
        extend(&mut fields, key, new);
        plan.rewrite(block, &Value::Map(fields));
        return Ok(());
    };
    match blocks.iter().find(|inner| inner.name(view.text) == key) {
        Some(inner) => append_or_rewrite(view, plan, inner, new),
        None => {
            let (node, _) = view.part(block.start, block.end).map_err(|_| Ambiguous)?;
            let value = node.get(section).ok_or(Ambiguous)?;
            let added = Fields::from_iter([(key.to_owned(), Value::List(new.to_vec()))]);
            plan.change_map(&blocks, value, line_start(view.text, block.start), (&Fields::new(), &added), &[])
        }
    }
}

fn append_or_rewrite(
    view: &StateView<'_>,
    plan: &mut EditPlan<'_>,
    block: &Block,
    new: &[Value],
) -> Result<(), Ambiguous> {
    if plan.append_to(block, new, false).is_ok() {
        return Ok(());
    }
    let (node, _) = view.part(block.start, block.end).map_err(|_| Ambiguous)?;
    let value = node.get(block.name(view.text)).ok_or(Ambiguous)?;
    let all = value.items().iter().map(plain_value).chain(new.iter().cloned()).collect();
    plan.rewrite(block, &Value::List(all));
    Ok(())
}

/// Rewrites the whole file from its parsed tree. Keeps only the comments at the top.
pub(crate) fn rewrite(view: &StateView<'_>, ops: &[Op]) -> Option<String> {
    let tree = view.tree.as_ref()?;
    let Value::Map(mut file) = plain_value(tree) else { return None };
    for op in ops {
        rewrite_op(tree, &mut file, op);
    }
    let is_top = |line: &&str| line.trim().is_empty() || line.starts_with('#');
    let top: String = view.text.split_inclusive('\n').take_while(is_top).collect();
    Some(top + &yaml::document(&file))
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
            let node = tree.get(section);
            let value = node.map_or_else(|| new.clone(), |node| changed_section(node, section, (old, new)));
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

/// Maps a position in the old text to the new one, after text inserted there. Inside a replacement it maps to
/// its end: the removal of a block's last lines takes its line break too.
fn moved(at: usize, edits: &[Edit]) -> usize {
    let before = edits.iter().filter(|edit| edit.range.end <= at || edit.range.start < at);
    let (added, removed) = before.fold((0, 0), |(added, removed), edit| {
        (added + edit.text.len(), removed + edit.range.end.min(at) - edit.range.start)
    });
    at + added - removed
}

/// True if the changed blocks of a spliced file read back as intended.
pub(crate) fn reads_back(view: &StateView<'_>, spliced: &Spliced, ops: &[Op]) -> bool {
    ops.iter().all(|op| op_reads_back(view, spliced, op) == Some(true))
}

/// `None` if a block is missing or cannot be parsed.
fn op_reads_back(view: &StateView<'_>, spliced: &Spliced, op: &Op) -> Option<bool> {
    match op {
        Op::ChangeTask { at, old, new, .. } => {
            let item = view.items.get(*at)?;
            let (before, _) = view.part(item.start, item.end).ok()?;
            let after = spliced.part(item.start, item.end)?;
            let (before, after) = (before.items().first()?, after.items().first()?);
            decode::<TaskRecord>(after).ok()?;
            Some(node_equals(after, &merge(before, (old, new))))
        }
        Op::Change { section, old, new } => {
            let Some(block) = view.block(section) else { return Some(true) };
            let (before, _) = view.part(block.start, block.end).ok()?;
            let after = spliced.part(block.start, block.end)?;
            let (before, after) = (before.get(section)?, after.get(section)?);
            if let (Value::Map(agents), "agents") = (new, *section) {
                // The other agents did not change.
                agents.keys().try_for_each(|id| decode::<AgentRecord>(after.get(id)?).ok().map(drop))?;
            }
            Some(node_equals(after, &changed_section(before, section, (old, new))))
        }
        Op::AddTask { new, .. } => list_has(view, spliced, ("tasks", None), std::slice::from_ref(new)),
        Op::Append { section, key, new } => list_has(view, spliced, (section, *key), new),
        Op::RemoveTask { .. } | Op::Replace { .. } => Some(true),
    }
}

/// True if a list ends with the added entries.
fn list_has(
    view: &StateView<'_>,
    spliced: &Spliced,
    (section, key): (&str, Option<&str>),
    new: &[Value],
) -> Option<bool> {
    let Some(block) = view.block(section) else { return Some(true) };
    let inner = match (key, shape(view.text, block)) {
        (None, _) => Some(block.clone()),
        (Some(key), Ok(Shape::Map(blocks))) => blocks.into_iter().find(|inner| inner.name(view.text) == key),
        (Some(_), _) => None,
    };
    let Some(inner) = inner else { return Some(true) };
    let start = match shape(view.text, &inner) {
        Ok(Shape::List(items)) => items.last().map_or(inner.start, |item| item.start),
        _ => inner.start,
    };
    let node = spliced.part(start, inner.end)?;
    let list = node.get(inner.name(view.text)).unwrap_or(&node);
    Some(new.iter().all(|value| list.items().iter().any(|node| node_equals(node, value))))
}

/// The sections that no operation touches.
pub(crate) fn untouched(view: &StateView<'_>, ops: &[Op]) -> Vec<String> {
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
