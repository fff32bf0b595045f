//! Changing the text itself under the lock: `lock write`, `lock modify` and `edit`.
//!
//! For what no command does. Nothing gets past the rules: what is invalid afterwards and was not before is undone.

use std::path::PathBuf;

use liza_core::model::{Board, Change, Loaded, LogEntry, Revision, State, TaskId, TaskRecord, Timestamp, Value};
use liza_core::protocol::manual_edit;
use liza_core::protocol::manual_edit::ManualEdit;
use liza_core::rules::invariants;
use liza_core::rules::invariants::Violation;

use crate::document::{Plan, apply, untyped};
use crate::error::StoreError;
use crate::file::{Current, Held, Notice, Origin, Write};
use crate::path::{Path, PathError};
use crate::store::{Disk, Store};
use crate::wire::{self, View, body_of};

/// The lock, held by somebody who changes the text.
pub struct Guard<'s> {
    store: &'s Store,
    held: Held,
    current: Current,
    modifying: bool,
    hand: Option<ManualEdit>,
}

/// How the value of `lock write` is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typing {
    /// A known field takes its schema's type, an unknown one a text.
    BySchema,
    /// As YAML.
    Yaml,
}

impl Store {
    /// Takes the lock for a change of the text.
    ///
    /// # Errors
    /// When the lock or the file cannot be had.
    pub fn lock(&self) -> Result<Guard<'_>, StoreError> {
        let mut held = self.acquire()?;
        let current = held.current()?;
        Ok(Guard { store: self, held, current, modifying: false, hand: None })
    }

    /// What a path names, one value per match; the whole file for the empty path.
    ///
    /// # Errors
    /// When the file cannot be read or the path not be understood.
    pub fn read_path(&self, path: &str) -> Result<Vec<Value>, StoreError> {
        let path: Path = path.parse()?;
        let bytes = self.files().read()?;
        let file = self.files().state();
        let (text, _) = body_of(&file, &bytes)?;
        let view = View::full(&file, text)?;
        let root = view.tree.as_ref().map(untyped).unwrap_or(Value::Null);
        Ok(path.find(&root).into_iter().cloned().collect())
    }
}

impl From<PathError> for StoreError {
    fn from(error: PathError) -> Self {
        StoreError::Path(error)
    }
}

