//! Edits of the text under the lock: `lock write`, `lock modify` and `edit`, for what no command does.
//!
//! Must not bypass the rules: an edit that adds a violation is undone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use liza_core::model::{Board, Change, LogEntry, Revision, State, TaskId, TaskRecord, Timestamp, Value};
use liza_core::protocol::manual_edit;
use liza_core::protocol::manual_edit::ManualEdit;
use liza_core::rules::invariants;
use liza_core::rules::invariants::Violation;
use liza_core::rules::misspelled::{MisspelledKey, misspelled_keys};

use crate::codec::{self, StateView, fault_count, text_without_bom};
use crate::direct_edit::{self, meaning};
use crate::disk::ProjectDisk;
use crate::document::{Edit, EditPlan, apply, plain_value};
use crate::error::StoreError;
use crate::file::{CurrentFile, EditBase, Fingerprint, LockedFolder, NewVersion, Notice};
use crate::file_store::{FileStore, OVERTAKEN_LIMIT};
use crate::value_path::{PathError, ValuePath};
use crate::verify::verified_text;

/// An edit of the text, with the lock held until dropped.
pub(crate) struct FileEdit<'s> {
    pub(crate) store: &'s FileStore,
    pub(crate) locked: LockedFolder,
    pub(crate) current: CurrentFile,
    modifying: bool,
    permission: Option<ManualEdit>,
    accepts_violations: bool,
}

/// The outcome of an edit.
#[derive(Debug)]
pub struct Edited {
    /// The new revision.
    pub revision: Revision,
    /// What the caller should report: the write lost the form of the file, or its log entry is delayed.
    pub notices: Vec<Notice>,
    /// The keys that the edit added and that are probably misspelled.
    pub misspelled: Vec<MisspelledKey>,
}

/// How `lock write` reads its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSyntax {
    /// A known field takes the type of its schema, an unknown one takes text.
    BySchema,
    /// As YAML.
    Yaml,
}

impl FileStore {
    /// Takes the lock to edit the text.
    ///
    /// # Errors
    /// When the lock is not free, or the file cannot be read.
    pub(crate) fn begin_edit(&self) -> Result<FileEdit<'_>, StoreError> {
        let mut locked = self.lock()?;
        let current = locked.current()?;
        Ok(FileEdit {
            store: self,
            locked,
            current,
            modifying: false,
            permission: None,
            accepts_violations: false,
        })
    }

    /// The values that match a path; the whole file for the empty path.
    ///
    /// # Errors
    /// When the file cannot be read, or the path is invalid.
    pub(crate) fn read_path(&self, path: &str) -> Result<Vec<Value>, StoreError> {
        let path: ValuePath = path.parse()?;
        let bytes = self.files().read()?;
        let file = self.files().state();
        let view = self.tree_view(&file, &bytes)?;
        let root = view.tree.as_ref().map(plain_value).unwrap_or(Value::Null);
        Ok(path.find(&root).into_iter().cloned().collect())
    }
}

