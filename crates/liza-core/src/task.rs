//! A task whose record has what its state needs: the status variants carry that data.
//!
//! Owner, lease, worktree and base change together or not at all; only `transition/` makes new statuses.

use crate::board::Body;
use crate::event::HistoryEvent;
use crate::ids::{AgentId, Sha, TaskId, Worktree};
use crate::record::{Status, TaskRecord};
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// Who works where, from which commit on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The coder.
    pub coder: AgentId,
    /// Its worktree.
    pub worktree: Worktree,
    /// The integration head that it started from; old files may lack it.
    pub base: Option<Sha>,
}

/// What a task that nobody works on still has from before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The coder that it is meant for, or was last with.
    pub coder: Option<AgentId>,
    /// The worktree that still stands.
    pub worktree: Option<Worktree>,
    /// The commit that it started from.
    pub base: Option<Sha>,
}

impl From<Work> for Kept {
    fn from(work: Work) -> Self {
        Self { coder: Some(work.coder), worktree: Some(work.worktree), base: work.base }
    }
}

/// Who reviews, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The code reviewer.
    pub by: AgentId,
    /// Until when.
    pub lease: Timestamp,
}

impl Review {
    /// Whether the code reviewer still owns it.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now <= self.lease
    }
}

/// The reason of a block by which a person wants the plan looked at again; in the file it needs no questions.
pub const HUMAN_OVERRIDE: &str = "human override";
/// What is then to be answered.
pub(crate) const OVERRIDE_QUESTION: &str = "What does the human want changed?";

/// Why a task is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What it waits for.
    pub reason: String,
    /// What would unblock it.
    pub questions: Vec<String>,
    /// What was tried.
    pub attempted: Vec<String>,
}

/// The reason of a block that ended the talk between coder and code reviewer.
pub const REVIEW_DEADLOCK: &str = "review_deadlock";

/// As many different coders as may fail at a task before its framing is presumed wrong.
pub const EXHAUSTED: usize = 2;

/// The eleven states, each with what it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStatus {
    /// Being defined.
    Draft,
    /// Free. What is kept waits for the coder that may go on with it.
    Unclaimed {
        /// What an unblocked task still has.
        kept: Kept,
    },
    /// A coder works on it.
    Claimed {
        /// Who, where.
        work: Work,
        /// Until when it is the coder's.
        lease: Timestamp,
    },
    /// Submitted.
    ReadyForReview {
        /// Whose work.
        work: Work,
        /// At which commit.
        commit: Sha,
        /// Who reviews it.
        review: Option<Review>,
    },
    /// Sent back.
    Rejected {
        /// Whose work.
        work: Work,
        /// The commit that was rejected.
        commit: Sha,
        /// Why.
        reason: String,
    },
    /// May be merged.
    Approved {
        /// Whose work.
        work: Work,
        /// At exactly this commit.
        commit: Sha,
        /// Who approved it.
        by: Option<AgentId>,
    },
    /// The merge failed.
    IntegrationFailed {
        /// Whose work.
        work: Work,
        /// The commit that could not be merged.
        commit: Sha,
    },
    /// Needs a decision.
    Blocked {
        /// Why.
        block: Block,
        /// What stands until the planner decides.
        kept: Kept,
    },
    /// On the integration branch.
    Merged {
        /// The commit on the integration branch.
        merge_commit: Option<Sha>,
    },
    /// Replaced.
    Superseded {
        /// By which tasks.
        by: Vec<TaskId>,
        /// Why.
        reason: String,
    },
    /// Given up.
    Abandoned,
}

impl TaskStatus {
    /// The state's name.
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
    pub fn claim(&self) -> Option<(&Work, Timestamp)> {
        if let TaskStatus::Claimed { work, lease } = self { Some((work, *lease)) } else { None }
    }

    /// The code reviewer's claim, where there is one.
    pub fn review(&self) -> Option<&Review> {
        if let TaskStatus::ReadyForReview { review, .. } = self { review.as_ref() } else { None }
    }

    /// Whether that agent has it in hand, to code or to review.
    pub fn is_held_by(&self, agent: AgentId) -> bool {
        self.claim().is_some_and(|(work, _)| work.coder == agent)
            || self.review().is_some_and(|review| review.by == agent)
    }

    /// What stands of earlier or present work.
    pub fn kept(&self) -> Kept {
        match self {
            TaskStatus::Claimed { work, .. }
            | TaskStatus::ReadyForReview { work, .. }
            | TaskStatus::Rejected { work, .. }
            | TaskStatus::Approved { work, .. }
            | TaskStatus::IntegrationFailed { work, .. } => work.clone().into(),
            TaskStatus::Unclaimed { kept } | TaskStatus::Blocked { kept, .. } => kept.clone(),
            TaskStatus::Draft
            | TaskStatus::Merged { .. }
            | TaskStatus::Superseded { .. }
            | TaskStatus::Abandoned => Kept::default(),
        }
    }
}

/// A task that is fit to be changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// Its state, with what the state must have.
    pub status: TaskStatus,
    /// Everything else; what the status owns is written over when the task becomes a record again.
    pub record: TaskRecord,
}

impl Task {
    /// Makes a typed task of a record, or says what the record lacks.
    pub fn from_body(id: &TaskId, body: &Body) -> Result<Task, Refusal> {
        let mut missing: Vec<String> = body.faults.iter().map(|fault| fault.message.clone()).collect();
        let status = read_status(&body.record, &mut missing);
        match status {
            Some(status) if missing.is_empty() => {
                Ok(Task { id: id.clone(), status, record: body.record.clone() })
            }
            _ => Err(Refusal::BrokenTask { task: id.clone(), faults: missing }),
        }
    }

