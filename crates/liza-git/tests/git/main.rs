//! The git layer against real repositories: each test creates its own, with its own home and no inherited settings.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod after_session;
mod change;
mod command;
mod crash;
mod integration_test;
mod merge;
mod nested;
mod receipts;
mod repair;
mod repo;
mod rescue;
mod room;
mod support;
mod unusual_repositories;
mod workspace;
mod worktree;
