//! Between the YAML file and the records of the core: reads the parts that a command needs, and writes its
//! changes. Invalid content becomes a fault with its position, and the rest still loads.

mod config;
mod ops;
mod refresh;
mod sections;
mod splice;
mod summaries;
mod task_index;
mod tasks;
pub(crate) mod verify;
mod view;

pub use config::settings_as_fields;
pub(crate) use config::{decode_config, every_setting, settings_to_write};
pub(crate) use ops::{Op, document_fields, operations};
pub(crate) use refresh::{Layout, refresh};
pub(crate) use splice::{Spliced, part_around, reads_back, rewrite, splice, untouched};
pub(crate) use task_index::TaskIndex;
pub(crate) use view::{StateView, fault_count, load, parse_state, text_without_bom};

/// The newest `version` that this program can write.
pub(crate) const VERSION: i64 = liza_core::model::FileVersion::NEWEST.0;
/// The sections that every blackboard has.
pub(crate) const REQUIRED: [&str; 5] = ["version", "goal", "tasks", "agents", "config"];

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
