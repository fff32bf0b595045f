//! The means of measuring: rates with their intervals, and small defects made by a table. Pure; no rule of the protocol uses it.

mod drills;
mod estimate;
mod mutation;

pub use drills::{Defect, DrillRecord, ReviewerRates, caught_in_words, reviewer_rates};
pub use estimate::{DrillVerdict, Estimate, drill_rates, wilson};
pub use mutation::mutations;
