//! Supervisors as people run them: the real program, small shell scripts as agent programs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod by_hand;
mod fixture;
mod flow;
mod interactive;
mod kill;
mod life;
mod locked;
mod misbehaviour;
mod names;
mod planner;
mod providers;
mod rehearsal;
mod stop;
mod usage;
