//! Every rule of the Liza protocol as a pure function.
//!
//! No IO, no clock, no randomness, no async: time and facts come in as arguments, decisions go out as data.
//! The heart is [`apply`]: a [`Board`] and a [`Request`] give a [`Change`] to write, or a [`Refusal`] with its reason.

#![forbid(unsafe_code)]

pub mod agent;
pub mod alarm;
pub mod board;
pub mod breaker;
pub mod by_files;
pub mod by_hand;
pub mod change;
pub mod claimable;
pub mod command;
pub mod config;
pub mod effect;
pub mod event;
pub mod goal;
pub mod ids;
pub mod invariants;
pub mod metrics;
mod needs;
pub mod notes;
pub mod permission;
pub mod record;
pub mod refusal;
mod role;
pub mod sprint;
pub mod supervise;
pub mod task;
pub mod time;
mod transition;
pub mod trigger;
pub mod value;
pub mod view;

pub use board::{Board, State};
pub use change::Change;
pub use command::{Command, Request};
pub use record::ways_out;
pub use refusal::Refusal;
pub use transition::apply;
