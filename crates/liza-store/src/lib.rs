//! The only writer of the blackboard: knows no git and no agents, so nothing slow can run under its lock.

#![forbid(unsafe_code)]

mod document;
mod error;
mod file;
pub mod yaml;
pub use error::{Fault, StoreError};
pub use file::{HELD_ENV, Notice, Patience};
