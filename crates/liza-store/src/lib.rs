//! The only writer of the blackboard: knows no git and no agents, so nothing slow can run under its lock.
//!
//! [`Store`] is the whole face of this crate. See `docs/design/store.md` for why it is built as it is.

#![forbid(unsafe_code)]

mod archive;
mod document;
mod edit;
mod error;
mod file;
mod path;
mod raw;
mod reader;
mod reading;
mod store;
mod watch;
mod wire;
pub mod yaml;

pub use edit::{Conflicts, guessed_base, merge_edit, task_range};
pub use error::{Fault, StoreError};
pub use file::{HELD_ENV, Notice, Patience};
pub use path::PathError;
pub use raw::{Guard, Typing};
pub use reader::Reader;
pub use reading::{Logbook, Logged, read_state};
pub use store::{Call, Disk, Host, Outcome, Store, Written};
pub use watch::Watch;
