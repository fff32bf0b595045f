//! Merges: made beside the branch, tested, and moved onto it in one step.

pub(crate) mod checkout;
pub(crate) mod gate_files;
pub(crate) mod head_build;
pub(crate) mod integration_test;
pub(crate) mod kept_merges;
pub(crate) mod merge;
pub(crate) mod merge_history;
pub(crate) mod move_branch;
pub(crate) mod protected;
pub(crate) mod update_note;
