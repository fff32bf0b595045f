//! The agent programs, the prompts that they get and the contracts that they are bound by: text in, text out.
//!
//! Starts nothing and knows no blackboard but its model.

#![forbid(unsafe_code)]

pub mod contracts;
pub mod prompts;
pub mod providers;
