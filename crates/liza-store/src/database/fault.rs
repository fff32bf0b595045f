//! Turns the errors of PostgreSQL into ours: the reason, and what is safe to try again.

use std::error::Error as _;

use postgres::error::SqlState;

use super::address::{Address, AddressError};
use crate::database_error::{DatabaseError, DatabaseReason};

impl DatabaseError {
    pub(super) fn new(address: &Address, reason: DatabaseReason, detail: impl Into<String>) -> Self {
        Self { address: address.to_string(), reason, detail: detail.into() }
    }

    pub(super) fn wrong_address(address: &Address, error: &AddressError) -> Self {
        Self::new(address, DatabaseReason::WrongAddress, error.to_string())
    }

    pub(super) fn of(address: &Address, error: &postgres::Error) -> Self {
        let reason = match error.code() {
            Some(code) => reason_of(code),
            // Without a code the connection is at fault, or the answer.
            None => DatabaseReason::Unreachable,
        };
        let detail = match error.as_db_error() {
            Some(answer) => answer.message().to_owned(),
            None => error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
        };
        Self::new(address, reason, detail)
    }
}

/// Whether the same transaction may succeed at once: others were in the way.
pub(super) fn is_conflict(error: &postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code)
    })
}

fn reason_of(code: &SqlState) -> DatabaseReason {
    let class = code.code().get(..2).unwrap_or_default();
    if [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(code) {
        return DatabaseReason::Slow;
    }
    if [SqlState::READ_ONLY_SQL_TRANSACTION].contains(code) {
        return DatabaseReason::ReadOnly;
    }
    if [SqlState::TOO_MANY_CONNECTIONS].contains(code) {
        return DatabaseReason::Unreachable;
    }
    if [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::INVALID_CATALOG_NAME].contains(code) {
        return DatabaseReason::NotAllowed;
    }
    match class {
        // Connection exceptions; shutdowns, restarts and timeouts in a transaction.
        "08" | "57" | "25" => DatabaseReason::Unreachable,
        "28" => DatabaseReason::NotAllowed,
        "53" => DatabaseReason::Full,
        "40" => DatabaseReason::Slow,
        _ => DatabaseReason::Other,
    }
}
