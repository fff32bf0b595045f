//! A task whose record has what its status needs: the variants carry that data.
//!
//! Owner, lease, worktree and base change together or not at all; only `protocol/` makes new statuses.

use std::fmt;

use liza_ids::{AgentId, Approver, Sha, TaskId, Timestamp, Worktree};

use crate::model::config_bounds::task_out_of_range;
use crate::model::event::HistoryEvent;
use crate::model::lease::lease_is_live;
use crate::model::merge_hold::MergeHold;
use crate::model::record::{Fault, Status, TaskRecord};
use crate::model::refusal::Refusal;
use crate::model::validation::ReviewPhase;

/// The coder, the worktree and the first commit of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub coder: AgentId,
    pub worktree: Worktree,
    /// The integration head that it started from; old files may lack it.
    pub base: Option<Sha>,
}

/// The remains of earlier work on a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriorWork {
    /// The coder that it is meant for, or was last with.
    pub coder: Option<AgentId>,
    pub worktree: Option<Worktree>,
    /// The commit that it started from.
    pub base: Option<Sha>,
}

impl From<Assignment> for PriorWork {
    fn from(work: Assignment) -> Self {
        Self { coder: Some(work.coder), worktree: Some(work.worktree), base: work.base }
    }
}

/// The code reviewer and its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewClaim {
    pub by: AgentId,
    pub lease: Timestamp,
    /// The integration head at which it has read the change; reviews of older versions have none.
    pub head: Option<Sha>,
    /// Its approvals that were refused because the change had moved.
    pub moves: u32,
    /// Before its session: the part of the review that Liza does.
    pub phase: Option<ReviewPhase>,
}

impl ReviewClaim {
    pub fn is_live(&self, now: Timestamp) -> bool {
        lease_is_live(self.lease, now)
    }
}

/// The reason of a block by which a person asks for a new plan; in the file it needs no questions.
pub const HUMAN_OVERRIDE: &str = "human override";
/// The question of such a block.
pub(crate) const OVERRIDE_QUESTION: &str = "What does the human want changed?";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub reason: String,
    pub questions: Vec<String>,
    pub attempted: Vec<String>,
}

impl Block {
    /// A block that the rules themselves set.
    pub(crate) fn by_system(reason: &str, questions: impl Into<Vec<String>>) -> Self {
        Self { reason: reason.to_owned(), questions: questions.into(), attempted: Vec::new() }
    }
}

/// The reason of a block after too many rejections of one coder.
pub const REVIEW_DEADLOCK: &str = "review_deadlock";

/// After this many different coders have failed at a task, its framing is presumed wrong.
pub const MAX_FAILED_CODERS: usize = 2;

/// The eleven states, each with the data that it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStatus {
    Draft,
    Unclaimed {
        /// The remains of an unblocked task.
        prior: PriorWork,
    },
    Claimed {
        work: Assignment,
        /// The end of the coder's lease.
        lease: Timestamp,
    },
    ReadyForReview {
        work: Assignment,
        commit: Sha,
        review: Option<ReviewClaim>,
    },
    Rejected {
        work: Assignment,
        /// The commit that was rejected.
        commit: Sha,
        reason: String,
    },
    Approved {
        work: Assignment,
        commit: Sha,
        by: Option<Approver>,
        /// The reason that its merge waits.
        held: Option<MergeHold>,
    },
    IntegrationFailed {
        work: Assignment,
        /// The commit that could not be merged.
        commit: Sha,
    },
    Blocked {
        block: Block,
        /// The work that stays until the planner decides.
        prior: PriorWork,
    },
    Merged {
        merge_commit: Option<Sha>,
    },
    Superseded {
        by: Vec<TaskId>,
        reason: String,
    },
    Abandoned,
}

