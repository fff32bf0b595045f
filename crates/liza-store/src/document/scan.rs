//! Finds sections, list entries and keys by lines and indentation. Parses no values. If indentation is not
//! enough, returns [`Ambiguous`], and the caller uses the parser.

use std::ops::Range;

use memchr::memchr;

use crate::yaml::{Node, NodeKind};

/// The text cannot be split by indentation alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ambiguous;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) start: usize,
    /// Before the line break.
    pub(crate) end: usize,
    /// The number of leading spaces.
    pub(crate) indent: usize,
}

impl Line {
    /// Its first byte that is not a space; none if the line is blank.
    pub(crate) fn first(&self, text: &str) -> Option<u8> {
        let content = text.as_bytes().get(self.content()..self.end)?;
        match content.first() {
            Some(b'\t') if content.iter().all(|b| matches!(b, b' ' | b'\t')) => None,
            first => first.copied(),
        }
    }

    /// After the spaces.
    pub(crate) fn content(&self) -> usize {
        self.start + self.indent
    }

    /// True if it starts a list entry.
    pub(crate) fn is_dash(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let at = self.content();
        bytes.get(at) == Some(&b'-')
            && (at + 1 >= self.end || matches!(bytes.get(at + 1), Some(b' ' | b'\t')))
    }
}

pub(crate) struct Lines<'t> {
    text: &'t str,
    at: usize,
    end: usize,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str, range: Range<usize>) -> Self {
        Self { text, at: range.start, end: range.end.min(text.len()) }
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        if self.at >= self.end {
            return None;
        }
        let bytes = &self.text.as_bytes()[..self.end];
        let start = self.at;
        let stop = memchr(b'\n', &bytes[start..]).map_or(self.end, |n| start + n);
        self.at = stop + 1;
        let end = if stop > start && bytes[stop - 1] == b'\r' { stop - 1 } else { stop };
        let indent = bytes[start..end].iter().take_while(|&&b| b == b' ').count();
        Some(Line { start, end, indent })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) start: usize,
    /// The end of the last line, before the line break.
    pub(crate) end: usize,
    pub(crate) indent: usize,
    /// The key as written, quotes included.
    pub(crate) key: Range<usize>,
    /// The position after the colon.
    pub(crate) after: usize,
}

impl Block {
    /// The key without its quotes. A key with escapes is never one that we look for.
    pub(crate) fn name<'t>(&self, text: &'t str) -> &'t str {
        unquoted(&text[self.key.clone()])
    }
}

pub(crate) fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) start: usize,
    /// The end of the last line, before the line break.
    pub(crate) end: usize,
    pub(crate) indent: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Empty,
    /// A value that begins on the line of the key.
    Inline,
    List(Vec<Item>),
    Map(Vec<Block>),
}

pub(crate) fn line_start(text: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |n| n + 1)
}

/// Splits `key: …` at its colon: the range of the key, and the position after the colon.
pub(crate) fn split_key(text: &str, start: usize, end: usize) -> Option<(Range<usize>, usize)> {
    let bytes = &text.as_bytes()[..end];
    let first = *bytes.get(start)?;
    let ends_key = |colon: usize| colon + 1 >= end || matches!(bytes[colon + 1], b' ' | b'\t');
    if first == b'"' || first == b'\'' {
        let close = start + 1 + memchr(first, &bytes[start + 1..])?;
        // A key with escapes needs the parser.
        if first == b'"' && memchr(b'\\', &bytes[start..close]).is_some() {
            return None;
        }
        let spaces = bytes[close + 1..].iter().take_while(|&&b| b == b' ').count();
        let colon = close + 1 + spaces;
        return (bytes.get(colon) == Some(&b':') && ends_key(colon)).then(|| (start..close + 1, colon + 1));
    }
    if b"?{}[]&*!|>%@`#,-\t".contains(&first) {
        return None;
    }
    let mut from = start;
    loop {
        let colon = from + memchr(b':', &bytes[from..])?;
        if ends_key(colon) {
            // Keys are short, so comparing bytes is faster than preparing a search.
            let comment = bytes[start..colon].windows(2).any(|pair| pair == b" #");
            let key_end = start + text[start..colon].trim_end().len();
            return (!comment && key_end > start).then_some((start..key_end, colon + 1));
        }
        from = colon + 1;
    }
}

