//! Checkouts of agents: made, inspected, taken, rescued and removed, never trusted.

pub(crate) mod agent_repo;
pub(crate) mod build_folders;
pub(crate) mod check_copy;
pub(crate) mod clean_up;
pub(crate) mod copied_tree;
pub(crate) mod giant_files;
pub(crate) mod ignored;
pub(crate) mod inventory;
pub(crate) mod large_files;
pub(crate) mod locks;
pub(crate) mod moved_paths;
pub(crate) mod nested_repo;
mod nested_settings;
pub(crate) mod outside_links;
pub(crate) mod own_repo;
pub(crate) mod quarantine;
pub(crate) mod removal;
pub(crate) mod rescue;
pub(crate) mod review;
pub(crate) mod snapshot;
pub(crate) mod staged_copy;
pub(crate) mod status;
pub(crate) mod submodules;
pub(crate) mod take;
pub(crate) mod view;
pub(crate) mod worktree;
pub(crate) mod worktree_list;
