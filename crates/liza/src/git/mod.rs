//! The git layer: worktrees, rescue, merge and the facts that the protocol needs, through the `git` program.
//!
//! Knows tasks by ID only and nothing of the blackboard. Never deletes work that is not provably kept elsewhere, and
//! never touches a person's checkout except to update it with a branch that moved.

mod accepted_programs;
mod agent_repo;
mod checkout;
mod clean_up;
mod command;
mod convert;
mod convert_submodules;
mod error;
mod ignored;
mod integration_test;
mod inventory;
mod isolated;
mod kept_merges;
mod large_files;
mod leftovers;
mod locks;
mod merge;
mod merge_history;
mod nested_repo;
mod objects;
mod own_repo;
mod patch;
mod pipes;
mod program_changes;
mod programs;
mod push;
mod quarantine;
mod refs;
mod removal;
mod repo;
mod rescue;
mod review;
mod scratch_index;
mod status;
mod submodules;
mod take;
mod tree_changes;
mod version;
mod view;
mod work_remote;
mod worktree;
mod worktree_list;

pub use checkout::RepairedCheckout;
pub use command::{Git, GitCommand};
pub use error::GitError;
pub use integration_test::IntegrationTestResult;
pub(crate) use integration_test::{ScratchCheckout, TestStage, UnusedTest};
pub(crate) use kept_merges::merged_ref;
pub use liza_core::model::WorktreeMode;
pub use merge::{MergeError, MergeMessage, MergePreview, PendingMerge};
pub(crate) use merge_history::BranchStep;
pub(crate) use push::Remote;
pub use refs::{Branch, BranchError};
pub(crate) use repo::path as path_of;
pub use repo::{Head, Repo};
pub use rescue::Rescue;
pub use status::{FileChange, UntrackedFiles, WorktreeStatus};
pub use take::is_taken;
pub(crate) use take::{is_sent, sent_ref, work_ref};
pub use version::GitVersion;
pub(crate) use work_remote::{PushOutcome, RefChange, RemoteProbe, WorkRemote};
pub use worktree::{FolderState, PreparedWorktree, RemovedWorktree, TaskArtifacts, WorktreeState};
pub use worktree_list::{WorktreeEntry, WorktreeLock};
