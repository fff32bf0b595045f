//! Rules that several commands, supervisors and screens share. Pure functions of the blackboard and `now`.

pub mod accepted_settings;
pub mod approvals;
pub mod breaker;
pub mod claimable;
pub mod clients;
pub mod figures;
pub mod found_merges;
pub mod holdout;
pub mod impact;
pub mod invariants;
pub mod judging_settings;
pub mod metrics;
pub mod misspelled;
pub mod notes;
pub mod presence;
pub mod questions;
pub mod session_budget;
pub mod sessions;
pub mod spending;
pub mod sprint;
mod test_table;
pub mod triggers;
pub mod validation;
pub mod work_facts;
