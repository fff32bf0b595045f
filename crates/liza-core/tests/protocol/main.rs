//! The protocol as a whole: every status with every command, the diagram in the docs, random command sequences.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and this one reads the docs"
)]

mod at_work;
mod conserved;
mod diagram;
mod matrix;
mod quiet_team;
mod random;
mod way_out;
mod world;
mod writes;
