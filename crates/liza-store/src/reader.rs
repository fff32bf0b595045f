//! For those who look at the blackboard again and again: each look costs what has changed since the last.
//!
//! Takes no lock and trusts no times or inodes: whether the file is another one is decided by its bytes.

use std::sync::Arc;

use liza_core::model::State;

use crate::error::StoreError;
use crate::store::Store;
use crate::wire::{self, Layout, View, body_of};

/// Keeps the last look.
#[derive(Debug)]
pub struct Reader {
    store: Store,
    last: Option<Look>,
}

#[derive(Debug)]
struct Look {
    bytes: Vec<u8>,
    state: Arc<State>,
    /// Where the blocks stand, where the next look may build on them.
    layout: Option<Layout>,
}

impl Store {
    /// Begins to look at the blackboard.
    pub fn reader(&self) -> Reader {
        Reader { store: self.clone(), last: None }
    }
}

impl Reader {
    /// The whole blackboard as it stands: what [`Store::snapshot`] gives, and the same `Arc` as before where nothing
    /// has changed.
    ///
    /// # Errors
    /// When the file cannot be read as a blackboard; the next look begins from the last good one.
    pub fn look(&mut self) -> Result<Arc<State>, StoreError> {
        let bytes = self.store.files().read()?;
        if let Some(last) = self.last.as_ref().filter(|last| last.bytes == bytes) {
            return Ok(last.state.clone());
        }
        let as_written = self.store.files().is_as_written(&bytes);
        let refreshed = if as_written { self.refresh(&bytes) } else { None };
        let (state, layout) = match refreshed {
            Some((state, layout)) => (state, Some(layout)),
            None => self.whole(&bytes, as_written)?,
        };
        let state = Arc::new(state);
        self.last = Some(Look { bytes, state: state.clone(), layout });
        Ok(state)
    }

    fn refresh(&self, bytes: &[u8]) -> Option<(State, Layout)> {
        let last = self.last.as_ref()?;
        let path = self.store.files().state();
        let (old, _) = body_of(&path, &last.bytes).ok()?;
        let (new, _) = body_of(&path, bytes).ok()?;
        wire::refresh(&mut View::lazy(&path, new).ok()?, (old, last.layout.as_ref()?, &last.state))
    }

    fn whole(&self, bytes: &[u8], as_written: bool) -> Result<(State, Option<Layout>), StoreError> {
        let state = self.store.whole(bytes, as_written)?;
        let path = self.store.files().state();
        let layout = || {
            let (text, _) = body_of(&path, bytes).ok()?;
            Layout::of(&View::lazy(&path, text).ok()?, &state)
        };
        let layout = if as_written { layout() } else { None };
        Ok((state, layout))
    }
}
