//! The human's interface in a browser: pages that follow the blackboard live, and actions that are command
//! lines.
//!
//! Knows the view of `liza-core` and a [`Seat`]; opens no file, starts no program and changes nothing by
//! itself: no part of a request can become a path, and actions are those of the terminal screen.

#![forbid(unsafe_code)]

mod access;
mod actions;
mod drawing;
mod hub;
mod links;
mod pages;
mod region;
mod routes;
mod seat;
mod server;
mod snapshot;
mod stream;
mod topic;

#[cfg(test)]
mod fuzz_tests;

pub use seat::{CommandResult, LogLine, LogTone, OutputKind, OutputLine, SavedSession, Seat};
pub use server::{ServerHandle, WebServer};
pub use snapshot::TeamReading;
