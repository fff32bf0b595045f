//! The team: everything that works on a project without a person. The only caller of `Store::submit`.
//!
//! Prints nothing and parses no arguments; the rules are in `liza-core`.

#![forbid(unsafe_code)]

pub mod channel;
pub mod engine;
pub mod lifecycle;
pub mod observe;
pub mod project;
pub mod run;
pub mod session;
pub mod supervisor;
pub mod watch;
