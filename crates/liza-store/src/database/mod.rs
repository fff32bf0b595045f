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

/// The result of recording the alarms that a machine sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RaisedAlarms {
    /// Raise these; another machine has raised the others.
    New(BTreeSet<String>),
    /// Look again: another machine has seen a newer blackboard.
    Outdated,
}

/// The seconds by which the database's clock was last ahead of ours: one process works on one project.
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// The seconds by which the project's time is ahead of this machine's; known after a read, 0 for a file.
pub fn clock_difference() -> i64 {
    AHEAD.load(Ordering::Relaxed)
}

pub fn note_clock_difference(seconds: i64) {
    AHEAD.store(seconds, Ordering::Relaxed);
}
