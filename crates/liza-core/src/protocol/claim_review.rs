//! claim-review: a code reviewer takes a review, or gives it back.

use serde::Serialize;

use crate::model::{
    AgentId, AgentStatus, Assignment, EventName, LogAction, Refusal, ReviewClaim, ReviewPhase, Role, Section,
    Sha, Task, TaskId, TaskStatus, Timestamp,
};

use crate::rules::impact::has_approved;
use crate::rules::session_budget::SessionBudget;
use crate::rules::validation::{MAX_COMMANDS, commands, held_validation, is_validated};

use super::blocking::at_session_limit;
use super::budget::{charge_session, check_budget};
use super::operation::{LoadScope, Rule, Stage};
use super::ownership::{check_acts_for, not_your_review, registered};
use super::permission::{Rights, SUPERVISION};
use super::reply::TaskReply;
use super::submit_verdict::{end_review_handoff, reject};
use super::tx::Tx;

/// Claims a review of the submitted commit, unless no checkout of it can be set up. Later commits in the
/// worktree change nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimReview {
    pub task: TaskId,
    pub reviewer: AgentId,
    /// The reason that no checkout of the submitted commit can be set up, if the task is at fault.
    pub setup_failure: Option<String>,
    /// The head of the integration branch, which the change is read against.
    pub integration: Option<Sha>,
    /// The digest of its protected files, if commands validate the task.
    pub gate: Option<String>,
}

/// A session that ended without a verdict gives its review back.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseReview {
    pub task: TaskId,
    pub reviewer: AgentId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewClaimed {
    #[serde(flatten)]
    pub task: TaskReply,
    pub reviewer: AgentId,
    pub commit: Sha,
    pub review_lease_expires: Timestamp,
    /// If true, Liza runs the commands that validate the task before the session begins.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub validates: bool,
}

