//! Commands of one process that wait for each other share one write.
//!
//! A command that finds others waiting leaves its change in the transaction; the last one commits it. Each
//! still decides for itself, under the lock, and returns only after its change is durable. A database loads
//! the parts for all waiting commands at once.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::backend::{LoadScope, Setback, Transaction};
use crate::file::Notice;

/// The most commands that share one write.
const COMMANDS_MAX: usize = 64;

/// The pause before a waiting command checks whether the writer is gone.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(super) struct Queue {
    batch: Mutex<Option<Batch>>,
    written: Condvar,
    waiting: AtomicUsize,
    scopes: Mutex<Vec<(u64, LoadScope)>>,
    tickets: AtomicU64,
}

pub(super) struct Turn<'q> {
    queue: &'q Queue,
    pub(super) batch: MutexGuard<'q, Option<Batch>>,
}

pub(super) type WriteOutcome = Result<Option<Notice>, Setback>;

pub(super) struct Batch {
    pub(super) transaction: Box<dyn Transaction>,
    pub(super) scope: LoadScope,
    pub(super) commands: usize,
    path: PathBuf,
    outcome: Arc<OnceLock<WriteOutcome>>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("commands", &self.commands).finish_non_exhaustive()
    }
}

impl Queue {
    /// Waits for the commands before this one, which needs `scope`.
    pub(super) fn enter(&self, scope: &LoadScope) -> Turn<'_> {
        let ticket = self.tickets.fetch_add(1, Ordering::SeqCst);
        self.scopes().push((ticket, scope.clone()));
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.scopes().retain(|(known, _)| *known != ticket);
        Turn { queue: self, batch }
    }

    fn scopes(&self) -> MutexGuard<'_, Vec<(u64, LoadScope)>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// The parts that this command and the waiting ones need.
    pub(super) fn scope(&self, own: LoadScope) -> LoadScope {
        let scopes = self.queue.scopes();
        scopes.iter().take(COMMANDS_MAX).fold(own, |all, (_, scope)| all.and(scope.clone()))
    }

    pub(super) fn commands(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.commands)
    }

    /// True if this command has to write: none waits that would, or the batch is full.
    pub(super) fn must_write(&self) -> bool {
        let is_full = |batch: &Batch| batch.commands >= COMMANDS_MAX || batch.transaction.is_full();
        self.batch.as_ref().is_some_and(is_full) || self.queue.waiting.load(Ordering::SeqCst) == 0
    }

    /// Ends the transaction for all its commands, and releases the lock.
    pub(super) fn write(&mut self) -> WriteOutcome {
        let Some(Batch { transaction, commands, path, outcome, .. }) = self.batch.take() else {
            return Err(Setback::Again);
        };
        if commands == 0 {
            transaction.abandon();
            return Ok(None);
        }
        let written = transaction.commit();
        let _ = outcome.set(copied(&written, &path));
        self.queue.written.notify_all();
        written
    }

    /// Waits until another command has written this one's change too.
    pub(super) fn wait(mut self) -> WriteOutcome {
        let Some((outcome, path)) =
            self.batch.as_ref().map(|batch| (Arc::clone(&batch.outcome), batch.path.clone()))
        else {
            return Err(Setback::Again);
        };
        loop {
            if let Some(outcome) = outcome.get() {
                return copied(outcome, &path);
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
    pub(super) fn new(transaction: Box<dyn Transaction>, scope: LoadScope, path: PathBuf) -> Self {
        Self { transaction, scope, commands: 0, path, outcome: Arc::default() }
    }
}

/// The outcome for another command of the same write.
fn copied(outcome: &WriteOutcome, path: &Path) -> WriteOutcome {
    match outcome {
        Ok(notice) => Ok(notice.clone()),
        Err(Setback::Again) => Err(Setback::Again),
        Err(Setback::Unknown(error)) => Err(Setback::Unknown(error.clone())),
        Err(Setback::Failed(error)) => Err(Setback::Failed(error.copied("write", path))),
    }
}
