//! A blackboard in a database, as far as that needs no client: its address and settings, its errors, and what a client has
//! to offer.
//!
//! The client is a crate of its own, which the program installs. Without it, a project whose blackboard is in a database
//! cannot be opened, and the error says so.

mod address;
mod error;
mod report;
mod request;
mod settings;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use liza_core::model::{Revision, State, StopFile, StopFileTimes, Timestamp};

use crate::backend::{Backend, Job};
use crate::call::Written;
use crate::error::StoreError;
use crate::watch::Watch;

pub use address::{Address, AddressError, PASSWORD_FILE_ENV, STORE_URL_ENV};
pub use error::{DatabaseError, DatabaseReason};
pub use report::{DatabaseReport, stores_all_text};
pub(crate) use request::random_generation;
pub use request::{KEPT, RequestId};
pub use settings::{DatabaseSettings, settings_file};
pub(crate) use settings::{settings_of, write_settings};

/// What a machine has to do about the alarms that it sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RaisedAlarms {
    /// Raise these; another machine has raised the others.
    New(BTreeSet<String>),
    /// Look again: another machine has seen a newer blackboard.
    Outdated,
}

/// A blackboard that is not there yet.
#[derive(Debug, Clone, Copy)]
pub struct NewBoard<'b> {
    /// Its text.
    pub text: &'b str,
    /// The state that the text is.
    pub state: &'b State,
    /// The text of its first entry of the log.
    pub log: &'b str,
}

/// A client for databases.
pub trait DatabaseClient: Send + Sync {
    /// Checks the address of a database.
    fn check_address(&self, address: &str) -> Result<(), AddressError>;
    /// The blackboard with these settings. Does not connect yet.
    fn open(&self, root: &Path, settings: DatabaseSettings) -> Arc<dyn Backend>;
    /// Creates a blackboard.
    fn create(
        &self,
        root: &Path,
        settings: DatabaseSettings,
        board: NewBoard<'_>,
    ) -> Result<Arc<dyn Backend>, StoreError>;
    /// Finds the blackboard of that name, or the only one.
    fn find(&self, address: &Address, name: Option<&str>) -> Result<DatabaseSettings, StoreError>;
}

/// The client that the program has installed.
static CLIENT: OnceLock<&'static dyn DatabaseClient> = OnceLock::new();

/// Installs the client for databases; the first one stays.
pub fn install_client(client: &'static dyn DatabaseClient) {
    CLIENT.get_or_init(|| client);
}

fn client() -> Option<&'static dyn DatabaseClient> {
    CLIENT.get().copied()
}

/// The client for databases.
pub fn installed_client() -> Result<&'static dyn DatabaseClient, StoreError> {
    client().ok_or(StoreError::NoDatabaseClient)
}

/// The abilities of a blackboard that several machines share.
pub trait SharedBoard {
    /// The address of the database and the name of the blackboard in it.
    fn settings(&self) -> &DatabaseSettings;
    /// The facts for `doctor`.
    fn report(&self) -> Result<DatabaseReport, StoreError>;

    /// Renews the leases that a heartbeat asks for, without the lock; none if it needs the lock.
    fn renew(&self, job: &mut dyn Job) -> Result<Option<Written>, StoreError>;
    /// Refuses a request ID that was used before, or that is too old.
    fn check_request(&self, id: &RequestId, fingerprint: &str) -> Result<(), StoreError>;
    /// Whether a request was carried out: asks until the database answers, at the latest at the deadline.
    fn was_committed(
        &self,
        request: &RequestId,
        deadline: Instant,
        lost: &DatabaseError,
    ) -> Result<bool, StoreError>;
    /// How long a command keeps trying while the database cannot be used.
    fn retry_limit(&self) -> Duration;

    /// Reports changes to a watch until it is dropped.
    fn poll_for(&self, watch: &Watch);
    /// Since when each stop file of the project has been there.
    fn stop_files(&self) -> Result<StopFileTimes, StoreError>;
    /// Adds and removes stop files.
    fn change_stop_files(&self, add: &[StopFile], remove: &[StopFile]) -> Result<(), StoreError>;
    /// Records the alarms that are true on a blackboard of that revision at that time, and returns which are new.
    fn raise_alarms(
        &self,
        keys: &BTreeSet<String>,
        stays: &dyn Fn(&str) -> bool,
        seen: (Revision, Timestamp),
    ) -> Result<RaisedAlarms, StoreError>;
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
