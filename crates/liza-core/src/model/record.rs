//! A task as it is in the file: every field optional, so that a broken file can still be loaded and shown.
//!
//! Rules never work on these: they ask for a [`Task`](crate::model::task::Task), which exists only if the
//! record is complete for its status.

use std::fmt;

use indexmap::IndexMap;
use liza_ids::{AgentId, Approver, Generation, Revision, Seconds, Sha, TaskId, Timestamp, Worktree};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::event::{EventName, HistoryEvent};
use crate::model::impact::{Approval, Impact};
use crate::model::lease::lease_is_live;
use crate::model::merge_hold::{GateChange, MergeHold};
use crate::model::past::{Past, Trace};
use crate::model::spending::Usage;
use crate::model::validation::{ReviewPhase, Validation};
use crate::model::work_facts::WorkFacts;

/// The eleven states of a task, in the order of its life.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// The planner is still defining it.
    Draft,
    Unclaimed,
    Claimed,
    /// Submitted at an exact commit.
    ReadyForReview,
    Rejected,
    /// May be merged at exactly that commit.
    Approved,
    /// Approved, but the merge failed.
    IntegrationFailed,
    Blocked,
    Merged,
    Superseded,
    Abandoned,
}

impl Status {
    /// All states, in the order of a task's life.
    pub const ALL: &'static [Status] = <Status as strum::VariantArray>::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// True if nothing can happen to the task any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Merged | Status::Abandoned | Status::Superseded)
    }
}

/// The commands that lead out of a state.
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

/// Something in the file that could not be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The broken key, such as `status`.
    pub field: String,
    /// The error, with line and column if they are known.
    pub message: String,
}

/// The first step of a claim: the agent that creates the worktree, and the end of its reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub by: AgentId,
    pub generation: Generation,
    /// The time at which it expires by itself.
    pub expires: Timestamp,
    /// The head of the integration branch that the worktree starts from.
    pub base_commit: Sha,
}

impl Reservation {
    /// True while it keeps others away.
    pub fn is_live(&self, now: Timestamp) -> bool {
        lease_is_live(self.expires, now)
    }
}

/// Declares the record with every field optional, and left out of the file if absent.
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
        id: TaskId,
        description: String,
        status: Status,
        /// 1 (highest) to 5 (lowest).
        priority: i64,
        /// The word of the plan; facts about the work can raise it.
        impact: Impact,
        #[serde(deserialize_with = "one_or_many")]
        supersedes: Vec<TaskId>,
        #[serde(deserialize_with = "one_or_many")]
        superseded_by: Vec<TaskId>,
        /// The reason that it was replaced, or that it replaces another.
        rescope_reason: String,
        /// The length of the chain of replacements that leads to it.
        rescope_depth: u32,
        /// These must be MERGED first.
        depends_on: Vec<TaskId>,
        assigned_to: AgentId,
        /// The path of the work, below the project root.
        worktree: Worktree,
        /// The integration head that the work started from.
        base_commit: Sha,
        /// The end of the coder's lease.
        lease_expires: Timestamp,
        /// The first step of a claim.
        reservation: Reservation,
        /// The number of this claim among the coder's claims of the task.
        iteration: u32,
        /// Rejections since the coder changed.
        review_cycles_current: u32,
        review_cycles_total: u32,
        /// The commit under review, or last reviewed.
        review_commit: Sha,
        reviewing_by: AgentId,
        /// The end of the code reviewer's lease.
        review_lease_expires: Timestamp,
        /// The integration head at which the code reviewer has read the change.
        review_head: Sha,
        /// Approvals of this review that were refused because the change had moved.
        review_moves: u32,
        review_phase: ReviewPhase,
        /// Merges in the submitted work that take back what the integration branch has, each with its files.
        takes_back: Vec<String>,
        /// Facts about the submitted work, computed at its submission.
        facts: WorkFacts,
        /// The approvals so far, if it needs more than one.
        approvals: Vec<Approval>,
        approved_by: Approver,
        merge_held: MergeHold,
        /// Its change of protected files, and the human's word on it.
        gate_change: GateChange,
        /// The commit on the integration branch.
        merge_commit: Sha,
        /// The specification that it implements: a path, with or without an anchor.
        spec_ref: String,
        done_when: String,
        /// Its own commands, which show that it is done.
        validation: Vec<String>,
        /// The last result of all commands that validate it.
        validated: Validation,
        /// The commit on which the human has let the commands run again: what other machines have stated about it before
        /// does not hold it up.
        validation_retried: Sha,
        scope: String,
        rejection_reason: String,
        blocked_reason: String,
        /// Questions whose answers would unblock it.
        blocked_questions: Vec<String>,
        /// The attempts before it was blocked.
        attempted: Vec<String>,
        failed_by: Vec<AgentId>,
        /// Code reviewers whose sessions on this submission ended too often without a verdict.
        review_dropped_by: Vec<AgentId>,
        /// The coder who had it before it was unblocked for another one.
        previous_coder: AgentId,
        /// True if the claim repairs a failed merge.
        integration_fix: bool,
        /// True if handoff notes of an earlier session are waiting.
        handoff_pending: bool,
        /// Its own limit of claims by one coder.
        max_iterations: u32,
        /// The same, by the name that the setting has.
        max_coder_iterations: u32,
        /// Its own limit of rejections of one coder.
        max_review_cycles: u32,
        lease_duration_override: Seconds,
        /// The task whose session budget it uses, if not its own: the first of a chain of replacements.
        budget_task: TaskId,
        /// If true, it uses the one session budget of all tasks that the planner added to a running plan.
        shared_budget: bool,
        /// Sessions that crashed since the last progress.
        crashes: u32,
        /// Sessions without a result since the last progress.
        idle_exits: u32,
        usage: Usage,
        /// The number of notes in the list when each agent last read them in a session on it.
        notes_read: IndexMap<AgentId, usize>,
        created: Timestamp,
        /// The write that last changed it.
        revision: Revision,
        /// Append-only.
        history: Vec<HistoryEvent>,
    }
}

