//! Plans the smallest edits that turn one value into another, block by block.
//!
//! Works on two values of the same record, before and after; keys that neither of them has are left alone.

use std::ops::Range;

use liza_core::model::{Fields, Timestamp, Value};

use super::scan::{Block, Item, Shape, Unsure, line_start, shape};
use crate::yaml::{self, Kind, Node, Style};

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// What goes.
    pub(crate) range: Range<usize>,
    /// What comes, with `\n` as line break.
    pub(crate) text: String,
}

/// All replacements of one write, in any order, none overlapping another.
pub(crate) type Edits = Vec<Edit>;

/// Carries out the edits. The result of overlapping ones would be nonsense, so there is none.
pub(crate) fn apply(text: &str, edits: &mut Edits) -> Result<String, Unsure> {
    edits.sort_by_key(|edit| edit.range.start);
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut out = String::with_capacity(text.len() + added);
    let mut at = 0;
    for edit in edits.iter() {
        if edit.range.start < at || edit.range.end > text.len() {
            return Err(Unsure);
        }
        out.push_str(&text[at..edit.range.start]);
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out.push_str(&text[at..]);
    Ok(out)
}

/// Collects the edits of one text.
pub(crate) struct Plan<'t> {
    text: &'t str,
    crlf: bool,
    edits: Edits,
}

