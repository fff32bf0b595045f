//! The heads of all tasks from their lines, without a parser: ten thousand of them in a few milliseconds.
//!
//! Understands one-line values in their common forms. Whatever else it meets, it leaves to the parser.

use std::ops::Range;
use std::str::FromStr;

use liza_core::model::{DEFAULT_PRIORITY, Revision, Status, TaskId, TaskSummary, Timestamp};

use crate::document::{Item, Line, Lines, Unsure, entries, split_key};

/// The value is not in a form that a line scan understands.
pub(super) struct NeedsParser;

/// Scans a block list of tasks, from the line after its key to its end: all of them, or those that are wanted.
pub(super) fn scan(
    text: &str,
    range: Range<usize>,
    wanted: Option<&[TaskId]>,
) -> Result<Vec<Scanned>, Unsure> {
    let guess = wanted.map_or(range.len() / 600 + 1, <[TaskId]>::len);
    let mut scan = Scan { text, column: None, found: Vec::with_capacity(guess) };
    match wanted {
        Some([]) => {}
        Some(wanted) => scan.only(range, wanted)?,
        None => scan.lines(range)?,
    }
    Ok(scan.found)
}

/// A task as its lines tell it. Filled where it stands in the list: there are many, and heads are large.
pub(super) struct Scanned {
    /// Where it is.
    pub(super) item: Item,
    /// The column of its keys; unknown while only the dash has been seen.
    column: Option<usize>,
    id: Option<TaskId>,
    head: TaskSummary,
    /// Whether the last key is one that a head needs, so that more lines below it matter.
    in_head_key: bool,
    unclear: bool,
}

struct Scan<'t> {
    text: &'t str,
    /// The column of the dashes.
    column: Option<usize>,
    found: Vec<Scanned>,
}

