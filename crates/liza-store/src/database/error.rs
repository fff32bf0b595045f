//! Errors of a database: the reason, PostgreSQL's message, and a hint for a person.

use std::fmt::Display;

/// Unless the outcome is unknown, nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the database {address} {reason}{}", detail_of(.detail))]
pub struct DatabaseError {
    pub address: String,
    pub reason: DatabaseReason,
    /// The message of the database or the system.
    pub detail: String,
}

impl DatabaseError {
    pub fn new(address: &dyn Display, reason: DatabaseReason, detail: impl Into<String>) -> Self {
        Self { address: address.to_string(), reason, detail: detail.into() }
    }
}

fn detail_of(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(" ({detail})") }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum DatabaseReason {
    /// No connection can be made, or it broke before anything was committed.
    #[strum(to_string = "cannot be reached")]
    Unreachable,
    /// The connection broke while a change was being committed.
    #[strum(to_string = "did not answer whether the change was written")]
    UnknownOutcome,
    #[strum(to_string = "takes no writes now")]
    ReadOnly,
    /// Its disk or its memory is full.
    #[strum(to_string = "has no space left")]
    Full,
    /// Another process holds the lock, or a statement took too long.
    #[strum(to_string = "is too slow, or another process holds the lock")]
    Slow,
    /// The user or the password is wrong, or the user lacks a right.
    #[strum(to_string = "refuses this user")]
    NotAllowed,
    /// The server, or an impostor, has a certificate that this machine doesn't trust.
    #[strum(to_string = "has a certificate that this machine does not trust")]
    UntrustedCertificate,
    /// It offers no TLS, and nothing is sent to a port without.
    #[strum(to_string = "offers no TLS")]
    NoTls,
    /// It asks for the password in clear text or with md5, or for none, on a TCP address: anyone could.
    #[strum(to_string = "does not prove that it knows the password, so it gets none")]
    Unproven,
    #[strum(to_string = "has no such blackboard")]
    NoProject,
    #[strum(to_string = "already has a blackboard of that name")]
    ProjectExists,
    #[strum(to_string = "was set up by a newer liza")]
    NewerSchema,
    /// It cannot store every letter.
    #[strum(to_string = "does not store text as UTF-8")]
    Encoding,
    /// The ID of a request was used for another command.
    #[strum(to_string = "has this request ID from another command")]
    RequestReused,
    #[strum(to_string = "has already carried out this request")]
    RequestRepeated,
    /// The ID of a request is too old to know whether it was carried out.
    #[strum(to_string = "no longer has a record of requests this old")]
    RequestTooOld,
    #[strum(to_string = "cannot be used")]
    WrongAddress,
    #[strum(to_string = "reports an error")]
    Other,
}

impl DatabaseReason {
    /// True if it may go away by itself.
    pub fn is_passing(self) -> bool {
        match self {
            Self::Unreachable | Self::UnknownOutcome | Self::ReadOnly | Self::Full | Self::Slow => true,
            Self::NotAllowed
            | Self::UntrustedCertificate
            | Self::NoTls
            | Self::Unproven
            | Self::NoProject
            | Self::ProjectExists
            | Self::NewerSchema
            | Self::Encoding
            | Self::RequestReused
            | Self::RequestRepeated
            | Self::RequestTooOld
            | Self::WrongAddress
            | Self::Other => false,
        }
    }

    pub fn hint(self) -> &'static str {
        match self {
            Self::Unreachable => "check that it runs and that this machine can reach it: liza doctor",
            Self::UnknownOutcome => "once it answers again, check whether the change is there: liza log",
            Self::ReadOnly => {
                "a standby server, or a failover: wait, or name the primary server in .liza/store.yaml"
            }
            Self::Full => "free space on the server",
            Self::Slow => "try again; to measure the connection: liza doctor",
            Self::NotAllowed => "set LIZA_STORE_URL or PGPASSFILE; the user needs rights on the schema liza",
            Self::UntrustedCertificate => {
                "name the file of the authority that signed it in SSL_CERT_FILE; for a server on this machine, use its Unix socket: \
                 postgres:///DATABASE?host=/run/postgresql"
            }
            Self::NoTls => {
                "turn TLS on in the server; for one on this machine, use its Unix socket: postgres:///DATABASE?host=/run/postgresql; \
                 in a network that you trust: ?sslmode=disable in the address and in LIZA_STORE_URL"
            }
            Self::Unproven => {
                "let it use SCRAM: password_encryption = 'scram-sha-256', then a new password for the user, and scram-sha-256 \
                 in place of trust, password or md5 in pg_hba.conf; or use its Unix socket: postgres:///DATABASE?host=/run/postgresql"
            }
            Self::NoProject => {
                "create one: liza init --store ADDRESS; use an existing one: liza join ADDRESS --project NAME"
            }
            Self::ProjectExists => {
                "use it: liza join ADDRESS; create another one: liza init --store ADDRESS --project NAME"
            }
            Self::NewerSchema => "update liza on this machine",
            Self::Encoding => "use another one: CREATE DATABASE NAME ENCODING 'UTF8' TEMPLATE template0",
            Self::RequestReused => "use a new ID for each command",
            Self::RequestRepeated => "nothing is left to do",
            Self::RequestTooOld => "look at the blackboard, then send a new request",
            Self::WrongAddress => "correct .liza/store.yaml or LIZA_STORE_URL",
            Self::Other => "liza doctor",
        }
    }
}
