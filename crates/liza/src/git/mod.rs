//! The git layer: worktrees, rescue, merge and the facts that the protocol needs, through the `git` program.
//!
//! Knows tasks by ID only and nothing of the blackboard. Never deletes work that is not provably kept elsewhere, and
//! never touches a person's checkout except to update it with a branch that moved.

mod checkout;
mod command;
mod error;
mod integration_test;
mod inventory;
mod isolated;
mod kept_merges;
mod leftovers;
mod locks;
mod merge;
mod pipes;
mod programs;
mod refs;
mod repo;
mod rescue;
mod status;
mod submodules;
mod tree_changes;
mod version;
mod worktree;

pub use checkout::RepairedCheckout;
pub use command::{Git, GitCommand};
pub use error::GitError;
pub use integration_test::IntegrationTestResult;
pub(crate) use integration_test::ScratchCheckout;
pub use liza_core::model::WorktreeMode;
pub use merge::{MergeError, MergeMessage, MergePreview, PendingMerge};
pub use refs::{Branch, BranchError};
pub use repo::{Head, Repo, WorktreeEntry, WorktreeLock};
pub use rescue::Rescue;
pub use status::{FileChange, UntrackedFiles, WorktreeStatus};
pub use version::GitVersion;
pub use worktree::{
    FolderState, PreparedWorktree, RemovedWorktree, RestoredWorktree, TaskArtifacts, WorktreeState,
};
