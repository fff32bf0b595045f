//! Commands of one process that wait for each other share one transaction.
//!
//! A command that finds others waiting leaves its statements; the last one sends them all and commits. Each command decides
//! for itself, under the lock on the project, and returns only after the commit. What the waiting commands need is read
//! together, in the round trip that takes the lock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::connection::Connection;
use super::load::{LoadedRows, Wanted};
use super::time::Clock;
use super::write::Statements;
use crate::database_error::DatabaseError;

/// How many commands share one transaction at most.
const COMMANDS_MAX: usize = 64;

/// How long a command waits before it checks whether the one that should have written is gone.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The commands of a process on one blackboard.
#[derive(Debug, Default)]
pub(super) struct Queue {
    batch: Mutex<Option<Batch>>,
    written: Condvar,
    waiting: AtomicUsize,
    /// What the waiting commands need.
    wants: Mutex<Vec<(u64, Wanted)>>,
    tickets: AtomicU64,
}

/// The turn of one command.
pub(super) struct Turn<'q> {
    queue: &'q Queue,
    pub(super) batch: MutexGuard<'q, Option<Batch>>,
}

/// How a shared transaction ended.
#[derive(Debug, Clone)]
pub(super) enum CommitOutcome {
    Committed,
    /// Nothing was written; each command decides again.
    RolledBack,
    /// Whether it was committed is not known.
    Unknown(DatabaseError),
    /// Nothing was written.
    Failed(DatabaseError),
}

/// An open transaction with the lock on the project.
pub(super) struct Batch {
    pub(super) connection: Connection,
    /// What was read, and what the commands have made of it.
    pub(super) loaded: LoadedRows,
    /// What was asked for.
    pub(super) wanted: Wanted,
    pub(super) clock: Clock,
    pub(super) statements: Statements,
    pub(super) commands: usize,
    outcome: Arc<OnceLock<CommitOutcome>>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("commands", &self.commands).finish_non_exhaustive()
    }
}

impl Queue {
    /// Waits for the commands before this one, which needs that.
    pub(super) fn enter(&self, wanted: &Wanted) -> Turn<'_> {
        let ticket = self.tickets.fetch_add(1, Ordering::SeqCst);
        self.wants.lock().unwrap_or_else(PoisonError::into_inner).push((ticket, wanted.clone()));
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.wants.lock().unwrap_or_else(PoisonError::into_inner).retain(|(known, _)| *known != ticket);
        Turn { queue: self, batch }
    }
}

impl Turn<'_> {
    /// What this command and those that wait need.
    pub(super) fn wanted(&self, own: Wanted) -> Wanted {
        let wants = self.queue.wants.lock().unwrap_or_else(PoisonError::into_inner);
        wants.iter().take(COMMANDS_MAX).fold(own, |all, (_, wanted)| all.and(wanted.clone()))
    }

    /// Whether this command has to commit: none waits that would, or the batch is full.
    pub(super) fn must_commit(&self) -> bool {
        let is_full = self.batch.as_ref().is_some_and(|batch| batch.commands >= COMMANDS_MAX);
        is_full || self.queue.waiting.load(Ordering::SeqCst) == 0
    }

    /// Ends the transaction for all its commands.
    pub(super) fn finish(&mut self, end: impl FnOnce(Batch) -> CommitOutcome) -> CommitOutcome {
        let Some(batch) = self.batch.take() else { return CommitOutcome::RolledBack };
        let shared = Arc::clone(&batch.outcome);
        let outcome = end(batch);
        let _ = shared.set(outcome.clone());
        self.queue.written.notify_all();
        outcome
    }

    /// Waits until another command has ended the transaction.
    pub(super) fn wait(mut self, end: impl FnOnce(Batch) -> CommitOutcome) -> CommitOutcome {
        let Some(outcome) = self.batch.as_ref().map(|batch| Arc::clone(&batch.outcome)) else {
            return CommitOutcome::RolledBack;
        };
        loop {
            if let Some(outcome) = outcome.get() {
                return outcome.clone();
            }
            let waited = self.queue.written.wait_timeout(self.batch, CHECK_INTERVAL);
            self.batch = waited.unwrap_or_else(PoisonError::into_inner).0;
            // The one that was to commit may have panicked.
            if outcome.get().is_none() && self.must_commit() {
                return self.finish(end);
            }
        }
    }
}

impl Batch {
    pub(super) fn new(
        connection: Connection,
        loaded: LoadedRows,
        wanted: Wanted,
        clock: Clock,
        statements: Statements,
    ) -> Self {
        Self { connection, loaded, wanted, clock, statements, commands: 0, outcome: Arc::default() }
    }
}
