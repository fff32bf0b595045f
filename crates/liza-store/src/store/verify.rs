//! Checks a new text before it is written: it must read back as the state that was intended.

use liza_core::model::{State, Value};

use super::Store;
use crate::codec::{self, Spliced, StateView};
use crate::document::{plain_value, same_value};
use crate::error::StoreError;

impl Store {
    /// A new text that reads back as the intended state: spliced if possible, otherwise a rewrite of the whole file.
    pub(crate) fn verified_text(
        &self,
        view: &StateView<'_>,
        ops: &[codec::Op],
        intended: &State,
    ) -> Result<(Spliced, bool), StoreError> {
        if let Ok(spliced) = codec::splice(view, ops)
            && let Ok(scannable) = self.check_text(&spliced.text, intended, view, ops)
        {
            return Ok((spliced, scannable));
        }
        let text = codec::rewrite(view, ops).ok_or_else(|| self.mismatch("the file"))?;
        let scannable = self.check_text(&text, intended, view, ops)?;
        Ok((Spliced { text, edits: Vec::new(), rewritten: true }, scannable))
    }

    /// Checks that a text reads as the intended state and keeps the sections that the operations do not touch. Returns
    /// whether a line scan finds all its blocks.
    fn check_text(
        &self,
        text: &str,
        intended: &State,
        before: &StateView<'_>,
        ops: &[codec::Op],
    ) -> Result<bool, StoreError> {
        let path = self.folder.state();
        let mut view = StateView::full(&path, text)?;
        let state = view.state()?;
        self.check_same(intended, &state)?;
        let is_same = |name: &&String| {
            let value =
                |view: &StateView<'_>| view.with_section(name, |node| Ok(plain_value(node))).ok().flatten();
            match (value(before), value(&view)) {
                (Some(before), Some(after)) => same_value(&before, &after),
                (before, after) => before.is_none() && after.is_none(),
            }
        };
        match codec::untouched(before, ops).iter().find(|name| !is_same(name)) {
            Some(name) => Err(self.mismatch(name)),
            None => Ok(view.scannable),
        }
    }

    pub(super) fn check_same(&self, intended: &State, read: &State) -> Result<(), StoreError> {
        let fields = |state: &State| codec::document_fields(state).map_err(|error| self.not_encoded(error));
        let (intended, read) = (fields(intended)?, fields(read)?);
        let differs =
            |(key, value): &(&String, &Value)| !read.get(*key).is_some_and(|read| same_value(value, read));
        match intended.iter().find(differs) {
            Some((key, _)) => Err(self.mismatch(key)),
            None if intended.len() != read.len() => Err(self.mismatch("a section")),
            None => Ok(()),
        }
    }
}
