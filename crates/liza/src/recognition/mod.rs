//! Recognizes by its files how a project is tested and what a new checkout of it needs. Runs and changes nothing.

pub(crate) mod active_environment;
pub(crate) mod collectors;
pub(crate) mod dependencies;
pub(crate) mod test_command;
