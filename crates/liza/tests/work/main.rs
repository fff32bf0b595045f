//! Work in git: claim, worktree, review, merge, recovery, through the real program and the real git.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod claim;
mod doctor;
mod fixture;
mod guide;
mod merge;
mod places;
mod race;
mod recover;
mod secrets;
mod submit;
mod torture;
mod verdict;
