//! Plans the smallest edits that turn one value into another, block by block. Must not touch keys that
//! neither the old nor the new value has.

use std::ops::Range;

use liza_core::model::{Fields, Value};

use super::comments;
use super::edit::{Edit, Edits};
use super::scan::{Ambiguous, Block, Item, Shape, document_end, is_empty_value, line_start, shape};
use super::value::merge;
use crate::yaml::{self, Node};

pub(crate) struct EditPlan<'t> {
    text: &'t str,
    crlf: bool,
    edits: Edits,
}

impl<'t> EditPlan<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let first_break = memchr::memchr(b'\n', text.as_bytes());
        let crlf = first_break.is_some_and(|at| at > 0 && text.as_bytes()[at - 1] == b'\r');
        Self { text, crlf, edits: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.edits.clear();
    }

    /// Returns the edits, with the comments of the removed text and the file's line breaks. `part` is the
    /// block that contains a range and can be parsed alone.
    pub(crate) fn finish(mut self, part: impl Fn(&Range<usize>) -> Range<usize>) -> Result<Edits, Ambiguous> {
        for edit in &mut self.edits {
            comments::keep(self.text, edit, &part)?;
        }
        if self.crlf {
            for edit in &mut self.edits {
                edit.text = edit.text.replace('\n', "\r\n");
            }
        }
        Ok(self.edits)
    }

    fn add(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.edits.push(Edit { range, text: text.into() });
    }

    /// Changes the value of a key. `offset` is the start of the text that `node` was parsed from.
    pub(crate) fn change(&mut self, block: &Block, node: &Node<'_>, offset: usize, change: (&Value, &Value)) {
        let mark = self.edits.len();
        if self.try_change(block, node, offset, change).is_err() {
            // Drop the edits planned so far, and write the whole value.
            self.edits.truncate(mark);
            self.rewrite(block, &merge(node, change));
        }
    }

    fn try_change(
        &mut self,
        block: &Block,
        node: &Node<'_>,
        offset: usize,
        (old, new): (&Value, &Value),
    ) -> Result<(), Ambiguous> {
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

    /// Replaces the value of a key. If both values fit on one line, the rest of the line stays.
    fn replace(
        &mut self,
        block: &Block,
        node: &Node<'_>,
        offset: usize,
        new: &Value,
        found: &Shape,
    ) -> Result<(), Ambiguous> {
        let written = yaml::after_key(block.name(self.text), new, block.indent);
        let nested = written.starts_with('\n');
        let range = node.range().start + offset..node.range().end + offset;
        let key_line = line_end(self.text, block.after, block.end);
        let one_line = !written.contains('\n');
        match found {
            Shape::Inline if one_line && !range.is_empty() && range.end <= key_line => {
                // The comment after the value stays.
                if range.start < block.after {
                    return Err(Ambiguous);
                }
                self.add(range, written.trim_start());
            }
            Shape::Empty if one_line => self.add(block.after..block.after, written),
            Shape::List(_) | Shape::Map(_) | Shape::Empty if nested => self.add(key_line..block.end, written),
            Shape::Empty | Shape::Inline | Shape::List(_) | Shape::Map(_) => {
                self.add(block.after..block.end, written);
            }
        }
        Ok(())
    }

    /// Changes a mapping. A new key goes after the nearest key before it in `order`.
    pub(crate) fn change_map(
        &mut self,
        blocks: &[Block],
        node: &Node<'_>,
        offset: usize,
        (old, new): (&Fields, &Fields),
        order: &[&str],
    ) -> Result<(), Ambiguous> {
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
            return Err(Ambiguous);
        }
        for (at, name, value) in plans {
            let block = &blocks[at];
            match value {
                Some(value) => {
                    let inner = node.get(name).ok_or(Ambiguous)?;
                    self.change(block, inner, offset, (old.get(name).unwrap_or(&Value::Null), value));
                }
                None => self.remove(block.start, block.end)?,
            }
        }
        // Not after a key that is removed: the two edits would overlap.
        let is_kept = |block: &&Block| {
            let name = block.name(text);
            !old.contains_key(name) || new.contains_key(name)
        };
        let kept: Vec<&Block> = blocks.iter().filter(is_kept).collect();
        // After the changes: at the same position, the text of the previous key comes first.
        for (name, value) in changed().filter(|(name, _)| find(name).is_none()) {
            self.insert(&kept, name, value, order)?;
        }
        Ok(())
    }

    fn change_list(
        &mut self,
        items: &[Item],
        node: &Node<'_>,
        offset: usize,
        (old, new): (&[Value], &[Value]),
    ) -> Result<(), Ambiguous> {
        if items.len() != old.len() || node.items().len() != old.len() {
            return Err(Ambiguous);
        }
        for (n, item) in items.iter().enumerate().filter(|(n, _)| old[*n] != new[*n]) {
            self.change_item(item, &node.items()[n], offset, (&old[n], &new[n]), &[]);
        }
        let last = items.last().ok_or(Ambiguous)?;
        for value in &new[old.len()..] {
            self.append(last, value, false);
        }
        Ok(())
    }

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
            _ => Err(Ambiguous),
        };
        if done.is_err() {
            self.edits.truncate(mark);
            let merged = merge(node, change);
            self.add(item.start..item.end, yaml::item(&merged, item.indent));
        }
    }

    fn insert(
        &mut self,
        blocks: &[&Block],
        name: &str,
        value: &Value,
        order: &[&str],
    ) -> Result<(), Ambiguous> {
        let rank = |name: &str| order.iter().position(|known| *known == name);
        let before = rank(name).and_then(|own| {
            blocks.iter().rev().find(|block| rank(block.name(self.text)).is_some_and(|other| other < own))
        });
        let after = *before.or(blocks.last()).ok_or(Ambiguous)?;
        let text = yaml::after_key(name, value, after.indent);
        let line = format!("\n{}{}:{text}", " ".repeat(after.indent), yaml::key(name));
        let at = self.content_end(after.start, after.end);
        self.add(at..at, line);
        Ok(())
    }

    /// Adds an entry after `last`, and a blank line before it if `spaced`.
    pub(crate) fn append(&mut self, last: &Item, value: &Value, spaced: bool) {
        let separator = if spaced { "\n\n" } else { "\n" };
        let text = format!("{separator}{}{}", " ".repeat(last.indent), yaml::item(value, last.indent));
        let at = self.content_end(last.start, last.end);
        self.add(at..at, text);
    }

    /// Adds entries to a list without parsing its other entries.
    pub(crate) fn append_to(
        &mut self,
        block: &Block,
        values: &[Value],
        spaced: bool,
    ) -> Result<(), Ambiguous> {
        match shape(self.text, block)? {
            Shape::List(items) => {
                let last = items.last().ok_or(Ambiguous)?;
                let spaced = self.are_spaced(&items).unwrap_or(spaced);
                for value in values {
                    self.append(last, value, spaced);
                }
                Ok(())
            }
            Shape::Empty => {
                let at = line_end(self.text, block.after, block.end);
                self.write_value(block, at, &Value::List(values.to_vec()));
                Ok(())
            }
            Shape::Inline if is_empty_value(&self.text[block.after..block.end]) => {
                self.write_value(block, block.after, &Value::List(values.to_vec()));
                Ok(())
            }
            Shape::Inline | Shape::Map(_) => Err(Ambiguous),
        }
    }

    /// True if a blank line separates the last entries of a list.
    fn are_spaced(&self, items: &[Item]) -> Option<bool> {
        let [.., one, two] = items else { return None };
        Some(self.text[one.end..two.start].matches('\n').count() > 1)
    }

    pub(crate) fn remove(&mut self, start: usize, end: usize) -> Result<(), Ambiguous> {
        let from = line_start(self.text, start);
        if !self.text[from..start].bytes().all(|b| b == b' ') {
            return Err(Ambiguous);
        }
        match memchr::memchr(b'\n', &self.text.as_bytes()[end..]) {
            Some(stop) => self.add(from..self.past_blank(from, end + stop + 1), ""),
            // The last line has no line break, so the one before it is removed.
            None => self.add(from.saturating_sub(1)..self.text.len(), ""),
        }
        Ok(())
    }

    /// The start of the line after a removed block; skips a blank line if there is one above the block too.
    fn past_blank(&self, from: usize, below: usize) -> usize {
        let blank_above = self.text[..from].ends_with("\n\n") || self.text[..from].ends_with("\n\r\n");
        let rest = &self.text[below..];
        let blank = if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
        if blank_above { below + blank } else { below }
    }

    pub(crate) fn rewrite(&mut self, block: &Block, value: &Value) {
        self.write_value(block, block.after, value);
    }

    /// Writes a value from `at` to the end of its block.
    fn write_value(&mut self, block: &Block, at: usize, value: &Value) {
        let text = yaml::after_key(block.name(self.text), value, block.indent);
        self.add(at..block.end, text);
    }

    /// Adds a section after another, or at the end of the file.
    pub(crate) fn add_section(&mut self, after: Option<&Block>, name: &str, value: &Value) {
        let at = after.map_or(document_end(self.text), |block| self.content_end(block.start, block.end));
        let line = format!("{}:{}", yaml::key(name), yaml::after_key(name, value, 0));
        let ends_open = at > 0 && self.text.as_bytes().get(at - 1) != Some(&b'\n');
        match (after.is_some(), ends_open) {
            (true, _) => self.add(at..at, format!("\n{line}")),
            (false, true) => self.add(at..at, format!("\n{line}\n")),
            (false, false) => self.add(at..at, format!("{line}\n")),
        }
    }

    /// The end of a block, with the blank lines after it if a `|+` in the block may keep them.
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

/// The end of the line at `at`, at most `limit`.
fn line_end(text: &str, at: usize, limit: usize) -> usize {
    let stop = memchr::memchr(b'\n', &text.as_bytes()[at..limit]).map_or(limit, |n| at + n);
    if stop > at && text.as_bytes()[stop - 1] == b'\r' { stop - 1 } else { stop }
}
