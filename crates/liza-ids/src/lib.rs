//! Names, times and settings that git, the sandbox and the blackboard share: parsed once, valid from then on.
//!
//! Pure. Knows no blackboard: these words alone decide nothing about a task.

#![forbid(unsafe_code)]

pub mod gate;
mod git_facts;
mod ids;
pub mod order;
mod role;
mod sandbox;
pub mod text;
mod time;
mod variables;

pub use gate::GateSettings;
pub use git_facts::*;
pub use ids::*;
pub use role::*;
pub use sandbox::*;
pub use time::*;
pub use variables::*;
