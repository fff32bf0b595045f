//! Prompts and contracts for every role, wake trigger and situation.

#![allow(clippy::unwrap_used, reason = "a fixture that cannot be built is a failed test")]

mod coder;
mod contracts;
mod fixture;
mod planner;
mod reviewer;
