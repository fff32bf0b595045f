//! Parses the common form of YAML, the one that we write, several times faster than the parser. Must give the
//! same tree as the parser, or none: for comments and everything unusual the caller uses the parser. A
//! property test compares the two.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use memchr::{memchr, memchr2};

use super::node::{Node, NodeKind, Position};
use super::scalar::{Style, is_printable};

const DEPTH: usize = 12;
/// Up to this number, comparing keys one by one is faster than hashing them.
const FEW: usize = 24;

/// `None` if the text needs the parser.
pub(crate) fn parse_fast(text: &str) -> Option<Node<'_>> {
    u32::try_from(text.len()).ok()?;
    let mut parser = FastParser { text, bytes: text.as_bytes(), next: 0, line: 0, ahead: None };
    let first = parser.peek()?;
    let node = parser.collection(first, first.content(), DEPTH)?;
    match parser.peek() {
        // The rest of the text needs the parser.
        Some(_) => None,
        None => (parser.next >= text.len()).then_some(node),
    }
}

#[derive(Clone, Copy)]
struct SourceLine {
    number: u32,
    start: usize,
    end: usize,
    indent: usize,
}

impl SourceLine {
    fn content(&self) -> usize {
        self.start + self.indent
    }
}

struct FastParser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    next: usize,
    line: u32,
    ahead: Option<SourceLine>,
}

impl<'t> FastParser<'t> {
    /// The next line that is not blank, without taking it. None at the end, and at a comment.
    fn peek(&mut self) -> Option<SourceLine> {
        while self.ahead.is_none() && self.next < self.bytes.len() {
            let line = self.raw_line();
            if line.content() < line.end {
                if self.bytes[line.content()] == b'#' {
                    self.next = line.start;
                    return None;
                }
                self.ahead = Some(line);
            }
        }
        self.ahead
    }

    fn raw_line(&mut self) -> SourceLine {
        let start = self.next;
        let end = memchr(b'\n', &self.bytes[start..]).map_or(self.bytes.len(), |n| start + n);
        self.next = end + 1;
        self.line += 1;
        let indent = self.bytes[start..end].iter().take_while(|&&b| b == b' ').count();
        SourceLine { number: self.line, start, end, indent }
    }

    fn take(&mut self) {
        self.ahead = None;
    }

    fn position(&self, line: &SourceLine, at: usize) -> Position {
        let before = &self.bytes[line.start..at];
        let columns = before.iter().filter(|&&b| b & 0xc0 != 0x80).count();
        Position { line: line.number, column: u32::try_from(columns).unwrap_or(u32::MAX).saturating_add(1) }
    }

    fn scalar(&self, line: &SourceLine, range: Range<usize>, text: Cow<'t, str>, style: Style) -> Node<'t> {
        Node::new(self.position(line, range.start), range, NodeKind::Scalar(text, style))
    }

    /// The block list or mapping that starts at `at`, on a line that is not taken yet.
    fn collection(&mut self, line: SourceLine, at: usize, depth: usize) -> Option<Node<'t>> {
        let depth = depth.checked_sub(1)?;
        if is_dash(self.bytes, at, line.end) { self.list(line, at, depth) } else { self.map(line, at, depth) }
    }

