//! The rehearsal agent, session by session: the test is the supervisor, and then checks blackboard and git.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cast;
mod coder;
mod demo;
mod literal;
mod misbehaviour;
mod planner;
mod playbook;
mod reviewer;
#[path = "../support/mod.rs"]
mod support;
