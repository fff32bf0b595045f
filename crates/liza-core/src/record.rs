//! A task as it stands in the file: every field optional, so that a broken file can still be loaded and shown.
//!
//! Rules never work on these: they ask for a [`Task`](crate::task::Task), which exists only where the record has
//! what its status needs.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::event::HistoryEvent;
use crate::ids::{AgentId, Generation, Revision, Sha, TaskId, Worktree};
use crate::time::{Seconds, Timestamp};

/// The eleven states of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// The planner is still defining it.
    Draft,
    /// Ready, nobody has it.
    Unclaimed,
    /// A coder works on it.
    Claimed,
    /// Submitted at an exact commit.
    ReadyForReview,
    /// Sent back with feedback.
    Rejected,
    /// May be merged at exactly that commit.
    Approved,
    /// On the integration branch.
    Merged,
    /// Needs a decision.
    Blocked,
    /// Given up.
    Abandoned,
    /// Replaced by other tasks.
    Superseded,
    /// Approved, but the merge failed.
    IntegrationFailed,
}

impl Status {
    /// All states, in the order of a task's life.
    pub const ALL: [Status; 11] = [
        Status::Draft,
        Status::Unclaimed,
        Status::Claimed,
        Status::ReadyForReview,
        Status::Rejected,
        Status::Approved,
        Status::IntegrationFailed,
        Status::Blocked,
        Status::Merged,
        Status::Superseded,
        Status::Abandoned,
    ];

    /// The state as the blackboard writes it.
    pub fn name(self) -> &'static str {
        match self {
            Status::Draft => "DRAFT",
            Status::Unclaimed => "UNCLAIMED",
            Status::Claimed => "CLAIMED",
            Status::ReadyForReview => "READY_FOR_REVIEW",
            Status::Rejected => "REJECTED",
            Status::Approved => "APPROVED",
            Status::Merged => "MERGED",
            Status::Blocked => "BLOCKED",
            Status::Abandoned => "ABANDONED",
            Status::Superseded => "SUPERSEDED",
            Status::IntegrationFailed => "INTEGRATION_FAILED",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether nothing can happen to the task any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Merged | Status::Abandoned | Status::Superseded)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What can be done with a task in this state: the commands that lead out of it.
pub fn ways_out(status: Status) -> &'static str {
    match status {
        Status::Draft => "edit-task, finalize, supersede-task, abandon-task, mark-blocked (human)",
        Status::Unclaimed => "claim-task, edit-task, supersede-task, abandon-task, mark-blocked (human)",
        Status::Claimed => "submit-for-review, mark-blocked, handoff, release-claim (human)",
        Status::ReadyForReview => "claim-review, submit-verdict, mark-blocked (human)",
        Status::Rejected => "claim-task, supersede-task, abandon-task, mark-blocked (human)",
        Status::Approved => "wt-merge, mark-blocked (human)",
        Status::IntegrationFailed => "claim-task, supersede-task, abandon-task, mark-blocked (human)",
        Status::Blocked => "unblock-task, supersede-task, abandon-task",
        Status::Merged | Status::Superseded | Status::Abandoned => "nothing: the state is final",
    }
}

/// The first half of a claim: who is making the worktree, and until when the others keep away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The coder.
    pub by: AgentId,
    /// The coder's registration.
    pub generation: Generation,
    /// When it lapses by itself.
    pub expires: Timestamp,
    /// The head of the integration branch that the worktree starts from.
    pub base_commit: Sha,
}

impl Reservation {
    /// Whether the others still have to keep away.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now <= self.expires
    }
}

/// Tokens and money.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    #[serde(default)]
    pub input: u64,
    /// Tokens written.
    #[serde(default)]
    pub output: u64,
    /// Tokens read from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// What the provider says that it cost.
    #[serde(default)]
    pub cost_usd: f64,
}