impl TaskRecord {
    /// The history, oldest first.
    pub fn events(&self) -> std::slice::Iter<'_, HistoryEvent> {
        self.history.as_deref().unwrap_or_default().iter()
    }

    pub fn last_event(&self, name: EventName) -> Option<&HistoryEvent> {
        self.events().rev().find(|event| event.is(name))
    }

    /// What rules may ask of the history.
    pub fn past(&self) -> Past<'_> {
        Past::of(self.history.as_deref().unwrap_or_default())
    }

    /// The last events of one agent on it.
    pub fn trace(&self, agent: AgentId) -> Option<Trace> {
        Trace::of(self.history.as_deref().unwrap_or_default(), agent)
    }

    /// True if the human has blocked it as a draft, which need not be complete.
    pub fn is_blocked_draft(&self) -> bool {
        let was = || self.past().last_block?.from;
        self.status == Some(Status::Blocked) && was().as_deref() == Some(Status::Draft.name())
    }

    /// The moment of its merge, its replacement or its end; `None` for an open task.
    pub fn ended(&self) -> Option<Timestamp> {
        self.status.is_some_and(Status::is_terminal).then(|| self.past().end).flatten()
    }

    /// The time from its first claim to its end, or to now.
    pub fn work_time(&self, now: Timestamp) -> Option<Seconds> {
        let began = self.past().first_claim?;
        Some(self.ended().unwrap_or(now).since(began))
    }

    /// Forgets sessions without a result, after progress.
    pub(crate) fn clear_exit_counts(&mut self) {
        self.crashes = None;
        self.idle_exits = None;
    }

    /// Clears the fields of a status. Fields for later readers stay: the last review's commit and reason, the
    /// approver, the reason of a rescope.
    pub(crate) fn clear_status_fields(&mut self) {
        self.assigned_to = None;
        self.worktree = None;
        self.base_commit = None;
        self.lease_expires = None;
        self.reviewing_by = None;
        self.review_lease_expires = None;
        self.review_head = None;
        self.review_moves = None;
        self.review_phase = None;
        self.blocked_reason = None;
        self.blocked_questions = None;
        self.attempted = None;
        self.merge_held = None;
    }
}

/// Reads a list, or a single value that people wrote without brackets.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<TaskId>>, D::Error> {
    deserializer.deserialize_any(OneOrMany)
}

/// Not an untagged enum: its error would not say what is wrong.
struct OneOrMany;

impl<'de> Visitor<'de> for OneOrMany {
    type Value = Option<Vec<TaskId>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a task ID or a list of task IDs")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map(|task| Some(vec![task])).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut tasks = Vec::new();
        while let Some(task) = list.next_element()? {
            tasks.push(task);
        }
        Ok(Some(tasks))
    }
}
