//! The means of measuring: rates with their intervals, and small defects made by a table. Pure; no rule of the protocol uses it.

mod estimate;
mod mutation;

pub use estimate::{DrillVerdict, Estimate, drill_rates, wilson};
pub use mutation::mutations;
