//! Writes of one process that wait for each other share one durable write.
//!
//! A command that finds others waiting leaves its version in memory; the next one decides on that version, and the last
//! one writes it. Each command still decides for itself, under the lock, and returns only after its change is durable.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::document::{Edit, Edits};
use crate::error::StoreError;
use crate::file::{CurrentFile, LockedFolder, NewVersion, Notice};

/// How many commands share one write at most, and how long their log entries may be: these must fit into a write record.
const COMMANDS_MAX: usize = 64;
const LOG_MAX: usize = 8 << 10;

/// How long a command waits before it checks whether the one that should have written is gone.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The commands of a process on one blackboard.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    batch: Mutex<Option<Batch>>,
    written: Condvar,
    waiting: AtomicUsize,
}

/// The turn of one command.
pub(super) struct Turn<'q> {
    queue: &'q WriteQueue,
    pub(super) batch: MutexGuard<'q, Option<Batch>>,
}

/// How a shared write went.
#[derive(Debug, Clone)]
enum Outcome {
    Written(Option<Notice>),
    /// A person saved the file meanwhile: every command decides again.
    Overtaken,
    Failed(Arc<str>),
}

/// Versions that wait to be written together, with the lock held.
pub(super) struct Batch {
    pub(super) locked: LockedFolder,
    /// The file on disk.
    pub(super) on_disk: CurrentFile,
    /// The version of the last command.
    newest: Option<Newest>,
    outcome: Arc<OnceLock<Outcome>>,
}

struct Newest {
    bytes: Vec<u8>,
    revision: u64,
    spans: Vec<Span>,
    log: Option<String>,
    commands: usize,
}

/// A part of the file on disk, and the part of the newest version that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    old: Range<usize>,
    new: Range<usize>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("commands", &self.commands()).finish_non_exhaustive()
    }
}

impl WriteQueue {
    /// Waits for the commands before this one.
    pub(super) fn enter(&self) -> Turn<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        Turn { queue: self, batch }
    }
}

impl Turn<'_> {
    /// Whether this command has to write: none waits that would, or the batch is full.
    pub(super) fn must_write(&self) -> bool {
        let is_full = self.batch.as_ref().is_some_and(Batch::is_full);
        is_full || self.queue.waiting.load(Ordering::SeqCst) == 0
    }

    /// Writes what is waiting, for all its commands, and releases the lock.
    pub(super) fn write(&mut self) -> Result<Option<Notice>, StoreError> {
        let Some(batch) = self.batch.take() else { return Ok(None) };
        let outcome = Arc::clone(&batch.outcome);
        let written = batch.commit();
        let _ = outcome.set(match &written {
            Ok(notice) => Outcome::Written(notice.clone()),
            Err(StoreError::Overtaken { .. }) => Outcome::Overtaken,
            Err(error) => Outcome::Failed(error.to_string().into()),
        });
        self.queue.written.notify_all();
        written
    }

    /// Waits until another command has written this one's version too.
    pub(super) fn wait(mut self, path: &Path) -> Result<Option<Notice>, StoreError> {
        let Some(outcome) = self.batch.as_ref().map(|batch| Arc::clone(&batch.outcome)) else {
            return Ok(None);
        };
        loop {
            match outcome.get() {
                Some(Outcome::Written(notice)) => return Ok(notice.clone()),
                Some(Outcome::Overtaken) => return Err(StoreError::Overtaken { path: path.to_owned() }),
                Some(Outcome::Failed(message)) => {
                    let error = std::io::Error::other(message.to_string());
                    return Err(StoreError::io("write", path)(error));
                }
                None => {}
            }
            let waited = self.queue.written.wait_timeout(self.batch, CHECK_INTERVAL);
            self.batch = waited.unwrap_or_else(PoisonError::into_inner).0;
            // The one that was to write may have panicked.
            if outcome.get().is_none() && self.must_write() {
                return self.write();
            }
        }
    }
}

impl Batch {
    pub(super) fn new(locked: LockedFolder, on_disk: CurrentFile) -> Self {
        Self { locked, on_disk, newest: None, outcome: Arc::default() }
    }

    /// The version that the next command decides on, and its revision.
    pub(super) fn newest(&self) -> (&[u8], u64) {
        match &self.newest {
            Some(newest) => (&newest.bytes, newest.revision),
            None => (&self.on_disk.bytes, self.on_disk.revision),
        }
    }

    /// How many commands wait to be written.
    pub(super) fn commands(&self) -> usize {
        self.newest.as_ref().map_or(0, |newest| newest.commands)
    }

    fn is_full(&self) -> bool {
        self.newest.as_ref().is_some_and(|newest| {
            newest.commands >= COMMANDS_MAX || newest.log.as_ref().is_some_and(|log| log.len() > LOG_MAX)
        })
    }

    /// Adds the version of a command, made from the newest one by these edits.
    pub(super) fn add(&mut self, bytes: Vec<u8>, revision: u64, edits: &[Edit], log: Option<String>) {
        let newest = self.newest.take();
        let (spans, before, commands) =
            newest.map_or_else(Default::default, |newest| (newest.spans, newest.log, newest.commands));
        let log = match (before, log) {
            (Some(before), Some(log)) => Some(format!("{before}\n\n{log}")),
            (before, log) => before.or(log),
        };
        let spans = combined(spans, edits);
        self.newest = Some(Newest { bytes, revision, spans, log, commands: commands + 1 });
    }

    fn commit(mut self) -> Result<Option<Notice>, StoreError> {
        let Some(newest) = self.newest else { return Ok(None) };
        let edit = |span: &Span| {
            let text = str::from_utf8(newest.bytes.get(span.new.clone())?).ok()?;
            Some(Edit { range: span.old.clone(), text: text.to_owned() })
        };
        // Without edits a copy of the version is kept instead.
        let edits: Edits = newest.spans.iter().map(edit).collect::<Option<_>>().unwrap_or_default();
        self.locked.commit(&NewVersion {
            before: self.on_disk.fingerprint,
            on_disk: &self.on_disk.bytes,
            after: &newest.bytes,
            edits: &edits,
            revision_before: self.on_disk.revision,
            revision: newest.revision,
            scannable: true,
            log: newest.log,
        })
    }
}

/// The spans of two steps: those that lead to a version, and the edits of that version, which do not overlap.
fn combined(mut spans: Vec<Span>, edits: &[Edit]) -> Vec<Span> {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    // From the end, so that the places of the others do not move.
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.range.start));
    for edit in edits {
        let (start, end) = (edit.range.start, edit.range.end);
        let first = spans.partition_point(|span| span.new.end < start);
        let after = spans.partition_point(|span| span.new.start <= end);
        // Where a place of the newest version is in the file on disk, if no span changes it.
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
