//! Explores the protocol: every board that a small team can reach, with the shipped `apply` and `next_step`.
//!
//! `world` is a board with the part of git that the rules need; `alphabet` lists what can happen in it: commands of
//! agents, supervisors and people, late commands of fenced agents, crashes, and time that passes. `canonical` gives
//! boards that differ only in names and histories one fingerprint. `search` visits all of them, breadth first;
//! `properties` are asked of each; `teeth` are broken machines, one for each property. Exploration, not proof: the
//! bound is part of every result.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::wildcard_enum_match_arm,
    reason = "part of tests: it fails by panicking"
)]

pub mod alphabet;
mod asked;
pub mod canonical;
pub mod edits;
mod every_command;
pub mod evidence;
mod form;
mod graph;
pub mod late;
pub mod pairs;
pub mod properties;
pub mod search;
pub mod simulate;
pub mod story;
pub mod symmetry;
pub mod teeth;
mod with_words;
pub mod world;
