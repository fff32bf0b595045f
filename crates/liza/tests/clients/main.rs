//! Whole goals with the unmodified agent programs: a real client, a scripted model, no key, no network.
//!
//! The programs are installed below `target/clients` by `.ci/install-clients`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests panic on failure")]

mod faults;
mod fixture;
mod goal;
mod guards;
mod lone_coder;
mod model_server;
mod protocols;
mod spoken;
#[path = "../support/mod.rs"]
mod support;
mod tools;
