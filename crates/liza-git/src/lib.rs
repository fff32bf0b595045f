//! The git layer: worktrees, rescue, merge and the facts that the protocol needs, through the `git` program.
//!
//! Knows tasks by ID only and nothing of the blackboard. Never deletes work that is not provably kept elsewhere, and
//! never touches a person's checkout except to update it with a branch that moved.

#![forbid(unsafe_code)]

mod diff;
mod merging;
mod program;
mod receipts;
mod remote;
mod workspace;

pub use diff::change::MergeChange;
pub use diff::files::{ChangedFile, FileContents, UndoneLines};
pub use diff::patch::PATCH_MAX;
pub use diff::patch::Patch;
pub use diff::takes_back::TakenBack;
pub use liza_ids::WorktreeMode;
pub use merging::checkout::{InterruptedUpdate, UpdateOutcome};
pub use merging::head_build::{BuiltCheckout, HeadBuild, Marks};
pub use merging::integration_test::IntegrationTestResult;
pub use merging::integration_test::{MakePlan, ScratchCheckout, TestStage, UnusedTest};
pub use merging::kept_merges::merged_ref;
pub use merging::merge::{MergeDraft, MergeError, MergeKind, MergeMessage, MergePreview, PendingMerge};
pub use merging::merge_history::BranchStep;
pub use merging::protected::Protected;
pub use program::command::{Git, GitCommand, ObjectLimits};
pub use program::error::GitError;
pub use program::refs::{Branch, BranchError};
pub use program::repo::path as path_of;
pub use program::repo::{Head, Repo};
pub use program::version::GitVersion;
pub use receipts::{CommitSignature, LineStep, RECEIPTS, REMOTE_RECEIPTS};
pub use remote::push::Remote;
pub use remote::work_remote::{PushOutcome, RefChange, RemoteProbe, WorkRemote};
pub use workspace::check_copy::{CHECK_COPY, CheckCopy, CopyLife, take_turn};
pub use workspace::copied_tree::{copy_tree, make_parents};
pub use workspace::moved_paths::{MovedPaths, links_into};
pub use workspace::rescue::Rescue;
pub use workspace::review::prepared_of;
pub use workspace::status::{FileChange, UntrackedFiles, WorktreeStatus};
pub use workspace::take::is_taken;
pub use workspace::take::{is_sent, sent_ref, work_ref};
pub use workspace::worktree::{FolderState, PreparedWorktree, RemovedWorktree, TaskArtifacts, WorktreeState};
pub use workspace::worktree_list::{WorktreeEntry, WorktreeLock};
