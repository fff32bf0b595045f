//! Trees, changes and patches: the differences between commits, computed in folders of our own.

pub(crate) mod change;
pub(crate) mod files;
pub(crate) mod isolated;
pub(crate) mod objects;
pub(crate) mod patch;
pub(crate) mod scratch_index;
pub(crate) mod takes_back;
pub(crate) mod tree_changes;

#[cfg(test)]
mod fuzz_tests;
