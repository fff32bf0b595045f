//! The only writer of the blackboard: knows no git and no agents, so nothing slow can run under its lock.
//!
//! [`Store`] is the main type. `docs/design/store.md` has the design and its reasons.

#![forbid(unsafe_code)]

mod archive;
mod codec;
mod direct_edit;
mod document;
pub mod durable;
mod error;
mod file;
mod incremental;
mod log_reader;
mod modified_parts;
mod part_edit;
pub mod private;
mod store;
mod text_edit;
mod three_way_merge;
mod value_path;
mod watch;
pub mod yaml;

pub use codec::settings_as_fields;
pub use error::{FileFault, StoreError};
pub use file::{LOCK_HELD_ENV, Notice};
pub use incremental::IncrementalReader;
pub use log_reader::{LogReader, LogRecord};
pub use store::{Call, Host, Outcome, ProjectDisk, Store, Written, misspelled_keys, read_state};
pub use text_edit::{EditSession, Edited, ValueSyntax};
pub use three_way_merge::{Conflicts, infer_base, task_range, three_way_merge};
pub use value_path::PathError;
pub use watch::Watch;
