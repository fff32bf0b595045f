//! Reads the summaries of tasks from their lines, without the parser: ten thousand tasks in a few
//! milliseconds. Reads one-line values in their common forms, and leaves everything else to the parser.

use std::ops::Range;
use std::str::FromStr;

use liza_core::model::{DEFAULT_PRIORITY, Revision, TaskId, TaskRecord, TaskSummary, Timestamp};

use crate::document::{Ambiguous, Item, Line, Lines, list_entries, split_key, unquoted};
use crate::yaml::canonical_time;

pub(super) struct NeedsParser;

/// Scans the lines of a block list of tasks: all of them, or the wanted ones.
pub(super) fn scan(
    text: &str,
    range: Range<usize>,
    wanted: Option<&[TaskId]>,
) -> Result<Vec<ScannedTask>, Ambiguous> {
    let guess = wanted.map_or(range.len() / 600 + 1, <[TaskId]>::len);
    let id = TaskId::from_str("x").map_err(|_| Ambiguous)?;
    let empty = TaskSummary::of(&id, &TaskRecord::default());
    let mut scan = TaskScanner { text, empty, column: None, found: Vec::with_capacity(guess) };
    match wanted {
        Some([]) => {}
        Some(wanted) => scan.only(range, wanted)?,
        None => scan.lines(range)?,
    }
    Ok(scan.found)
}

/// A scanned task. Filled in place in the list: there are many, and summaries are large.
pub(super) struct ScannedTask {
    pub(super) item: Item,
    /// The column of its keys; unknown until the first key.
    column: Option<usize>,
    id: Option<TaskId>,
    summary: TaskSummary,
    /// The last key is part of the summary, so more lines of its value need the parser.
    in_summary_key: bool,
    needs_parser: bool,
}

struct TaskScanner<'t> {
    text: &'t str,
    empty: TaskSummary,
    /// The column of the dashes.
    column: Option<usize>,
    found: Vec<ScannedTask>,
}

impl TaskScanner<'_> {
    fn lines(&mut self, range: Range<usize>) -> Result<(), Ambiguous> {
        for line in Lines::new(self.text, range) {
            if let Some(first) = line.first(self.text) {
                self.line(&line, first)?;
            }
        }
        Ok(())
    }

    /// Reads only the lines of the wanted tasks.
    fn only(&mut self, range: Range<usize>, wanted: &[TaskId]) -> Result<(), Ambiguous> {
        for entry in list_entries(self.text, range) {
            let id = id_on_first_line(self.text, &entry).ok_or(Ambiguous)?;
            if wanted.iter().any(|wanted| wanted.as_str() == id) {
                self.lines(entry)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &Line, first: u8) -> Result<(), Ambiguous> {
        match self.column {
            Some(column) if line.indent > column => {
                self.inside(line, first);
                return Ok(());
            }
            _ if first == b'#' => return Ok(()),
            Some(column) if line.indent < column => return Err(Ambiguous),
            Some(_) | None => {}
        }
        if !line.is_dash(self.text) {
            return Err(Ambiguous);
        }
        self.column = Some(line.indent);
        let item = Item { start: line.content(), end: line.end, indent: line.indent };
        let summary = self.empty.clone();
        let mut open =
            ScannedTask { item, column: None, id: None, summary, in_summary_key: false, needs_parser: false };
        let bytes = self.text.as_bytes();
        let spaces = bytes[line.content() + 1..line.end].iter().take_while(|&&b| b == b' ').count();
        let start = line.content() + 1 + spaces;
        if start < line.end && bytes[start] != b'#' {
            open.column = Some(start - line.start);
            open.key(self.text, start, line.end);
        }
        self.found.push(open);
        Ok(())
    }

    fn inside(&mut self, line: &Line, first: u8) {
        let Some(open) = self.found.last_mut() else { return };
        open.item.end = line.end;
        if first == b'#' {
            // In a multi-line text it is not a comment, but such a text is not part of a summary.
            return;
        }
        let column = *open.column.get_or_insert(line.indent);
        if line.indent > column || (line.indent == column && line.is_dash(self.text)) {
            open.needs_parser |= open.in_summary_key;
        } else if line.indent == column {
            open.key(self.text, line.content(), line.end);
        } else {
            open.needs_parser = true;
        }
    }
}

/// The ID on the line of a task's dash.
pub(super) fn id_on_first_line<'t>(text: &'t str, entry: &Range<usize>) -> Option<&'t str> {
    let line = Lines::new(text, entry.clone()).next().filter(|line| line.is_dash(text))?;
    let value = text[line.content() + 1..line.end].trim_start().strip_prefix("id:")?;
    scalar(value).ok().flatten()
}

impl ScannedTask {
    /// The summary, unless it needs the parser.
    pub(super) fn summary(self) -> (Item, Result<TaskSummary, NeedsParser>) {
        let summary = match self.id {
            Some(id) if !self.needs_parser => Ok(TaskSummary { id, ..self.summary }),
            Some(_) | None => Err(NeedsParser),
        };
        (self.item, summary)
    }

