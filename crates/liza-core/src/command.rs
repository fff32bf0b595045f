//! Every operation on the blackboard as plain data, facts and `now` included.
//!
//! Data cannot do IO under the lock, and can be logged, retried, replayed and explored. Nothing is decided here.

use crate::agent::{Actor, AgentStatus};
use crate::breaker::Finding;
use crate::effect::HaltFile;
use crate::ids::{AgentId, DiscoveryId, Generation, Revision, Sha, TaskId};
use crate::metrics::Metrics;
use crate::notes::{AnomalyType, Severity, Urgency};
use crate::record::{Reservation, Usage};
use crate::time::{Seconds, Timestamp};
use crate::value::Fields;

/// The stop files that were there when the command was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Halt {
    /// `.liza/PAUSE`
    pub pause: bool,
    /// `.liza/CHECKPOINT`
    pub checkpoint: bool,
    /// `.liza/ABORT`
    pub abort: bool,
}

/// A command with who asks, when, and what they had seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Who asks.
    pub actor: Actor,
    /// When.
    pub now: Timestamp,
    /// The stop files.
    pub halt: Halt,
    /// The revision that the caller had read; refused where the target has moved on.
    pub if_revision: Option<Revision>,
    /// What they ask for.
    pub command: Command,
}

/// A task to be written down.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewTask {
    /// What to build.
    pub description: String,
    /// What it has to conform to.
    pub spec_ref: Option<String>,
    /// How one sees that it is done.
    pub done_when: Option<String>,
    /// What belongs to it.
    pub scope: Option<String>,
    /// 1 to 5.
    pub priority: Option<i64>,
    /// What must be MERGED first.
    pub depends_on: Vec<TaskId>,
    /// Whether it is to stay a draft.
    pub draft: bool,
    /// Whether it may be left out of the sprint.
    pub stretch: bool,
    /// Own limit of claims.
    pub max_iterations: Option<u32>,
    /// Own limit of rejections.
    pub max_review_cycles: Option<u32>,
    /// Own length of a lease.
    pub lease: Option<Seconds>,
}

/// What to change in a DRAFT or UNCLAIMED task; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskEdit {
    /// What to build.
    pub description: Option<String>,
    /// What it has to conform to.
    pub spec_ref: Option<String>,
    /// How one sees that it is done.
    pub done_when: Option<String>,
    /// What belongs to it.
    pub scope: Option<String>,
    /// 1 to 5.
    pub priority: Option<i64>,
    /// What must be MERGED first.
    pub depends_on: Option<Vec<TaskId>>,
}

/// How a worktree stands, as git tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeFacts {
    /// Its HEAD.
    pub head: Sha,
    /// Whether HEAD is on the task's branch.
    pub on_task_branch: bool,
    /// Staged, unstaged and untracked paths that are not ignored.
    pub dirty: Vec<String>,
    /// Tracked paths that differ from HEAD.
    pub changed_tracked: Vec<String>,
    /// Whether the task's base is an ancestor of HEAD.
    pub has_base: bool,
}

/// A review's outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Clear to merge.
    Approved,
    /// Sent back, with the reason.
    Rejected(String),
}

/// Why a merge failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeFailure {
    /// These files conflict.
    Conflict {
        /// Their paths.
        files: Vec<String>,
    },
    /// The commit and the integration branch have no common history.
    Unrelated,
    /// The integration test was red or took too long.
    Test {
        /// What happened, in one line.
        what: String,
        /// Where its output is.
        output: String,
    },
}

impl MergeFailure {
    /// How the history tells of a commit that has nothing in common with the integration branch.
    pub const UNRELATED: &str = "no common history with the integration branch";
}

/// Which claim a person takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimRole {
    /// The coder's.
    Coder,
    /// The code reviewer's.
    Reviewer,
    /// Whichever there is.
    Both,
}

/// How a session ended that brought nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FruitlessExit {
    /// It crashed.
    Crash,
    /// It ended in order, without submitting, blocking or handing off.
    Idle,
}

/// What a session leaves to the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HandoffNotes {
    /// Where the task stands.
    pub summary: String,
    /// What to do first.
    pub next_action: String,
    /// How it was being done.
    pub approach: Option<String>,
    /// What is in the way.
    pub blockers: Option<String>,
    /// What was touched.
    pub files_modified: Vec<String>,
    /// What is left.
    pub next_steps: Vec<String>,
    /// How full the context was.
    pub context_percent: Option<u32>,
}

