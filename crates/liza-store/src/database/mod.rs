//! Facts about a database that need no client: its errors, its report, its requests, its clock.

mod error;
mod report;
mod request;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};

pub use error::{DatabaseError, DatabaseReason};
pub use report::{DatabaseReport, stores_all_text};
pub(crate) use request::random_generation;
pub use request::{KEPT, RequestId};

/// What a machine has to do about the alarms that it sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RaisedAlarms {
    /// Raise these; another machine has raised the others.
    New(BTreeSet<String>),
    /// Look again: another machine has seen a newer blackboard.
    Outdated,
}

/// How many seconds the database's clock is ahead of this machine's, as this process last saw it: one process works on one
/// project.
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// How many seconds the time of the project is ahead of this machine's clock: with a database, time is the database's. Known
/// after the first read; 0 for a file.
pub fn clock_difference() -> i64 {
    AHEAD.load(Ordering::Relaxed)
}

/// Notes how many seconds the database's clock is ahead.
pub fn note_clock_difference(seconds: i64) {
    AHEAD.store(seconds, Ordering::Relaxed);
}