impl Guard<'_> {
    /// Holds what is written to what that caller may do.
    #[must_use]
    pub fn held_to(mut self, hand: ManualEdit) -> Self {
        self.hand = Some(hand);
        self
    }

    /// The text as it stands.
    ///
    /// # Errors
    /// When it is no text.
    pub fn text(&self) -> Result<String, StoreError> {
        Ok(body_of(&self.store.files().state(), &self.current.bytes)?.0.to_owned())
    }

    /// What was found and settled when the lock was taken.
    pub fn notices(&self) -> &[Notice] {
        &self.current.notices
    }

    /// The file that a command may change between [`Guard::begin`] and [`Guard::finish`].
    pub fn path(&self) -> PathBuf {
        self.store.files().state()
    }

    /// Says that a command is about to change the file in place. If we are killed, the next holder undoes it.
    ///
    /// # Errors
    /// When no copy can be kept.
    pub fn begin(&mut self) -> Result<(), StoreError> {
        let simple = self.current.origin == Origin::Ours { simple: true };
        self.modifying = true;
        self.held.begin_modify(&self.current.bytes, self.current.revision, simple)
    }

    /// Brings back the version before the command.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn undo(mut self) -> Result<(), StoreError> {
        self.restore()
    }

    fn restore(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.modifying) { self.held.end_modify() } else { Ok(()) }
    }

    /// Takes over what the command left, or undoes it where it is invalid.
    ///
    /// # Errors
    /// When it is invalid; the version before stands again.
    pub fn finish(mut self, log: &LogEntry, now: Timestamp) -> Result<Revision, StoreError> {
        let done = self.store.files().read().and_then(|bytes| self.put(&bytes, log, now));
        if done.is_err() {
            self.restore()?;
        } else {
            self.modifying = false;
        }
        done
    }

    /// Replaces the whole text.
    ///
    /// # Errors
    /// When it is invalid; nothing is written then.
    pub fn replace(mut self, text: &str, log: &LogEntry, now: Timestamp) -> Result<Revision, StoreError> {
        self.put(text.as_bytes(), log, now)
    }

    /// Sets what a path names.
    ///
    /// # Errors
    /// When it names nothing, or the result is invalid; nothing is written then.
    pub fn set(
        mut self,
        path: &str,
        value: &str,
        typing: Typing,
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Revision, StoreError> {
        let path: Path = path.parse()?;
        let bytes = self.current.bytes.clone();
        let file = self.store.files().state();
        let (text, bom) = body_of(&file, &bytes)?;
        let view = View::full(&file, text)?;
        let text = self.with_value(&view, &path, value, typing)?;
        let new = [&bytes[..bom], text.as_bytes()].concat();
        self.put(&new, log, now)
    }

    /// The text in which the path has the value, in the first reading of it that the schema accepts.
    fn with_value(
        &self,
        view: &View<'_>,
        path: &Path,
        value: &str,
        typing: Typing,
    ) -> Result<String, StoreError> {
        let file = self.store.files().state();
        let faults =
            |text: &str| View::full(&file, text).and_then(|mut view| view.state()).map(|state| count(&state));
        let before = faults(view.text)?;
        let mut first = None;
        for candidate in readings(value, typing)? {
            let text = set_in(view, path, &candidate)?;
            if faults(&text)? <= before {
                return Ok(text);
            }
            first.get_or_insert(text);
        }
        // None fits: the first one tells best what is wrong.
        first.ok_or_else(|| StoreError::Path(PathError::nothing(path)))
    }

    /// Writes a text of somebody else's making, with the next revision, if it breaks nothing that was whole.
    fn put(&mut self, bytes: &[u8], log: &LogEntry, now: Timestamp) -> Result<Revision, StoreError> {
        let file = self.store.files().state();
        let (text, bom) = body_of(&file, bytes)?;
        let mut view = View::full(&file, text)?;
        view.check_version()?;
        let mut state = view.state()?;
        let before = self.before();
        self.admit(before.as_ref(), &view)?;
        let wrong = self.introduced(before.as_ref().map(|(state, _)| state), &state, now);
        if !wrong.is_empty() {
            return Err(StoreError::Violates(wrong));
        }
        let revision = state.board.revision.max(Revision(self.current.revision)).next();
        let change = stamped(before.as_ref().map(|(state, _)| state), &state, revision);
        let ops = wire::operations(&state.board, &change)
            .map_err(|error| StoreError::Unfaithful { path: file.clone(), what: error.to_string() })?;
        state.apply(&change);
        let (spliced, simple) = self.store.faithful(&view, &ops, &state)?;
        let after = [&bytes[..bom], spliced.text.as_bytes()].concat();
        self.held.commit(&Write {
            before: self.current.imprint,
            after: &after,
            edits: &[],
            revision_before: self.current.revision,
            revision: revision.0,
            simple,
            log: Some(self.store.log_text(log, revision)?),
        })?;
        Ok(revision)
    }

    /// What stood before, as far as it could be read.
    fn before(&self) -> Option<(State, Value)> {
        let file = self.store.files().state();
        let (text, _) = body_of(&file, &self.current.bytes).ok()?;
        let mut view = View::full(&file, text).ok()?;
        let value = view.tree.as_ref().map(untyped)?;
        Some((view.state().ok()?, value))
    }

    /// Asks the rules whether the caller may change what it changed.
    fn admit(&self, before: Option<&(State, Value)>, after: &View<'_>) -> Result<(), StoreError> {
        let Some(hand) = &self.hand else { return Ok(()) };
        let new = after.tree.as_ref().map(untyped).unwrap_or(Value::Null);
        match before {
            Some((state, old)) => Ok(manual_edit::admit(&state.board, hand, old, &new)?),
            // What cannot be read is mended by a person.
            None => Ok(manual_edit::admit(&Board::default(), hand, &Value::Null, &new)?),
        }
    }

    /// What is wrong with a state that was not wrong with the one before.
    fn introduced(&self, before: Option<&State>, after: &State, now: Timestamp) -> Vec<Violation> {
        let disk = Disk::below(self.store.root());
        let mut wrong = invariants::validate(after, &disk, now);
        if wrong.is_empty() {
            return wrong;
        }
        // A file that could not be read before cannot be made worse.
        let Some(before) = before else { return Vec::new() };
        let known = invariants::validate(before, &disk, now);
        wrong.retain(|violation| !known.contains(violation));
        wrong
    }
}

