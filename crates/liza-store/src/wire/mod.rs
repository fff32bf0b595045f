//! Between YAML and core's records: what a command needs is read, what it changed becomes operations on the file.
//!
//! Decides nothing about tasks; what cannot be understood becomes a fault with its place, and the rest still loads.

mod heads;
mod ops;
mod read;
mod refresh;
mod splice;

pub(crate) use ops::{Op, document_of, operations};
pub(crate) use read::{View, body_of};
pub(crate) use refresh::{Layout, refresh};
pub(crate) use splice::{Spliced, flat, rewrite, splice, untouched, verify};

/// The newest `version` that this program can write.
pub(crate) const VERSION: i64 = 1;
/// Sections without which there is no blackboard.
pub(crate) const REQUIRED: [&str; 5] = ["version", "goal", "tasks", "agents", "config"];

#[cfg(test)]
mod tests;
