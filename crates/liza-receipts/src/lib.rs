//! Receipts: what was judged, by whom and with which result, as statements that anybody can check.
//!
//! Pure. Knows neither git nor the blackboard: an auditor reads this crate alone. Only Liza makes statements, never a session.

#![forbid(unsafe_code)]

mod history;
mod statement;

pub use history::*;
pub use statement::*;
