//! `liza run` and `liza demo`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod demo;
mod detached;
mod drill;
mod pairs;
mod run;
mod trial;