impl TaskStatus {
    pub fn name(&self) -> Status {
        match self {
            TaskStatus::Draft => Status::Draft,
            TaskStatus::Unclaimed { .. } => Status::Unclaimed,
            TaskStatus::Claimed { .. } => Status::Claimed,
            TaskStatus::ReadyForReview { .. } => Status::ReadyForReview,
            TaskStatus::Rejected { .. } => Status::Rejected,
            TaskStatus::Approved { .. } => Status::Approved,
            TaskStatus::IntegrationFailed { .. } => Status::IntegrationFailed,
            TaskStatus::Blocked { .. } => Status::Blocked,
            TaskStatus::Merged { .. } => Status::Merged,
            TaskStatus::Superseded { .. } => Status::Superseded,
            TaskStatus::Abandoned => Status::Abandoned,
        }
    }

    /// The coder's claim and its lease, where there is one.
    pub fn claim(&self) -> Option<(&Assignment, Timestamp)> {
        if let TaskStatus::Claimed { work, lease } = self { Some((work, *lease)) } else { None }
    }

    /// The code reviewer's claim, where there is one.
    pub fn review(&self) -> Option<&ReviewClaim> {
        if let TaskStatus::ReadyForReview { review, .. } = self { review.as_ref() } else { None }
    }

    /// True if that agent is its coder or its code reviewer.
    pub fn is_held_by(&self, agent: AgentId) -> bool {
        self.claim().is_some_and(|(work, _)| work.coder == agent)
            || self.review().is_some_and(|review| review.by == agent)
    }

    /// The present or earlier work.
    pub fn prior_work(&self) -> PriorWork {
        match self {
            TaskStatus::Claimed { work, .. }
            | TaskStatus::ReadyForReview { work, .. }
            | TaskStatus::Rejected { work, .. }
            | TaskStatus::Approved { work, .. }
            | TaskStatus::IntegrationFailed { work, .. } => work.clone().into(),
            TaskStatus::Unclaimed { prior } | TaskStatus::Blocked { prior, .. } => prior.clone(),
            TaskStatus::Draft
            | TaskStatus::Merged { .. }
            | TaskStatus::Superseded { .. }
            | TaskStatus::Abandoned => PriorWork::default(),
        }
    }
}

/// A task's record as read, with its typed status if it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskBody {
    record: TaskRecord,
    faults: Vec<Fault>,
    status: Result<TaskStatus, Vec<String>>,
}

impl TaskBody {
    /// Reads the status of a record; `faults` are its parts that could not be understood.
    pub fn new(record: TaskRecord, faults: Vec<Fault>) -> Self {
        let mut missing = Vec::new();
        let status = read_status(&record, &mut missing);
        let problems = faults.iter().map(|fault| fault.message.clone());
        let mut problems: Vec<String> = problems.chain(missing.iter().map(ToString::to_string)).collect();
        problems.extend(task_out_of_range(&record).iter().map(ToString::to_string));
        if record.status.is_none() {
            problems.push("task has no status".to_owned());
        }
        let status = status.filter(|_| problems.is_empty()).ok_or(problems);
        Self { record, faults, status }
    }

    pub fn record(&self) -> &TaskRecord {
        &self.record
    }

    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    pub fn status(&self) -> Result<&TaskStatus, &[String]> {
        self.status.as_ref().map_err(Vec::as_slice)
    }
}

/// A task that is fit to be changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub status: TaskStatus,
    /// Everything else; the status's own fields are overwritten when the task becomes a record again.
    pub record: TaskRecord,
}

impl Task {
    pub fn from_body(id: &TaskId, body: &TaskBody) -> Result<Task, Refusal> {
        match body.status() {
            Ok(status) => Ok(Task { id: id.clone(), status: status.clone(), record: body.record.clone() }),
            Err(missing) => Err(Refusal::BrokenTask { task: id.clone(), faults: missing.to_vec() }),
        }
    }

    pub(crate) fn push_event(&mut self, event: HistoryEvent) {
        self.record.history.get_or_insert_default().push(event);
    }

