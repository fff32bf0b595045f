//! Edits of state.yaml that came neither from a command nor from `edit.rs`: found when the lock is taken,
//! logged with the next write. The core decides about alarms.

use std::path::Path;
use std::time::{Duration, Instant};

use liza_core::model::{Board, Change, DirectEdit, LogEntry, Revision, Timestamp, Value};
use liza_core::protocol::direct_edit::EditFound;

use crate::codec::{StateView, text_without_bom};
use crate::document::plain_value;
use crate::edit::meaning;
use crate::file::{CurrentFile, EditBase, LockTimeout, LockedFolder};
use crate::file_store::FileStore;

/// The edits of the file since our last write, if there are any. `value` is the file, if it can be read.
pub(crate) fn find(path: &Path, current: &CurrentFile, value: Option<&Value>) -> Option<EditFound> {
    let last = match &current.base {
        EditBase::Unedited => return None,
        EditBase::Lost => return Some(EditFound::unknown()),
        EditBase::LastVersion(bytes) => whole_value(path, bytes),
    };
    match (last, value) {
        (Some(last), Some(value)) => EditFound::between(&meaning(&last), &meaning(value)),
        (None, _) | (_, None) => Some(EditFound::unknown()),
    }
}

/// The alarm about an edit that the next write records.
pub(crate) fn pending(store: &FileStore, now: Timestamp) -> Option<DirectEdit> {
    let bytes = store.files().read().ok()?;
    if store.files().is_own_version(&bytes) {
        return None;
    }
    // A writer that holds the lock records it.
    let locked =
        LockedFolder::acquire(store.files(), Instant::now(), &|| LockTimeout(Duration::ZERO)).ok()?;
    let path = store.files().state();
    let (last, revision) = locked.edited_version(&bytes)?;
    let (last, value) = (whole_value(&path, &last)?, whole_value(&path, &bytes)?);
    EditFound::between(&meaning(&last), &meaning(&value))?.alarm(Revision(revision + 1), now)
}

/// Adds what an edit left out, and the alarm about it, to the change; returns the entry for the log.
pub(crate) fn record(
    edit: Option<EditFound>,
    board: &Board,
    change: &mut Change,
    now: Timestamp,
) -> Option<LogEntry> {
    let edit = edit?;
    for (id, slot) in &board.tasks {
        if let (None, Some(body)) = (slot.summary.created, &slot.body) {
            // A task that a person has added: it waits from now on.
            let record = change.tasks.entry(id.clone()).or_insert_with(|| body.record().clone());
            record.created.get_or_insert(now);
            record.revision = Some(change.revision);
        }
    }
    if let Some(alarm) = edit.alarm(change.revision, now) {
        let known = || board.direct_edits.ready().cloned().unwrap_or_default();
        change.direct_edits.get_or_insert_with(known).push(alarm);
    }
    Some(edit.log_entry(now))
}

fn whole_value(path: &Path, bytes: &[u8]) -> Option<Value> {
    let (text, _) = text_without_bom(path, bytes).ok()?;
    StateView::full(path, text).ok()?.tree.as_ref().map(plain_value)
}
