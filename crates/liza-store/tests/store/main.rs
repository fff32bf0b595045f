//! The store from outside: whole blackboards in real folders, other processes, crashes and people's edits.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "helpers of tests stop at the first thing that is wrong, as tests do"
)]

mod board;
mod crash;
mod invalid_input;
mod locking;
mod log;
mod manual_edits;
mod preserved_text;
mod pyyaml;
mod random_commands;
mod support;
