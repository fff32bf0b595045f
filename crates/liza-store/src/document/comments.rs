//! Puts back the comments of a text that an edit removes: no write drops one. `plan.rs` decides the edits.

use std::ops::Range;

use super::edit::Edit;
use super::scan::{Ambiguous, line_start};
use crate::yaml;

/// Adds the comments of the removed text to an edit. `part` is the parsable block around a range.
pub(super) fn keep(
    text: &str,
    edit: &mut Edit,
    part: &impl Fn(&Range<usize>) -> Range<usize>,
) -> Result<(), Ambiguous> {
    if !may_have_comment(text, &edit.range) {
        return Ok(());
    }
    let lost = comments_in(text, &edit.range, part(&edit.range))?;
    if !lost.is_empty() {
        edit.text = with_comments(text, edit, &lost);
    }
    Ok(())
}

/// True if a `#` after white space is in the range. It may be part of a text.
fn may_have_comment(text: &str, range: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let begins = |at: usize| at == 0 || bytes[at - 1].is_ascii_whitespace();
    memchr::memchr_iter(b'#', &bytes[range.clone()]).any(|at| begins(range.start + at))
}

fn comments_in(text: &str, range: &Range<usize>, part: Range<usize>) -> Result<Vec<Range<usize>>, Ambiguous> {
    let from = line_start(text, part.start.min(range.start));
    let found = yaml::comments(&text[from..part.end.max(range.end)]).map_err(|_| Ambiguous)?;
    let found = found.into_iter().map(|comment| comment.start + from..comment.end + from);
    Ok(found.filter(|comment| range.contains(&comment.start)).collect())
}

/// The new text of an edit with the comments of the old one.
fn with_comments(text: &str, edit: &Edit, lost: &[Range<usize>]) -> String {
    let line = &text[line_start(text, edit.range.start)..];
    let spaces = line.len() - line.trim_start_matches(' ').len();
    let before = &text[line_start(text, edit.range.start)..edit.range.start];
    let new = &edit.text;
    let own_line = |column: usize, comment: &Range<usize>| {
        format!("{}{}", " ".repeat(column), text[comment.clone()].trim_end())
    };
    if new.is_empty() && text[edit.range.clone()].starts_with('\n') {
        // The last lines of a file that does not end with a line break.
        let first = &text[edit.range.start + 1..];
        let column = first.len() - first.trim_start_matches(' ').len();
        return lost.iter().map(|comment| format!("\n{}", own_line(column, comment))).collect();
    }
    if new.is_empty() {
        return lost.iter().map(|comment| format!("{}\n", own_line(spaces, comment))).collect();
    }
    if before.trim().is_empty() {
        // A list entry: the comments go above it.
        let lines: String =
            lost.iter().map(|comment| format!("{}\n{before}", text[comment.clone()].trim_end())).collect();
        return lines + new;
    }
    after_key(text, edit, lost, spaces)
}

/// The new value of a key with the comments of the old one. `spaces` is the indentation of the line.
fn after_key(text: &str, edit: &Edit, lost: &[Range<usize>], spaces: usize) -> String {
    let new = &edit.text;
    let line = &text[line_start(text, edit.range.start)..];
    let dash = line[spaces..].len() - line[spaces..].trim_start_matches(['-', ' ']).len();
    let column = spaces + dash;
    let lines = |column: usize, comments: &[Range<usize>]| -> String {
        let line =
            |comment: &Range<usize>| format!("\n{}{}", " ".repeat(column), text[comment.clone()].trim_end());
        comments.iter().map(line).collect()
    };
    let on_first_line = |comment: &&Range<usize>| !text[edit.range.start..comment.start].contains('\n');
    let (first, others) = match lost.split_first() {
        Some((first, others)) if on_first_line(&first) => (Some(first), others),
        Some(_) | None => (None, lost),
    };
    let trailing = first.map(|comment| {
        let value = text[edit.range.start..comment.start].trim_end_matches([' ', '\t']).len();
        text[edit.range.start + value..comment.end].trim_end().to_owned()
    });
    match (new.strip_prefix('\n'), new.contains('\n')) {
        (Some(nested), _) => {
            let child = nested.len() - nested.trim_start_matches(' ').len();
            format!("{}{}{new}", trailing.unwrap_or_default(), lines(child, others))
        }
        (None, false) => format!("{new}{}{}", trailing.unwrap_or_default(), lines(column + 2, others)),
        // After a text of several lines, at the column of its key: deeper it would be part of the text.
        (None, true) => format!("{new}{}", lines(column, lost)),
    }
}
