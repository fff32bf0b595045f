//! The git layer against real repositories: each test makes its own, with its own home and no ambient settings.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod crash;
mod hard;
mod heal;
mod integration_test;
mod merge;
mod repo;
mod rescue;
mod run;
mod support;
mod worktree;