/// What a coder intends before it begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Intent {
    /// What it is going to do.
    pub intent: String,
    /// How it will show that it works.
    pub validation: String,
    /// What it takes for granted.
    pub assumptions: Vec<String>,
    /// What could go wrong.
    pub risks: Vec<String>,
    /// What it will touch.
    pub files: Vec<String>,
}

/// Why the sprint goes to CHECKPOINT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckpointCause {
    /// A person asked, by the command.
    Human,
    /// The deadline has come.
    Deadline,
}

/// Every operation on the blackboard.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Write a task down.
    AddTask {
        /// Its name.
        task: TaskId,
        /// Its content.
        new: NewTask,
    },
    /// Complete or correct a DRAFT or UNCLAIMED task.
    EditTask {
        /// Which.
        task: TaskId,
        /// What changes.
        edit: TaskEdit,
    },
    /// DRAFT becomes UNCLAIMED; all drafts where none is named.
    Finalize {
        /// Which.
        tasks: Vec<TaskId>,
    },
    /// Replace a task by others.
    Supersede {
        /// Which.
        task: TaskId,
        /// By which.
        by: Vec<TaskId>,
        /// Why.
        reason: String,
        /// What was at the bottom of it.
        root_cause: String,
        /// How the goal stands after it.
        summary: Option<String>,
    },
    /// Give a task up.
    Abandon {
        /// Which.
        task: TaskId,
        /// Why.
        reason: String,
    },
    /// Release a blocked task.
    Unblock {
        /// Which.
        task: TaskId,
        /// Whether the coder starts with a full budget of reviews.
        reset_cycles: bool,
        /// Whether it goes back to its coder.
        same_coder: bool,
        /// Whether another coder goes on in its worktree.
        keep_worktree: bool,
        /// What the planner makes of the deadlock.
        assessment: Option<String>,
    },
    /// Say how the work stands to the goal.
    Align {
        /// How.
        summary: String,
    },
    /// The goal is reached.
    CompleteGoal,
    /// The goal is given up.
    AbortGoal,
    /// A new goal; what is over goes to the archive.
    NewGoal {
        /// What is wanted.
        description: String,
        /// The vision document.
        spec_ref: Option<String>,
    },
    /// An agent comes.
    Register {
        /// Who.
        agent: AgentId,
        /// Where a person can watch it.
        terminal: String,
        /// The registration under that name whose supervisor is known to be dead: the lock that it held for its
        /// life is free.
        proven_dead: Option<Generation>,
    },
    /// Agents are alive.
    Heartbeat {
        /// Who, each with its registration where the caller knows it.
        agents: Vec<(AgentId, Option<Generation>)>,
        /// For how long, where it is not the usual time.
        length: Option<Seconds>,
    },
    /// An agent goes.
    Deregister {
        /// Who.
        agent: AgentId,
    },
    /// An agent does something else now.
    SetStatus {
        /// Who.
        agent: AgentId,
        /// What.
        status: AgentStatus,
    },
    /// First half of a claim.
    Reserve {
        /// Which task.
        task: TaskId,
        /// For whom.
        coder: AgentId,
        /// The head of the integration branch.
        head: Sha,
    },
    /// Second half of a claim: the worktree stands.
    Claim {
        /// Which task.
        task: TaskId,
        /// For whom.
        coder: AgentId,
    },
    /// The claim will not be completed.
    CancelReservation {
        /// Which task.
        task: TaskId,
        /// Whose reservation.
        coder: AgentId,
    },
    /// Clear away a reservation whose claim died on the way.
    DropReservation {
        /// Which task.
        task: TaskId,
        /// The reservation that nobody is behind any more; another one is left alone.
        reservation: Reservation,
    },
    /// Settle what crashes have left: asked before, told afterwards.
    Recover {
        /// What was settled, in words; nothing where it is only asked.
        settled: Vec<String>,
    },
    /// A person takes a claim away.
    ReleaseClaim {
        /// Which task.
        task: TaskId,
        /// Whose claim.
        role: ClaimRole,
        /// Even where its lease still runs.
        force: bool,
        /// Why.
        reason: Option<String>,
    },
    /// Say what is about to be done.
    PreCheck {
        /// Which task.
        task: TaskId,
        /// What is intended.
        intent: Intent,
    },
    /// Ask for a review of exactly this commit.
    SubmitForReview {
        /// Which task.
        task: TaskId,
        /// Which commit.
        commit: Sha,
        /// How the worktree stands; nothing where there is none.
        facts: Option<WorktreeFacts>,
    },
    /// A code reviewer takes a review.
    ClaimReview {
        /// Which task.
        task: TaskId,
        /// For whom.
        reviewer: AgentId,
        /// The worktree's HEAD; nothing where there is no worktree.
        head: Option<Sha>,
    },
    /// A code reviewer's session ended without a verdict.
    GiveUpReview {
        /// Which task.
        task: TaskId,
        /// Whose review.
        reviewer: AgentId,
    },
    /// Approve or reject.
    SubmitVerdict {
        /// Which task.
        task: TaskId,
        /// How.
        verdict: Verdict,
        /// How the worktree stands; nothing where there is none.
        facts: Option<WorktreeFacts>,
    },
    /// Clear review claims whose lease has run out.
    ClearStaleReviews,
    /// Ask whether a merge may begin.
    BeginMerge {
        /// Which task.
        task: TaskId,
    },
    /// The branch has moved.
    RecordMerge {
        /// Which task.
        task: TaskId,
        /// The approved commit that was merged.
        commit: Sha,
        /// Where the integration branch stands now.
        merge_commit: Sha,
        /// Commits on the integration branch since the task's base.
        drift_commits: u32,
    },
    /// The merge failed; the branch has not moved.
    RecordMergeFailure {
        /// Which task.
        task: TaskId,
        /// The approved commit that was tried.
        commit: Sha,
        /// Why.
        failure: MergeFailure,
    },
    /// Make a worktree by hand.
    CreateWorktree {
        /// Whose.
        task: TaskId,
        /// Whether it starts from the base.
        fresh: bool,
        /// The head of the integration branch.
        head: Sha,
    },
    /// Remove a worktree by hand.
    DeleteWorktree {
        /// Whose.
        task: TaskId,
    },
    /// The task cannot go on.
    MarkBlocked {
        /// Which.
        task: TaskId,
        /// Why.
        reason: String,
        /// What would unblock it.
        questions: Vec<String>,
        /// What was tried.
        attempted: Vec<String>,
    },
    /// A session brought nothing.
    CountExit {
        /// On which task.
        task: TaskId,
        /// Whose session.
        agent: AgentId,
        /// How it ended.
        exit: FruitlessExit,
    },
    /// A session hands over to the next.
    Handoff {
        /// On which task.
        task: TaskId,
        /// What it leaves.
        notes: HandoffNotes,
        /// Uncommitted paths in the worktree.
        dirty: Vec<String>,
    },
    /// The next session was given the notes.
    TakeHandoff {
        /// On which task.
        task: TaskId,
    },
    /// Something is not as it should be.
    Anomaly {
        /// What kind.
        kind: AnomalyType,
        /// During which task.
        task: Option<TaskId>,
        /// What exactly.
        details: Fields,
    },
    /// Something else needs doing.
    Discover {
        /// Found during which task.
        task: Option<TaskId>,
        /// What.
        description: String,
        /// How bad.
        severity: Severity,
        /// How soon.
        urgency: Urgency,
        /// What to do.
        recommendation: Option<String>,
    },
    /// A discovery became a task.
    ConvertDiscovery {
        /// Which.
        discovery: DiscoveryId,
        /// Which task.
        task: TaskId,
    },
    /// A person has something to say.
    Note {
        /// What.
        message: String,
        /// To whom works on which task.
        to: Option<TaskId>,
    },
    /// A specification changed.
    SpecChange {
        /// Which.
        spec: String,
        /// How.
        change: String,
        /// Why.
        triggered_by: String,
    },
    /// Stop for a human's look.
    Checkpoint {
        /// Why.
        cause: CheckpointCause,
    },
    /// Stop for a while.
    Pause,
    /// Go on after PAUSE or CHECKPOINT.
    Resume {
        /// What the human decided.
        decision: Option<String>,
        /// In which words.
        note: Option<String>,
    },
    /// Stop for good.
    Abort,
    /// A person put up a stop file or took it away by hand: the blackboard follows.
    FollowFile {
        /// Which.
        file: HaltFile,
        /// Since when it stands; nothing where it is gone.
        since: Option<Timestamp>,
    },
    /// All planned tasks are terminal.
    CompleteSprint,
    /// The next sprint begins.
    NewSprint,
    /// When a human wants to look.
    SetDeadline {
        /// When; nothing takes it away.
        deadline: Option<Timestamp>,
    },
    /// What was learned.
    Retrospective {
        /// In words.
        text: String,
    },
    /// The sprint's figures, computed outside the lock.
    UpdateMetrics {
        /// Which.
        metrics: Metrics,
    },
    /// What the planner has looked at; replaces what it had seen before, so that what is settled is forgotten.
    SeeTriggers {
        /// The keys of everything that stands.
        keys: Vec<String>,
    },
    /// What the breaker found, computed outside the lock.
    RecordAnalysis {
        /// The patterns that fire, the trigger first.
        findings: Vec<Finding>,
    },
    /// A human settled what the breaker had found.
    Resolve {
        /// How.
        resolution: String,
    },
    /// Move terminal tasks out of the live file.
    Archive {
        /// Which.
        tasks: Vec<TaskId>,
    },
    /// What a session used.
    RecordUsage {
        /// Whose.
        agent: AgentId,
        /// On which task.
        task: Option<TaskId>,
        /// How much.
        usage: Usage,
        /// How full its context was.
        context_percent: Option<u32>,
    },
}

