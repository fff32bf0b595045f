//! pre-check, submit-for-review, claim-review, submit-verdict, clear-stale-review-claims.
//!
//! A verdict is about one exact commit: whoever moves the worktree in between makes it void.

use crate::agent::{AgentStatus, Role};
use crate::board::Section;
use crate::command::{Intent, Verdict, WorktreeFacts};
use crate::event::{EventName, HistoryEvent, LogAction, one_line};
use crate::ids::{AgentId, Sha, TaskId};
use crate::record::Status;
use crate::refusal::{PRIOR_FEEDBACK, Refusal};
use crate::task::{Review, Task, TaskStatus, Work};

use super::block;
use super::own::{check_speaks_for, own_claim, registered};
use super::tx::{Tx, required};

/// Writes down what the coder is about to do; the code reviewer compares it with the result.
pub(super) fn pre_check(tx: &mut Tx<'_>, id: &TaskId, intent: &Intent) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    own_claim(tx, &task)?;
    let what = required(&intent.intent, "what is intended (--intent)")?;
    let validation = required(&intent.validation, "how it will be shown to work (--validation)")?;
    let list = |items: &[String]| (!items.is_empty()).then(|| items.to_vec());
    let event = tx
        .event(EventName::PreExecutionCheckpoint)
        .with("intent", what)
        .with("validation", validation)
        .with_some("assumptions", list(&intent.assumptions))
        .with_some("risks", list(&intent.risks))
        .with_some("files", list(&intent.files));
    task.remember(event);
    tx.settle(task, EventName::PreExecutionCheckpoint, what);
    Ok(())
}

/// Asks for a review of exactly the commit that the clean worktree is at.
pub(super) fn submit(
    tx: &mut Tx<'_>,
    id: &TaskId,
    commit: &Sha,
    facts: Option<&WorktreeFacts>,
) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    let (coder, work) = own_claim(tx, &task)?;
    let facts = facts.ok_or_else(|| Refusal::WorktreeMissing { task: id.clone() })?;
    check_submission(&task, &work, commit, facts)?;
    let commit = facts.head.clone();
    task.remember(tx.event(EventName::ReadyForReview).with("commit", commit.as_str()));
    task.record.crashes = None;
    task.record.idle_exits = None;
    task.record.reservation = None;
    let detail = format!("iteration {}, commit {}", task.record.iteration.unwrap_or(1), commit.short());
    tx.reply("commit", commit.as_str());
    task.status = TaskStatus::ReadyForReview { work, commit, review: None };
    tx.free_agent(coder, id, AgentStatus::Waiting)?;
    tx.settle(task, EventName::ReadyForReview, &detail);
    Ok(())
}

fn check_submission(task: &Task, work: &Work, commit: &Sha, facts: &WorktreeFacts) -> Result<(), Refusal> {
    let id = || task.id.clone();
    if !facts.on_task_branch {
        return Err(Refusal::WrongBranch { task: id() });
    }
    if !facts.dirty.is_empty() {
        return Err(Refusal::DirtyWorktree { task: id(), paths: facts.dirty.clone() });
    }
    if !commit.names_same_commit(&facts.head) {
        return Err(Refusal::HeadMoved { task: id(), head: facts.head.clone(), commit: commit.clone() });
    }
    match &work.base {
        Some(base) if base.names_same_commit(&facts.head) => {
            Err(Refusal::NothingToReview { task: id(), commit: facts.head.clone() })
        }
        Some(base) if task.record.integration_fix == Some(true) && !facts.has_base => {
            Err(Refusal::BaseNotMerged { task: id(), commit: facts.head.clone(), base: base.clone() })
        }
        Some(_) | None => Ok(()),
    }
}

