//! Turns the errors of PostgreSQL into ours: the reason, and what is safe to try again.

use std::error::Error;
use std::io;

use liza_store::{Address, AddressError, DatabaseError, DatabaseReason};
use postgres::error::{Severity, SqlState};

use crate::proof::Unproven;

pub(crate) fn wrong_address(address: &Address, error: &AddressError) -> DatabaseError {
    DatabaseError::new(address, DatabaseReason::WrongAddress, error.to_string())
}

pub(crate) fn fault_of(address: &Address, error: &postgres::Error) -> DatabaseError {
    let reason = reason_of(error);
    let detail = match error.as_db_error() {
        Some(answer) => answer.message().to_owned(),
        None => error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
    };
    DatabaseError::new(address, reason, detail)
}

fn reason_of(error: &postgres::Error) -> DatabaseReason {
    error.code().map_or_else(|| reason_of_connection(error), reason_of_code)
}

/// The reason for an error without a code: the connection is at fault.
fn reason_of_connection(error: &postgres::Error) -> DatabaseReason {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidCertificate(_)) = found_in(error) {
            return DatabaseReason::UntrustedCertificate;
        }
        // The client's own words, over TLS: the server asks for less than SCRAM, or binds it to nothing.
        if found_in::<Unproven>(error).is_some() || error.to_string() == "server did not use channel binding"
        {
            return DatabaseReason::Unproven;
        }
        // The client's own words.
        if error.to_string() == "server does not support TLS" {
            return DatabaseReason::NoTls;
        }
        // The client's own words when the server asks for a password and there is none.
        if error.to_string() == "password missing" {
            return DatabaseReason::NotAllowed;
        }
        cause = error.source();
    }
    DatabaseReason::Unreachable
}

/// An error of this kind, also inside an IO error, which doesn't name it as its source.
fn found_in<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.downcast_ref().or_else(|| inside?.downcast_ref())
}

/// True if the same transaction may succeed at once: others were in the way.
pub(crate) fn is_conflict(error: &postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code)
    })
}

/// True if statements that end with COMMIT may have been committed despite this error. A failed statement
/// skips the COMMIT, but an error that ends the connection may come after it.
pub(crate) fn may_be_committed(error: &postgres::Error) -> bool {
    let Some(answer) = error.as_db_error() else { return true };
    let class = answer.code().code().get(..2).unwrap_or_default();
    let is_last = matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic) | None);
    // Connections, shutdowns and cancellations, files of the server, internal errors.
    let is_unclear = ["08", "57", "58", "XX"].contains(&class);
    is_last || is_unclear || *answer.code() == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}

fn reason_of_code(code: &SqlState) -> DatabaseReason {
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