impl Command {
    /// The word by which people call it, in messages and in the matrix.
    pub fn verb(&self) -> &'static str {
        match self {
            Command::AddTask { .. } => "add-task",
            Command::EditTask { .. } => "edit-task",
            Command::Finalize { .. } => "finalize",
            Command::Supersede { .. } => "supersede-task",
            Command::Abandon { .. } => "abandon-task",
            Command::Unblock { .. } => "unblock-task",
            Command::Align { .. } => "align",
            Command::CompleteGoal => "goal complete",
            Command::AbortGoal => "goal abort",
            Command::NewGoal { .. } => "goal new",
            Command::Register { .. } => "register",
            Command::Heartbeat { .. } => "heartbeat",
            Command::Deregister { .. } => "deregister",
            Command::SetStatus { .. } => "set-status",
            Command::Reserve { .. } => "claim-task",
            Command::Claim { .. } => "claim-task (second half)",
            Command::CancelReservation { .. } => "claim-task (cancel)",
            Command::DropReservation { .. } => "recover (reservation)",
            Command::Recover { .. } => "recover",
            Command::ReleaseClaim { .. } => "release-claim",
            Command::PreCheck { .. } => "pre-check",
            Command::SubmitForReview { .. } => "submit-for-review",
            Command::ClaimReview { .. } => "claim-review",
            Command::GiveUpReview { .. } => "give-up-review",
            Command::SubmitVerdict { .. } => "submit-verdict",
            Command::ClearStaleReviews => "clear-stale-review-claims",
            Command::BeginMerge { .. } => "wt-merge",
            Command::RecordMerge { .. } => "wt-merge (merged)",
            Command::RecordMergeFailure { .. } => "wt-merge (failed)",
            Command::CreateWorktree { .. } => "wt-create",
            Command::DeleteWorktree { .. } => "wt-delete",
            Command::MarkBlocked { .. } => "mark-blocked",
            Command::CountExit { .. } => "count-exit",
            Command::Handoff { .. } => "handoff",
            Command::TakeHandoff { .. } => "take-handoff",
            Command::Anomaly { .. } => "anomaly",
            Command::Discover { .. } => "discover",
            Command::ConvertDiscovery { .. } => "convert-discovery",
            Command::Note { .. } => "note",
            Command::SpecChange { .. } => "spec-change",
            Command::Checkpoint { .. } => "checkpoint",
            Command::Pause => "pause",
            Command::Resume { .. } => "resume",
            Command::Abort => "abort",
            Command::FollowFile { .. } => "follow-file",
            Command::CompleteSprint => "sprint complete",
            Command::NewSprint => "sprint new",
            Command::SetDeadline { .. } => "sprint deadline",
            Command::Retrospective { .. } => "retro",
            Command::UpdateMetrics { .. } => "update-sprint-metrics",
            Command::SeeTriggers { .. } => "see-triggers",
            Command::RecordAnalysis { .. } => "analyze",
            Command::Resolve { .. } => "resolve",
            Command::Archive { .. } => "archive",
            Command::RecordUsage { .. } => "record-usage",
        }
    }
}
