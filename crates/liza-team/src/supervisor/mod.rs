//! Runs agents: one event loop for a whole team, one small helper process for each session.
//! `liza_core::supervise` makes all decisions. See `docs/design/supervision.md`.

mod add_members;
mod background;
mod channels;
mod error;
mod event;
mod failed_work;
mod failing;
mod file_modes;
pub mod helper;
mod helper_protocol;
mod judge_session;
mod last_words;
mod login_turns;
mod manual_changes;
mod member;
mod message;
mod next_work;
mod observer;
mod output_reader;
mod registration;
mod renewals;
mod running_session;
mod session;
mod session_result;
mod start_session;
mod team;
mod team_end;
mod use_login;

pub use error::{Consequence, SupervisorError};
pub use member::{AgentEnd, EndReason, Post};
pub use message::{MessageLevel, TeamMessage};
pub use observer::{Observed, Observer};
pub use registration::{agent_for, planned_elsewhere};
pub use team::{SupervisorOptions, run};
