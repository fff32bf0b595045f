//! Steps of a task's life in which the blackboard and git take turns: claim, review, merge, recovery.
//!
//! Commands and supervisors call the same code. Nothing here holds the blackboard's lock while git runs, and every
//! sequence can be cut off at any step: `recover` repairs what is left.

mod claim_task;
mod recover;
mod review;
mod wt_create;
mod wt_merge;

pub use claim_task::{TaskClaim, claim_task};
pub use recover::{Finding, FindingKind, RecoveryReport, recover};
pub use review::{claim_review, submit_for_review, submit_verdict, worktree_facts};
pub use wt_create::{CreatedWorktree, create_worktree};
pub use wt_merge::{MergeOutcome, wt_merge};
