//! The tables and their migrations. A database with tables of a newer program is refused. Every table has the
//! project as the first part of its key.

use crate::connection::Connection;
use crate::fault::fault_of;
use liza_store::Address;
use liza_store::{DatabaseError, DatabaseReason};

/// The migrations in order; the version of the tables is the number applied.
const MIGRATIONS: [&str; 2] = [TABLES, ALARMS];

const TABLES: &str = "
CREATE TABLE liza.projects (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    -- The number of the last write.
    revision bigint NOT NULL,
    -- The write that last removed tasks or changed their order.
    layout bigint NOT NULL,
    -- The latest time that a write has seen, in milliseconds; it never decreases.
    clock_ms bigint NOT NULL,
    -- What is added to the server's clock, so that time does not go back when the clock was set back.
    clock_offset_ms bigint NOT NULL DEFAULT 0,
    -- Until when no lease counts as expired, in seconds: after a failover, or after the clock was set back.
    hold_until bigint NOT NULL DEFAULT 0,
    -- The server and its timeline at the last write.
    server text NOT NULL
);
CREATE TABLE liza.sections (
    project bigint NOT NULL REFERENCES liza.projects ON DELETE CASCADE,
    name text NOT NULL,
    position bigint NOT NULL,
    text text NOT NULL,
    revision bigint NOT NULL,
    PRIMARY KEY (project, name)
);
CREATE TABLE liza.entries (
    project bigint NOT NULL REFERENCES liza.projects ON DELETE CASCADE,
    section text NOT NULL,
    key text NOT NULL,
    position bigint NOT NULL,
    text text NOT NULL,
    revision bigint NOT NULL,
    PRIMARY KEY (project, section, key)
);
CREATE TABLE liza.tasks (
    project bigint NOT NULL REFERENCES liza.projects ON DELETE CASCADE,
    id text NOT NULL,
    position bigint NOT NULL,
    status text NOT NULL,
    holder text NOT NULL,
    summary text NOT NULL,
    text text NOT NULL,
    revision bigint NOT NULL,
    PRIMARY KEY (project, id)
);
-- Renewed outside of the lock on the project.
CREATE TABLE liza.heartbeats (
    project bigint NOT NULL REFERENCES liza.projects ON DELETE CASCADE,
    agent text NOT NULL,
    generation bigint NOT NULL,
    lease_expires bigint NOT NULL,
    heartbeat bigint NOT NULL,
    PRIMARY KEY (project, agent)
);
CREATE TABLE liza.log (
    project bigint NOT NULL REFERENCES liza.projects ON DELETE CASCADE,
    revision bigint NOT NULL,
    number int NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (project, revision, number)
);
CREATE TABLE liza.requests (
    project bigint NOT NULL REFERENCES liza.projects ON DELETE CASCADE,
    id text NOT NULL,
    command text NOT NULL,
    revision bigint NOT NULL,
    answer text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (project, id)
);
CREATE TABLE liza.archive (
    project bigint NOT NULL REFERENCES liza.projects ON DELETE CASCADE,
    name text NOT NULL,
    text text NOT NULL,
    revision bigint NOT NULL,
    PRIMARY KEY (project, name)
);
CREATE TABLE liza.stop_files (
    project bigint NOT NULL REFERENCES liza.projects ON DELETE CASCADE,
    name text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (project, name)
);
CREATE TABLE liza.alarms (
    project bigint NOT NULL REFERENCES liza.projects ON DELETE CASCADE,
    key text NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (project, key)
);
";

/// The raised alarms that are still true, one line each, with their revision. The old table was never used.
const ALARMS: &str = "
DROP TABLE liza.alarms;
CREATE TABLE liza.alarms (
    project bigint PRIMARY KEY REFERENCES liza.projects ON DELETE CASCADE,
    revision bigint NOT NULL,
    at bigint NOT NULL,
    keys text NOT NULL
);
";

pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// The number of attempts while other machines do the same.
const ATTEMPTS: usize = 5;

/// Creates the tables if there are none, and migrates those of an older program.
pub(crate) fn prepare(connection: &mut Connection, address: &Address) -> Result<(), DatabaseError> {
    for _ in 1..ATTEMPTS {
        match try_prepare(connection, address) {
            // The error of two programs that create the same name at once.
            Err(error) if error.reason == DatabaseReason::Other => connection.roll_back(),
            result => return result,
        }
    }
    try_prepare(connection, address)
}

fn try_prepare(connection: &mut Connection, address: &Address) -> Result<(), DatabaseError> {
    let failed = |error: postgres::Error| fault_of(address, &error);
    connection.run("CREATE SCHEMA IF NOT EXISTS liza; CREATE TABLE IF NOT EXISTS liza.meta (version bigint NOT NULL)").map_err(failed)?;
    let found = connection
        .begin("BEGIN; LOCK TABLE liza.meta; SELECT coalesce(max(version), 0) FROM liza.meta")
        .map_err(failed)?;
    let version = found.last().and_then(|rows| rows.first()).map_or(0, |row| row.number(0));
    check_version(address, version)?;
    let applied = usize::try_from(version).unwrap_or(0);
    let missing = MIGRATIONS.get(applied..).unwrap_or_default().concat();
    let sql = format!("{missing}; DELETE FROM liza.meta; INSERT INTO liza.meta VALUES ({VERSION}); COMMIT");
    connection.end(&sql).map_err(failed)?;
    Ok(())
}

pub(crate) fn check_version(address: &Address, version: i64) -> Result<(), DatabaseError> {
    if version <= VERSION {
        return Ok(());
    }
    let detail = format!("tables version {version}; this program supports {VERSION}");
    Err(DatabaseError::new(address, DatabaseReason::NewerSchema, detail))
}
