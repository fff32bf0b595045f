//! Agents that run, stop and hand over: one event loop for a whole team, a small helper process for each session.
//!
//! Carries out what `liza_core::supervise` decides and decides nothing itself. See `docs/design/supervision.md`.

mod attendant;
mod by_hand;
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
mod told;
mod trouble;

pub use attendant::{Attendant, Attended};
pub use event::{Line, Weight};
pub use member::{End, Farewell, Post};
pub use registration::agent_for;
pub use team::{Options, run};
pub use trouble::Trouble;
