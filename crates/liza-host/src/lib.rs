//! Machine services: clock, random numbers, durable and private files, masked text, listening sockets,
//! the proxy to a model, terminal columns, the place of worktrees.
//!
//! Knows only the folder of Liza by name, and in it the note about that place; starts nothing.

#![forbid(unsafe_code)]

pub mod columns;
pub mod disk;
pub mod durable;
pub mod listener;
pub mod local_time;
pub mod model_proxy;
mod own_folder;
pub mod private;
pub mod random_text;
pub mod secrets;
pub mod worktrees;
