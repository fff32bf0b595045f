//! Commands that read, and manual changes, through the real program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod archive;
mod boards;
mod diff;
mod direct_edit;
mod edit;
mod help;
mod lock;
mod log;
mod paths;
mod pictures;
mod settings;
mod show;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod times;
mod validate;