    /// The record of this task: the status's own fields set, those of other states cleared.
    pub fn into_record(self) -> TaskRecord {
        let mut record = self.record;
        record.id = Some(self.id);
        record.status = Some(self.status.name());
        record.clear_status_fields();
        // An approval holds for the commit that waits for its merge, or has been merged.
        record.approved_by = record.approved_by.filter(|_| record.status == Some(Status::Merged));
        write_status(self.status, &mut record);
        record
    }
}

fn write_prior_work(prior: PriorWork, record: &mut TaskRecord) {
    record.assigned_to = prior.coder;
    record.worktree = prior.worktree;
    record.base_commit = prior.base;
}

fn write_status(status: TaskStatus, record: &mut TaskRecord) {
    write_prior_work(status.prior_work(), record);
    match status {
        TaskStatus::Draft | TaskStatus::Unclaimed { .. } | TaskStatus::Abandoned => {}
        TaskStatus::Claimed { lease, .. } => record.lease_expires = Some(lease),
        TaskStatus::ReadyForReview { commit, review, .. } => {
            record.review_commit = Some(commit);
            record.reviewing_by = review.as_ref().map(|review| review.by);
            record.review_lease_expires = review.as_ref().map(|review| review.lease);
            record.review_moves = review.as_ref().map(|review| review.moves).filter(|moves| *moves > 0);
            record.review_phase = review.as_ref().and_then(|review| review.phase);
            record.review_head = review.and_then(|review| review.head);
        }
        TaskStatus::Rejected { commit, reason, .. } => {
            record.review_commit = Some(commit);
            record.rejection_reason = Some(reason);
        }
        TaskStatus::Approved { commit, by, held, .. } => {
            record.review_commit = Some(commit);
            record.approved_by = by;
            record.merge_held = held;
        }
        TaskStatus::IntegrationFailed { commit, .. } => record.review_commit = Some(commit),
        TaskStatus::Blocked { block, .. } => {
            record.blocked_reason = Some(block.reason);
            record.blocked_questions = Some(block.questions);
            record.attempted = Some(block.attempted).filter(|attempted| !attempted.is_empty());
        }
        TaskStatus::Merged { merge_commit } => record.merge_commit = merge_commit,
        TaskStatus::Superseded { by, reason } => {
            record.superseded_by = Some(by);
            record.rescope_reason = Some(reason);
        }
    }
}

/// The fields that the specification demands for the record's status and that are missing.
pub(crate) fn missing_fields(record: &TaskRecord) -> Vec<String> {
    let mut missing = Vec::new();
    read_status(record, &mut missing);
    missing.retain(|missing| missing.is_demanded);
    missing.iter().map(ToString::to_string).collect()
}

/// A field that a status needs and the record lacks.
struct MissingField {
    status: Status,
    field: &'static str,
    /// True if the specification demands it; otherwise only commands on the task need the field.
    is_demanded: bool,
}

impl fmt::Display for MissingField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} task has no {}", self.status, self.field)
    }
}

fn is_demanded(status: Status, field: &str) -> bool {
    match status {
        Status::Claimed | Status::Blocked | Status::Superseded => true,
        Status::ReadyForReview => field == "review_commit",
        Status::Rejected => field == "rejection_reason",
        Status::Draft
        | Status::Unclaimed
        | Status::Approved
        | Status::IntegrationFailed
        | Status::Merged
        | Status::Abandoned => false,
    }
}

/// Reads the fields that a status needs and notes those that are missing.
struct Needs<'a> {
    record: &'a TaskRecord,
    status: Status,
    missing: &'a mut Vec<MissingField>,
}

