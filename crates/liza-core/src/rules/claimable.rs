//! The right to claim a task, and the next task of a free agent.
//!
//! The whole rule is [`claim_kind`]: first claims, re-claims of rejected tasks, integration fixes, resuming,
//! and taking over after a lease has expired. It reads summaries only: it is fast for thousands of tasks.

use std::cmp::Reverse;

use crate::model::{
    AgentId, AgentRecord, Approver, Board, MergeHold, Refusal, Role, Status, TaskId, TaskSummary,
    TestFailure, Timestamp, lease_holds, ways_out,
};
use liza_ids::order::sort_by_key;

use super::judging_settings::failing_head;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimKind {
    First,
    /// The coder continues its own claim.
    Resume,
    /// The coder continues its own rejected task.
    AfterRejection,
    /// The coder of a rejected task is gone; another takes it.
    Reassign,
    /// A coder fixes a failed merge.
    IntegrationFix,
    /// The coder's lease and the grace have expired; another takes it.
    Takeover,
}

/// The kind of claim by which `coder` gets the task, or the refusal.
///
/// | status | who may claim it |
/// |---|---|
/// | UNCLAIMED | any coder; after `answer` or `unblock-task --same-coder` its own, if free and able to work |
/// | REJECTED | its own coder; any coder once that one is gone or its program is held |
/// | INTEGRATION_FAILED | any coder |
/// | CLAIMED | its own coder at any time; any coder once that one has left, or lease and grace are over |
///
/// In every case all dependencies are MERGED, no other claim is under way, and a coder that failed at the
/// task may not claim it while another coder is registered.
pub fn claim_kind(
    board: &Board,
    summary: &TaskSummary,
    coder: AgentId,
    now: Timestamp,
) -> Result<ClaimKind, Refusal> {
    let task = || summary.id.clone();
    let Some(status) = summary.status else {
        return Err(Refusal::BrokenTask { task: task(), faults: vec!["its status is unknown".to_owned()] });
    };
    let reserved = summary.reserved(now);
    if let Some(reservation) = reserved.filter(|reservation| reservation.by != coder) {
        return Err(Refusal::Reserved { task: task(), by: reservation.by, until: reservation.expires });
    }
    let mine = summary.assigned_to == Some(coder);
    // A claim that is under way is finished, even if its intended coder is free by now.
    let is_left = || match reserved {
        Some(_) => Ok(()),
        None => leave_to_owner(board, summary, coder, now)
            .and_then(|()| leave_to_new_coder(board, summary, coder, now)),
    };
    let kind = match status {
        Status::Unclaimed => {
            is_left()?;
            ClaimKind::First
        }
        Status::Rejected if mine => ClaimKind::AfterRejection,
        Status::Rejected => {
            is_left()?;
            ClaimKind::Reassign
        }
        Status::IntegrationFailed => ClaimKind::IntegrationFix,
        Status::Claimed if mine => return Ok(ClaimKind::Resume),
        Status::Claimed => {
            leave_to_leaseholder(board, summary, now)?;
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
        leave_to_other_coders(board, summary, coder, now)?;
    }
    check_dependencies(board, summary)?;
    Ok(kind)
}

/// A task that is meant for a coder waits for it.
fn leave_to_owner(
    board: &Board,
    summary: &TaskSummary,
    coder: AgentId,
    now: Timestamp,
) -> Result<(), Refusal> {
    match reserved_for(board, summary, now)? {
        Some(owner) if owner != coder => {
            Err(Refusal::ReservedForCoder { task: summary.id.clone(), coder: owner })
        }
        Some(_) | None => Ok(()),
    }
}

/// The only coder who may claim an UNCLAIMED or REJECTED task now: the author of its work, if it can work. A
/// rejected task waits for its coder's other task; an answered one does not.
pub fn reserved_for(
    board: &Board,
    summary: &TaskSummary,
    now: Timestamp,
) -> Result<Option<AgentId>, Refusal> {
    let Some(owner) = summary.assigned_to else { return Ok(None) };
    let Some(entry) = board.agents()?.get(&owner) else { return Ok(None) };
    let other_task = entry.current_task.as_ref().filter(|task| **task != summary.id);
    let holds = |task: &TaskId| board.summary(task).is_some_and(|other| other.is_held_by(owner));
    let waits = match summary.status {
        Some(Status::Unclaimed) => !other_task.is_some_and(holds),
        Some(Status::Rejected) => true,
        Some(
            Status::Draft
            | Status::Claimed
            | Status::ReadyForReview
            | Status::Approved
            | Status::IntegrationFailed
            | Status::Merged
            | Status::Blocked
            | Status::Abandoned
            | Status::Superseded,
        )
        | None => false,
    };
    Ok((waits && can_work(board, entry, now)).then_some(owner))
}

/// True if an agent is alive and its program is not held.
pub(super) fn can_work(board: &Board, entry: &AgentRecord, now: Timestamp) -> bool {
    let sprint = board.sprint.ready();
    let client = entry.client.as_ref().and_then(|client| sprint?.clients.get(client));
    entry.holds(now) && !client.is_some_and(|client| client.is_held(now))
}

/// A task that was unblocked for another coder waits for one, as long as one is registered who may claim it.
fn leave_to_new_coder(
    board: &Board,
    summary: &TaskSummary,
    coder: AgentId,
    now: Timestamp,
) -> Result<(), Refusal> {
    let failed = summary.failed_by.contains(&coder);
    let had_it = summary.is(Status::Unclaimed) && summary.previous_coder == Some(coder);
    if failed || !had_it || !has_other_coder(board, summary, coder, now)? {
        return Ok(());
    }
    Err(Refusal::LeftToAnother { task: summary.id.clone(), coder })
}

/// True if another coder can work who has not failed at the task.
fn has_other_coder(
    board: &Board,
    summary: &TaskSummary,
    coder: AgentId,
    now: Timestamp,
) -> Result<bool, Refusal> {
    let other = |(id, entry): (&AgentId, &AgentRecord)| {
        *id != coder
            && entry.role == Role::Coder
            && can_work(board, entry, now)
            && !summary.failed_by.contains(id)
    };
    Ok(board.agents()?.iter().any(other))
}

/// A claimed task stays with its coder until lease and grace have expired, or the coder has left the board.
fn leave_to_leaseholder(board: &Board, summary: &TaskSummary, now: Timestamp) -> Result<(), Refusal> {
    let registered = |agent: AgentId| board.agents.ready().is_none_or(|agents| agents.contains_key(&agent));
    match (summary.assigned_to, summary.lease_expires) {
        (Some(by), Some(until)) if lease_holds(until, now) && registered(by) => {
            Err(Refusal::ClaimedByOther { task: summary.id.clone(), by, until })
        }
        _ => Ok(()),
    }
}

/// A coder that failed at the task may not claim it while another coder is registered.
fn leave_to_other_coders(
    board: &Board,
    summary: &TaskSummary,
    coder: AgentId,
    now: Timestamp,
) -> Result<(), Refusal> {
    if !summary.failed_by.contains(&coder) {
        return Ok(());
    }
    if has_other_coder(board, summary, coder, now)? {
        return Err(Refusal::FailedBefore { task: summary.id.clone(), coder });
    }
    Ok(())
}

fn check_dependencies(board: &Board, summary: &TaskSummary) -> Result<(), Refusal> {
    let with_status = |id: &TaskId| match board.status(id) {
        Some(status) => format!("{id} ({status})"),
        None => format!("{id} (unknown)"),
    };
    let unmet: Vec<String> = board.unmet(summary).map(with_status).collect();
    if unmet.is_empty() {
        Ok(())
    } else {
        Err(Refusal::DependenciesUnmet { task: summary.id.clone(), unmet })
    }
}

/// True if the agent is registered, with a lease or its grace still running.
pub fn is_present(board: &Board, agent: AgentId, now: Timestamp) -> Result<bool, Refusal> {
    Ok(board.agents()?.get(&agent).is_some_and(|entry| entry.holds(now)))
}

/// The task that this coder has claimed, other than `except`.
pub fn claimed_by<'a>(board: &'a Board, coder: AgentId, except: Option<&TaskId>) -> Option<&'a TaskSummary> {
    board.summaries().find(|summary| {
        summary.is(Status::Claimed) && summary.assigned_to == Some(coder) && Some(&summary.id) != except
    })
}

