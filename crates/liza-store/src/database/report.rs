//! What `doctor` reports about a database: version, rights, speed, clock, and whether it keeps what it has confirmed.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::DatabaseStore;
use super::create::stores_all_text;
use super::load::SERVER_MS;
use crate::error::StoreError;

/// What is known of a database.
#[derive(Debug, Clone)]
pub struct DatabaseReport {
    /// Its version, as it says.
    pub version: String,
    /// The version of the tables.
    pub tables: i64,
    /// How long a round trip takes.
    pub round_trip: Duration,
    /// How many seconds its clock is ahead of this machine's.
    pub clock_difference: i64,
    /// Whether this user may write.
    pub may_write: bool,
    /// Whether it is a standby server, which takes no writes.
    pub is_standby: bool,
    /// Whether its settings refuse all writes.
    pub is_read_only: bool,
    /// How it stores letters.
    pub encoding: String,
    /// The settings that decide whether a confirmed write can be lost, with their values.
    pub durability: Vec<(String, String)>,
    /// Whether the connection is encrypted; none if the server does not say.
    pub encrypted: Option<bool>,
}

/// The settings that decide whether a confirmed write can be lost.
const DURABILITY: &str = "'fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names'";

/// Whether this user may change every table.
const MAY_WRITE: &str = "(SELECT bool_and(has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT') \
     AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')) \
     FROM pg_class WHERE relnamespace = 'liza'::regnamespace AND relkind = 'r' AND relname <> 'meta')";

impl DatabaseReport {
    /// Whether it can store every text.
    pub fn stores_all_text(&self) -> bool {
        stores_all_text(&self.encoding)
    }

    /// Why a write that was confirmed could be lost by a crash of the server; none if it could not.
    pub fn durability_risk(&self) -> Option<String> {
        let is_off = |name: &str| self.durability.iter().any(|(key, value)| key == name && value == "off");
        let off = ["fsync", "full_page_writes", "synchronous_commit"].into_iter().find(|name| is_off(name));
        off.map(|name| format!("{name} is off"))
    }
}

impl DatabaseStore {
    /// What `doctor` has to know.
    pub(crate) fn report(&self) -> Result<DatabaseReport, StoreError> {
        let started = Instant::now();
        self.query_rows(|_| "SELECT 1".to_owned())?;
        let first = started.elapsed();
        let started = Instant::now();
        let results = self.query_rows(|_| {
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
        let main = row(0).ok_or_else(|| self.no_project())?;
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
}