    fn list(&mut self, first: SourceLine, at: usize, depth: usize) -> Option<Node<'t>> {
        let column = at - first.start;
        let mut items = Vec::new();
        let mut line = first;
        let mut at = at;
        loop {
            let spaces = self.bytes[at + 1..line.end].iter().take_while(|&&b| b == b' ').count();
            let content = at + 1 + spaces;
            if content >= line.end {
                return None;
            }
            let item = if key_end(self.bytes, content, line.end).is_some() {
                self.map(line, content, depth)?
            } else {
                self.take();
                self.value(&line, content, column, depth)?
            };
            items.push(item);
            match self.peek() {
                Some(next) if next.indent == column && is_dash(self.bytes, next.content(), next.end) => {
                    (line, at) = (next, next.content());
                }
                Some(next) if next.indent > column => return None,
                Some(_) | None => break,
            }
        }
        let start = first.start + column;
        Some(Node::new(
            self.position(&first, start),
            start..self.collection_end(),
            NodeKind::List(items, false),
        ))
    }

    fn map(&mut self, first: SourceLine, at: usize, depth: usize) -> Option<Node<'t>> {
        let column = at - first.start;
        let mut entries: Vec<(Node<'t>, Node<'t>)> = Vec::new();
        let (mut line, mut at) = (first, at);
        loop {
            let end = key_end(self.bytes, at, line.end)?;
            let key = self.scalar(&line, at..end, Cow::Borrowed(&self.text[at..end]), Style::Plain);
            self.take();
            let value = self.entry(&line, end, column, depth)?;
            entries.push((key, value));
            match self.peek() {
                Some(next) if next.indent == column => (line, at) = (next, next.content()),
                Some(next) if next.indent > column => return None,
                Some(_) | None => break,
            }
        }
        if has_duplicates(&entries) {
            return None;
        }
        let start = first.start + column;
        Some(Node::new(
            self.position(&first, start),
            start..self.collection_end(),
            NodeKind::Map(entries, false),
        ))
    }

    /// The end of a collection: the start of the next line that is not blank.
    fn collection_end(&mut self) -> usize {
        self.peek().map_or(self.bytes.len(), |line| line.content())
    }

    /// The value of a key that ends at `end`, before its colon.
    fn entry(&mut self, line: &SourceLine, end: usize, column: usize, depth: usize) -> Option<Node<'t>> {
        let spaces = self.bytes[end + 1..line.end].iter().take_while(|&&b| b == b' ').count();
        let content = end + 1 + spaces;
        if content < line.end {
            return self.value(line, content, column, depth);
        }
        match self.peek() {
            Some(below) if below.indent > column => self.collection(below, below.content(), depth),
            Some(below) if below.indent == column && is_dash(self.bytes, below.content(), below.end) => {
                // For the parser this list starts at its first entry, and not at the dash.
                self.collection(below, below.content(), depth)?.starting_at_first_item()
            }
            Some(_) | None => Some(self.scalar(line, end..end, Cow::Borrowed("~"), Style::Plain)),
        }
    }

    /// The value after a key or a dash, on the same line or after `|`.
    fn value(&mut self, line: &SourceLine, at: usize, column: usize, depth: usize) -> Option<Node<'t>> {
        match self.bytes[at] {
            b'|' => return self.literal(line, at, column),
            b'[' | b'{' => {
                let (node, end) = self.flow(line, at, depth)?;
                return blank(self.bytes, end, line.end).then_some(node);
            }
            b'"' | b'\'' => {
                let (node, end) = self.quoted(line, at)?;
                return blank(self.bytes, end, line.end).then_some(node);
            }
            _ => {}
        }
        let text = self.text[at..line.end].trim_end_matches(' ');
        if !is_plain(text) {
            return None;
        }
        Some(self.scalar(line, at..at + text.len(), Cow::Borrowed(text), Style::Plain))
    }

    /// Lines after `|` or `|-`.
    fn literal(&mut self, line: &SourceLine, at: usize, column: usize) -> Option<Node<'t>> {
        let keeps_break = match &self.text[at..line.end] {
            "|" => true,
            "|-" => false,
            _ => return None,
        };
        let mut text = String::new();
        let mut first: Option<SourceLine> = None;
        let mut blanks = 0;
        while self.next < self.bytes.len() {
            let (before, count) = (self.next, self.line);
            let next = self.raw_line();
            if next.start == next.end {
                blanks += 1;
                continue;
            }
            let indent = first.map_or(next.indent, |first| first.indent);
            if next.content() >= next.end || (next.indent > column && next.indent < indent) {
                return None;
            }
            if next.indent <= column {
                (self.next, self.line) = (before, count);
                break;
            }
            if first.is_none() {
                if blanks > 0 {
                    return None;
                }
                first = Some(next);
            } else {
                text.extend(std::iter::repeat_n('\n', blanks + 1));
            }
            blanks = 0;
            let own = &self.text[next.start + indent..next.end];
            if !has_common_only(own) {
                return None;
            }
            text.push_str(own);
        }
        let first = first?;
        // Not at the end of the text: readers disagree about a last line without a line break.
        let below = self.peek()?;
        if keeps_break {
            text.push('\n');
        }
        Some(self.scalar(&first, first.content()..below.content(), Cow::Owned(text), Style::Block))
    }

    /// A quoted text, and its end.
    fn quoted(&self, line: &SourceLine, at: usize) -> Option<(Node<'t>, usize)> {
        let quote = self.bytes[at];
        let mut text = Cow::Borrowed("");
        let mut from = at + 1;
        loop {
            let stop = memchr2(quote, b'\\', &self.bytes[from..line.end])? + from;
            let part = &self.text[from..stop];
            if !has_common_only(part) {
                return None;
            }
            text = if text.is_empty() { Cow::Borrowed(part) } else { text + part };
            let escaped = match (self.bytes[stop], self.bytes.get(stop + 1).copied()) {
                (b'\'', Some(b'\'')) => "'",
                (b'\\', Some(b'"')) if quote == b'"' => "\"",
                (b'\\', Some(b'\\')) if quote == b'"' => "\\",
                (b'\\', Some(b'n')) if quote == b'"' => "\n",
                (b'\\', _) => return None,
                (_, _) => {
                    return Some((self.scalar(line, at..stop + 1, text, Style::Quoted), stop + 1));
                }
            };
            text.to_mut().push_str(escaped);
            from = stop + 2;
        }
    }

    /// A list or a mapping on one line, and its end.
    fn flow(&self, line: &SourceLine, at: usize, depth: usize) -> Option<(Node<'t>, usize)> {
        let depth = depth.checked_sub(1)?;
        let is_map = self.bytes[at] == b'{';
        let close = if is_map { b'}' } else { b']' };
        let (mut items, mut entries) = (Vec::new(), Vec::new());
        let mut at_next = skip(self.bytes, at + 1, line.end);
        while *self.bytes.get(at_next)? != close {
            if is_map {
                let end = key_end(self.bytes, at_next, line.end)?;
                let name = Cow::Borrowed(&self.text[at_next..end]);
                let key = self.scalar(line, at_next..end, name, Style::Plain);
                let (value, after) = self.flow_value(line, skip(self.bytes, end + 1, line.end), depth)?;
                entries.push((key, value));
                at_next = after;
            } else {
                let (value, after) = self.flow_value(line, at_next, depth)?;
                items.push(value);
                at_next = after;
            }
            at_next = skip(self.bytes, at_next, line.end);
            match self.bytes.get(at_next..line.end)?.first()? {
                b',' => at_next = skip(self.bytes, at_next + 1, line.end),
                other if *other == close => {}
                _ => return None,
            }
        }
        if at_next >= line.end || has_duplicates(&entries) {
            return None;
        }
        let kind = if is_map { NodeKind::Map(entries, true) } else { NodeKind::List(items, true) };
        Some((Node::new(self.position(line, at), at..at_next + 1, kind), at_next + 1))
    }

    fn flow_value(&self, line: &SourceLine, at: usize, depth: usize) -> Option<(Node<'t>, usize)> {
        let rest = self.text.get(at..line.end)?;
        match rest.as_bytes().first()? {
            b'[' | b'{' => return self.flow(line, at, depth),
            b'"' | b'\'' => return self.quoted(line, at),
            _ => {}
        }
        let length = rest.bytes().position(|b| b",[]{}".contains(&b))?;
        let text = rest[..length].trim_end_matches(' ');
        if !is_plain(text) {
            return None;
        }
        let node = self.scalar(line, at..at + text.len(), Cow::Borrowed(text), Style::Plain);
        Some((node, at + text.len()))
    }
}

