//! Environment variables that several crates know.

/// The variable with an address that may have a password; its password is used for the same database.
pub const STORE_URL_ENV: &str = "LIZA_STORE_URL";
