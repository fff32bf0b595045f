//! One command runs the team; one command shows it.

#[path = "../support/mod.rs"]
mod support;

mod demo;
mod run;
mod running;
