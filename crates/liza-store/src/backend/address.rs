//! The address of a database. Nothing here shows a password: an address that has one is refused, and messages
//! quote no part of a wrong address.

use std::fmt;
use std::str::FromStr;

use super::client::client;

pub use liza_ids::STORE_URL_ENV;

/// The variable that names a file of passwords, in PostgreSQL's own format.
pub const PASSWORD_FILE_ENV: &str = "PGPASSFILE";

/// Never has a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(
        "not the address of a PostgreSQL database: {reason}; expected postgres://USER@HOST:PORT/DATABASE"
    )]
    Invalid { reason: String },
    #[error(
        "the address has a password, which others could read; leave it out, and set {STORE_URL_ENV} or {PASSWORD_FILE_ENV}"
    )]
    HasPassword,
    #[error("{STORE_URL_ENV} is for another host, user or database than the address of this project")]
    OtherDatabase,
    #[error("{STORE_URL_ENV} is not the address of a PostgreSQL database")]
    InvalidVariable,
}

impl FromStr for Address {
    type Err = AddressError;

    /// The installed client checks it, since it knows the options. Without a client, no address can be used.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        client().map_or(Ok(()), |client| client.check_address(text))?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Address {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
