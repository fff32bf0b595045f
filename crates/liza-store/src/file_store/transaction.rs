//! The file with its lock held, and the versions of the commands that wait to be written together.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use liza_core::model::{Board, Revision, State, StopFile, StopFiles, Timestamp};

use super::FileStore;
use super::direct_edit;
use super::edit::shifted;
use crate::archive;
use crate::backend::{Backend as _, CurrentVersion, Decided, Setback, Transaction};
use crate::call::Host;
use crate::codec::verify::verified_text;
use crate::codec::{self, Spliced};
use crate::document::{Edit, Edits, plain_value};
use crate::error::StoreError;
use crate::file::{CurrentFile, LockedFolder, NewVersion, Notice, Origin};

/// The most bytes of log entries of one write: they must fit into a write record.
const LOG_MAX: usize = 8 << 10;

pub(super) struct FileTransaction {
    store: FileStore,
    locked: LockedFolder,
    /// Without its bytes.
    on_disk: CurrentFile,
    bytes: Arc<Vec<u8>>,
    newest: Option<Newest>,
}

struct Newest {
    bytes: Arc<Vec<u8>>,
    revision: Revision,
    spans: Vec<Span>,
    log: Option<String>,
    /// A line scan finds all its blocks.
    scannable: bool,
    /// It must be written before the next command decides.
    is_last: bool,
}

/// A part of the file on disk, and the part of the newest version that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    old: Range<usize>,
    new: Range<usize>,
}

impl FileTransaction {
    pub(super) fn begin(store: &FileStore, since: Instant) -> Result<Self, StoreError> {
        let mut locked = store.lock_since(since)?;
        let mut on_disk = locked.current()?;
        let bytes = Arc::new(std::mem::take(&mut on_disk.bytes));
        Ok(Self { store: store.clone(), locked, on_disk, bytes, newest: None })
    }

    /// Adds a change to a version that we wrote; false if the whole version has to be parsed.
    fn add_lazily(&mut self, decided: &Decided<'_>) -> Result<bool, StoreError> {
        let Decided { state: State { board, .. }, change, view, .. } = decided;
        let ops = codec::operations(board, change).map_err(|error| self.store.not_encoded(error))?;
        let spliced = codec::splice(view, &ops).ok().filter(|spliced| codec::reads_back(view, spliced, &ops));
        let Some(spliced) = spliced.filter(|spliced| !spliced.rewritten) else { return Ok(false) };
        archive::store(self.store.folder(), view, board, change)?;
        let log = self.store.log_texts(&change.log, change.revision)?;
        self.push(decided, spliced, log, true);
        Ok(true)
    }

    /// Adds a change to a version that a person edited: the whole text is parsed again and compared.
    fn add_carefully(&mut self, mut decided: Decided<'_>) -> Result<Option<Notice>, StoreError> {
        let (path, now) = (self.store.files().state(), decided.job.now());
        let view = decided.view;
        let value = view.tree.as_ref().map(plain_value);
        let edit = direct_edit::find(&path, &self.on_disk, value.as_ref());
        let edit = direct_edit::record(edit, &decided.state.board, &mut decided.change, now);
        let Decided { state, change, .. } = &decided;
        let ops = codec::operations(&state.board, change).map_err(|error| self.store.not_encoded(error))?;
        let mut intended = state.clone();
        intended.apply(change);
        let (spliced, scannable) = verified_text(&path, view, &ops, &intended)?;
        archive::store(self.store.folder(), view, &state.board, change)?;
        let mut log = self.store.log_texts(edit.iter().chain(&change.log), change.revision)?;
        let rewritten = match spliced.rewritten {
            true => {
                let store = &self.store;
                Some(store.keep_before_rewrite(&self.locked, &self.bytes, now, change.revision, &mut log)?)
            }
            false => None,
        };
        self.push(&decided, spliced, log, scannable);
        Ok(rewritten)
    }

    /// Makes a text the newest version; the spliced edits lead to it from the version before.
    fn push(&mut self, decided: &Decided<'_>, spliced: Spliced, log: Option<String>, scannable: bool) {
        let Decided { mark, is_whole, change, .. } = decided;
        let (spans, before) =
            self.newest.take().map_or_else(Default::default, |newest| (newest.spans, newest.log));
        let log = match (before, log) {
            (Some(before), Some(log)) => Some(format!("{before}\n\n{log}")),
            (before, log) => before.or(log),
        };
        let spans = combined(spans, &shifted(&spliced.edits, mark.len()));
        let text = spliced.text;
        let bytes = if mark.is_empty() { text.into_bytes() } else { [mark, text.as_bytes()].concat() };
        let is_last = *is_whole || log.as_ref().is_some_and(|log| log.len() > LOG_MAX);
        let (bytes, revision) = (Arc::new(bytes), change.revision);
        self.newest = Some(Newest { bytes, revision, spans, log, scannable, is_last });
    }
}

impl Transaction for FileTransaction {
    fn version(&self) -> CurrentVersion {
        let bytes = self.newest.as_ref().map_or(&self.bytes, |newest| &newest.bytes);
        let scannable = self.on_disk.origin == Origin::Ours { scannable: true };
        CurrentVersion { bytes: Arc::clone(bytes), scannable }
    }

