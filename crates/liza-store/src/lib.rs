//! The only writer of the blackboard: knows no git and no agents, so nothing slow can run under its lock.
//!
//! [`Store`] is the main type. `docs/design/store.md` has the design and its reasons.

#![forbid(unsafe_code)]

mod archive;
pub mod backend;
mod call;
mod codec;
mod database;
mod disk;
mod document;
mod edit;
mod error;
mod file;
mod file_store;
mod log;
mod rows;
mod store;
pub mod yaml;

pub use backend::{Address, AddressError, STORE_URL_ENV, installed_client};
pub use call::{Call, Edited, Host, Outcome, Written};
pub use codec::settings_as_fields;
pub use database::{
    DatabaseError, DatabaseReason, DatabaseReport, RaisedAlarms, RequestId, clock_difference,
};
pub use disk::ProjectDisk;
pub use document::PathError;
pub use edit::{Conflicts, ValueSyntax, infer_base, task_range, three_way_merge};
pub use error::{FileFault, StoreError};
pub use file::{LOCK_HELD_ENV, Notice, Watch, kept_in_git};
pub use file_store::{misspelled_keys, read_state};
pub use log::LogRecord;
pub use store::{EditSession, Export, IncrementalReader, LogReader, Store};
