//! Operations that use both the blackboard and git: claim, review, merge, recovery. Must not hold the
//! blackboard's lock while git runs. A crash is safe at every step: `recover` repairs it.

mod adopt_integration;
mod claim_task;
mod fetch_commits;
mod finish;
mod found_merge;
mod lost_merge;
mod merge_test;
mod move_intent;
mod recover;
mod recover_remote;
mod recovery_report;
mod remove;
mod review;
mod review_setup;
mod review_statement;
mod shared_merge;
mod start_remote;
mod sync;
mod take_work;
mod test_run;
mod validation;
mod work_facts;
mod wt_create;
mod wt_merge;

pub use adopt_integration::adopt_integration;
pub use claim_task::{TaskClaim, claim_task};
pub use fetch_commits::{fetch_merged, fetch_sent, fetch_submitted, integration_head};
pub use finish::{FinishOutcome, GoalResult, goal_result, merge_into_main, publish};
pub use found_merge::{found_merges, is_at_recorded_head};
pub use lost_merge::{LostMerge, lost_merges, merged_commits};
pub use move_intent::{record_taken, settle_moves};
pub use recover::recover;
pub use recovery_report::{Finding, FindingKind, RecoveryReport};
pub use remove::{Removal, carry_out_removal, plan_removal};
pub use review::{Submitter, claim_review, submit_for_review, submit_verdict, worktree_facts};
pub use review_setup::{failed_review_setups, order_reviews};
pub use start_remote::{create_on_remote, try_remote};
pub use sync::{SyncOutcome, sync};
pub use take_work::{generation_of, remove_ended_worktrees};
pub use take_work::{take_and_send, take_new_commits, take_work};
pub use test_run::{TEST_LOGS, try_commands, try_test};
pub use work_facts::facts_at;
pub use wt_create::{CreatedWorktree, create_worktree};
pub use wt_merge::{MergeOutcome, merge_without_validation, wt_merge};