/// The tasks that this coder may claim now, best first: its own claim, its own rejected task, tasks with a
/// handoff, then priority, then age.
pub fn claimable_for(board: &Board, coder: AgentId, now: Timestamp) -> Vec<TaskId> {
    let holding = claimed_by(board, coder, None);
    let tasks: Vec<&TaskSummary> = board
        .summaries()
        .filter(|summary| holding.is_none_or(|held| held.id == summary.id))
        .filter(|summary| is_open_to(board, summary, coder))
        .filter(|summary| claim_kind(board, summary, coder, now).is_ok())
        .collect();
    in_order(tasks, |summary| {
        let own = summary.assigned_to == Some(coder);
        let first = (own && summary.is(Status::Claimed), own && !summary.is(Status::IntegrationFailed));
        (Reverse(first), Reverse(summary.handoff_pending), summary.priority, summary.created)
    })
}

/// The names of the tasks, sorted by a key.
fn in_order<K: Ord>(mut tasks: Vec<&TaskSummary>, key: impl Fn(&TaskSummary) -> K) -> Vec<TaskId> {
    sort_by_key(&mut tasks, |summary| key(summary));
    tasks.into_iter().map(|summary| summary.id.clone()).collect()
}

/// Filters cheaply before [`claim_kind`], which spells out the reason for every task that has ended or waits.
fn is_open_to(board: &Board, summary: &TaskSummary, coder: AgentId) -> bool {
    let own = summary.is(Status::Claimed) && summary.assigned_to == Some(coder);
    own || (can_be_claimed(summary.status) && board.unmet(summary).next().is_none())
}

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

