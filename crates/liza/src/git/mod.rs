//! The git layer: worktrees, rescue, merge and the facts that the protocol needs, by way of the `git` program.
//!
//! Knows tasks by name only and nothing of the blackboard; never deletes work that it has not proven to be kept
//! elsewhere, and never touches a person's checkout except to follow a branch that moved.

mod error;
mod integration_test;
mod inventory;
mod locks;
mod merge;
mod refs;
mod repo;
mod rescue;
mod run;
mod status;
mod submodules;
mod worktree;

pub use error::{CommandLine, GitError};
pub use integration_test::IntegrationTest;
pub use merge::{Merge, MergeNote, Moved, Prepared, Trial};
pub use refs::{Branch, BranchError};
pub use repo::{Entry, Head, Lock, Repo};
pub use rescue::Rescue;
pub use run::{Call, Git, Reply, Version};
pub use status::{Change, Status, Untracked};
pub use worktree::{Ensured, Facts, Folder, Found, Mode, Removed, Restored};