impl FileEdit<'_> {
    /// Allows only what this caller may change.
    #[must_use]
    pub(crate) fn restricted_to(mut self, permission: ManualEdit) -> Self {
        self.permission = Some(permission);
        self
    }

    /// Also writes a text with violations.
    pub(crate) fn accepting_violations(mut self) -> Self {
        self.accepts_violations = true;
        self
    }

    /// The current text.
    ///
    /// # Errors
    /// When the file is not text.
    pub(crate) fn text(&self) -> Result<String, StoreError> {
        Ok(text_without_bom(&self.store.files().state(), &self.current.bytes)?.0.to_owned())
    }

    /// The current revision.
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.current.revision)
    }

    /// What was repaired when the lock was taken.
    pub(crate) fn notices(&self) -> &[Notice] {
        &self.current.notices
    }

    /// The file that a command may change between [`FileEdit::begin_modify`] and [`FileEdit::finish_modify`].
    pub(crate) fn path(&self) -> PathBuf {
        self.store.files().state()
    }

    /// Prepares for a command that changes the file in place. If this process is killed, the next lock holder undoes the
    /// change.
    ///
    /// # Errors
    /// When no copy can be kept.
    pub(crate) fn begin_modify(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.record_direct_edit(now)?;
        self.modifying = true;
        self.locked.begin_modify(&self.current)
    }

    /// Writes a direct edit as a version of its own: the copy for the command replaces what it is compared with.
    fn record_direct_edit(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if matches!(self.current.base, EditBase::Unedited) {
            return Ok(());
        }
        let before = self.before().map(|(_, value)| value);
        let edit = direct_edit::find(&self.store.files().state(), &self.current, before.as_ref());
        // A file that cannot be read is recorded with the command that repairs it.
        if edit.is_none() || before.is_none() {
            return Ok(());
        }
        let bytes = self.current.bytes.clone();
        let edited = self.write_checked(&bytes, None, now, false)?;
        self.current = self.locked.current()?;
        self.current.notices.extend(edited.notices);
        Ok(())
    }

    /// Restores the version before the command.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn undo_modify(mut self) -> Result<(), StoreError> {
        self.restore()
    }

    fn restore(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.modifying) { self.locked.end_modify() } else { Ok(()) }
    }

    /// Accepts the text that the command wrote, or undoes it if it is invalid.
    ///
    /// # Errors
    /// When it is invalid. The previous version is restored then.
    pub(crate) fn finish_modify(mut self, log: &LogEntry, now: Timestamp) -> Result<Edited, StoreError> {
        let done =
            self.store.files().read().and_then(|bytes| match self.finish_in_part(&bytes, log, now)? {
                Some(edited) => Ok(edited),
                None => self.write_checked(&bytes, Some(log), now, false),
            });
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
    /// When it is invalid. Nothing is written then.
    pub(crate) fn replace(
        mut self,
        text: &str,
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Edited, StoreError> {
        self.write_checked(text.as_bytes(), Some(log), now, false)
    }

    /// Sets the values that match a path.
    ///
    /// # Errors
    /// When the path matches nothing, or the result is invalid. Nothing is written then.
    pub(crate) fn set(
        mut self,
        path: &str,
        value: &str,
        syntax: ValueSyntax,
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Edited, StoreError> {
        let path: ValuePath = path.parse()?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.try_set(&path, value, syntax, log, now) {
                // A person saved the file meanwhile: set the value in what they saved.
                Err(StoreError::Overtaken { .. }) if attempts < OVERTAKEN_LIMIT => {
                    self.current = self.locked.current()?;
                }
                other => return other,
            }
        }
    }

    fn try_set(
        &mut self,
        path: &ValuePath,
        value: &str,
        syntax: ValueSyntax,
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Edited, StoreError> {
        if let Some(edited) = self.set_in_part(path, (value, syntax), log, now)? {
            return Ok(edited);
        }
        let bytes = self.current.bytes.clone();
        let file = self.store.files().state();
        let (text, bom) = text_without_bom(&file, &bytes)?;
        let view = StateView::full(&file, text)?;
        let (text, rewritten) = with_value(&view, path, value, syntax)?;
        let new = [&bytes[..bom], text.as_bytes()].concat();
        self.write_checked(&new, Some(log), now, rewritten)
    }

    /// Writes a text with the next revision, if it adds no violation.
    fn write_checked(
        &mut self,
        bytes: &[u8],
        log: Option<&LogEntry>,
        now: Timestamp,
        rewritten: bool,
    ) -> Result<Edited, StoreError> {
        let file = self.store.files().state();
        let (text, bom) = text_without_bom(&file, bytes)?;
        let mut view = StateView::full(&file, text)?;
        view.check_version()?;
        let mut state = view.state()?;
        let before = self.before();
        let new = view.tree.as_ref().map(plain_value).unwrap_or(Value::Null);
        check_permission(self.permission.as_ref(), before.as_ref(), &new)?;
        let violations = new_violations(
            &ProjectDisk::new(self.store.root()),
            before.as_ref().map(|(state, _)| state),
            &state,
            now,
        );
        if !violations.is_empty() && !self.accepts_violations {
            return Err(StoreError::Violates(violations));
        }
        let revision = state.board.revision.max(Revision(self.current.revision)).next();
        let mut change = revision_stamps(before.as_ref().map(|(state, _)| state), &state, revision);
        let edit = direct_edit::find(&file, &self.current, before.as_ref().map(|(_, value)| value));
        let edit = direct_edit::record(edit, &state.board, &mut change, now);
        let ops = codec::operations(&state.board, &change).map_err(|error| self.store.not_encoded(error))?;
        state.apply(&change);
        let (spliced, scannable) = verified_text(&file, &view, &ops, &state)?;
        let after = [&bytes[..bom], spliced.text.as_bytes()].concat();
        let mut log = self.store.log_texts(edit.iter().chain(log), revision)?;
        // A command has changed the file in place; everything else has not.
        let (replaced, on_disk, edits) = match self.modifying {
            true => (Fingerprint::of(bytes), bytes, shifted(&spliced.edits, bom)),
            false => (self.current.fingerprint, &self.current.bytes[..], Vec::new()),
        };
        let mut notices = Vec::new();
        if rewritten || spliced.rewritten {
            let old = if rewritten { &self.current.bytes[..] } else { bytes };
            notices.push(self.store.keep_before_rewrite(&self.locked, old, now, revision, &mut log)?);
        }
        let delayed = self.locked.commit(&NewVersion {
            before: replaced,
            on_disk,
            after: &after,
            edits: &edits,
            revision_before: self.current.revision,
            revision: revision.0,
            scannable,
            log,
        })?;
        notices.extend(delayed);
        let old = before.map(|(_, value)| value).unwrap_or(Value::Null);
        Ok(Edited { revision, notices, misspelled: new_misspelled(&old, &new) })
    }

    /// The state before, if it can be read.
    fn before(&self) -> Option<(State, Value)> {
        let file = self.store.files().state();
        let (text, _) = text_without_bom(&file, &self.current.bytes).ok()?;
        let mut view = StateView::full(&file, text).ok()?;
        let value = view.tree.as_ref().map(plain_value)?;
        Some((view.state().ok()?, value))
    }

    /// Checks by the rules that the caller may make this change.
    pub(crate) fn check_values(&self, board: &Board, old: &Value, new: &Value) -> Result<(), StoreError> {
        check_values(self.permission.as_ref(), board, old, new)
    }

    /// Whether a state has no violation at all.
    pub(crate) fn is_valid(&self, state: &State, now: Timestamp) -> bool {
        invariants::validate(state, &ProjectDisk::new(self.store.root()), now).is_empty()
    }

    /// Whether an edit adds no violation, of two states in which only what it concerns is loaded.
    pub(crate) fn adds_none_in_part(&self, before: &State, after: &State, now: Timestamp) -> bool {
        let disk = ProjectDisk::new(self.store.root());
        let violations = invariants::validate_part(after, &disk, now);
        violations.is_empty() || added(invariants::validate_part(before, &disk, now), violations).is_empty()
    }
}

/// The text with the value set, in the interpretation that the schema accepts best.
pub(crate) fn with_value(
    view: &StateView<'_>,
    path: &ValuePath,
    value: &str,
    syntax: ValueSyntax,
) -> Result<(String, bool), StoreError> {
    let faults = |text: &str| {
        let mut view = StateView::full(view.path, text)?;
        Ok::<_, StoreError>(fault_count(&view.state()?) + view.config_faults())
    };
    let mut best: Option<(usize, (String, bool))> = None;
    for candidate in interpretations(value, syntax)? {
        let measure = |value: &Value| Ok(Some(faults(&with_path_set(view, path, value)?.0)?));
        let candidate = as_field_type(candidate, syntax, &measure)?;
        let text = with_path_set(view, path, &candidate)?;
        let found = faults(&text.0)?;
        if best.as_ref().is_none_or(|(fewest, _)| found < *fewest) {
            best = Some((found, text));
        }
    }
    best.map(|(_, text)| text).ok_or_else(|| no_match(path))
}

/// Checks by the rules that the caller may change what it changed. None may have been readable before.
pub(crate) fn check_permission(
    permission: Option<&ManualEdit>,
    before: Option<&(State, Value)>,
    new: &Value,
) -> Result<(), StoreError> {
    match before {
        Some((state, old)) => check_values(permission, &state.board, old, new),
        // Only a person may fix a file that cannot be read.
        None => check_values(permission, &Board::default(), &Value::Null, new),
    }
}

fn check_values(
    permission: Option<&ManualEdit>,
    board: &Board,
    old: &Value,
    new: &Value,
) -> Result<(), StoreError> {
    match permission {
        // The same value in another form is no change.
        Some(permission) => Ok(manual_edit::admit(board, permission, &meaning(old), &meaning(new))?),
        None => Ok(()),
    }
}

/// The violations that the state before did not have.
pub(crate) fn new_violations(
    disk: &ProjectDisk,
    before: Option<&State>,
    after: &State,
    now: Timestamp,
) -> Vec<Violation> {
    let violations = invariants::validate(after, disk, now);
    // A file that could not be read before cannot be made worse.
    let Some(before) = before.filter(|_| !violations.is_empty()) else {
        return if before.is_none() { Vec::new() } else { violations };
    };
    added(invariants::validate(before, disk, now), violations)
}

/// The keys that are probably misspelled and were not there before.
pub(crate) fn new_misspelled(old: &Value, new: &Value) -> Vec<MisspelledKey> {
    let known = misspelled_keys(old);
    misspelled_keys(new).into_iter().filter(|key| !known.contains(key)).collect()
}

/// Edits of a text, as edits of the file with a byte order mark before it.
pub(crate) fn shifted(edits: &[Edit], bom: usize) -> Vec<Edit> {
    let shift =
        |edit: &Edit| Edit { range: edit.range.start + bom..edit.range.end + bom, text: edit.text.clone() };
    edits.iter().map(shift).collect()
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

impl Drop for FileEdit<'_> {
    fn drop(&mut self) {
        // No caller is left for the error; the next lock holder tries again.
        let _ = self.restore();
    }
}

/// Those violations that there were not before.
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

/// A value in the form of its field: one that takes a time but no other text gets the time in our own form. `faults` counts
/// the faults of the file with a value.
pub(crate) fn as_field_type(
    candidate: Value,
    syntax: ValueSyntax,
    faults: &dyn Fn(&Value) -> Result<Option<usize>, StoreError>,
) -> Result<Value, StoreError> {
    match candidate.as_text().and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(time) if syntax == ValueSyntax::BySchema => {
            let is_time = faults(&Value::from("no time"))? > faults(&candidate)?;
            Ok(if is_time { Value::Time(time) } else { candidate })
        }
        Some(_) | None => Ok(candidate),
    }
}

/// The possible interpretations of the value, most likely first.
pub(crate) fn interpretations(value: &str, syntax: ValueSyntax) -> Result<Vec<Value>, StoreError> {
    let parsed = crate::yaml::parse(value).map(|(node, _)| plain_value(&node));
    match (syntax, parsed) {
        (ValueSyntax::Yaml, Ok(parsed)) => Ok(vec![parsed]),
        (ValueSyntax::Yaml, Err(error)) => {
            Err(PathError::NotYaml { value: value.to_owned(), source: error }.into())
        }
        (ValueSyntax::BySchema, Ok(parsed)) if parsed != Value::from(value) => {
            Ok(vec![Value::from(value), parsed])
        }
        (ValueSyntax::BySchema, _) => Ok(vec![Value::from(value)]),
    }
}

/// The text with the value set, and whether the whole file had to be rewritten.
fn with_path_set(
    view: &StateView<'_>,
    path: &ValuePath,
    value: &Value,
) -> Result<(String, bool), StoreError> {
    let tree = view.tree.as_ref().ok_or_else(|| no_match(path))?;
    let old = plain_value(tree);
    let mut new = old.clone();
    if path.set(&mut new, value) == 0 {
        return Err(no_match(path));
    }
    let (Value::Map(old), Value::Map(new)) = (&old, &new) else {
        return Err(no_match(path));
    };
    let mut plan = EditPlan::new(view.text);
    let planned = plan.change_map(&view.blocks, tree, 0, (old, new), &[]);
    let finished = planned.and_then(|()| plan.finish(|range| codec::part_around(view, range)));
    let spliced = finished.and_then(|mut edits| apply(view.text, &mut edits));
    Ok(spliced.map_or_else(|_| (crate::yaml::document(new), true), |text| (text, false)))
}

fn no_match(path: &ValuePath) -> StoreError {
    PathError::NoMatch { path: path.to_string() }.into()
}
