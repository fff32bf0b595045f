//! Every rule of the protocol, one test each; `liza_testkit::worlds` has the test world.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    missing_docs,
    unreachable_pub,
    unused_must_use,
    reason = "tests panic on purpose, their helpers need no docs, and the test world carries out every change itself"
)]

mod acceptance;
mod agents;
mod breaker;
mod claim;
mod clients;
mod gate;
mod impact;
mod invariants;
mod lease;
mod limits;
mod merge;
mod metrics;
mod notes;
mod permissions;
mod reclaim;
mod references;
mod rescope;
mod review;
mod revision;
mod session_budget;
mod sessions;
mod spending;
mod sprint;
mod states;
mod stop_files;
mod triggers;
mod validation;
