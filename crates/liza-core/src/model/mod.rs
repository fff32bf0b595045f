//! The blackboard as plain data: the content of the file, a change to it, and every reason to refuse one.
//!
//! Nothing here decides the next state of a task; that is `protocol` and `rules`.

mod agent;
mod board;
mod breaker;
mod change;
mod client;
mod config;
mod config_bounds;
mod direct_edit;
mod event;
mod goal;
mod impact;
mod lease;
mod merge_hold;
mod metrics;
mod notes;
mod past;
mod record;
mod refusal;
mod spending;
mod sprint;
mod stop_file;
mod task;
mod team_file;
mod validation;
mod value;
mod work_facts;

pub use liza_ids::*;

pub use agent::*;
pub use board::*;
pub use breaker::*;
pub use change::*;
pub use client::*;
pub use config::*;
pub use config_bounds::*;
pub use direct_edit::*;
pub use event::*;
pub use goal::*;
pub use impact::*;
pub use lease::*;
pub use merge_hold::*;
pub use metrics::*;
pub use notes::*;
pub use past::*;
pub use record::*;
pub use refusal::*;
pub use spending::*;
pub use sprint::*;
pub use stop_file::*;
pub use task::*;
pub use team_file::*;
pub use validation::*;
pub use value::*;
pub use work_facts::*;
