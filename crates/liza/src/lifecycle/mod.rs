//! Operations that use both the blackboard and git: claim, review, merge, recovery.
//!
//! Shared by commands and supervisors. Must not hold the blackboard's lock while git runs. A crash is safe at every step:
//! `recover` repairs what it leaves.

mod adopt_integration;
mod claim_task;
mod lost_merge;
mod recover;
mod review;
mod sync;
mod take_work;
mod wt_create;
mod wt_merge;

pub use adopt_integration::adopt_integration;
pub use claim_task::{TaskClaim, claim_task};
pub use lost_merge::{LostMerge, lost_merges, merged_commits};
pub use recover::{Finding, FindingKind, RecoveryReport, recover};
pub use review::{claim_review, submit_for_review, submit_verdict, worktree_facts};
pub use sync::{SyncOutcome, sync};
pub use take_work::{take_new_commits, take_work};
pub use wt_create::{CreatedWorktree, create_worktree};
pub use wt_merge::{MergeOutcome, wt_merge};
