//! The watcher: a day with a virtual clock, webhooks that answer, fail and hang, stop files under a real `liza watch`,
//! the circuit breaker's commands.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod breaker;
mod day;
mod desktop;
mod fixture;
mod once;
mod running;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod webhook;
