//! Every command that writes, through the real program: its text, its JSON, its refusals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod config;
mod features;
mod fixture;
mod goal;
mod help;
mod house;
mod init;
mod map;
mod notes;
mod packaging;
mod plan;
mod setup;
mod stop;
#[path = "../support/mod.rs"]
mod support;
mod texts;
mod transfer;
mod work;