/// A code reviewer takes the review, unless the submission has become void.
pub(super) fn claim_review(
    tx: &mut Tx<'_>,
    id: &TaskId,
    reviewer: AgentId,
    head: Option<&Sha>,
) -> Result<(), Refusal> {
    let mut entry = registered(tx, reviewer, Role::CodeReviewer)?;
    let mut task = tx.task(id)?;
    let TaskStatus::ReadyForReview { work, commit, review } = task.status.clone() else {
        return Err(tx.wrong_status(&task, "READY_FOR_REVIEW"));
    };
    if let Some(review) = review.as_ref().filter(|review| review.by != reviewer && review.is_live(tx.now)) {
        return Err(Refusal::ReviewClaimed { task: id.clone(), by: review.by, until: review.lease });
    }
    if work.coder == reviewer {
        return Err(Refusal::OwnWork { task: id.clone(), agent: reviewer });
    }
    if let Some(other) = entry.current_task.as_ref().filter(|other| *other != id)
        && tx.board.head(other).is_some_and(|head| head.reviewing_by == Some(reviewer))
    {
        return Err(Refusal::AgentBusy { agent: reviewer, task: other.clone() });
    }
    let head = head.ok_or_else(|| Refusal::WorktreeMissing { task: id.clone() })?;
    if !head.names_same_commit(&commit) {
        return void_submission(tx, task, head);
    }
    // Also the holder of a review without an end, which a typed review does not know.
    if let Some(stale) = task.record.reviewing_by.filter(|stale| *stale != reviewer) {
        tx.free_agent(stale, id, AgentStatus::Idle)?;
    }
    let lease = tx.now + tx.config()?.lease(&task.record);
    entry.status = AgentStatus::Reviewing;
    entry.current_task = Some(id.clone());
    entry.lease_expires = Some(lease);
    // A new session, of which nothing has been measured yet.
    entry.context_percent = None;
    entry.heartbeat = Some(tx.now);
    tx.put_agent(reviewer, entry);
    task.status = TaskStatus::ReadyForReview {
        work,
        commit: commit.clone(),
        review: Some(Review { by: reviewer, lease }),
    };
    let detail = format!("commit {}", commit.short());
    tx.log_as(&reviewer.to_string(), LogAction::ReviewClaimed, Some(id), &detail);
    tx.reply("reviewer", reviewer.to_string());
    tx.reply("commit", commit.as_str());
    tx.reply("review_lease_expires", lease);
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

/// The worktree moved after the submission: the task goes back to its coder, and nobody reviews it.
fn void_submission(tx: &mut Tx<'_>, mut task: Task, head: &Sha) -> Result<(), Refusal> {
    let TaskStatus::ReadyForReview { work, commit, review } = task.status.clone() else {
        return Err(tx.wrong_status(&task, "READY_FOR_REVIEW"));
    };
    if let Some(review) = review {
        tx.free_agent(review.by, &task.id, AgentStatus::Idle)?;
    }
    let reason =
        format!("head_moved: the worktree is at {head}, not at the submitted {commit}; submit again");
    let event =
        tx.system_event(EventName::Rejected).with("reason", "head_moved").with("commit", commit.as_str());
    let id = task.id.clone();
    reject(tx, &mut task, work, commit.clone(), reason.clone(), event)?;
    end_review_handoff(tx, &mut task)?;
    tx.refuse(Refusal::SubmissionVoid { task: id.clone(), head: head.clone(), commit });
    tx.log_as("system", LogAction::Task(EventName::Rejected), Some(&id), &reason);
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

/// A session that ended without a verdict loses the review.
pub(super) fn give_up(tx: &mut Tx<'_>, id: &TaskId, reviewer: AgentId) -> Result<(), Refusal> {
    check_speaks_for(tx, reviewer)?;
    let mut task = tx.task(id)?;
    let TaskStatus::ReadyForReview { review, .. } = &mut task.status else {
        return Err(tx.wrong_status(&task, "READY_FOR_REVIEW"));
    };
    if review.as_ref().is_none_or(|review| review.by != reviewer) {
        let with = with_whom(review.as_ref());
        return Err(Refusal::NotYourReview { task: id.clone(), agent: reviewer, with });
    }
    *review = None;
    tx.free_agent(reviewer, id, AgentStatus::Idle)?;
    tx.log_as(&reviewer.to_string(), LogAction::ReviewsCleared, Some(id), "review ended without a verdict");
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

fn with_whom(review: Option<&Review>) -> String {
    match review {
        Some(review) => format!("it is with {} until {}", review.by, review.lease),
        None => "nobody has claimed it".to_owned(),
    }
}

/// The binding verdict on the exact commit.
pub(super) fn verdict(
    tx: &mut Tx<'_>,
    id: &TaskId,
    verdict: &Verdict,
    facts: Option<&WorktreeFacts>,
) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    let (reviewer, work, commit) = own_review(tx, &task)?;
    let facts = facts.ok_or_else(|| Refusal::WorktreeMissing { task: id.clone() })?;
    if !facts.head.names_same_commit(&commit) {
        return Err(Refusal::HeadMoved { task: id.clone(), head: facts.head.clone(), commit });
    }
    if !facts.changed_tracked.is_empty() {
        return Err(Refusal::ReviewTouched { task: id.clone(), paths: facts.changed_tracked.clone() });
    }
    match verdict {
        Verdict::Approved => {
            task.remember(tx.event(EventName::Approved).with("commit", commit.as_str()));
            let detail = format!("commit {}", commit.short());
            task.status = TaskStatus::Approved { work, commit, by: Some(reviewer) };
            tx.log(LogAction::Task(EventName::Approved), Some(id), &detail);
        }
        Verdict::Rejected(reason) => {
            let reason = check_reason(&task, reason)?;
            let summary = one_line(&reason, 200);
            let event = tx.event(EventName::Rejected).with("commit", commit.as_str());
            let event = event.with("reason", reason.as_str());
            reject(tx, &mut task, work, commit, reason, event)?;
            tx.log(LogAction::Task(EventName::Rejected), Some(id), &summary);
        }
    }
    end_review_handoff(tx, &mut task)?;
    task.record.idle_exits = None;
    task.record.crashes = None;
    tx.free_agent(reviewer, id, AgentStatus::Idle)?;
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

/// The review that is the caller's own, and whose lease runs.
fn own_review(tx: &Tx<'_>, task: &Task) -> Result<(AgentId, Work, Sha), Refusal> {
    let TaskStatus::ReadyForReview { work, commit, review } = &task.status else {
        return Err(tx.wrong_status(task, "READY_FOR_REVIEW"));
    };
    let Some(agent) = tx.actor.agent() else {
        return Err(tx.wrong_status(task, "its code reviewer"));
    };
    if work.coder == agent {
        return Err(Refusal::OwnWork { task: task.id.clone(), agent });
    }
    match review {
        Some(review) if review.by == agent && review.is_live(tx.now) => {
            Ok((agent, work.clone(), commit.clone()))
        }
        Some(review) if review.by == agent => Err(Refusal::LeaseLost { agent, expired: review.lease }),
        other => {
            Err(Refusal::NotYourReview { task: task.id.clone(), agent, with: with_whom(other.as_ref()) })
        }
    }
}

/// From the second rejection on, the reason has to say what became of the earlier feedback.
fn check_reason(task: &Task, reason: &str) -> Result<String, Refusal> {
    let reason = required(reason, "the reason for the rejection")?;
    let again = task.record.review_cycles_current.unwrap_or(0) >= 1;
    if again && !reason.to_lowercase().contains(&PRIOR_FEEDBACK.to_lowercase()) {
        return Err(Refusal::PriorFeedbackMissing { task: task.id.clone() });
    }
    Ok(reason.to_owned())
}

/// Sends the task back, and blocks it in the same write where the limit is reached.
fn reject(
    tx: &Tx<'_>,
    task: &mut Task,
    work: Work,
    commit: Sha,
    reason: String,
    event: HistoryEvent,
) -> Result<(), Refusal> {
    let limit = tx.config()?.max_review_cycles(&task.record);
    let cycles = task.record.review_cycles_current.unwrap_or(0).saturating_add(1);
    task.record.review_cycles_current = Some(cycles);
    task.record.review_cycles_total = Some(task.record.review_cycles_total.unwrap_or(0).saturating_add(1));
    task.record.rejection_reason = Some(reason.clone());
    task.record.review_commit = Some(commit.clone());
    task.remember(event);
    task.status = TaskStatus::Rejected { work, commit, reason };
    if cycles >= limit {
        block::at_review_limit(tx, task, cycles);
    }
    Ok(())
}

/// Notes from one code reviewer's session to the next are settled when the review is over; the coder's next claim
/// must not take them for a handoff of its own work.
fn end_review_handoff(tx: &mut Tx<'_>, task: &mut Task) -> Result<(), Refusal> {
    let notes = tx.board.handoff.get(Section::Handoff)?.get(&task.id);
    if notes.is_some_and(|notes| notes.reader() == Role::CodeReviewer) {
        task.record.handoff_pending = task.record.handoff_pending.map(|_| false);
        tx.drop_handoff(&task.id)?;
    }
    Ok(())
}

/// Clears the claims of code reviewers whose lease has run out.
pub(super) fn clear_stale(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    let stale: Vec<TaskId> = tx
        .board
        .heads()
        .filter(|head| head.is(Status::ReadyForReview))
        .filter(|head| head.reviewing_by.is_some() && head.review_is_free(tx.now))
        .map(|head| head.id.clone())
        .collect();
    let mut cleared = Vec::new();
    for id in &stale {
        // A broken record is not this command's business: the others are cleared all the same.
        let Ok(mut task) = tx.task(id) else { continue };
        if let Some(by) = task.record.reviewing_by {
            tx.free_agent(by, id, AgentStatus::Idle)?;
        }
        if let TaskStatus::ReadyForReview { review, .. } = &mut task.status {
            *review = None;
        }
        cleared.push(id.to_string());
        tx.put(task);
    }
    tx.reply("cleared", cleared.clone());
    if !cleared.is_empty() {
        tx.log(LogAction::ReviewsCleared, None, &format!("stale review claims: {}", cleared.join(", ")));
    }
    Ok(())
}
