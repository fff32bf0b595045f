//! One project on several machines: clones with homes of their own, one git remote, one database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

#[path = "../support/mod.rs"]
mod support;

#[path = "../../../liza-database/tests/database/server.rs"]
#[allow(dead_code, reason = "the tests of the store use the rest")]
mod server;

mod goal;
mod machine;
mod older_copy;
mod one_clone;
mod proxy;
mod sending;
mod settings;
mod sharing;
mod starting;
mod work;
