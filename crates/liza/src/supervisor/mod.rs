//! Agents that run, stop and hand over: one event loop for a whole team, a small helper process for each session.
//!
//! Carries out what `liza_core::supervise` decides and decides nothing itself. See `docs/design/supervision.md`.

mod errand;
mod event;
pub mod helper;
mod member;
mod order;
mod prepare;
mod registration;
mod session;
mod steps;
mod team;
mod trouble;

pub use event::Line;
pub use member::{End, Farewell, Post};
pub use registration::agent_for;
pub use team::{Options, run};
pub use trouble::Trouble;
