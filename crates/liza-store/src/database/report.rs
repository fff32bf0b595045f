//! The facts that `doctor` reports about a database, and their consequences.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct DatabaseReport {
    pub version: String,
    pub tables: i64,
    pub round_trip: Duration,
    /// The seconds by which its clock is ahead of this machine's.
    pub clock_difference: i64,
    pub may_write: bool,
    pub is_standby: bool,
    /// Its settings refuse all writes.
    pub is_read_only: bool,
    pub encoding: String,
    /// The settings that decide whether a confirmed write can be lost.
    pub durability: Vec<(String, String)>,
    /// `None` if the server doesn't say.
    pub encrypted: Option<bool>,
}

impl DatabaseReport {
    pub fn stores_all_text(&self) -> bool {
        stores_all_text(&self.encoding)
    }

    /// The reason why a crash of the server could lose a confirmed write, if it could.
    pub fn durability_risk(&self) -> Option<String> {
        let is_off = |name: &str| self.durability.iter().any(|(key, value)| key == name && value == "off");
        let off = ["fsync", "full_page_writes", "synchronous_commit"].into_iter().find(|name| is_off(name));
        off.map(|name| format!("{name} is off"))
    }
}

pub fn stores_all_text(encoding: &str) -> bool {
    ["UTF8", "SQL_ASCII"].contains(&encoding)
}
