//! Every rule of the Liza protocol as a pure function.
//!
//! No IO, no clock, no randomness, no async: time and facts come in as arguments, decisions go out as data.
//!
//! | module | what it holds |
//! |---|---|
//! | [`model`] | the blackboard as plain data, and every reason to refuse |
//! | [`protocol`] | one file per command: its data, who may send it, what it loads, what it does, its reply |
//! | [`rules`] | what several commands and screens ask: who may claim, invariants, metrics, triggers |
//! | [`supervise`] | what a supervisor does next, and what a session that ended counts as |
//! | [`watch`] | what screens and the watcher derive from the blackboard |

#![forbid(unsafe_code)]

pub mod model;
mod order;
pub mod protocol;
pub mod rules;
pub mod supervise;
pub mod watch;

pub use liza_ids::text;
pub use model::{Board, Change, Refusal, State};
pub use protocol::{Command, Request, apply};
