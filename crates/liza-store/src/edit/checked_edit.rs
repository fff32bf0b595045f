//! Checks whether an edit is allowed and valid, and makes the text to write, for a file and a database alike.

use std::collections::BTreeMap;
use std::path::Path;

use liza_core::model::{Board, Change, Revision, State, TaskId, TaskRecord, Timestamp, Value};
use liza_core::protocol::direct_edit::EditFound;
use liza_core::protocol::manual_edit::{self, ManualEdit};
use liza_core::rules::invariants::{self, Violation};
use liza_core::rules::misspelled::{MisspelledKey, misspelled_keys};

use super::meaning;
use crate::codec::verify::{not_encoded, verified_text};
use crate::codec::{self, Spliced, StateView};
use crate::disk::ProjectDisk;
use crate::document::plain_value;
use crate::error::StoreError;

/// The editor's permission, and the accepted texts.
#[derive(Debug, Default)]
pub struct EditRules {
    /// The limits of this caller.
    pub(crate) permission: Option<ManualEdit>,
    /// Also accepts a text with violations.
    pub(crate) accepts_violations: bool,
}

pub(crate) struct CurrentText<'a> {
    pub(crate) path: &'a Path,
    /// Its state and its values, if it can be read.
    pub(crate) before: Option<&'a (State, Value)>,
    pub(crate) revision: Revision,
}

pub(crate) struct CheckedText {
    pub(crate) revision: Revision,
    pub(crate) state: State,
    /// With the revision.
    pub(crate) spliced: Spliced,
    /// A line scan finds all its blocks.
    pub(crate) scannable: bool,
    /// Keys that the edit added and that are probably misspelled.
    pub(crate) misspelled: Vec<MisspelledKey>,
}

#[derive(Debug)]
pub struct AcceptedText {
    pub revision: Revision,
    pub before: Option<State>,
    pub state: State,
    /// With the revision.
    pub text: String,
    /// Keys that the edit added and that are probably misspelled.
    pub misspelled: Vec<MisspelledKey>,
}

/// A state in which only some tasks are loaded, and a test for the existence of tasks.
pub(crate) type StatePart<'a> = (&'a State, &'a dyn Fn(&TaskId) -> bool);

impl EditRules {
    /// Checks a text that was made from the current one, and gives it the next revision.
    pub fn accept(
        &self,
        path: &Path,
        (current, revision): (&str, Revision),
        text: &str,
        disk: &ProjectDisk,
        now: Timestamp,
    ) -> Result<AcceptedText, StoreError> {
        let before = read_whole(path, current);
        let current = CurrentText { path, before: before.as_ref(), revision };
        let CheckedText { revision, state, spliced, misspelled, .. } =
            self.check(&current, text, disk, now, |_, _| {})?;
        let before = before.map(|(state, _)| state);
        Ok(AcceptedText { revision, before, state, text: spliced.text, misspelled })
    }

    /// Checks a new text, and gives it the next revision. `amend` may add to the change.
    pub(crate) fn check(
        &self,
        current: &CurrentText<'_>,
        text: &str,
        disk: &ProjectDisk,
        now: Timestamp,
        amend: impl FnOnce(&Board, &mut Change),
    ) -> Result<CheckedText, StoreError> {
        let mut view = StateView::full(current.path, text)?;
        view.check_version()?;
        let mut state = view.state()?;
        let new = view.tree.as_ref().map(plain_value).unwrap_or(Value::Null);
        let before = current.before.map(|(state, _)| state);
        let old = current.before.map_or(&Value::Null, |(_, value)| value);
        // Only a person may fix a file that cannot be read.
        self.check_values(before.map_or(&Board::default(), |before| &before.board), old, &new)?;
        let violations = new_violations(disk, before, &state, now);
        if !violations.is_empty() && !self.accepts_violations {
            return Err(StoreError::Violates(violations));
        }
        let revision = state.board.revision.max(current.revision).next();
        let mut change = revision_stamps(before, &state, revision);
        amend(&state.board, &mut change);
        let reopened = self.permission.as_ref().and_then(|_| edit_of_ended_tasks(old, &new));
        if let Some(alarm) = reopened.and_then(|edit| edit.alarm(revision, now)) {
            let known = || state.board.direct_edits.ready().cloned().unwrap_or_default();
            change.direct_edits.get_or_insert_with(known).push(alarm);
        }
        let ops =
            codec::operations(&state.board, &change).map_err(|error| not_encoded(current.path, error))?;
        state.apply(&change);
        let (spliced, scannable) = verified_text(current.path, &view, &ops, &state)?;
        Ok(CheckedText { revision, state, spliced, scannable, misspelled: new_misspelled(old, &new) })
    }