/// The tasks that any coder may claim now: handoffs first, then priority, then age.
pub fn claimable(board: &Board, now: Timestamp) -> Vec<TaskId> {
    let tasks: Vec<&TaskSummary> =
        board.summaries().filter(|summary| is_claimable(board, summary, now)).collect();
    in_order(tasks, |summary| (Reverse(summary.handoff_pending), summary.priority, summary.created))
}

fn is_claimable(board: &Board, summary: &TaskSummary, now: Timestamp) -> bool {
    let free = !summary.is(Status::Claimed) || leave_to_leaseholder(board, summary, now).is_ok();
    let waits = board.unmet(summary).next().is_some();
    can_be_claimed(summary.status)
        && free
        && summary.reserved(now).is_none()
        && !waits
        && matches!(reserved_for(board, summary, now), Ok(None))
}

/// The registered coders that must leave an open task to another one: they had it before, or failed at it.
pub fn left_to_others(board: &Board, summary: &TaskSummary, now: Timestamp) -> Vec<AgentId> {
    let had = summary.failed_by.iter().copied().chain(summary.previous_coder);
    let may_not = |coder: &AgentId| {
        let refusal = claim_kind(board, summary, *coder, now).err();
        matches!(refusal, Some(Refusal::LeftToAnother { .. } | Refusal::FailedBefore { .. }))
    };
    let mut coders: Vec<AgentId> = had.filter(may_not).collect();
    coders.dedup();
    coders
}

/// The reviews that any code reviewer may take now: priority, then age.
pub fn reviewable(board: &Board, now: Timestamp) -> Vec<TaskId> {
    let tasks: Vec<&TaskSummary> = board
        .summaries()
        .filter(|summary| summary.is(Status::ReadyForReview) && summary.review_is_free(now))
        .collect();
    in_order(tasks, |summary| (summary.priority, summary.created))
}

/// The reviews that this code reviewer may take now, best first: its own, then priority, then age.
pub fn reviewable_for(board: &Board, reviewer: AgentId, now: Timestamp) -> Vec<TaskId> {
    let own = |summary: &TaskSummary| summary.reviewing_by == Some(reviewer);
    let tasks: Vec<&TaskSummary> = board
        .summaries()
        .filter(|summary| summary.is(Status::ReadyForReview) && (own(summary) || summary.review_is_free(now)))
        .filter(|summary| !summary.review_dropped_by.contains(&reviewer))
        .filter(|summary| !summary.approved_so_far.contains(&reviewer))
        .collect();
    in_order(tasks, |summary| (Reverse(own(summary)), summary.priority, summary.created))
}

/// The merges of this code reviewer's supervisor: tasks approved by it, or by a code reviewer that is gone.
pub fn mergeable_for(board: &Board, reviewer: AgentId, now: Timestamp) -> Vec<TaskId> {
    let tasks: Vec<&TaskSummary> = board
        .summaries()
        .filter(|summary| summary.is(Status::Approved) && held_merge(board, summary).is_none())
        .filter(|summary| check_merger(board, summary, reviewer, now).is_ok())
        .collect();
    in_order(tasks, |summary| (summary.priority, summary.created))
}

/// Refuses a merge that the approver's own supervisor can do.
pub fn check_merger(
    board: &Board,
    summary: &TaskSummary,
    reviewer: AgentId,
    now: Timestamp,
) -> Result<(), Refusal> {
    match summary.approved_by {
        Some(Approver::Agent(by)) if by != reviewer && is_present(board, by, now)? => {
            Err(Refusal::MergeBelongsTo { task: summary.id.clone(), by })
        }
        _ => Ok(()),
    }
}

/// The reason that the merge of a task waits for the human.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldMerge<'b> {
    /// The integration test fails on the branch with and without it.
    HeadFails(&'b TestFailure),
    /// It changes what judges it, and the human has not accepted that.
    Gate,
}

/// `None` if the merge of this task does not wait for the human, or no longer.
pub fn held_merge<'b>(board: &'b Board, summary: &TaskSummary) -> Option<HeldMerge<'b>> {
    let goal = board.goal.ready()?;
    let hold = summary.merge_held.as_ref().filter(|_| summary.is(Status::Approved))?;
    match hold {
        MergeHold::HeadFails(head) => {
            let (test, failure) = failing_head(board)?;
            (test.head == *head).then_some(HeldMerge::HeadFails(failure))
        }
        MergeHold::Gate(version) => (*version == goal.gate_version).then_some(HeldMerge::Gate),
    }
}

pub(crate) fn check_not_held(board: &Board, summary: &TaskSummary) -> Result<(), Refusal> {
    match held_merge(board, summary) {
        Some(HeldMerge::HeadFails(failure)) => {
            Err(Refusal::MergeHeld { task: summary.id.clone(), what: failure.what.clone() })
        }
        Some(HeldMerge::Gate) => Err(Refusal::GateChanged { task: summary.id.clone() }),
        None => Ok(()),
    }
}
