//! Reads the board and the state from rows.

use std::path::Path;

use liza_core::model::{Board, Change, Config, Revision, Section, State, TaskId, Value};
use liza_core::protocol::Pending;
use liza_core::rules::misspelled::{MisspelledKey, misspelled_keys};

use super::Rows;
use crate::codec::verify::{mismatch, not_encoded};
use crate::codec::{self, StateView, decode_config, load};
use crate::document::plain_value;
use crate::error::StoreError;

impl Rows {
    pub fn state(&self, path: &Path, revision: Revision) -> Result<State, StoreError> {
        let mut state = codec::parse_state(path, self.text(revision.0).as_bytes(), true)?;
        state.board.revision = revision;
        Ok(state)
    }

    /// The keys that are probably misspelled; fails if a command could not write these rows.
    pub fn misspelled_keys(&self, path: &Path, revision: Revision) -> Result<Vec<MisspelledKey>, StoreError> {
        let text = self.text(revision.0);
        let view = StateView::full(path, &text)?;
        view.check_version()?;
        Ok(view.tree.as_ref().map(|tree| misspelled_keys(&plain_value(tree))).unwrap_or_default())
    }

    pub fn board_for(
        &self,
        path: &Path,
        revision: Revision,
        pending: &dyn Pending,
    ) -> Result<Board, StoreError> {
        let text = self.text(revision.0);
        // They are in our own layout, which needs no parser.
        let board = load(&mut StateView::lazy(path, &text)?, pending)?;
        board.map(|board| Board { revision, ..board }).ok_or_else(|| mismatch(path, "the rows"))
    }

    pub fn board_with(
        &self,
        path: &Path,
        revision: Revision,
        sections: &[Section],
        tasks: &[TaskId],
    ) -> Result<Board, StoreError> {
        let text = self.text(revision.0);
        let mut view = StateView::lazy(path, &text)?;
        let mut board = view.board()?;
        view.load_sections(&mut board, sections);
        view.load_summaries(&mut board, Some(tasks))?;
        view.load_bodies(&mut board, tasks)?;
        board.revision = revision;
        Ok(board)
    }

    pub fn config(&self, path: &Path, revision: Revision) -> Option<Config> {
        let text = self.text(revision.0);
        let view = StateView::lazy(path, &text).ok()?;
        view.with_section("config", decode_config).ok().flatten()
    }
}

/// Changes a text in our layout; `None` if it cannot be changed in place.
pub fn changed_text(
    path: &Path,
    text: &str,
    change: impl FnOnce(&Board) -> Change,
) -> Result<Option<String>, StoreError> {
    let mut view = StateView::lazy(path, text)?;
    let board = view.state()?.board;
    let ops = codec::operations(&board, &change(&board)).map_err(|error| not_encoded(path, error))?;
    Ok(codec::splice(&view, &ops).ok().map(|spliced| spliced.text))
}

pub fn values_of(path: &Path, text: &str) -> Result<Value, StoreError> {
    let view = StateView::own_tree(path, text)?;
    Ok(view.tree.as_ref().map(plain_value).unwrap_or(Value::Null))
}