impl<'t> Plan<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let first_break = memchr::memchr(b'\n', text.as_bytes());
        let crlf = first_break.is_some_and(|at| at > 0 && text.as_bytes()[at - 1] == b'\r');
        Self { text, crlf, edits: Vec::new() }
    }

    /// The edits, with the line breaks of the file.
    pub(crate) fn finish(mut self) -> Edits {
        if self.crlf {
            for edit in &mut self.edits {
                edit.text = edit.text.replace('\n', "\r\n");
            }
        }
        self.edits
    }

    fn put(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.edits.push(Edit { range, text: text.into() });
    }

    /// Turns the value of a key into another. `offset` is where the text begins that `node` was parsed from.
    pub(crate) fn change(&mut self, block: &Block, node: &Node<'_>, offset: usize, change: (&Value, &Value)) {
        let mark = self.edits.len();
        if self.try_change(block, node, offset, change).is_err() {
            // Some edits may have been planned before it became unclear; the whole value replaces them.
            self.edits.truncate(mark);
            let name = block.name(self.text);
            let merged = merge(node, change);
            self.put(block.after..block.end, yaml::after_key(name, &merged, block.indent));
        }
    }

    fn try_change(
        &mut self,
        block: &Block,
        node: &Node<'_>,
        offset: usize,
        (old, new): (&Value, &Value),
    ) -> Result<(), Unsure> {
        match (old, new, shape(self.text, block)?) {
            (Value::Map(old), Value::Map(new), Shape::Map(blocks)) if !new.is_empty() => {
                self.change_map(&blocks, node, offset, (old, new), &[])
            }
            (Value::List(old), Value::List(new), Shape::List(items)) if new.len() >= old.len() => {
                self.change_list(&items, node, offset, (old, new))
            }
            (_, _, found) => self.replace(block, node, offset, &merge(node, (old, new)), &found),
        }
    }

    /// Replaces the value of a key, and nothing else on its line where one line is enough.
    fn replace(
        &mut self,
        block: &Block,
        node: &Node<'_>,
        offset: usize,
        new: &Value,
        found: &Shape,
    ) -> Result<(), Unsure> {
        let written = yaml::after_key(block.name(self.text), new, block.indent);
        let nested = written.starts_with('\n');
        let range = node.range().start + offset..node.range().end + offset;
        let key_line = line_end(self.text, block.after, block.end);
        let one_line = !written.contains('\n');
        match found {
            Shape::Inline if one_line && !range.is_empty() && range.end <= key_line => {
                // Only a value that the parser placed on this line is cut out of it; a comment after it stays.
                if range.start < block.after {
                    return Err(Unsure);
                }
                self.put(range, written.trim_start());
            }
            Shape::Nothing if one_line => self.put(block.after..block.after, written),
            Shape::List(_) | Shape::Map(_) | Shape::Nothing if nested => {
                self.put(key_line..block.end, written)
            }
            Shape::Nothing | Shape::Inline | Shape::List(_) | Shape::Map(_) => {
                self.put(block.after..block.end, written);
            }
        }
        Ok(())
    }

    /// Turns one mapping into another. New keys follow the nearest known key of `order` that is there.
    pub(crate) fn change_map(
        &mut self,
        blocks: &[Block],
        node: &Node<'_>,
        offset: usize,
        (old, new): (&Fields, &Fields),
        order: &[&str],
    ) -> Result<(), Unsure> {
        let text = self.text;
        let find = |name: &str| blocks.iter().position(|block| block.name(text) == name);
        let changed = || new.iter().filter(|(name, value)| old.get(*name) != Some(value));
        let mut plans: Vec<(usize, &String, Option<&Value>)> =
            changed().filter_map(|(name, value)| Some((find(name)?, name, Some(value)))).collect();
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            plans.extend(find(name).map(|at| (at, name, None)));
        }
        let removed = plans.iter().filter(|(_, _, value)| value.is_none()).count();
        if removed > 0 && removed == blocks.len() {
            return Err(Unsure);
        }
        for (at, name, value) in plans {
            let block = &blocks[at];
            match value {
                Some(value) => {
                    let inner = node.get(name).ok_or(Unsure)?;
                    self.change(block, inner, offset, (old.get(name).unwrap_or(&Value::Null), value));
                }
                None => self.remove(block.start, block.end)?,
            }
        }
        // Not below a key that goes: what goes and what comes would overlap.
        let stays = |block: &&Block| {
            let name = block.name(text);
            !old.contains_key(name) || new.contains_key(name)
        };
        let staying: Vec<&Block> = blocks.iter().filter(stays).collect();
        // After the changes: where both meet at one position, what belongs to the key before comes first.
        for (name, value) in changed().filter(|(name, _)| find(name).is_none()) {
            self.insert(&staying, name, value, order)?;
        }
        Ok(())
    }

    fn change_list(
        &mut self,
        items: &[Item],
        node: &Node<'_>,
        offset: usize,
        (old, new): (&[Value], &[Value]),
    ) -> Result<(), Unsure> {
        if items.len() != old.len() || node.items().len() != old.len() {
            return Err(Unsure);
        }
        for (n, item) in items.iter().enumerate().filter(|(n, _)| old[*n] != new[*n]) {
            self.change_item(item, &node.items()[n], offset, (&old[n], &new[n]), &[]);
        }
        let last = items.last().ok_or(Unsure)?;
        for value in &new[old.len()..] {
            self.append(last, value, false);
        }
        Ok(())
    }

    /// Turns one list entry into another.
    pub(crate) fn change_item(
        &mut self,
        item: &Item,
        node: &Node<'_>,
        offset: usize,
        change: (&Value, &Value),
        order: &[&str],
    ) {
        let mark = self.edits.len();
        let done = match (change, item.shape(self.text)) {
            ((Value::Map(old), Value::Map(new)), Ok(Shape::Map(blocks))) => {
                self.change_map(&blocks, node, offset, (old, new), order)
            }
            _ => Err(Unsure),
        };
        if done.is_err() {
            self.edits.truncate(mark);
            let merged = merge(node, change);
            self.put(item.start..item.end, yaml::item(&merged, item.indent));
        }
    }

    fn insert(&mut self, blocks: &[&Block], name: &str, value: &Value, order: &[&str]) -> Result<(), Unsure> {
        let rank = |name: &str| order.iter().position(|known| *known == name);
        let before = rank(name).and_then(|own| {
            blocks.iter().rev().find(|block| rank(block.name(self.text)).is_some_and(|other| other < own))
        });
        let after = *before.or(blocks.last()).ok_or(Unsure)?;
        let text = yaml::after_key(name, value, after.indent);
        let line = format!("\n{}{}:{text}", " ".repeat(after.indent), yaml::key(name));
        let at = self.content_end(after.start, after.end);
        self.put(at..at, line);
        Ok(())
    }

    /// Adds an entry below `last`, with a blank line between where `apart`.
    pub(crate) fn append(&mut self, last: &Item, value: &Value, apart: bool) {
        let gap = if apart { "\n\n" } else { "\n" };
        let text = format!("{gap}{}{}", " ".repeat(last.indent), yaml::item(value, last.indent));
        let at = self.content_end(last.start, last.end);
        self.put(at..at, text);
    }

    /// Adds entries to a list that is a section, whatever its shape. Never reads the entries that are there.
    pub(crate) fn append_to(&mut self, block: &Block, values: &[Value], apart: bool) -> Result<(), Unsure> {
        match shape(self.text, block)? {
            Shape::List(items) => {
                let last = items.last().ok_or(Unsure)?;
                let apart = self.are_apart(&items).unwrap_or(apart);
                for value in values {
                    self.append(last, value, apart);
                }
                Ok(())
            }
            Shape::Nothing => {
                let name = block.name(self.text);
                let text = yaml::after_key(name, &Value::List(values.to_vec()), block.indent);
                let at = line_end(self.text, block.after, block.end);
                self.put(at..block.end, text);
                Ok(())
            }
            Shape::Inline if self.text[block.after..block.end].trim() == "[]" => {
                let name = block.name(self.text);
                let text = yaml::after_key(name, &Value::List(values.to_vec()), block.indent);
                self.put(block.after..block.end, text);
                Ok(())
            }
            Shape::Inline | Shape::Map(_) => Err(Unsure),
        }
    }

    /// Whether the last entries of a list have a blank line between them.
    fn are_apart(&self, items: &[Item]) -> Option<bool> {
        let [.., one, two] = items else { return None };
        Some(self.text[one.end..two.start].matches('\n').count() > 1)
    }

    /// Replaces a block with nothing, its lines included.
    pub(crate) fn remove(&mut self, start: usize, end: usize) -> Result<(), Unsure> {
        let from = line_start(self.text, start);
        if !self.text[from..start].bytes().all(|b| b == b' ') {
            return Err(Unsure);
        }
        match memchr::memchr(b'\n', &self.text.as_bytes()[end..]) {
            Some(stop) => self.put(from..self.past_blank(from, end + stop + 1), ""),
            // The last line of a file without a final line break: the break before it goes instead.
            None => self.put(from.saturating_sub(1)..self.text.len(), ""),
        }
        Ok(())
    }

    /// Skips one blank line below what is removed where another stays above it.
    fn past_blank(&self, from: usize, below: usize) -> usize {
        let blank_above = self.text[..from].ends_with("\n\n") || self.text[..from].ends_with("\n\r\n");
        let rest = &self.text[below..];
        let blank = if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
        if blank_above { below + blank } else { below }
    }

    /// Replaces the value of a key as a whole.
    pub(crate) fn rewrite(&mut self, block: &Block, value: &Value) {
        let text = yaml::after_key(block.name(self.text), value, block.indent);
        self.put(block.after..block.end, text);
    }

    /// Adds a section below another, or at the end of the file.
    pub(crate) fn add_section(&mut self, after: Option<&Block>, name: &str, value: &Value) {
        let at = after.map_or(self.text.len(), |block| self.content_end(block.start, block.end));
        let line = format!("{}:{}", yaml::key(name), yaml::after_key(name, value, 0));
        let ends_open = at > 0 && self.text.as_bytes().get(at - 1) != Some(&b'\n');
        match (after.is_some(), ends_open) {
            (true, _) => self.put(at..at, format!("\n{line}")),
            (false, true) => self.put(at..at, format!("\n{line}\n")),
            (false, false) => self.put(at..at, format!("{line}\n")),
        }
    }

    /// Where a block ends, trailing blank lines included where a `|+` in it counts them.
    fn content_end(&self, start: usize, end: usize) -> usize {
        let keeps =
            |mark: &str| memchr::memmem::find(&self.text.as_bytes()[start..end], mark.as_bytes()).is_some();
        if !keeps("|+") && !keeps(">+") && !keeps("|1+") && !keeps("|2+") {
            return end;
        }
        let blank = self.text[end..].bytes().take_while(|b| b.is_ascii_whitespace()).count();
        let tail = &self.text[end..end + blank];
        tail.rfind('\n').map_or(end, |last| {
            let last = end + last;
            if self.text.as_bytes()[last - 1] == b'\r' { last - 1 } else { last }
        })
    }
}