fn is_dash(bytes: &[u8], at: usize, end: usize) -> bool {
    bytes.get(at) == Some(&b'-') && (at + 1 >= end || bytes[at + 1] == b' ')
}

fn skip(bytes: &[u8], at: usize, end: usize) -> usize {
    at + bytes[at.min(end)..end].iter().take_while(|&&b| b == b' ').count()
}

fn blank(bytes: &[u8], at: usize, end: usize) -> bool {
    bytes[at..end].iter().all(|&b| b == b' ')
}

/// The end of the key that starts here: letters, digits and a few other characters before a colon.
fn key_end(bytes: &[u8], at: usize, end: usize) -> Option<usize> {
    let line = bytes.get(at..end)?;
    let length = line.iter().position(|b| !(b.is_ascii_alphanumeric() || b"_-./".contains(b)))?;
    let first = *line.first()?;
    let good = (first.is_ascii_alphanumeric() || first == b'_')
        && line[length] == b':'
        && matches!(line.get(length + 1), None | Some(b' '));
    good.then_some(at + length)
}

/// True if a text without quotes is surely a plain scalar.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let begins = (first.is_alphanumeric() || "_/.".contains(first)) && !text.starts_with("...");
    let is_separator = |pair: &[u8]| matches!(pair, b": " | b" #");
    text == "~"
        || (begins
            && !text.ends_with(':')
            && has_common_only(text)
            && !text.as_bytes().windows(2).any(is_separator))
}

/// Most texts are ASCII, of which many bytes are compared at once.
fn has_common_only(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || text.chars().all(is_common)
}

/// True if a character has no special meaning to any reader.
fn is_common(c: char) -> bool {
    matches!(c, ' '..='~') || (c > '\u{a0}' && is_printable(c) && !c.is_whitespace())
}

/// True if a key appears twice. The parser then gives the error.
fn has_duplicates(entries: &[(Node<'_>, Node<'_>)]) -> bool {
    let name = |entry: &(Node<'_>, Node<'_>)| entry.0.text().unwrap_or_default().to_owned();
    if entries.len() <= FEW {
        let text = |n: usize| entries[n].0.text();
        return (1..entries.len()).any(|n| (0..n).any(|before| text(before) == text(n)));
    }
    let mut seen = HashSet::with_capacity(entries.len());
    !entries.iter().all(|entry| seen.insert(name(entry)))
}