/// The count of this write on the state, and on every task that it changed.
fn stamped(before: Option<&State>, after: &State, revision: Revision) -> Change {
    let record = |state: &State, id: &TaskId| state.board.body(id).ok().map(|body| body.record().clone());
    let changed = |id: &&TaskId| before.is_some_and(|before| record(before, id) != record(after, id));
    let stamp = |id: &TaskId| {
        let record = record(after, id)?;
        Some((id.clone(), TaskRecord { revision: Some(revision), ..record }))
    };
    let tasks = after.board.tasks.keys().filter(changed).filter_map(stamp).collect();
    Change { revision, tasks, ..Change::default() }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // Nobody is left to be told; the next holder of the lock tries again.
        let _ = self.restore();
    }
}

/// What the value may mean, likeliest first.
fn readings(value: &str, typing: Typing) -> Result<Vec<Value>, StoreError> {
    let parsed = crate::yaml::parse(value).map(|(node, _)| untyped(&node));
    match (typing, parsed) {
        (Typing::Yaml, Ok(parsed)) => Ok(vec![parsed]),
        (Typing::Yaml, Err(error)) => Err(StoreError::Path(PathError::value(value, &error.to_string()))),
        (Typing::BySchema, Ok(parsed)) if parsed != Value::from(value) => {
            Ok(vec![Value::from(value), parsed])
        }
        (Typing::BySchema, _) => Ok(vec![Value::from(value)]),
    }
}

fn set_in(view: &View<'_>, path: &Path, value: &Value) -> Result<String, StoreError> {
    let tree = view.tree.as_ref().ok_or_else(|| StoreError::Path(PathError::nothing(path)))?;
    let old = untyped(tree);
    let mut new = old.clone();
    if path.set(&mut new, value) == 0 {
        return Err(StoreError::Path(PathError::nothing(path)));
    }
    let (Value::Map(old), Value::Map(new)) = (&old, &new) else {
        return Err(StoreError::Path(PathError::nothing(path)));
    };
    let mut plan = Plan::new(view.text);
    let planned = plan.change_map(&view.blocks, tree, 0, (old, new), &[]);
    let spliced = planned.and_then(|()| apply(view.text, &mut plan.finish()));
    Ok(spliced.unwrap_or_else(|_| crate::yaml::document(new)))
}

/// How much of a state could not be understood.
fn count(state: &State) -> usize {
    let board = &state.board;
    let broken = |is: bool| usize::from(is);
    let tasks: usize =
        board.tasks.values().filter_map(|slot| slot.body.as_ref()).map(|body| body.faults().len()).sum();
    tasks
        + state.journal.faults.len()
        + broken(matches!(board.agents, Loaded::Broken(_)))
        + broken(matches!(board.config, Loaded::Broken(_)))
        + broken(matches!(board.goal, Loaded::Broken(_)))
        + broken(matches!(board.sprint, Loaded::Broken(_)))
        + broken(matches!(board.circuit_breaker, Loaded::Broken(_)))
        + broken(matches!(board.discovered, Loaded::Broken(_)))
        + broken(matches!(board.handoff, Loaded::Broken(_)))
}
