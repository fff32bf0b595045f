//! Finds out whether a commit without a clear answer was written, by the ID of its request.
//!
//! Asks under the lock on the project: while the lost transaction still holds it, nothing is known.

use std::thread;
use std::time::{Duration, Instant};

use super::DatabaseStore;
use super::connection::{ResultSet, quoted};
use crate::database_error::{DatabaseError, DatabaseReason};
use crate::error::StoreError;

/// The first pause before a retry, and the longest one.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl DatabaseStore {
    /// Whether a request was carried out: asks until the database answers.
    ///
    /// # Errors
    /// [`DatabaseReason::UnknownOutcome`] if it does not answer until then.
    pub(super) fn was_committed(
        &self,
        request: &str,
        deadline: Instant,
        lost: &DatabaseError,
    ) -> Result<bool, StoreError> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.find_under_lock(request) {
                Ok(found) => return Ok(found),
                Err(error) if error.reason.is_passing() => {
                    if Instant::now() >= deadline {
                        return Err(self.error(DatabaseReason::UnknownOutcome, lost.detail.clone()).into());
                    }
                }
                // Refused as a command that was not carried out, it would be sent again.
                Err(error) => {
                    let detail = format!("{}; then: {}", lost.detail, error.detail);
                    return Err(self.error(DatabaseReason::UnknownOutcome, detail).into());
                }
            }
            thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn find_under_lock(&self, request: &str) -> Result<bool, DatabaseError> {
        let request = quoted(request);
        let results = self.query_once(&|project| {
            format!(
                "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '10s'; \
                 SELECT id FROM liza.projects WHERE id = {project} FOR UPDATE; \
                 SELECT id FROM liza.requests WHERE project = {project} AND id = {request}; ROLLBACK"
            )
        })?;
        // The results are those of BEGIN, two settings, the lock, the request.
        Ok(results.get(4).and_then(ResultSet::first).is_some())
    }
}
