//! What both stores promise, and what only a database can do wrong: with a real PostgreSQL.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "test helpers panic on failure, as tests do"
)]

mod access;
mod board;
mod contract;
mod failover;
mod faults;
mod leases;
mod proxy;
mod random;
mod server;
mod several_machines;
#[path = "../../../liza-store/tests/store/steps.rs"]
mod steps;
#[path = "../../../liza-store/tests/store/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod support;