impl Scan<'_> {
    fn lines(&mut self, range: Range<usize>) -> Result<(), Unsure> {
        for line in Lines::new(self.text, range) {
            if let Some(first) = line.first(self.text) {
                self.line(&line, first)?;
            }
        }
        Ok(())
    }

    /// Reads the lines of the tasks that are wanted, and no others.
    fn only(&mut self, range: Range<usize>, wanted: &[TaskId]) -> Result<(), Unsure> {
        for entry in entries(self.text, range) {
            let line = Lines::new(self.text, entry.clone()).next().ok_or(Unsure)?;
            if !line.is_dash(self.text) {
                return Err(Unsure);
            }
            if self.is_wanted(&line, wanted)? {
                self.lines(entry)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &Line, first: u8) -> Result<(), Unsure> {
        match self.column {
            Some(column) if line.indent > column => {
                self.inside(line, first);
                return Ok(());
            }
            _ if first == b'#' => return Ok(()),
            Some(column) if line.indent < column => return Err(Unsure),
            Some(_) | None => {}
        }
        if !line.is_dash(self.text) {
            return Err(Unsure);
        }
        self.column = Some(line.indent);
        let item = Item { start: line.content(), end: line.end, indent: line.indent };
        let head = empty_head().ok_or(Unsure)?;
        let mut open = Scanned { item, column: None, id: None, head, in_head_key: false, unclear: false };
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

    /// Whether the task that begins on this line is one of those that are wanted. A task whose ID does not stand
    /// behind its dash cannot be judged by one line.
    fn is_wanted(&self, line: &Line, wanted: &[TaskId]) -> Result<bool, Unsure> {
        let value = self.text[line.content() + 1..line.end].trim_start().strip_prefix("id:").ok_or(Unsure)?;
        let id = scalar(value).ok().flatten().ok_or(Unsure)?;
        Ok(wanted.iter().any(|wanted| wanted.as_str() == id))
    }

    fn inside(&mut self, line: &Line, first: u8) {
        let Some(open) = self.found.last_mut() else { return };
        open.item.end = line.end;
        if first == b'#' {
            // Within a text it would be content, but then no head depends on it.
            return;
        }
        let column = *open.column.get_or_insert(line.indent);
        if line.indent > column || (line.indent == column && line.is_dash(self.text)) {
            open.unclear |= open.in_head_key;
        } else if line.indent == column {
            open.key(self.text, line.content(), line.end);
        } else {
            open.unclear = true;
        }
    }
}

impl Scanned {
    /// The head, where the lines are enough for it.
    pub(super) fn head(self) -> (Item, Result<TaskSummary, NeedsParser>) {
        let head = match self.id {
            Some(id) if !self.unclear => Ok(TaskSummary { id, ..self.head }),
            Some(_) | None => Err(NeedsParser),
        };
        (self.item, head)
    }

    fn key(&mut self, text: &str, start: usize, end: usize) {
        let Some((key, after)) = split_key(text, start, end) else {
            self.unclear = true;
            return;
        };
        match self.field(text[key].trim_matches(['"', '\'']), &text[after..end]) {
            Ok(is_head_key) => self.in_head_key = is_head_key,
            Err(NeedsParser) => self.unclear = true,
        }
    }

    /// Takes the value of a key over, and says whether it is one that a head needs.
    fn field(&mut self, key: &str, value: &str) -> Result<bool, NeedsParser> {
        let head = &mut self.head;
        match key {
            "id" => self.id = one(value)?,
            "status" => {
                head.status = match scalar(value)? {
                    Some(name) => Some(name.parse().map_err(|_| NeedsParser)?),
                    None => None,
                };
            }
            "priority" => head.priority = number(value)?.unwrap_or(DEFAULT_PRIORITY),
            "created" => head.created = moment(value)?,
            "depends_on" => head.depends_on = many(value)?,
            "assigned_to" => head.assigned_to = one(value)?,
            "lease_expires" => head.lease_expires = moment(value)?,
            // Rare and short-lived; not worth a second way of reading it.
            "reservation" => {
                if scalar(value)?.is_some() {
                    return Err(NeedsParser);
                }
            }
            "reviewing_by" => head.reviewing_by = one(value)?,
            "review_lease_expires" => head.review_lease_expires = moment(value)?,
            "approved_by" => head.approved_by = one(value)?,
            "failed_by" => head.failed_by = many(value)?,
            "handoff_pending" => {
                head.handoff_pending = match scalar(value)? {
                    None | Some("false") if !is_quoted(value) => false,
                    Some("true") if !is_quoted(value) => true,
                    Some(_) | None => return Err(NeedsParser),
                };
            }
            "superseded_by" => head.superseded_by = many(value)?,
            "revision" => head.revision = Revision(number(value)?.unwrap_or(0)),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn empty_head() -> Option<TaskSummary> {
    Some(TaskSummary {
        id: TaskId::from_str("x").ok()?,
        status: None,
        priority: DEFAULT_PRIORITY,
        created: None,
        depends_on: Vec::new(),
        assigned_to: None,
        lease_expires: None,
        reservation: None,
        reviewing_by: None,
        review_lease_expires: None,
        approved_by: None,
        failed_by: Vec::new(),
        handoff_pending: false,
        superseded_by: Vec::new(),
        revision: Revision::default(),
    })
}

/// The value without its comment.
fn bare(value: &str) -> &str {
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

/// A plain or simply quoted word; nothing where there is none.
fn scalar(value: &str) -> Result<Option<&str>, NeedsParser> {
    word(bare(value))
}

fn word(value: &str) -> Result<Option<&str>, NeedsParser> {
    if matches!(value, "" | "~" | "null" | "Null" | "NULL") {
        return Ok(None);
    }
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|inner| inner.strip_suffix(quote));
    let inner = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    // Only what cannot be anything but itself: letters, digits and what stands in IDs and times.
    let simple = |b: u8| b.is_ascii_alphanumeric() || b"-_./:".contains(&b);
    if !inner.is_empty()
        && inner.bytes().all(simple)
        && !inner.ends_with(':')
        && !inner.starts_with(['-', '.'])
    {
        Ok(Some(inner))
    } else {
        Err(NeedsParser)
    }
}

fn one<T: FromStr>(value: &str) -> Result<Option<T>, NeedsParser> {
    scalar(value)?.map(|word| word.parse().map_err(|_| NeedsParser)).transpose()
}

/// A time; the form in which we write it is read without the calendar's full generality.
fn moment(value: &str) -> Result<Option<Timestamp>, NeedsParser> {
    let Some(word) = scalar(value)? else { return Ok(None) };
    match canonical_time(word.as_bytes()) {
        Some(time) => Ok(Some(time)),
        None => word.parse().map(Some).map_err(|_| NeedsParser),
    }
}

/// `YYYY-MM-DDTHH:MM:SSZ` on an ordinary day.
fn canonical_time(word: &[u8]) -> Option<Timestamp> {
    let digits = |range: Range<usize>| {
        word.get(range)?
            .iter()
            .try_fold(0i64, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')];
    if word.len() != 20 || !marks.iter().all(|(at, mark)| word[*at] == *mark) {
        return None;
    }
    let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
    let (hour, minute, second) = (digits(11..13)?, digits(14..16)?, digits(17..19)?);
    // Days that not every month has, and seconds that leap, are for those who know them.
    if year < 1970
        || !(1..=12).contains(&month)
        || !(1..=28).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    // Days since the first of March of the year 0, from which leap days come last.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1;
    Some(Timestamp::from_unix((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second))
}

/// A number without quotes, since a quoted one is a text.
fn number<T: FromStr>(value: &str) -> Result<Option<T>, NeedsParser> {
    if is_quoted(value) {
        return Err(NeedsParser);
    }
    scalar(value)?.map(|word| word.parse().map_err(|_| NeedsParser)).transpose()
}

/// A list on one line, or nothing.
fn many<T: FromStr>(value: &str) -> Result<Vec<T>, NeedsParser> {
    let value = bare(value);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: BB-04
    #[test]
    fn the_short_way_to_a_time_leads_where_the_long_one_does() {
        for seconds in (0..7_258_118_400i64).step_by(86_399 * 3) {
            let text = Timestamp::from_unix(seconds).to_string();
            if let Some(time) = canonical_time(text.as_bytes()) {
                assert_eq!(time.unix(), seconds, "{text}");
            }
        }
        assert!(canonical_time(b"2024-02-29T00:00:00Z").is_none());
        assert!(canonical_time(b"2024-02-28T23:59:59Z").is_some());
    }
}
