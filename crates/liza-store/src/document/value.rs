//! Plain values of nodes: their content without a schema, and after a change.

use liza_core::model::{Fields, Value};

use crate::yaml::{self, Node, NodeKind, Style};

/// The new value of a node when `old` becomes `new`: keys that neither of them has keep their value.
pub(crate) fn merge(node: &Node<'_>, (old, new): (&Value, &Value)) -> Value {
    // An unchanged value keeps its form.
    if old == new {
        return plain_value(node);
    }
    match (&node.kind, old, new) {
        (NodeKind::Map(entries, _), Value::Map(old), Value::Map(new)) => {
            let mut merged = Fields::new();
            for (key, value) in entries {
                let Some(name) = key.text() else { continue };
                match (old.get(name), new.get(name)) {
                    (Some(old), Some(new)) => drop(merged.insert(name.to_owned(), merge(value, (old, new)))),
                    (None, Some(new)) => drop(merged.insert(name.to_owned(), new.clone())),
                    (Some(_), None) => {}
                    (None, None) => drop(merged.insert(name.to_owned(), plain_value(value))),
                }
            }
            for (name, value) in new {
                merged.entry(name.clone()).or_insert_with(|| value.clone());
            }
            Value::Map(merged)
        }
        (NodeKind::List(nodes, _), Value::List(old), Value::List(new)) if nodes.len() == old.len() => {
            let both = |n: usize| old.get(n).zip(nodes.get(n));
            let items = new.iter().enumerate().map(|(n, new)| match both(n) {
                Some((old, node)) => merge(node, (old, new)),
                None => new.clone(),
            });
            Value::List(items.collect())
        }
        (NodeKind::Scalar(..) | NodeKind::List(..) | NodeKind::Map(..), _, new) => new.clone(),
    }
}

/// The value of a node without a schema. A plain text in our form of a time is a time.
pub(crate) fn plain_value(node: &Node<'_>) -> Value {
    match &node.kind {
        NodeKind::Scalar(text, style) => match yaml::as_time(text).filter(|_| *style == Style::Plain) {
            Some(time) => Value::Time(time),
            None => yaml::resolve(text, *style),
        },
        NodeKind::List(items, _) => Value::List(items.iter().map(plain_value).collect()),
        NodeKind::Map(entries, _) => {
            let pair = |(key, value): &(Node<'_>, Node<'_>)| {
                (key.text().unwrap_or_default().to_owned(), plain_value(value))
            };
            Value::Map(entries.iter().map(pair).collect())
        }
    }
}

pub(crate) fn node_equals(node: &Node<'_>, value: &Value) -> bool {
    same_value(&plain_value(node), value)
}

/// True if two values are the same in YAML, where a time and its text are the same.
pub(crate) fn same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Time(time), Value::Text(text)) | (Value::Text(text), Value::Time(time)) => {
            time.to_string() == *text
        }
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_value(one, other))
        }
        (Value::Map(one), Value::Map(other)) => {
            let is_same = |(key, value): (&String, &Value)| {
                other.get(key).is_some_and(|other| same_value(value, other))
            };
            one.len() == other.len() && one.iter().all(is_same)
        }
        (
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Time(_)
            | Value::List(_)
            | Value::Map(_),
            _,
        ) => one == other,
    }
}
