//! Every rule of the Liza protocol as a pure function.
//!
//! No IO, no clock, no randomness, no async: time and facts come in as arguments, decisions go out as data.
//!
//! | module | content |
//! |---|---|
//! | [`model`] | the blackboard as plain data, and every reason to refuse |
//! | [`evidence`] | rates with intervals and small defects, for measurements |
//! | [`protocol`] | one file per command: its data, senders, load scope, rule and reply |
//! | [`rules`] | rules that commands and screens share: claims, invariants, metrics, triggers |
//! | [`supervise`] | the next step of a supervisor, and the judgement of a session that ended |

#![forbid(unsafe_code)]

pub mod audit;
pub mod evidence;
pub mod model;
pub mod protocol;
pub mod rules;
pub mod supervise;

pub use liza_ids::text;
pub use model::{Board, Change, Refusal, State};
pub use protocol::{Command, Request, apply};
