//! The program: verbs, output, the doctor, and the wiring of screens and pages.
//!
//! The rules are in `liza-core`, the blackboard is in `liza-store`, all work on a project is in `liza-team`.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "screen", feature = "web")),
    allow(dead_code, reason = "some of what screens and pages use has no other user")
)]

#[doc(hidden)]
pub mod benchmark;
pub mod cli;
pub mod doctor;
mod recognition;
