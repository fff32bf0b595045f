//! Who may claim what, and what a free agent takes next.
//!
//! The whole rule is [`claim_kind`]: first claims, re-claims of rejected tasks, integration fixes, resuming, and
//! taking over after a lease has run out. It reads heads only, so that thousands of tasks can be asked at once.

use std::cmp::Reverse;

use crate::agent::{AgentRecord, LEASE_GRACE, Role};
use crate::board::{Board, Head};
use crate::ids::{AgentId, TaskId};
use crate::record::{Status, ways_out};
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// How a claim comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimKind {
    /// The task is UNCLAIMED.
    First,
    /// The coder goes on with its own claim.
    Resume,
    /// The coder goes on with its own rejected task.
    AfterRejection,
    /// The coder of a rejected task is gone; another takes it.
    Reassign,
    /// A coder repairs a failed merge.
    IntegrationFix,
    /// The coder's lease has run out beyond the grace; another takes it.
    Takeover,
}

/// Says how `coder` would claim the task, or why it may not.
///
/// | status | who may claim it |
/// |---|---|
/// | UNCLAIMED | any coder; after `unblock-task --same-coder`, that coder while it is here |
/// | REJECTED | its own coder; any coder once that one is gone |
/// | INTEGRATION_FAILED | any coder |
/// | CLAIMED | its own coder at any time; any coder once the lease and the grace are over |
///
/// In every case all dependencies are MERGED, nobody else is in the middle of claiming it, and a coder that failed
/// at it keeps off while another one is here.
pub fn claim_kind(board: &Board, head: &Head, coder: AgentId, now: Timestamp) -> Result<ClaimKind, Refusal> {
    let task = || head.id.clone();
    let Some(status) = head.status else {
        return Err(Refusal::BrokenTask { task: task(), faults: vec!["its status is unknown".to_owned()] });
    };
    if let Some(reservation) = head.reserved(now).filter(|reservation| reservation.by != coder) {
        return Err(Refusal::Reserved { task: task(), by: reservation.by, until: reservation.expires });
    }
    let mine = head.assigned_to == Some(coder);
    let kind = match status {
        Status::Unclaimed => {
            leave_to_owner(board, head, coder, now)?;
            ClaimKind::First
        }
        Status::Rejected if mine => ClaimKind::AfterRejection,
        Status::Rejected => {
            leave_to_owner(board, head, coder, now)?;
            ClaimKind::Reassign
        }
        Status::IntegrationFailed => ClaimKind::IntegrationFix,
        Status::Claimed if mine => return Ok(ClaimKind::Resume),
        Status::Claimed => {
            leave_to_leaseholder(head, now)?;
            ClaimKind::Takeover
        }
        Status::Draft
        | Status::ReadyForReview
        | Status::Approved
        | Status::Merged
        | Status::Blocked
        | Status::Abandoned
        | Status::Superseded => {
            return Err(Refusal::NotClaimable { task: task(), status, possible: ways_out(status) });
        }
    };
    if !mine {
        leave_to_fresh_minds(board, head, coder, now)?;
    }
    check_dependencies(board, head)?;
    Ok(kind)
}

/// A task that is meant for a coder waits for it, as long as that coder is registered and alive.
fn leave_to_owner(board: &Board, head: &Head, coder: AgentId, now: Timestamp) -> Result<(), Refusal> {
    match head.assigned_to {
        Some(owner) if owner != coder && is_here(board, owner, now)? => {
            Err(Refusal::ReservedForCoder { task: head.id.clone(), coder: owner })
        }
        _ => Ok(()),
    }
}

/// A claimed task stays with its coder until the lease and the grace are over.
fn leave_to_leaseholder(head: &Head, now: Timestamp) -> Result<(), Refusal> {
    match (head.assigned_to, head.lease_expires) {
        (Some(by), Some(until)) if now <= until + LEASE_GRACE => {
            Err(Refusal::ClaimedByOther { task: head.id.clone(), by, until })
        }
        _ => Ok(()),
    }
}

/// A coder that failed at the task keeps off while another coder is here.
fn leave_to_fresh_minds(board: &Board, head: &Head, coder: AgentId, now: Timestamp) -> Result<(), Refusal> {
    if !head.failed_by.contains(&coder) {
        return Ok(());
    }
    let fresh = |(id, entry): (&AgentId, &AgentRecord)| {
        *id != coder && entry.role == Role::Coder && entry.holds(now) && !head.failed_by.contains(id)
    };
    if board.agents()?.iter().any(fresh) {
        return Err(Refusal::FailedBefore { task: head.id.clone(), coder });
    }
    Ok(())
}

fn check_dependencies(board: &Board, head: &Head) -> Result<(), Refusal> {
    let tell = |id: &TaskId| match board.status(id) {
        Some(status) => format!("{id} ({status})"),
        None => format!("{id} (unknown)"),
    };
    let unmet: Vec<String> = board.unmet(head).map(tell).collect();
    if unmet.is_empty() { Ok(()) } else { Err(Refusal::DependenciesUnmet { task: head.id.clone(), unmet }) }
}

