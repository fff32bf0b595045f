//! Asks a database for the facts that `doctor` reports: version, rights, speed, clock, durability.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use liza_store::{DatabaseReport, StoreError};

use crate::load::SERVER_MS;
use crate::store::DatabaseStore;

/// The settings that decide whether a confirmed write can be lost.
const DURABILITY: &str = "'fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names'";

/// True if this user may change every table.
const MAY_WRITE: &str = "(SELECT bool_and(has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT') \
     AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')) \
     FROM pg_class WHERE relnamespace = 'liza'::regnamespace AND relkind = 'r' AND relname <> 'meta')";

pub(crate) fn report(store: &DatabaseStore) -> Result<DatabaseReport, StoreError> {
    let started = Instant::now();
    store.query_rows(|_| "SELECT 1".to_owned())?;
    let first = started.elapsed();
    let started = Instant::now();
    let results = store.query_rows(|_| {
        format!(
            "SELECT version(), {SERVER_MS}, pg_is_in_recovery(), {MAY_WRITE}, \
             current_setting('transaction_read_only') = 'on', current_setting('server_encoding'); \
             SELECT max(version) FROM liza.meta; \
             SELECT name, setting FROM pg_settings WHERE name IN ({DURABILITY}); \
             SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        )
    })?;
    let round_trip = started.elapsed().min(first);
    let here = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
    let here = i64::try_from(here).unwrap_or(i64::MAX);
    let row = |at: usize| results.get(at).and_then(|set| set.first());
    let main = row(0).ok_or_else(|| store.no_project())?;
    let settings =
        results.get(2).map(|set| set.iter().map(|row| (row.text(0).to_owned(), row.text(1).to_owned())));
    Ok(DatabaseReport {
        version: main.text(0).to_owned(),
        tables: row(1).map_or(0, |row| row.number(0)),
        round_trip,
        clock_difference: (main.number(1) - here) / 1000,
        may_write: main.is_true(3),
        is_standby: main.is_true(2),
        is_read_only: main.is_true(4),
        encoding: main.text(5).to_owned(),
        durability: settings.map(Iterator::collect).unwrap_or_default(),
        encrypted: row(3).map(|row| row.is_true(0)),
    })
}