impl Needs<'_> {
    fn missing(&mut self, field: &'static str) {
        let status = self.status;
        self.missing.push(MissingField { status, field, is_demanded: is_demanded(status, field) });
    }

    fn field<T: Clone>(&mut self, value: Option<&T>, name: &'static str) -> Option<T> {
        if value.is_none() {
            self.missing(name);
        }
        value.cloned()
    }

    fn text(&mut self, value: Option<&String>, name: &'static str) -> Option<String> {
        self.field(value.filter(|text| !text.trim().is_empty()), name)
    }

    fn list<T: Clone>(&mut self, value: Option<&Vec<T>>, name: &'static str) -> Option<Vec<T>> {
        self.field(value.filter(|items| !items.is_empty()), name)
    }

    fn assignment(&mut self) -> Option<Assignment> {
        let coder = self.field(self.record.assigned_to.as_ref(), "assigned_to");
        let worktree = self.field(self.record.worktree.as_ref(), "worktree");
        Some(Assignment { coder: coder?, worktree: worktree?, base: self.record.base_commit.clone() })
    }

    fn commit(&mut self) -> Option<Sha> {
        self.field(self.record.review_commit.as_ref(), "review_commit")
    }

    fn block(&mut self) -> Option<Block> {
        let record = self.record;
        let reason = self.text(record.blocked_reason.as_ref(), "blocked_reason");
        // A person who asks for a new plan has no question.
        let overridden = reason.as_deref().is_some_and(|reason| reason.trim() == HUMAN_OVERRIDE);
        let asked = record.blocked_questions.as_ref().filter(|questions| !questions.is_empty());
        let questions = match asked {
            None if overridden => Some(vec![OVERRIDE_QUESTION.to_owned()]),
            asked => self.list(asked, "blocked_questions"),
        };
        let attempted = record.attempted.clone().unwrap_or_default();
        Some(Block { reason: reason?, questions: questions?, attempted })
    }
}

fn read_prior_work(record: &TaskRecord) -> PriorWork {
    PriorWork {
        coder: record.assigned_to,
        worktree: record.worktree.clone(),
        base: record.base_commit.clone(),
    }
}

fn read_review(record: &TaskRecord) -> Option<ReviewClaim> {
    // A review without an end counts as a stale one: the next claim gets a proper lease.
    let (by, lease) = (record.reviewing_by?, record.review_lease_expires?);
    let (head, moves, phase) =
        (record.review_head.clone(), record.review_moves.unwrap_or(0), record.review_phase);
    Some(ReviewClaim { by, lease, head, moves, phase })
}

fn read_status(record: &TaskRecord, missing: &mut Vec<MissingField>) -> Option<TaskStatus> {
    let status = record.status?;
    let mut needs = Needs { record, status, missing };
    Some(match status {
        Status::Draft => TaskStatus::Draft,
        Status::Unclaimed => TaskStatus::Unclaimed { prior: read_prior_work(record) },
        Status::Claimed => {
            let (work, lease) =
                (needs.assignment(), needs.field(record.lease_expires.as_ref(), "lease_expires"));
            TaskStatus::Claimed { work: work?, lease: lease? }
        }
        Status::ReadyForReview => {
            let (work, commit) = (needs.assignment(), needs.commit());
            TaskStatus::ReadyForReview { work: work?, commit: commit?, review: read_review(record) }
        }
        Status::Rejected => {
            let (work, commit) = (needs.assignment(), needs.commit());
            let reason = needs.text(record.rejection_reason.as_ref(), "rejection_reason");
            TaskStatus::Rejected { work: work?, commit: commit?, reason: reason? }
        }
        Status::Approved => {
            let (work, commit) = (needs.assignment(), needs.commit());
            let (by, held) = (record.approved_by, record.merge_held.clone());
            TaskStatus::Approved { work: work?, commit: commit?, by, held }
        }
        Status::IntegrationFailed => {
            let (work, commit) = (needs.assignment(), needs.commit());
            TaskStatus::IntegrationFailed { work: work?, commit: commit? }
        }
        Status::Blocked => TaskStatus::Blocked { block: needs.block()?, prior: read_prior_work(record) },
        Status::Merged => TaskStatus::Merged { merge_commit: record.merge_commit.clone() },
        Status::Superseded => {
            let by = needs.list(record.superseded_by.as_ref(), "superseded_by");
            let reason = needs.text(record.rescope_reason.as_ref(), "rescope_reason");
            TaskStatus::Superseded { by: by?, reason: reason? }
        }
        Status::Abandoned => TaskStatus::Abandoned,
    })
}
