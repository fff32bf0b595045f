//! Machine services: clock, random numbers, durable and private files, masked text, listening sockets,
//! terminal columns.
//!
//! Knows no file of Liza by name and starts nothing.

#![forbid(unsafe_code)]

pub mod columns;
pub mod durable;
pub mod listener;
pub mod local_time;
pub mod private;
pub mod random_text;
pub mod secrets;
