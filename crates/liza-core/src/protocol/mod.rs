//! The commands on the blackboard: one file each, with its data, senders, load scope, rule and reply.
//!
//! A command is plain data. Data cannot do IO under the lock, and can be logged, retried and explored by
//! tests. [`apply`] is the only way to a [`Change`].
//!
//! Shared parts: `operation` (the trait of every command), `apply` with `admission` (the checks before every
//! rule) and `sprint_figures` (metrics and the end of a sprint), `tx` (the working copy that a rule changes),
//! `permission`, `ownership` (of tasks and reviews), `blocking` (limits), `budget` (sessions), `gates` (ready
//! to be claimed), `dropping` and `open_work`.

mod abandon_task;
mod abort;
mod accept_gate;
mod accept_integration;
mod add_task;
mod admission;
mod align;
mod analyze;
mod anomaly;
mod answer;
mod apply;
mod archive;
mod blocking;
mod budget;
mod checkpoint;
mod claim_review;
mod claim_task;
mod clear_stale_review_claims;
mod convert_discovery;
mod count_exit;
mod deregister;
pub mod direct_edit;
mod discover;
mod dismiss;
mod dropping;
mod edit_task;
mod finalize;
mod finish;
mod follow_stop_file;
mod gates;
mod goal;
mod handoff;
mod head_test;
mod heartbeat;
pub mod manual_edit;
mod mark_blocked;
mod mark_triggers_seen;
mod note;
mod open_work;
mod operation;
mod ownership;
mod pause;
mod permission;
mod pre_check;
mod read_notes;
mod record_session;
mod record_usage;
mod recover;
mod register;
mod release_claim;
mod reply;
mod resolve;
mod resume;
mod retro;
mod set_status;
mod spec_change;
mod sprint;
mod sprint_figures;
mod submit_for_review;
mod submit_verdict;
mod supersede_task;
mod tx;
mod unblock_task;
mod update_sprint_metrics;
mod use_client;
mod validation;
mod wt_create;
mod wt_delete;
mod wt_merge;

pub use abandon_task::AbandonTask;
pub use abort::Abort;
pub use accept_gate::AcceptGate;
pub use accept_integration::{AcceptIntegration, AdoptIntegration, IntegrationAccepted};
pub use add_task::{AddTask, NewTask};
pub use align::{Align, Aligned};
pub use analyze::{Analyzed, RecordAnalysis};
pub use anomaly::{AnomalyLogged, LogAnomaly};
pub use answer::{Answer, Answered};
pub use apply::{Decided, Pending, PendingRequest, apply};
pub use archive::{Archive, ArchivedTasks};
pub use checkpoint::{Checkpoint, CheckpointCause, CheckpointReached};
pub use claim_review::{ClaimReview, ReleaseReview, ReviewClaimed};
pub use claim_task::{CancelReservation, ClaimTask, Claimed, ReserveTask, Reserved};
pub use clear_stale_review_claims::{ClearStaleReviewClaims, ReviewsCleared};
pub use convert_discovery::{ConvertDiscovery, Converted};
pub use count_exit::{
    CountExit, CountPlannerExit, ExitCounted, PlannerExitCounted, RefundSession, UnproductiveExit,
};
pub use deregister::{Deregister, Deregistered, LeaveReason};
pub use discover::{Discover, Discovered};
pub use dismiss::{DismissDiscovery, DismissEdit, Dismissed, EditDismissed};
pub use edit_task::{EditTask, TaskEdit};
pub use finalize::{Finalize, Finalized};
pub use finish::{Finish, Finished};
pub use follow_stop_file::FollowStopFile;
pub use gates::check_spec;
pub use goal::{AbortGoal, CompleteGoal, GoalReply, NewGoal};
pub use handoff::{HandoffNotes, HandoffWritten, TakeHandoff, WriteHandoff, goal_key};
pub use head_test::{HeadTested, HoldCause, HoldMerge, RecordHeadTest};
pub use heartbeat::{Heartbeat, Renewed};
pub use mark_blocked::MarkBlocked;
pub use mark_triggers_seen::MarkTriggersSeen;
pub use note::{NoteWritten, WriteNote};
pub use operation::{LoadScope, Operation, Request, Rule, Stage};
pub use pause::{Pause, Paused};
pub use permission::Rights;
pub use pre_check::{Intent, PreCheck};
pub use read_notes::ReadNotes;
pub use record_session::{RecordSession, SessionRecorded};
pub use record_usage::RecordUsage;
pub use recover::{DropReservation, Recover};
pub use register::{Register, Registered};
pub use release_claim::{ClaimRole, ReleaseClaim};
pub use reply::{Nothing, TaskReply, WorktreeFacts};
pub use resolve::Resolve;
pub use resume::{Resume, Resumed};
pub use retro::WriteRetro;
pub use set_status::{SetStatus, StatusSet};
pub use spec_change::{RecordSpecChange, SpecChanged};
pub use sprint::{CompleteSprint, DeadlineSet, NewSprint, SetDeadline, SprintReply};
pub use submit_for_review::{SubmitForReview, Submitted};
pub use submit_verdict::{MovedChange, SubmitVerdict, Verdict};
pub use supersede_task::{SupersedeTask, Superseded};
pub use unblock_task::UnblockTask;
pub use update_sprint_metrics::UpdateSprintMetrics;
pub use use_client::UseClient;
pub use validation::{BeginReview, RecordValidation, RetryValidation, ValidationRecorded};
pub use wt_create::{CreateWorktree, WorktreeOrder};
pub use wt_delete::DeleteWorktree;
pub use wt_merge::{
    BeginMerge, MergeFailed, MergeFailure, MergeRecorded, Mergeable, RecordMerge, RecordMergeFailure,
};

