//! Everything of Liza that touches the world: git, processes, screens.
//!
//! The rules are in `liza-core`, the blackboard is in `liza-store`; nothing here decides what a state may become.

pub mod git;
pub mod sys;