/// Keys at column 0.
pub(crate) fn sections(text: &str) -> Result<Vec<Block>, Ambiguous> {
    let bytes = text.as_bytes();
    let mut found: Vec<Block> = Vec::with_capacity(16);
    if bytes.first().is_some_and(|first| may_begin_section(*first)) {
        section_line(text, 0, &mut found)?;
    }
    let mut at = 0;
    while at < bytes.len() {
        let part = &bytes[at..(at + STRIDE + 1).min(bytes.len())];
        if has_section_line(part) {
            for n in memchr::memchr_iter(b'\n', &part[..part.len().min(STRIDE)]) {
                if part.get(n + 1).is_some_and(|first| may_begin_section(*first)) {
                    section_line(text, at + n + 1, &mut found)?;
                }
            }
        }
        at += STRIDE;
    }
    let indented_first = || Lines::new(text, 0..text.len()).find(|line| is_content(text, line));
    if indented_first().is_some_and(|line| line.indent > 0) {
        return Err(Ambiguous);
    }
    let ends: Vec<usize> = found.iter().skip(1).map(|next| next.start).chain([document_end(text)]).collect();
    for (block, limit) in found.iter_mut().zip(ends) {
        block.end = last_content(text, block.start, limit);
    }
    Ok(found)
}

/// The number of bytes that are checked together.
const STRIDE: usize = 256;

/// True if a line with this first byte may begin a section. Most lines are indented or blank.
fn may_begin_section(first: u8) -> bool {
    !matches!(first, b' ' | b'\n' | b'\r' | b'#')
}

/// True if these bytes may have a line that begins a section. This loop reads every byte of the file, so it has
/// no branches; rare lines (comments at column 0, blank ones with a carriage return) give true as well.
fn has_section_line(part: &[u8]) -> bool {
    let next = part.get(1..).unwrap_or_default();
    part.iter()
        .zip(next)
        .fold(false, |any, (byte, next)| any | ((*byte == b'\n') & (*next != b' ') & (*next != b'\n')))
}

fn section_line(text: &str, start: usize, found: &mut Vec<Block>) -> Result<(), Ambiguous> {
    let Some(line) = Lines::new(text, start..text.len()).next() else { return Ok(()) };
    if line.is_dash(text) {
        return if found.is_empty() { Err(Ambiguous) } else { Ok(()) };
    }
    let content = &text[line.start..line.end];
    // Lines before the first section or at the end of the document are kept.
    if line.first(text).is_none()
        || (found.is_empty() && (content.starts_with('%') || is_marker(content, "---")))
        || (start == document_end(text) && is_marker(content, "..."))
    {
        return Ok(());
    }
    found.push(key_block(text, line.start, line.end, 0)?);
    Ok(())
}

/// True for a document marker, perhaps with a comment.
fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| {
        rest.trim().is_empty() || (rest.starts_with([' ', '\t']) && rest.trim().starts_with('#'))
    })
}

/// The end of the sections: the start of a final `...`, or the end of the text.
pub(crate) fn document_end(text: &str) -> usize {
    let mut stop = text.len();
    while stop > 0 {
        let from = line_start(text, stop - 1);
        let Some(line) = Lines::new(text, from..stop).next() else { break };
        if is_content(text, &line) {
            return if is_marker(&text[line.start..line.end], "...") { from } else { text.len() };
        }
        stop = from;
    }
    text.len()
}

