//! The only writer of the blackboard: knows no git and no agents, so nothing slow can run under its lock.
//!
//! [`Store`] is the main type. `docs/design/store.md` has the design and its reasons.

#![forbid(unsafe_code)]

mod archive;
pub mod backend;
mod call;
mod checked_edit;
mod codec;
mod database;
mod direct_edit;
mod disk;
mod document;
mod error;
mod file;
mod file_store;
mod incremental;
mod log_reader;
mod modified_parts;
mod part_edit;
#[cfg(test)]
mod part_edit_tests;
mod related_tasks;
mod rows;
mod store;
mod text_edit;
mod three_way_merge;
mod value_edit;
mod value_path;
mod verify;
mod watch;
pub mod yaml;

pub use call::{Call, Host, Outcome, Written};
pub use codec::settings_as_fields;
pub use database::{
    Address, AddressError, DatabaseError, DatabaseReason, DatabaseReport, RaisedAlarms, RequestId,
    STORE_URL_ENV, clock_difference, installed_client,
};
pub use disk::ProjectDisk;
pub use error::{FileFault, StoreError};
pub use file::{LOCK_HELD_ENV, Notice};
pub use file_store::{misspelled_keys, read_state};
pub use log_reader::LogRecord;
pub use store::{EditSession, Export, IncrementalReader, LogReader, Store};
pub use text_edit::Edited;
pub use three_way_merge::{Conflicts, infer_base, task_range, three_way_merge};
pub use value_edit::ValueSyntax;
pub use value_path::PathError;
pub use watch::Watch;