    fn key(&mut self, text: &str, start: usize, end: usize) {
        let Some((key, after)) = split_key(text, start, end) else {
            self.needs_parser = true;
            return;
        };
        match self.field(text[key].trim_matches(['"', '\'']), &text[after..end]) {
            Ok(is_summary_key) => self.in_summary_key = is_summary_key,
            Err(NeedsParser) => self.needs_parser = true,
        }
    }

    /// Stores the value of a key; true if it is part of the summary.
    fn field(&mut self, key: &str, value: &str) -> Result<bool, NeedsParser> {
        let summary = &mut self.summary;
        match key {
            "id" => self.id = parsed(value)?,
            "status" => {
                summary.status = match scalar(value)? {
                    Some(name) => Some(name.parse().map_err(|_| NeedsParser)?),
                    None => None,
                };
            }
            "priority" => summary.priority = number(value)?.unwrap_or(DEFAULT_PRIORITY),
            "created" => summary.created = time(value)?,
            "depends_on" => summary.depends_on = words(value)?,
            "assigned_to" => summary.assigned_to = parsed(value)?,
            "lease_expires" => summary.lease_expires = time(value)?,
            // Rare and short-lived, so left to the parser.
            "reservation" | "approvals" => {
                if scalar(value)?.is_some() {
                    return Err(NeedsParser);
                }
            }
            "reviewing_by" => summary.reviewing_by = parsed(value)?,
            "review_lease_expires" => summary.review_lease_expires = time(value)?,
            "approved_by" => summary.approved_by = parsed(value)?,
            "merge_held" => summary.merge_held = parsed(value)?,
            "failed_by" => summary.failed_by = words(value)?,
            "review_dropped_by" => summary.review_dropped_by = words(value)?,
            "previous_coder" => summary.previous_coder = parsed(value)?,
            "handoff_pending" => {
                summary.handoff_pending = match scalar(value)? {
                    None | Some("false") if !is_quoted(value) => false,
                    Some("true") if !is_quoted(value) => true,
                    Some(_) | None => return Err(NeedsParser),
                };
            }
            "superseded_by" => summary.superseded_by = words(value)?,
            "revision" => summary.revision = Revision(number(value)?.unwrap_or(0)),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn without_comment(value: &str) -> &str {
    let value = value.trim();
    if value.starts_with('#') {
        return "";
    }
    match memchr::memchr(b'#', value.as_bytes()) {
        Some(at) if at > 0 && value.as_bytes()[at - 1] == b' ' => value[..at].trim_end(),
        _ => value,
    }
}

fn is_quoted(value: &str) -> bool {
    value.trim_start().starts_with(['"', '\''])
}

/// A plain or simply quoted word; `None` without a value.
fn scalar(value: &str) -> Result<Option<&str>, NeedsParser> {
    word(without_comment(value))
}

fn word(value: &str) -> Result<Option<&str>, NeedsParser> {
    if matches!(value, "" | "~" | "null" | "Null" | "NULL") {
        return Ok(None);
    }
    let inner = unquoted(value);
    // Only letters, digits, and the characters of IDs and times.
    let is_simple = |b: u8| b.is_ascii_alphanumeric() || b"-_./:".contains(&b);
    if !inner.is_empty()
        && inner.bytes().all(is_simple)
        && !inner.ends_with(':')
        && !inner.starts_with(['-', '.'])
    {
        Ok(Some(inner))
    } else {
        Err(NeedsParser)
    }
}

fn parsed<T: FromStr>(value: &str) -> Result<Option<T>, NeedsParser> {
    scalar(value)?.map(|word| word.parse().map_err(|_| NeedsParser)).transpose()
}

/// A time. Our own form of it has a fast path.
fn time(value: &str) -> Result<Option<Timestamp>, NeedsParser> {
    let Some(word) = scalar(value)? else { return Ok(None) };
    match canonical_time(word) {
        Some(time) => Ok(Some(time)),
        None => word.parse().map(Some).map_err(|_| NeedsParser),
    }
}

/// A number; a quoted one is text.
fn number<T: FromStr>(value: &str) -> Result<Option<T>, NeedsParser> {
    if is_quoted(value) { Err(NeedsParser) } else { parsed(value) }
}

/// A list on one line; empty if there is no value.
fn words<T: FromStr>(value: &str) -> Result<Vec<T>, NeedsParser> {
    let value = without_comment(value);
    if value.is_empty() || value == "[]" || value == "null" || value == "~" {
        return Ok(Vec::new());
    }
    let inner = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).ok_or(NeedsParser)?;
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    let item = |part: &str| word(part.trim())?.ok_or(NeedsParser)?.parse().map_err(|_| NeedsParser);
    inner.split(',').map(item).collect()
}
