//! Replacements in a text, applied together.

use std::ops::Range;

use super::scan::Ambiguous;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// All replacements of one write, in any order, without overlap.
pub(crate) type Edits = Vec<Edit>;

/// Fails if the edits overlap.
pub(crate) fn apply(text: &str, edits: &mut Edits) -> Result<String, Ambiguous> {
    edits.sort_by_key(|edit| edit.range.start);
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut out = String::with_capacity(text.len() + added);
    let mut at = 0;
    for edit in edits.iter() {
        if edit.range.start < at || edit.range.end > text.len() {
            return Err(Ambiguous);
        }
        out.push_str(&text[at..edit.range.start]);
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out.push_str(&text[at..]);
    Ok(out)
}