impl Usage {
    /// Adds what one more session used.
    pub fn add(&mut self, more: &Usage) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cached = self.cached.saturating_add(more.cached);
        self.cost_usd += more.cost_usd;
    }

    /// What was used since an earlier measurement of the same session.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            input: self.input.saturating_sub(earlier.input),
            output: self.output.saturating_sub(earlier.output),
            cached: self.cached.saturating_sub(earlier.cached),
            cost_usd: (self.cost_usd - earlier.cost_usd).max(0.0),
        }
    }
}

/// Declares the record with every field optional, absent where it says nothing.
macro_rules! record {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        pub struct $name {
            $(
                $(#[$field_meta])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )+
        }

        impl $name {
            /// The keys of a task that the program knows, in the order in which it writes them.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($field)),+];
        }
    };
}

record! {
    /// A task as read. The order of the fields is the order in which a new task is written.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct TaskRecord {
        /// Its name.
        id: TaskId,
        /// What to build.
        description: String,
        /// Its state.
        status: Status,
        /// 1 (highest) to 5 (lowest).
        priority: i64,
        /// The tasks that had to make room for this one.
        #[serde(deserialize_with = "one_or_many")]
        supersedes: Vec<TaskId>,
        /// The tasks that took this one's place.
        #[serde(deserialize_with = "one_or_many")]
        superseded_by: Vec<TaskId>,
        /// Why it was replaced, or why it replaces another.
        rescope_reason: String,
        /// What must be MERGED first.
        depends_on: Vec<TaskId>,
        /// The coder.
        assigned_to: AgentId,
        /// Where the work is, below the project root.
        worktree: Worktree,
        /// The integration head that the work started from.
        base_commit: Sha,
        /// Until when the coder owns it.
        lease_expires: Timestamp,
        /// The first half of a claim.
        reservation: Reservation,
        /// The coder's how-manieth claim this is.
        iteration: u32,
        /// Rejections since the coder changed.
        review_cycles_current: u32,
        /// Rejections in all.
        review_cycles_total: u32,
        /// The commit under review, or last reviewed.
        review_commit: Sha,
        /// The code reviewer who is at it.
        reviewing_by: AgentId,
        /// Until when the code reviewer owns the review.
        review_lease_expires: Timestamp,
        /// Who approved it.
        approved_by: AgentId,
        /// The commit on the integration branch.
        merge_commit: Sha,
        /// What it has to conform to: a path, perhaps with an anchor.
        spec_ref: String,
        /// How one sees that it is done.
        done_when: String,
        /// What belongs to it.
        scope: String,
        /// Why the last review sent it back.
        rejection_reason: String,
        /// What it waits for.
        blocked_reason: String,
        /// What would unblock it.
        blocked_questions: Vec<String>,
        /// What was tried before it was blocked.
        attempted: Vec<String>,
        /// The coders who failed at it.
        failed_by: Vec<AgentId>,
        /// Whether the claim repairs a failed merge.
        integration_fix: bool,
        /// Whether notes of a session whose context was used up wait to be read.
        handoff_pending: bool,
        /// Own limit of claims by one coder.
        max_iterations: u32,
        /// Own limit of rejections of one coder.
        max_review_cycles: u32,
        /// Own length of a lease.
        lease_duration_override: Seconds,
        /// Sessions that crashed since the last progress.
        crashes: u32,
        /// Sessions that ended without a result since the last progress.
        idle_exits: u32,
        /// Tokens and money spent on it.
        usage: Usage,
        /// When it was written down.
        created: Timestamp,
        /// The write that last changed it.
        revision: Revision,
        /// What happened to it; append-only.
        history: Vec<HistoryEvent>,
    }
}

/// Reads a list, or a scalar where people write one thing without brackets.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<TaskId>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        Many(Vec<TaskId>),
        One(TaskId),
    }
    Ok(Option::<OneOrMany>::deserialize(deserializer)?.map(|either| match either {
        OneOrMany::Many(many) => many,
        OneOrMany::One(one) => vec![one],
    }))
}