/// Whether the agent is registered with a lease that still holds.
pub fn is_here(board: &Board, agent: AgentId, now: Timestamp) -> Result<bool, Refusal> {
    Ok(board.agents()?.get(&agent).is_some_and(|entry| entry.holds(now)))
}

/// The task that this coder has claimed, other than `except`.
pub fn claimed_by<'a>(board: &'a Board, coder: AgentId, except: Option<&TaskId>) -> Option<&'a Head> {
    board
        .heads()
        .find(|head| head.is(Status::Claimed) && head.assigned_to == Some(coder) && Some(&head.id) != except)
}

/// The tasks that this coder may claim now, best first: its own claim, its own rejected task, tasks with a handoff
/// waiting, then priority, then age.
pub fn claimable_for(board: &Board, coder: AgentId, now: Timestamp) -> Vec<TaskId> {
    let holding = claimed_by(board, coder, None);
    let mut tasks: Vec<&Head> = board
        .heads()
        .filter(|head| holding.is_none_or(|held| held.id == head.id))
        .filter(|head| is_open_to(board, head, coder))
        .filter(|head| claim_kind(board, head, coder, now).is_ok())
        .collect();
    tasks.sort_by_key(|head| {
        let own = head.assigned_to == Some(coder);
        let first = (own && head.is(Status::Claimed), own && !head.is(Status::IntegrationFailed));
        (Reverse(first), Reverse(head.handoff_pending), head.priority, head.created)
    });
    tasks.into_iter().map(|head| head.id.clone()).collect()
}

/// Whether it is worth asking [`claim_kind`], which says why not for every task that is over or waits for another.
fn is_open_to(board: &Board, head: &Head, coder: AgentId) -> bool {
    let own = head.is(Status::Claimed) && head.assigned_to == Some(coder);
    own || (can_be_claimed(head.status) && board.unmet(head).next().is_none())
}

/// Whether a claim can lead out of this state.
fn can_be_claimed(status: Option<Status>) -> bool {
    match status {
        Some(Status::Unclaimed | Status::Rejected | Status::IntegrationFailed | Status::Claimed) => true,
        Some(
            Status::Draft
            | Status::ReadyForReview
            | Status::Approved
            | Status::Merged
            | Status::Blocked
            | Status::Abandoned
            | Status::Superseded,
        )
        | None => false,
    }
}

/// What some coder may claim now, whoever that is: waiting handoffs first, then priority, then age.
pub fn claimable(board: &Board, now: Timestamp) -> Vec<TaskId> {
    let mut tasks: Vec<&Head> = board.heads().filter(|head| is_claimable(board, head, now)).collect();
    tasks.sort_by_key(|head| (Reverse(head.handoff_pending), head.priority, head.created));
    tasks.into_iter().map(|head| head.id.clone()).collect()
}

fn is_claimable(board: &Board, head: &Head, now: Timestamp) -> bool {
    let free = !head.is(Status::Claimed) || leave_to_leaseholder(head, now).is_ok();
    let waits = board.unmet(head).next().is_some();
    can_be_claimed(head.status) && free && head.reserved(now).is_none() && !waits
}

/// What some code reviewer may take now: priority, then age.
pub fn reviewable(board: &Board, now: Timestamp) -> Vec<TaskId> {
    let mut tasks: Vec<&Head> =
        board.heads().filter(|head| head.is(Status::ReadyForReview) && head.review_is_free(now)).collect();
    tasks.sort_by_key(|head| (head.priority, head.created));
    tasks.into_iter().map(|head| head.id.clone()).collect()
}

/// The reviews that this code reviewer may take now, best first: its own, then priority, then age.
pub fn reviewable_for(board: &Board, reviewer: AgentId, now: Timestamp) -> Vec<TaskId> {
    let own = |head: &Head| head.reviewing_by == Some(reviewer);
    let mut tasks: Vec<&Head> = board
        .heads()
        .filter(|head| head.is(Status::ReadyForReview) && (own(head) || head.review_is_free(now)))
        .collect();
    tasks.sort_by_key(|head| (Reverse(own(head)), head.priority, head.created));
    tasks.into_iter().map(|head| head.id.clone()).collect()
}

/// The merges that fall to this code reviewer's supervisor: what it approved, and what a code reviewer approved who
/// is gone.
pub fn mergeable_for(board: &Board, reviewer: AgentId, now: Timestamp) -> Vec<TaskId> {
    let mut tasks: Vec<&Head> = board
        .heads()
        .filter(|head| head.is(Status::Approved) && merge_falls_to(board, head, reviewer, now).is_ok())
        .collect();
    tasks.sort_by_key(|head| (head.priority, head.created));
    tasks.into_iter().map(|head| head.id.clone()).collect()
}

/// Refuses a merge that the approver's own supervisor is there to do.
pub fn merge_falls_to(board: &Board, head: &Head, reviewer: AgentId, now: Timestamp) -> Result<(), Refusal> {
    match head.approved_by {
        Some(by) if by != reviewer && is_here(board, by, now)? => {
            Err(Refusal::MergeBelongsTo { task: head.id.clone(), by })
        }
        _ => Ok(()),
    }
}