/// True if the text after a colon is empty: `[]`, `{}`, `null`, `~` or nothing.
pub(crate) fn is_empty_value(rest: &str) -> bool {
    let (first, below) = rest.split_once('\n').unwrap_or((rest, ""));
    let first = first.trim();
    let value = match first.starts_with('#') {
        true => "",
        false => memchr::memmem::find(first.as_bytes(), b" #").map_or(first, |at| first[..at].trim_end()),
    };
    let inner = |open, close| value.strip_prefix(open).and_then(|value: &str| value.strip_suffix(close));
    let is_empty = inner('[', ']').or_else(|| inner('{', '}')).is_some_and(|inner| inner.trim().is_empty())
        || matches!(value, "" | "~" | "null" | "Null" | "NULL");
    is_empty && below.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'))
}

fn is_content(text: &str, line: &Line) -> bool {
    line.first(text).is_some_and(|first| first != b'#')
}

/// The end of the last line of a section that is neither blank nor a comment at column 0.
fn last_content(text: &str, start: usize, limit: usize) -> usize {
    let mut stop = limit;
    while stop > start {
        let from = line_start(text, stop - 1).max(start);
        let Some(line) = Lines::new(text, from..stop).next() else { break };
        let first = line.first(text);
        if first.is_some_and(|first| first != b'#' || line.indent > 0) {
            return line.end;
        }
        stop = from;
    }
    stop
}

fn key_block(text: &str, start: usize, end: usize, indent: usize) -> Result<Block, Ambiguous> {
    let (key, after) = split_key(text, start, end).ok_or(Ambiguous)?;
    Ok(Block { start, end, indent, key, after })
}

pub(crate) fn shape(text: &str, block: &Block) -> Result<Shape, Ambiguous> {
    let mut lines = Lines::new(text, block.after..block.end);
    let Some(rest) = lines.next() else { return Ok(Shape::Empty) };
    if rest.first(text).is_some_and(|first| first != b'#') {
        return Ok(Shape::Inline);
    }
    below(text, rest.end..block.end, block.indent, true)
}

/// The block list or mapping in a range that begins at the end of a line.
fn below(text: &str, range: Range<usize>, parent: usize, dash_may_align: bool) -> Result<Shape, Ambiguous> {
    // The range begins with a line break, and then has complete lines.
    let from = memchr(b'\n', &text.as_bytes()[range.clone()]).map_or(range.end, |n| range.start + n + 1);
    let Some(first) = Lines::new(text, from..range.end).find(|line| is_content(text, line)) else {
        return Ok(Shape::Empty);
    };
    let dash = first.is_dash(text);
    if first.indent < parent || (first.indent == parent && !(dash && dash_may_align)) {
        return Err(Ambiguous);
    }
    if dash {
        list_items(text, from..range.end, first.indent).map(Shape::List)
    } else {
        map_blocks(text, from..range.end, first.indent, Vec::new()).map(Shape::Map)
    }
}

/// The lines of each entry of a block list, found by the dashes in the first one's column. Only comments
/// share it.
pub(crate) fn list_entries(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let Some(first) = Lines::new(text, range.clone()).find(|line| is_content(text, line)) else {
        return Vec::new();
    };
    let dash = format!("\n{}-", " ".repeat(first.indent));
    let rest = &text.as_bytes()[first.end..range.end];
    let more = memchr::memmem::find_iter(rest, &dash).map(|at| first.end + at + 1);
    let mut entries = Vec::new();
    let mut start = first.start;
    for next in more.chain([range.end]) {
        entries.push(start..next);
        start = next;
    }
    entries
}

fn list_items(text: &str, range: Range<usize>, indent: usize) -> Result<Vec<Item>, Ambiguous> {
    let mut items: Vec<Item> = Vec::new();
    for line in Lines::new(text, range) {
        let Some(first) = line.first(text) else { continue };
        if line.indent > indent {
            // A comment above the first entry.
            if first == b'#' && items.is_empty() {
                continue;
            }
            items.last_mut().ok_or(Ambiguous)?.end = line.end;
        } else if first == b'#' {
            continue;
        } else if line.indent == indent && line.is_dash(text) {
            items.push(Item { start: line.content(), end: line.end, indent });
        } else {
            return Err(Ambiguous);
        }
    }
    Ok(items)
}

