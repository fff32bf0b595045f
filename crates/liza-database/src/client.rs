//! The client that the store uses for blackboards in a database.

use std::path::Path;
use std::sync::Arc;

use liza_store::backend::{Backend, DatabaseClient, DatabaseSettings, NewBoard};
use liza_store::{Address, AddressError, StoreError};

use crate::address;
use crate::connection::lets_anyone_in;
use crate::create;
use crate::store::DatabaseStore;

pub(crate) struct PostgreSql;

impl DatabaseClient for PostgreSql {
    fn check_address(&self, address: &str) -> Result<(), AddressError> {
        address::check(address)
    }

    fn open(&self, root: &Path, settings: DatabaseSettings) -> Arc<dyn Backend> {
        Arc::new(DatabaseStore::new(root, settings))
    }

    fn create(
        &self,
        root: &Path,
        settings: DatabaseSettings,
        board: NewBoard<'_>,
    ) -> Result<Arc<dyn Backend>, StoreError> {
        let store = DatabaseStore::new(root, settings);
        create::insert(&store, board)?;
        Ok(Arc::new(store))
    }

    fn find(&self, address: &Address, name: Option<&str>) -> Result<DatabaseSettings, StoreError> {
        create::find(address, name)
    }

    fn lets_anyone_in(&self, address: &Address) -> bool {
        lets_anyone_in(address)
    }
}
