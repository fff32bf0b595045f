//! The only writer of the blackboard: knows no git and no agents, so nothing slow can run under its lock.

#![forbid(unsafe_code)]

pub mod yaml;