/// Where the line ends on which `at` stands, but not beyond `limit`.
fn line_end(text: &str, at: usize, limit: usize) -> usize {
    let stop = memchr::memchr(b'\n', &text.as_bytes()[at..limit]).map_or(limit, |n| at + n);
    if stop > at && text.as_bytes()[stop - 1] == b'\r' { stop - 1 } else { stop }
}

/// The new value with what the file has beyond the record: keys that neither side knows survive.
pub(crate) fn merge(node: &Node<'_>, (old, new): (&Value, &Value)) -> Value {
    // What does not change keeps the form that its writer gave it.
    if old == new {
        return untyped(node);
    }
    match (&node.kind, old, new) {
        (Kind::Map(entries, _), Value::Map(old), Value::Map(new)) => {
            let mut merged = Fields::new();
            for (key, value) in entries {
                let Some(name) = key.text() else { continue };
                match (old.get(name), new.get(name)) {
                    (Some(old), Some(new)) => drop(merged.insert(name.to_owned(), merge(value, (old, new)))),
                    (None, Some(new)) => drop(merged.insert(name.to_owned(), new.clone())),
                    (Some(_), None) => {}
                    (None, None) => drop(merged.insert(name.to_owned(), untyped(value))),
                }
            }
            for (name, value) in new {
                merged.entry(name.clone()).or_insert_with(|| value.clone());
            }
            Value::Map(merged)
        }
        (Kind::List(nodes, _), Value::List(old), Value::List(new)) if nodes.len() == old.len() => {
            let both = |n: usize| old.get(n).zip(nodes.get(n));
            let items = new.iter().enumerate().map(|(n, new)| match both(n) {
                Some((old, node)) => merge(node, (old, new)),
                None => new.clone(),
            });
            Value::List(items.collect())
        }
        (Kind::Scalar(..) | Kind::List(..) | Kind::Map(..), _, new) => new.clone(),
    }
}

/// Whether a plain text is a time in the form in which we write it.
fn is_time(text: &str) -> bool {
    text.len() == 20
        && text.ends_with('Z')
        && text.parse::<Timestamp>().is_ok_and(|time| time.to_string() == text)
}

/// A node as a plain value.
pub(crate) fn untyped(node: &Node<'_>) -> Value {
    match &node.kind {
        Kind::Scalar(text, Style::Plain) if is_time(text) => {
            text.parse().map_or_else(|_| Value::from(&**text), Value::Time)
        }
        Kind::Scalar(text, style) => yaml::resolve(text, *style),
        Kind::List(items, _) => Value::List(items.iter().map(untyped).collect()),
        Kind::Map(entries, _) => {
            let pair = |(key, value): &(Node<'_>, Node<'_>)| {
                (key.text().unwrap_or_default().to_owned(), untyped(value))
            };
            Value::Map(entries.iter().map(pair).collect())
        }
    }
}
