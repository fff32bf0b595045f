//! What Liza needs of every machine: its clock, random numbers, durable and private files, masked text, sockets that listen, columns of a terminal.
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