/// The keys of a block mapping. `blocks` holds the first key if it is not on a line of its own.
fn map_blocks(
    text: &str,
    range: Range<usize>,
    indent: usize,
    mut blocks: Vec<Block>,
) -> Result<Vec<Block>, Ambiguous> {
    for line in Lines::new(text, range) {
        let Some(first) = line.first(text) else { continue };
        if line.indent > indent {
            if first == b'#' && blocks.is_empty() {
                continue;
            }
            blocks.last_mut().ok_or(Ambiguous)?.end = line.end;
        } else if first == b'#' {
            continue;
        } else if line.indent == indent && !line.is_dash(text) {
            blocks.push(key_block(text, line.content(), line.end, indent)?);
        } else if line.indent == indent && line.is_dash(text) && !blocks.is_empty() {
            // An unindented list: the value of the last key.
            blocks.last_mut().ok_or(Ambiguous)?.end = line.end;
        } else {
            return Err(Ambiguous);
        }
    }
    Ok(blocks)
}

impl Item {
    pub(crate) fn shape(&self, text: &str) -> Result<Shape, Ambiguous> {
        let Some(head) = Lines::new(text, self.start + 1..self.end).next() else { return Ok(Shape::Empty) };
        match head.first(text) {
            None | Some(b'#') => below(text, head.end..self.end, self.indent, false),
            Some(_) => {
                let start = head.content();
                let Some((key, after)) = split_key(text, start, head.end) else { return Ok(Shape::Inline) };
                let indent = start - line_start(text, self.start);
                let first = Block { start, end: head.end, indent, key, after };
                let below = memchr(b'\n', &text.as_bytes()[head.end..self.end]);
                let from = below.map_or(self.end, |n| head.end + n + 1);
                map_blocks(text, from..self.end, indent, vec![first]).map(Shape::Map)
            }
        }
    }
}

/// True if a scan finds the same blocks as the parser, down to the keys of list entries.
pub(crate) fn scan_matches(text: &str, block: &Block, value: &Node<'_>) -> bool {
    block_matches(text, block, value, 4)
}

fn block_matches(text: &str, block: &Block, value: &Node<'_>, depth: usize) -> bool {
    let Ok(shape) = shape(text, block) else { return false };
    match (&value.kind, shape) {
        (NodeKind::Scalar(..), Shape::Inline) => true,
        (NodeKind::Scalar(..), Shape::Empty) => value.is_null(),
        (NodeKind::List(_, true) | NodeKind::Map(_, true), Shape::Inline) => true,
        (NodeKind::List(nodes, false), Shape::List(items)) => {
            nodes.len() == items.len()
                && nodes.iter().zip(&items).all(|(node, item)| item_matches(text, item, node, depth))
        }
        (NodeKind::Map(_, false), Shape::Map(blocks)) => map_matches(text, &blocks, value, depth),
        (NodeKind::Scalar(..) | NodeKind::List(..) | NodeKind::Map(..), _) => false,
    }
}

fn item_matches(text: &str, item: &Item, node: &Node<'_>, depth: usize) -> bool {
    match (&node.kind, item.shape(text)) {
        (NodeKind::Map(_, false), Ok(Shape::Map(blocks))) => map_matches(text, &blocks, node, depth),
        (NodeKind::Scalar(..) | NodeKind::List(..) | NodeKind::Map(_, true), Ok(Shape::Inline)) => true,
        (NodeKind::Scalar(..), Ok(Shape::Empty)) => node.is_null(),
        (NodeKind::Scalar(..) | NodeKind::List(..) | NodeKind::Map(..), _) => false,
    }
}

fn map_matches(text: &str, blocks: &[Block], node: &Node<'_>, depth: usize) -> bool {
    let entries = node.entries();
    entries.len() == blocks.len()
        && entries.iter().zip(blocks).all(|((key, value), block)| {
            key.range().start == block.start
                && key.text() == Some(block.name(text))
                && (depth == 0 || block_matches(text, block, value, depth - 1))
        })
}
