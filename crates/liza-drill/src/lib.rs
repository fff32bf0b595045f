//! `liza drill`: how good is this reviewer in this project? Changes that were merged are reviewed again, in a copy of the project
//! with the blackboard as it was then: some as they were, some with a planted defect.
//!
//! Writes nothing but `.liza/drills.json` in the project. Nothing in a copy can be merged, and a copy ends with its review.

#![forbid(unsafe_code)]

mod changes;
mod cost;
mod error;
mod frozen;
mod plants;
mod recommit;
mod results;
mod review;
mod stage;

pub use changes::{Change, merged_changes};
pub use cost::Cost;
pub use error::DrillError;
pub use plants::{NoPlant, Plant, Plants, find_plants};
pub use results::{add_record, table};
pub use review::{Drill, DrillEnd, drill};
pub use stage::Stage;