pub use tx::Tx;

use serde::Serialize;

use crate::model::{Board, Refusal, TaskId, Timestamp};

/// Declares the list of commands; the enum, its replies and its dispatch follow from it.
macro_rules! commands {
    ($($name:ident,)+) => {
        /// Any command, for code that handles all of them.
        #[allow(missing_docs, reason = "each variant is documented at its type")]
        #[derive(Debug, Clone, PartialEq)]
        pub enum Command {
            $($name($name),)+
        }

        #[allow(missing_docs, reason = "each variant is documented at its command's type")]
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Reply {
            $($name(<$name as Rule>::Reply),)+
        }

        $(impl From<$name> for Command {
            fn from(command: $name) -> Self {
                Self::$name(command)
            }
        })+

        impl Operation for Command {
            type Reply = Reply;

            fn verb(&self) -> &'static str {
                match self { $(Self::$name(command) => Operation::verb(command),)+ }
            }

            fn rights(&self) -> Rights {
                match self { $(Self::$name(command) => Operation::rights(command),)+ }
            }

            fn stage(&self) -> Stage {
                match self { $(Self::$name(command) => Operation::stage(command),)+ }
            }

            fn target(&self) -> Option<&TaskId> {
                match self { $(Self::$name(command) => Operation::target(command),)+ }
            }

            fn scope(&self) -> LoadScope {
                match self { $(Self::$name(command) => Operation::scope(command),)+ }
            }

            fn other_tasks(&self, board: &Board, now: Timestamp) -> Vec<TaskId> {
                match self { $(Self::$name(command) => Operation::other_tasks(command, board, now),)+ }
            }

            fn is_result(&self) -> bool {
                match self { $(Self::$name(command) => Operation::is_result(command),)+ }
            }

            fn run(&self, tx: &mut Tx<'_>) -> Result<Reply, Refusal> {
                match self { $(Self::$name(command) => Operation::run(command, tx).map(Reply::$name),)+ }
            }
        }
    };
}

commands! {
    AbandonTask,
    Abort,
    AbortGoal,
    AcceptGate,
    AcceptIntegration,
    AddTask,
    AdoptIntegration,
    Align,
    Answer,
    Archive,
    BeginMerge,
    BeginReview,
    CancelReservation,
    Checkpoint,
    ClaimReview,
    ClaimTask,
    ClearStaleReviewClaims,
    CompleteGoal,
    CompleteSprint,
    ConvertDiscovery,
    CountExit,
    CountPlannerExit,
    CreateWorktree,
    DeleteWorktree,
    Deregister,
    Discover,
    DismissDiscovery,
    DismissEdit,
    DropReservation,
    EditTask,
    Finalize,
    Finish,
    FollowStopFile,
    Heartbeat,
    HoldMerge,
    LogAnomaly,
    MarkBlocked,
    MarkTriggersSeen,
    NewGoal,
    NewSprint,
    Pause,
    PreCheck,
    ReadNotes,
    RecordAnalysis,
    RecordHeadTest,
    RecordMerge,
    RecordMergeFailure,
    RecordSession,
    RecordSpecChange,
    RecordUsage,
    RecordValidation,
    Recover,
    RefundSession,
    Register,
    ReleaseClaim,
    ReleaseReview,
    ReserveTask,
    Resolve,
    Resume,
    RetryValidation,
    SetDeadline,
    SetStatus,
    SubmitForReview,
    SubmitVerdict,
    SupersedeTask,
    TakeHandoff,
    UnblockTask,
    UpdateSprintMetrics,
    UseClient,
    WriteHandoff,
    WriteNote,
    WriteRetro,
}
