//! Sprints from checkpoint to retrospective: the pages, the commands, the guide for the human in charge.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod boards;
mod codes;
mod guide;
mod lifecycle;
mod retro;
mod stops;
mod summary;
#[path = "../support/mod.rs"]
mod support;
