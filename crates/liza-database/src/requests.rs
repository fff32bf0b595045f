//! Finds out by its ID whether a request was carried out: one whose commit had no clear answer, or one that
//! is sent again. Asks under the project's lock: while the lost transaction holds it, nothing is known.

use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{ResultSet, quoted};
use crate::store::DatabaseStore;
use liza_store::{DatabaseError, DatabaseReason, RequestId, StoreError};

/// The first pause before a retry, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Asks until the database answers whether the request was committed.
pub(crate) fn was_committed(
    store: &DatabaseStore,
    request: &RequestId,
    deadline: Instant,
    lost: &DatabaseError,
) -> Result<bool, StoreError> {
    let mut pause = FIRST_PAUSE;
    loop {
        match find_under_lock(store, request) {
            Ok(found) => return Ok(found),
            Err(error) if error.reason.is_passing() => {
                if Instant::now() >= deadline {
                    return Err(store.error(DatabaseReason::UnknownOutcome, lost.detail.clone()).into());
                }
            }
            // A refusal would make the caller send the command again.
            Err(error) => {
                let detail = format!("{}; then: {}", lost.detail, error.detail);
                return Err(store.error(DatabaseReason::UnknownOutcome, detail).into());
            }
        }
        thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn find_under_lock(store: &DatabaseStore, request: &RequestId) -> Result<bool, DatabaseError> {
    let request = quoted(&request.to_string());
    let results = store.query_once(&|project| {
        format!(
            "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '10s'; \
             SELECT id FROM liza.projects WHERE id = {project} FOR UPDATE; \
             SELECT id FROM liza.requests WHERE project = {project} AND id = {request}; ROLLBACK"
        )
    })?;
    // The results are those of BEGIN, two settings, the lock, the request.
    Ok(results.get(4).and_then(ResultSet::first).is_some())
}

/// Refuses a request ID that was used before, or that is too old.
pub(crate) fn check_request(
    store: &DatabaseStore,
    id: &RequestId,
    fingerprint: &str,
) -> Result<(), StoreError> {
    let found = request_row(store, &id.to_string())?;
    let now = store.now()?;
    let reason = match found {
        Some((command, _, _)) if command != fingerprint => DatabaseReason::RequestReused,
        Some((_, revision, answer)) => {
            let detail = format!("revision {revision}, answer: {answer}");
            return Err(store.error(DatabaseReason::RequestRepeated, detail).into());
        }
        None if id.is_too_old(now) => DatabaseReason::RequestTooOld,
        None => return Ok(()),
    };
    Err(store.error(reason, String::new()).into())
}

/// The row of a request: its command, its revision and its answer.
fn request_row(store: &DatabaseStore, id: &str) -> Result<Option<(String, u64, String)>, StoreError> {
    let id = quoted(id);
    let results = store.query_rows(|project| {
        format!("SELECT command, revision, answer FROM liza.requests WHERE project = {project} AND id = {id}")
    })?;
    let row = results.first().and_then(ResultSet::first);
    Ok(row.map(|row| {
        let revision = u64::try_from(row.number(1)).unwrap_or(0);
        (row.text(0).to_owned(), revision, row.text(2).to_owned())
    }))
}
