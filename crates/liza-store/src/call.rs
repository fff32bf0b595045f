//! What a caller gives to the store with a command, and what it gets back; the same for both stores.

use std::io;
use std::time::Duration;

use liza_core::model::{Actor, Effect, Refusal, Revision, StopFile, StopFiles, Timestamp};
use liza_core::rules::misspelled::MisspelledKey;

use crate::file::Notice;

/// The outcome of a command.
#[must_use = "effects still have to run"]
#[derive(Debug)]
pub struct Outcome<R> {
    /// The reply, or why the command was refused although something was written.
    pub answer: Result<R, Refusal>,
    pub written: Written,
}

/// The write behind an outcome.
#[must_use = "effects still have to run"]
#[derive(Debug)]
pub struct Written {
    pub revision: Revision,
    pub changed: bool,
    /// What the caller has to do outside the blackboard.
    pub effects: Vec<Effect>,
    /// What was repaired before the write, or could not be completed.
    pub notices: Vec<Notice>,
    /// How long it took to get the lock.
    pub waited: Duration,
}

impl Written {
    pub fn new(revision: Revision, changed: bool, effects: Vec<Effect>, notices: Vec<Notice>) -> Self {
        Self { revision, changed, effects, notices, waited: Duration::ZERO }
    }
}

/// A command and who sends it.
#[derive(Debug, Clone)]
pub struct Call<C> {
    pub actor: Actor,
    /// The revision that the sender had read.
    pub if_revision: Option<Revision>,
    pub command: C,
}

/// What a command needs from outside the blackboard. It is asked once the lock is held, so that nothing is decided on
/// what was true before the wait. Everything here must be quick.
pub trait Host {
    fn now(&self) -> Timestamp;
    /// Which stop files are present.
    fn stop_files(&self) -> StopFiles;
    /// Creates stop files that must exist before a change is written.
    fn create_stop_files(&self, files: &[StopFile], now: Timestamp) -> io::Result<()>;
    /// A text for the log without the secrets in it.
    fn masked(&self, text: &str) -> String;
}

/// The outcome of an edit.
#[derive(Debug)]
pub struct Edited {
    pub revision: Revision,
    /// What the caller should report: the write lost the form of the file, or its log entry is delayed.
    pub notices: Vec<Notice>,
    /// The keys that the edit added and that are probably misspelled.
    pub misspelled: Vec<MisspelledKey>,
}