    /// Adds to the history.
    pub fn remember(&mut self, event: HistoryEvent) {
        self.record.history.get_or_insert_default().push(event);
    }

    /// The record of this task: the status's own fields written, those of other states taken away.
    pub fn into_record(self) -> TaskRecord {
        let mut record = self.record;
        record.id = Some(self.id);
        record.status = Some(self.status.name());
        clear_owned(&mut record);
        write_status(self.status, &mut record);
        record
    }
}

/// Takes away what belongs to a state and not to the task. What later readers want stays: the last review's
/// commit and reason, who approved, why it was rescoped.
pub(crate) fn clear_owned(record: &mut TaskRecord) {
    record.assigned_to = None;
    record.worktree = None;
    record.base_commit = None;
    record.lease_expires = None;
    record.reviewing_by = None;
    record.review_lease_expires = None;
    record.blocked_reason = None;
    record.blocked_questions = None;
    record.attempted = None;
}

fn write_kept(kept: Kept, record: &mut TaskRecord) {
    record.assigned_to = kept.coder;
    record.worktree = kept.worktree;
    record.base_commit = kept.base;
}

fn write_status(status: TaskStatus, record: &mut TaskRecord) {
    write_kept(status.kept(), record);
    match status {
        TaskStatus::Draft | TaskStatus::Unclaimed { .. } | TaskStatus::Abandoned => {}
        TaskStatus::Claimed { lease, .. } => record.lease_expires = Some(lease),
        TaskStatus::ReadyForReview { commit, review, .. } => {
            record.review_commit = Some(commit);
            record.reviewing_by = review.as_ref().map(|review| review.by);
            record.review_lease_expires = review.map(|review| review.lease);
        }
        TaskStatus::Rejected { commit, reason, .. } => {
            record.review_commit = Some(commit);
            record.rejection_reason = Some(reason);
        }
        TaskStatus::Approved { commit, by, .. } => {
            record.review_commit = Some(commit);
            record.approved_by = by;
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

/// Reads a field, or notes that it is missing.
fn need<T: Clone>(
    field: Option<&T>,
    name: &str,
    record: &TaskRecord,
    missing: &mut Vec<String>,
) -> Option<T> {
    if field.is_none() {
        let status = record.status.map_or("task", Status::name);
        missing.push(format!("{status} task has no {name}"));
    }
    field.cloned()
}

fn read_work(record: &TaskRecord, missing: &mut Vec<String>) -> Option<Work> {
    let coder = need(record.assigned_to.as_ref(), "assigned_to", record, missing);
    let worktree = need(record.worktree.as_ref(), "worktree", record, missing);
    Some(Work { coder: coder?, worktree: worktree?, base: record.base_commit.clone() })
}

fn read_kept(record: &TaskRecord) -> Kept {
    Kept { coder: record.assigned_to, worktree: record.worktree.clone(), base: record.base_commit.clone() }
}

fn read_review(record: &TaskRecord) -> Option<Review> {
    // A review without an end is as good as a stale one: whoever claims it next gets a proper lease.
    Some(Review { by: record.reviewing_by?, lease: record.review_lease_expires? })
}

fn read_status(record: &TaskRecord, missing: &mut Vec<String>) -> Option<TaskStatus> {
    let Some(status) = record.status else {
        missing.push("task has no status".to_owned());
        return None;
    };
    let commit =
        |missing: &mut Vec<String>| need(record.review_commit.as_ref(), "review_commit", record, missing);
    Some(match status {
        Status::Draft => TaskStatus::Draft,
        Status::Unclaimed => TaskStatus::Unclaimed { kept: read_kept(record) },
        Status::Claimed => {
            let (work, lease) = (
                read_work(record, missing),
                need(record.lease_expires.as_ref(), "lease_expires", record, missing),
            );
            TaskStatus::Claimed { work: work?, lease: lease? }
        }
        Status::ReadyForReview => {
            let (work, commit) = (read_work(record, missing), commit(missing));
            TaskStatus::ReadyForReview { work: work?, commit: commit?, review: read_review(record) }
        }
        Status::Rejected => {
            let (work, commit) = (read_work(record, missing), commit(missing));
            let reason = need(record.rejection_reason.as_ref(), "rejection_reason", record, missing);
            TaskStatus::Rejected { work: work?, commit: commit?, reason: reason? }
        }
        Status::Approved => {
            let (work, commit) = (read_work(record, missing), commit(missing));
            TaskStatus::Approved { work: work?, commit: commit?, by: record.approved_by }
        }
        Status::IntegrationFailed => {
            let (work, commit) = (read_work(record, missing), commit(missing));
            TaskStatus::IntegrationFailed { work: work?, commit: commit? }
        }
        Status::Blocked => {
            let reason = need(record.blocked_reason.as_ref(), "blocked_reason", record, missing);
            let questions = match (&reason, &record.blocked_questions) {
                (Some(reason), None) if reason.trim() == HUMAN_OVERRIDE => {
                    Some(vec![OVERRIDE_QUESTION.to_owned()])
                }
                _ => need(record.blocked_questions.as_ref(), "blocked_questions", record, missing),
            };
            let attempted = record.attempted.clone().unwrap_or_default();
            let block = Block { reason: reason?, questions: questions?, attempted };
            TaskStatus::Blocked { block, kept: read_kept(record) }
        }
        Status::Merged => TaskStatus::Merged { merge_commit: record.merge_commit.clone() },
        Status::Superseded => {
            let by = need(record.superseded_by.as_ref(), "superseded_by", record, missing);
            let reason = need(record.rescope_reason.as_ref(), "rescope_reason", record, missing);
            TaskStatus::Superseded { by: by?, reason: reason? }
        }
        Status::Abandoned => TaskStatus::Abandoned,
    })
}
