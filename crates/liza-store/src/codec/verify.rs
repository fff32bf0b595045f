//! Checks a new text before it is written: it must read back as the state that was intended.

use std::path::Path;

use liza_core::model::{State, Value};

use crate::codec::{self, Spliced, StateView};
use crate::document::{plain_value, same_value};
use crate::error::StoreError;
use crate::yaml::{self, YamlError};

/// A new text that reads back as the intended state: spliced if possible, otherwise a rewrite of the whole file.
pub(crate) fn verified_text(
    path: &Path,
    view: &StateView<'_>,
    ops: &[codec::Op],
    intended: &State,
) -> Result<(Spliced, bool), StoreError> {
    if let Ok(spliced) = codec::splice(view, ops)
        && let Ok(scannable) = check_text(path, &spliced.text, intended, view, ops)
    {
        return Ok((spliced, scannable));
    }
    let text = codec::rewrite(view, ops).ok_or_else(|| mismatch(path, "the file"))?;
    let scannable = check_text(path, &text, intended, view, ops)?;
    Ok((Spliced { text, edits: Vec::new(), rewritten: true }, scannable))
}

/// Checks that a text reads as the intended state and keeps the sections that the operations don't touch.
/// True if a line scan finds all its blocks.
fn check_text(
    path: &Path,
    text: &str,
    intended: &State,
    before: &StateView<'_>,
    ops: &[codec::Op],
) -> Result<bool, StoreError> {
    let mut view = StateView::full(path, text)?;
    let state = view.state()?;
    check_same(path, intended, &state)?;
    let is_same = |name: &&String| {
        let value =
            |view: &StateView<'_>| view.with_section(name, |node| Ok(plain_value(node))).ok().flatten();
        match (value(before), value(&view)) {
            (Some(before), Some(after)) => same_value(&before, &after),
            (before, after) => before.is_none() && after.is_none(),
        }
    };
    match codec::untouched(before, ops).iter().find(|name| !is_same(name)) {
        Some(name) => Err(mismatch(path, name)),
        None => Ok(view.scannable),
    }
}

/// The text of a new blackboard, which reads back as the state.
pub(crate) fn new_document(path: &Path, state: &State) -> Result<String, StoreError> {
    let text = yaml::document(&codec::document_fields(state).map_err(|error| not_encoded(path, error))?);
    check_same(path, state, &StateView::full(path, &text)?.state()?)?;
    Ok(text)
}

fn check_same(path: &Path, intended: &State, read: &State) -> Result<(), StoreError> {
    let fields = |state: &State| codec::document_fields(state).map_err(|error| not_encoded(path, error));
    let (intended, read) = (fields(intended)?, fields(read)?);
    let differs =
        |(key, value): &(&String, &Value)| !read.get(*key).is_some_and(|read| same_value(value, read));
    match intended.iter().find(differs) {
        Some((key, _)) => Err(mismatch(path, key)),
        None if intended.len() != read.len() => Err(mismatch(path, "a section")),
        None => Ok(()),
    }
}

pub fn mismatch(path: &Path, what: &str) -> StoreError {
    StoreError::ReadBackMismatch { path: path.to_owned(), what: what.to_owned() }
}

pub(crate) fn not_encoded(path: &Path, source: YamlError) -> StoreError {
    StoreError::Encode { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "version: 1\nrevision: 1\ngoal: {id: goal-1}\ntasks: []\nagents: {}\nconfig: {}\nown: {a: [1, 2]}\n";

    /// The state lacks the sections that the program doesn't know, so they are compared in the text.
    ///
    /// Covers: BB-06
    #[test]
    fn a_text_that_changes_an_untouched_section_does_not_read_back() {
        let path = Path::new("state.yaml");
        let mut before = StateView::full(path, TEXT).unwrap();
        let intended = before.state().unwrap();
        let checked = |text: &str| check_text(path, text, &intended, &before, &[]);
        assert!(checked(TEXT).is_ok());
        assert!(checked(&TEXT.replace("{a: [1, 2]}", "\n  a: [1, 2] # in another form")).is_ok());
        for other in ["own: {a: [1, 3]}\n", "own: {a: [1, 2], b: 1}\n", ""] {
            let error = checked(&TEXT.replace("own: {a: [1, 2]}\n", other)).unwrap_err();
            assert!(matches!(&error, StoreError::ReadBackMismatch { what, .. } if what == "own"), "{error}");
        }
    }
}
