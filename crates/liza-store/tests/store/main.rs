//! The store from outside: blackboards in real folders, other processes, crashes and manual edits.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "test helpers panic on failure, as tests do"
)]

mod board;
mod comments;
mod crash;
mod direct_edits;
mod invalid_input;
mod locking;
mod log;
mod manual_edits;
mod other_savers;
mod partial_edits;
mod preserved_text;
mod pyyaml;
mod random_commands;
mod repairs;
mod shared_writes;
mod steps;
mod support;
