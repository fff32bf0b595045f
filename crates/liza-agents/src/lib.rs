//! The agent programs, their prompts and their contracts: text in, text out.
//!
//! Starts nothing and knows no blackboard but its model.

#![forbid(unsafe_code)]

pub mod contracts;
pub mod prompts;
pub mod providers;
