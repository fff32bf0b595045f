//! The client for databases: the program installs it, since it is a separate crate.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use liza_core::model::State;

use super::{Address, AddressError, Backend, DatabaseSettings};
use crate::error::StoreError;

#[derive(Debug, Clone, Copy)]
pub struct NewBoard<'b> {
    pub text: &'b str,
    /// The state that the text decodes to.
    pub state: &'b State,
    /// The text of its first log entry.
    pub log: &'b str,
}

pub trait DatabaseClient: Send + Sync {
    fn check_address(&self, address: &str) -> Result<(), AddressError>;
    /// Does not connect yet.
    fn open(&self, root: &Path, settings: DatabaseSettings) -> Arc<dyn Backend>;
    fn create(
        &self,
        root: &Path,
        settings: DatabaseSettings,
        board: NewBoard<'_>,
    ) -> Result<Arc<dyn Backend>, StoreError>;
    /// Finds the blackboard of that name, or the only one.
    fn find(&self, address: &Address, name: Option<&str>) -> Result<DatabaseSettings, StoreError>;
    /// True if a client without a password gets in, at this address or another one of this machine.
    fn lets_anyone_in(&self, address: &Address) -> bool;
}

static CLIENT: OnceLock<&'static dyn DatabaseClient> = OnceLock::new();

/// The first one stays.
pub fn install_client(client: &'static dyn DatabaseClient) {
    CLIENT.get_or_init(|| client);
}

pub(super) fn client() -> Option<&'static dyn DatabaseClient> {
    CLIENT.get().copied()
}

pub fn installed_client() -> Result<&'static dyn DatabaseClient, StoreError> {
    client().ok_or(StoreError::NoDatabaseClient)
}