    /// Checks that the caller may make this change.
    pub(crate) fn check_values(&self, board: &Board, old: &Value, new: &Value) -> Result<(), StoreError> {
        match &self.permission {
            // The same value in another form is no change.
            Some(permission) => Ok(manual_edit::admit(board, permission, &meaning(old), &meaning(new))?),
            None => Ok(()),
        }
    }
}

/// The edit of tasks that have ended, which is an alarm.
pub(crate) fn edit_of_ended_tasks(old: &Value, new: &Value) -> Option<EditFound> {
    EditFound::of_ended_tasks(&meaning(old), &meaning(new))
}

/// The state and the values of a text, if it can be read.
pub(crate) fn read_whole(path: &Path, text: &str) -> Option<(State, Value)> {
    let mut view = StateView::full(path, text).ok()?;
    let value = view.tree.as_ref().map(plain_value)?;
    Some((view.state().ok()?, value))
}

/// True if an edit adds no violation, judged by two states in which only the affected parts are loaded.
pub(crate) fn adds_none_in_part(
    disk: &ProjectDisk,
    before: StatePart<'_>,
    after: StatePart<'_>,
    now: Timestamp,
) -> bool {
    let violations = |(state, exists): StatePart<'_>| invariants::validate_part(state, exists, disk, now);
    let found = violations(after);
    found.is_empty() || added(violations(before), found).is_empty()
}

/// The violations that the state before did not have.
fn new_violations(
    disk: &ProjectDisk,
    before: Option<&State>,
    after: &State,
    now: Timestamp,
) -> Vec<Violation> {
    let violations = invariants::validate_edit(after, disk, now);
    // A file that could not be read before cannot be made worse.
    let Some(before) = before.filter(|_| !violations.is_empty()) else {
        return if before.is_none() { Vec::new() } else { violations };
    };
    added(invariants::validate_edit(before, disk, now), violations)
}

pub(crate) fn new_misspelled(old: &Value, new: &Value) -> Vec<MisspelledKey> {
    let known = misspelled_keys(old);
    misspelled_keys(new).into_iter().filter(|key| !known.contains(key)).collect()
}

/// The revision of this write, for the state and every task that changed.
pub(crate) fn revision_stamps(before: Option<&State>, after: &State, revision: Revision) -> Change {
    let record = |state: &State, id: &TaskId| state.board.body(id).ok().map(|body| body.record().clone());
    let changed = |id: &&TaskId| before.is_some_and(|before| record(before, id) != record(after, id));
    let stamp = |id: &TaskId| {
        let record = record(after, id)?;
        Some((id.clone(), TaskRecord { revision: Some(revision), ..record }))
    };
    let read = after.board.tasks.iter().filter(|(_, slot)| slot.body.is_some()).map(|(id, _)| id);
    let tasks = read.filter(changed).filter_map(stamp).collect();
    Change { revision, tasks, ..Change::default() }
}

fn added(before: Vec<Violation>, mut after: Vec<Violation>) -> Vec<Violation> {
    let mut known: BTreeMap<Violation, usize> = BTreeMap::new();
    for violation in before {
        *known.entry(without_position(violation)).or_default() += 1;
    }
    after.retain(|violation| match known.get_mut(&without_position(violation.clone())) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        Some(_) | None => true,
    });
    after
}

/// A violation without the position in its message: an edit above it moves it.
fn without_position(mut violation: Violation) -> Violation {
    while let Some(start) = violation.message.find(" (line ") {
        let Some(length) = violation.message[start..].find(')') else { break };
        violation.message.replace_range(start..=start + length, "");
    }
    violation
}
