//! Whether a new text says what was meant, decided on the parsed nodes themselves.
//!
//! The same answer as comparing the values that [`merge`](super::merge) and [`untyped`](super::untyped) make, without
//! making them: most of what is compared has not changed.

use liza_core::model::{Fields, Value};

use crate::yaml::{Kind, Node, resolve};

/// Whether `after` says what becomes of `before` when `old` becomes `new` in it.
pub(crate) fn says(before: &Node<'_>, (old, new): (&Value, &Value), after: &Node<'_>) -> bool {
    if old == new {
        return alike(before, after);
    }
    match (&before.kind, old, new) {
        (Kind::Map(entries, _), Value::Map(old), Value::Map(new)) => map_says(entries, (old, new), after),
        (Kind::List(nodes, _), Value::List(old), Value::List(new)) if nodes.len() == old.len() => {
            let one = |(n, after): (usize, &Node<'_>)| match (nodes.get(n), old.get(n)) {
                (Some(node), Some(old)) => says(node, (old, &new[n]), after),
                _ => holds(after, &new[n]),
            };
            matches!(after.kind, Kind::List(..))
                && after.items().len() == new.len()
                && after.items().iter().enumerate().all(one)
        }
        (Kind::Scalar(..) | Kind::List(..) | Kind::Map(..), _, new) => holds(after, new),
    }
}

fn map_says(before: &[(Node<'_>, Node<'_>)], (old, new): (&Fields, &Fields), after: &Node<'_>) -> bool {
    if !matches!(after.kind, Kind::Map(..)) {
        return false;
    }
    let mut left = Search { entries: after.entries(), next: 0 };
    let mut found = 0;
    for (key, value) in before {
        let name = key.text().unwrap_or_default();
        let right = match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => left.find(name).is_some_and(|after| says(value, (old, new), after)),
            (None, Some(new)) => left.find(name).is_some_and(|after| holds(after, new)),
            (None, None) => left.find(name).is_some_and(|after| alike(value, after)),
            (Some(_), None) => continue,
        };
        if !right {
            return false;
        }
        found += 1;
    }
    for (name, value) in new {
        if before.iter().any(|(key, _)| key.text() == Some(name)) {
            continue;
        }
        if !left.find(name).is_some_and(|after| holds(after, value)) {
            return false;
        }
        found += 1;
    }
    found == after.entries().len()
}

/// Looks up keys that mostly come in the order in which they stand.
struct Search<'n, 'a> {
    entries: &'n [(Node<'a>, Node<'a>)],
    next: usize,
}

impl<'n, 'a> Search<'n, 'a> {
    fn find(&mut self, name: &str) -> Option<&'n Node<'a>> {
        let is = |(key, _): &(Node<'_>, Node<'_>)| key.text() == Some(name);
        let (before, rest) = self.entries.split_at(self.next.min(self.entries.len()));
        let at = match rest.iter().position(is) {
            Some(at) => self.next + at,
            None => before.iter().position(is)?,
        };
        self.next = at + 1;
        Some(&self.entries[at].1)
    }
}

/// Whether two nodes mean the same.
fn alike(one: &Node<'_>, other: &Node<'_>) -> bool {
    match (&one.kind, &other.kind) {
        (Kind::Scalar(a, style), Kind::Scalar(b, other)) => {
            (a == b && style == other) || resolve(a, *style) == resolve(b, *other)
        }
        (Kind::List(a, _), Kind::List(b, _)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Kind::Map(a, _), Kind::Map(b, _)) => {
            let mut left = Search { entries: b, next: 0 };
            let same = |(key, value): &(Node<'_>, Node<'_>)| {
                let name = key.text().unwrap_or_default();
                left.find(name).is_some_and(|other| alike(value, other))
            };
            a.len() == b.len() && a.iter().all(same)
        }
        (Kind::Scalar(..) | Kind::List(..) | Kind::Map(..), _) => false,
    }
}

/// Whether a node means this value. A time is the text that it is written as.
pub(crate) fn holds(node: &Node<'_>, value: &Value) -> bool {
    match (&node.kind, value) {
        (Kind::Scalar(text, style), Value::Time(time)) => {
            resolve(text, *style) == Value::Text(time.to_string())
        }
        (
            Kind::Scalar(text, style),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_),
        ) => resolve(text, *style) == *value,
        (Kind::List(nodes, _), Value::List(items)) => {
            nodes.len() == items.len() && nodes.iter().zip(items).all(|(node, item)| holds(node, item))
        }
        (Kind::Map(entries, _), Value::Map(fields)) => {
            let mut left = Search { entries, next: 0 };
            let same =
                |(name, value): (&String, &Value)| left.find(name).is_some_and(|node| holds(node, value));
            entries.len() == fields.len() && fields.iter().all(same)
        }
        (Kind::Scalar(..) | Kind::List(..) | Kind::Map(..), _) => false,
    }
}
