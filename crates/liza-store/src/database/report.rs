//! The facts that `doctor` reports about a database, and what follows from them.

use std::time::Duration;

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
    pub encoding: String,
    /// The settings that decide whether a confirmed write can be lost, with their values.
    pub durability: Vec<(String, String)>,
    /// Whether the connection is encrypted; none if the server does not say.
    pub encrypted: Option<bool>,
}

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

/// Whether a database with that encoding can store every text.
pub fn stores_all_text(encoding: &str) -> bool {
    ["UTF8", "SQL_ASCII"].contains(&encoding)
}
