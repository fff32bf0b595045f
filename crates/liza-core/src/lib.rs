//! Every rule of the Liza protocol as a pure function.
//!
//! No IO, no clock, no randomness, no async: time and facts come in as arguments, decisions go out as data.

#![forbid(unsafe_code)]

pub mod agent;
pub mod event;
pub mod ids;
pub mod record;
pub mod time;
pub mod value;
