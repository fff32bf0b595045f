//! Everything of Liza that touches the world: commands, git, processes, screens.
//!
//! The rules are in `liza-core`, the blackboard is in `liza-store`; nothing here decides what a state may become.
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod benchmark;
pub mod cli;
mod columns;
pub mod doctor;
mod log_text;
mod pull_request;
mod session_output;
mod settings_text;
mod tui;
