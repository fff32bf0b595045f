//! Abilities that only a blackboard in a database has.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use liza_core::model::{Revision, StopFile, StopFileTimes, Timestamp};

use super::{AcceptedSettings, DatabaseSettings, Job};
use crate::call::Written;
use crate::database::{DatabaseError, DatabaseReport, RaisedAlarms, RequestId};
use crate::error::StoreError;
use crate::file::Watch;

pub trait SharedBoard {
    fn settings(&self) -> &DatabaseSettings;
    /// The settings that the person of this machine accepted.
    fn accepted(&self) -> &AcceptedSettings;
    /// The facts for `doctor`.
    fn report(&self) -> Result<DatabaseReport, StoreError>;

    /// Renews the leases that a heartbeat asks for, without the lock; `None` if it needs the lock.
    fn renew(&self, job: &mut dyn Job) -> Result<Option<Written>, StoreError>;
    /// Refuses a request ID that was used before, or that is too old.
    fn check_request(&self, id: &RequestId, fingerprint: &str) -> Result<(), StoreError>;
    /// Asks until the deadline whether a request was carried out.
    fn was_committed(
        &self,
        request: &RequestId,
        deadline: Instant,
        lost: &DatabaseError,
    ) -> Result<bool, StoreError>;
    /// The longest time that a command keeps trying while the database cannot be used.
    fn retry_limit(&self) -> Duration;

    /// Reports changes to a watch until it is dropped.
    fn poll_for(&self, watch: &Watch);
    /// The start time of each stop file.
    fn stop_files(&self) -> Result<StopFileTimes, StoreError>;
    fn change_stop_files(&self, add: &[StopFile], remove: &[StopFile]) -> Result<(), StoreError>;
    /// Records the alarms that are true on that revision at that time; returns the new ones.
    fn raise_alarms(
        &self,
        keys: &BTreeSet<String>,
        stays: &dyn Fn(&str) -> bool,
        seen: (Revision, Timestamp),
    ) -> Result<RaisedAlarms, StoreError>;
}