impl Rule for ClaimReview {
    type Reply = ReviewClaimed;
    const VERB: &'static str = "claim-review";
    const RIGHTS: Rights = SUPERVISION;
    const STAGE: Stage = Stage::Starts;
    const LOADS: LoadScope =
        LoadScope::all(&[Section::Config, Section::Goal, Section::Handoff, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<ReviewClaimed, Refusal> {
        let (id, reviewer) = (&self.task, self.reviewer);
        let entry = registered(tx, reviewer, Role::CodeReviewer)?;
        let task = tx.task(id)?;
        let TaskStatus::ReadyForReview { work, commit, review } = task.status.clone() else {
            return Err(tx.wrong_status(&task, "READY_FOR_REVIEW"));
        };
        if let Some(review) = review.as_ref().filter(|review| review.by != reviewer && review.is_live(tx.now))
        {
            return Err(Refusal::ReviewClaimed { task: id.clone(), by: review.by, until: review.lease });
        }
        if work.coder == reviewer {
            return Err(Refusal::OwnWork { task: id.clone(), agent: reviewer });
        }
        if has_approved(&task.record, reviewer) {
            return Err(Refusal::HasApproved { task: id.clone(), agent: reviewer });
        }
        if let Some(other) = entry.current_task.as_ref().filter(|other| *other != id)
            && tx.board.summary(other).is_some_and(|summary| summary.reviewing_by == Some(reviewer))
        {
            return Err(Refusal::AgentBusy { agent: reviewer, task: other.clone() });
        }
        let budget = SessionBudget::of_task(id, &task.record);
        if let Err(refusal) = check_budget(tx, &budget) {
            return Err(at_session_limit(tx, task, refusal)?);
        }
        if tx.actor.agent().is_some()
            && let Some((_, failure)) = held_validation(tx.board, id)
        {
            return Err(Refusal::ValidationHeld { task: id.clone(), what: failure.what.clone() });
        }
        if let Some(why) = &self.setup_failure {
            return Err(void_submission(tx, task, work, commit, why)?);
        }
        let number = commands(tx.config()?, &task.record).len();
        if number > MAX_COMMANDS {
            return Err(Refusal::TooManyCommands { task: id.clone(), number });
        }
        // Also the holder of a review without an end, which a typed review leaves out.
        let stale = task.record.reviewing_by.filter(|stale| *stale != reviewer);
        tx.free_agents(stale, id, AgentStatus::Idle)?;
        let validates = !is_validated(tx.config()?, &task.record, &commit, self.gate.as_deref());
        let phase = validates.then_some(ReviewPhase::Validation);
        begin_review(
            tx,
            task,
            ReviewClaim { by: reviewer, lease: tx.now, head: self.integration.clone(), moves: 0, phase },
        )
    }
}

impl Rule for ReleaseReview {
    type Reply = TaskReply;
    const VERB: &'static str = "release-review";
    const RIGHTS: Rights = SUPERVISION;
    const STAGE: Stage = Stage::Leaves;

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let (id, reviewer) = (&self.task, self.reviewer);
        check_acts_for(tx, reviewer)?;
        give_back(tx, tx.task(id)?, reviewer)
    }
}

/// Ends a review without a verdict: any code reviewer may take it.
pub(super) fn give_back(tx: &mut Tx<'_>, mut task: Task, reviewer: AgentId) -> Result<TaskReply, Refusal> {
    let TaskStatus::ReadyForReview { review, .. } = &mut task.status else {
        return Err(tx.wrong_status(&task, "READY_FOR_REVIEW"));
    };
    if review.as_ref().is_none_or(|review| review.by != reviewer) {
        let review = review.take();
        return Err(not_your_review(&task, reviewer, review.as_ref()));
    }
    *review = None;
    tx.free_agents([reviewer], &task.id, AgentStatus::Idle)?;
    tx.log_as(reviewer, LogAction::ReviewsCleared, Some(&task.id), "review ended without a verdict");
    Ok(tx.put(task))
}

/// Gives the review to its claimant. A session is charged unless the commands run first.
pub(super) fn begin_review(
    tx: &mut Tx<'_>,
    mut task: Task,
    claim: ReviewClaim,
) -> Result<ReviewClaimed, Refusal> {
    let (id, reviewer) = (task.id.clone(), claim.by);
    let mut entry = registered(tx, reviewer, Role::CodeReviewer)?;
    let TaskStatus::ReadyForReview { commit, review, .. } = &mut task.status else {
        return Err(tx.wrong_status(&task, "READY_FOR_REVIEW"));
    };
    let (commit, validates) = (commit.clone(), claim.phase.is_some());
    let lease = tx.now + tx.config()?.lease(&task.record);
    *review = Some(ReviewClaim { lease, ..claim });
    if !validates {
        charge_session(tx, &SessionBudget::of_task(&id, &task.record))?;
    }
    entry.begin_session(AgentStatus::Reviewing, &id, lease, tx.now);
    tx.put_agent(reviewer, entry);
    let what = if validates { ", validation first" } else { "" };
    tx.log_as(reviewer, LogAction::ReviewClaimed, Some(&id), &format!("commit {}{what}", commit.short()));
    Ok(ReviewClaimed { task: tx.put(task), reviewer, commit, review_lease_expires: lease, validates })
}

/// The task goes back to its coder. Nothing is reviewed, so no review cycle is counted.
fn void_submission(
    tx: &mut Tx<'_>,
    mut task: Task,
    work: Assignment,
    commit: Sha,
    why: &str,
) -> Result<Refusal, Refusal> {
    let id = task.id.clone();
    tx.free_agents(task.status.review().map(|review| review.by), &id, AgentStatus::Idle)?;
    let reason = format!(
        "setup_failed: a checkout of {commit} cannot be set up, and one of the integration branch can: {why}"
    );
    let event = tx.system_event(EventName::Rejected).with("reason", "setup_failed");
    reject(&mut task, work, commit.clone(), &reason, event.with("commit", commit.as_str()));
    end_review_handoff(tx, &mut task)?;
    tx.log_as("system", LogAction::Task(EventName::Rejected), Some(&id), &reason);
    tx.put(task);
    Ok(tx.refuse_but_write(Refusal::SubmissionUnusable { task: id, commit, why: why.to_owned() }))
}