    fn facts(&self, host: &dyn Host) -> (Timestamp, StopFiles) {
        (host.now(), host.stop_files())
    }

    fn complete(&self, board: &mut Board) {
        let known = self.newest.as_ref().map_or(Revision(self.on_disk.revision), |newest| newest.revision);
        board.revision = board.revision.max(known);
    }

    fn notices(&self) -> Vec<Notice> {
        self.on_disk.notices.clone()
    }

    fn create_stop_files(
        &self,
        host: &dyn Host,
        files: &[StopFile],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let create = host.create_stop_files(files, now);
        create.map_err(StoreError::io("create a stop file in", self.store.folder()))
    }

    fn add(&mut self, decided: Decided<'_>) -> Result<Option<Vec<Notice>>, StoreError> {
        if decided.is_whole {
            return Ok(Some(self.add_carefully(decided)?.into_iter().collect()));
        }
        Ok(self.add_lazily(&decided)?.then(Vec::new))
    }

    fn is_full(&self) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.is_last)
    }

    fn commit(mut self: Box<Self>) -> Result<Option<Notice>, Setback> {
        let Some(newest) = &self.newest else { return Ok(None) };
        let edit = |span: &Span| {
            let text = str::from_utf8(newest.bytes.get(span.new.clone())?).ok()?;
            Some(Edit { range: span.old.clone(), text: text.to_owned() })
        };
        // Without edits a copy of the version is kept instead.
        let edits: Edits = newest.spans.iter().map(edit).collect::<Option<_>>().unwrap_or_default();
        let written = self.locked.commit(&NewVersion {
            before: self.on_disk.fingerprint,
            on_disk: &self.bytes,
            after: &newest.bytes,
            edits: &edits,
            revision_before: self.on_disk.revision,
            revision: newest.revision.0,
            scannable: newest.scannable,
            log: newest.log.clone(),
        });
        match written {
            // A person saved the file meanwhile: every command decides again, on what they saved.
            Err(StoreError::Overtaken { .. }) => Err(Setback::Again),
            result => Ok(result?),
        }
    }
}

/// Joins the spans that lead to a version and the edits of that version, which don't overlap.
fn combined(mut spans: Vec<Span>, edits: &[Edit]) -> Vec<Span> {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    // From the end, so that the places of the others do not move.
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.range.start));
    for edit in edits {
        let (start, end) = (edit.range.start, edit.range.end);
        let first = spans.partition_point(|span| span.new.end < start);
        let after = spans.partition_point(|span| span.new.start <= end);
        // Maps a position in the newest version to the file on disk, if no span changes it.
        let outside = |place: usize, before: usize| {
            let last = before.checked_sub(1).and_then(|at| spans.get(at));
            last.map_or(place, |last| place - last.new.end + last.old.end)
        };
        let touched = spans.get(first..after).unwrap_or_default();
        let (new_start, old_start) = match touched.first() {
            Some(span) if span.new.start <= start => (span.new.start, span.old.start),
            Some(_) | None => (start, outside(start, first)),
        };
        let (new_end, old_end) = match touched.last() {
            Some(span) if span.new.end >= end => (span.new.end, span.old.end),
            Some(_) | None => (end, outside(end, after)),
        };
        let moved = |place: usize| place - (end - start) + edit.text.len();
        let span = Span { old: old_start..old_end, new: new_start..moved(new_end) };
        spans.splice(first..after, [span]);
        for later in spans.iter_mut().skip(first + 1) {
            later.new = moved(later.new.start)..moved(later.new.end);
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::document::apply;

    fn text_of(base: &str, newest: &str, spans: &[Span]) -> String {
        let edit = |span: &Span| Edit { range: span.old.clone(), text: newest[span.new.clone()].to_owned() };
        apply(base, &mut spans.iter().map(edit).collect()).unwrap_or_else(|_| unreachable!("no overlap"))
    }

    fn edits() -> impl Strategy<Value = Vec<(usize, usize, String)>> {
        prop::collection::vec((0..40_usize, 0..6_usize, "[a-z]{0,5}"), 0..5)
    }

    proptest! {
        /// Covers: IS-01
        #[test]
        fn several_steps_are_one(steps in prop::collection::vec(edits(), 1..6)) {
            let base = "0123456789012345678901234567890123456789";
            let mut newest = base.to_owned();
            let mut spans = Vec::new();
            for step in steps {
                let mut at = 0;
                let mut own = Vec::new();
                for (skip, length, text) in step {
                    let start = (at + skip).min(newest.len());
                    let end = (start + length).min(newest.len());
                    // Neighbours that touch are one edit.
                    if start == at && !own.is_empty() { continue; }
                    own.push(Edit { range: start..end, text });
                    at = end;
                }
                spans = combined(spans, &own);
                newest = apply(&newest, &mut own).unwrap_or_else(|_| unreachable!("no overlap"));
            }
            prop_assert_eq!(text_of(base, &newest, &spans), newest);
        }
    }
}
