//! The input and the output of the store for a command, the same for both back ends.

use std::io;
use std::time::Duration;

use liza_core::model::{Actor, Effect, Refusal, Revision, StopFile, StopFiles, Timestamp};
use liza_core::rules::misspelled::MisspelledKey;

use crate::file::Notice;

#[must_use = "effects still have to run"]
#[derive(Debug)]
pub struct Outcome<R> {
    /// A refusal comes with a write, too.
    pub answer: Result<R, Refusal>,
    pub written: Written,
}

#[must_use = "effects still have to run"]
#[derive(Debug)]
pub struct Written {
    pub revision: Revision,
    pub changed: bool,
    /// Work for the caller outside the blackboard.
    pub effects: Vec<Effect>,
    /// Repairs before the write, and steps that could not be completed.
    pub notices: Vec<Notice>,
    /// The time until it got the lock.
    pub waited: Duration,
}

impl Written {
    pub fn new(revision: Revision, changed: bool, effects: Vec<Effect>, notices: Vec<Notice>) -> Self {
        Self { revision, changed, effects, notices, waited: Duration::ZERO }
    }
}

#[derive(Debug, Clone)]
pub struct Call<C> {
    pub actor: Actor,
    /// The revision that the sender had read.
    pub if_revision: Option<Revision>,
    pub command: C,
}

/// Facts from outside the blackboard for a command. Asked for once the lock is held, so that none is outdated
/// by the wait. Everything here must be fast.
pub trait Host {
    fn now(&self) -> Timestamp;
    fn stop_files(&self) -> StopFiles;
    /// Creates stop files that must exist before a change is written.
    fn create_stop_files(&self, files: &[StopFile], now: Timestamp) -> io::Result<()>;
    /// Masks the secrets in a text for the log.
    fn masked(&self, text: &str) -> String;
}

#[derive(Debug)]
pub struct Edited {
    pub revision: Revision,
    /// Notices to report: the write lost the form of the file, or its log entry is delayed.
    pub notices: Vec<Notice>,
    /// The keys that the edit added and that are probably misspelled.
    pub misspelled: Vec<MisspelledKey>,
}
