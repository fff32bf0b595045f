//! The head of a task from its lines, without a parser: thousands of them in a few milliseconds.
//!
//! Understands one-line values in their common forms. Whatever else it meets, it leaves to the parser.

use std::str::FromStr;

use liza_core::board::{DEFAULT_PRIORITY, Head};
use liza_core::ids::{Revision, TaskId};
use liza_core::record::Status;

use crate::document::{Block, Item, Shape};

/// The value is not in a form that a line scan understands.
pub(super) struct NeedsParser;

/// The head that the lines of an entry give.
pub(super) fn scan(text: &str, item: &Item) -> Result<Head, NeedsParser> {
    let Ok(Shape::Map(keys)) = item.shape(text) else { return Err(NeedsParser) };
    let mut id = None;
    let mut head = Head {
        id: TaskId::from_str("x").map_err(|_| NeedsParser)?,
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
    };
    for block in &keys {
        match block.name(text) {
            "id" => id = one(text, block)?,
            "status" => {
                head.status = match scalar(text, block)? {
                    Some(name) => Some(Status::parse(name).ok_or(NeedsParser)?),
                    None => None,
                };
            }
            "priority" => head.priority = number(text, block)?.unwrap_or(DEFAULT_PRIORITY),
            "created" => head.created = one(text, block)?,
            "depends_on" => head.depends_on = many(text, block)?,
            "assigned_to" => head.assigned_to = one(text, block)?,
            "lease_expires" => head.lease_expires = one(text, block)?,
            // Rare and short-lived; not worth a second way of reading it.
            "reservation" if scalar(text, block)?.is_some() => return Err(NeedsParser),
            "reviewing_by" => head.reviewing_by = one(text, block)?,
            "review_lease_expires" => head.review_lease_expires = one(text, block)?,
            "approved_by" => head.approved_by = one(text, block)?,
            "failed_by" => head.failed_by = many(text, block)?,
            "handoff_pending" => {
                head.handoff_pending = match scalar(text, block)? {
                    None | Some("false") => false,
                    Some("true") => true,
                    Some(_) => return Err(NeedsParser),
                };
            }
            "superseded_by" => head.superseded_by = many(text, block)?,
            "revision" => head.revision = Revision(number(text, block)?.unwrap_or(0)),
            _ => {}
        }
    }
    head.id = id.ok_or(NeedsParser)?;
    Ok(head)
}

/// The text after the colon, without its comment; an error where it goes on below.
fn rest<'t>(text: &'t str, block: &Block) -> Result<&'t str, NeedsParser> {
    let rest = &text[block.after..block.end];
    if memchr::memchr(b'\n', rest.as_bytes()).is_some() {
        return Err(NeedsParser);
    }
    let rest = rest.trim();
    if rest.starts_with('#') {
        return Ok("");
    }
    let end = memchr::memmem::find(rest.as_bytes(), b" #").unwrap_or(rest.len());
    Ok(rest[..end].trim_end())
}

/// A plain or simply quoted word; nothing where there is none.
fn scalar<'t>(text: &'t str, block: &Block) -> Result<Option<&'t str>, NeedsParser> {
    word(rest(text, block)?)
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

fn one<T: FromStr>(text: &str, block: &Block) -> Result<Option<T>, NeedsParser> {
    scalar(text, block)?.map(|word| word.parse().map_err(|_| NeedsParser)).transpose()
}

/// A number without quotes, since a quoted one is a text.
fn number<T: FromStr>(text: &str, block: &Block) -> Result<Option<T>, NeedsParser> {
    let value = rest(text, block)?;
    if value.starts_with(['"', '\'']) {
        return Err(NeedsParser);
    }
    word(value)?.map(|word| word.parse().map_err(|_| NeedsParser)).transpose()
}

/// A list on one line, or nothing.
fn many<T: FromStr>(text: &str, block: &Block) -> Result<Vec<T>, NeedsParser> {
    let value = rest(text, block)?;
    if word(value).is_ok_and(|word| word.is_none()) {
        return Ok(Vec::new());
    }
    let inner = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).ok_or(NeedsParser)?;
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    let item = |part: &str| word(part.trim())?.ok_or(NeedsParser)?.parse().map_err(|_| NeedsParser);
    inner.split(',').map(item).collect()
}
