//! claim-task in its two halves, release-claim, wt-create, wt-delete.
//!
//! Who may claim is decided in `claimable.rs`; here is what a claim does. No observer sees CLAIMED without a
//! worktree: the first half only reserves, the second comes when the worktree stands.

use crate::agent::{AgentRecord, AgentStatus, Role};
use crate::claimable::{ClaimKind, claim_kind, claimed_by};
use crate::command::ClaimRole;
use crate::effect::{Effect, WorktreeMode};
use crate::event::{EventName, HistoryEvent, LogAction};
use crate::ids::{AgentId, Sha, TaskId, Worktree};
use crate::record::{Reservation, Status};
use crate::refusal::Refusal;
use crate::task::{Kept, Task, TaskStatus, Work, clear_owned};
use crate::time::{Seconds, Timestamp};

use super::block;
use super::own::{check_speaks_for, registered};
use super::tx::Tx;

/// How long the worktree may take; then the reservation lapses by itself.
const RESERVATION: Seconds = Seconds(120);

/// First half: keep the others away while the worktree is made.
pub(super) fn reserve(tx: &mut Tx<'_>, id: &TaskId, coder: AgentId, head: &Sha) -> Result<(), Refusal> {
    let entry = registered(tx, coder, Role::Coder)?;
    let mut task = tx.task(id)?;
    if let Some(held) = claimed_by(tx.board, coder, Some(id)) {
        return Err(Refusal::AgentBusy { agent: coder, task: held.id.clone() });
    }
    let kind = match kind_of_claim(tx, id, coder) {
        Err(lost @ (Refusal::Reserved { .. } | Refusal::ClaimedByOther { .. })) => {
            tx.log_as(&coder.to_string(), LogAction::ClaimFailed, Some(id), &lost.to_string());
            tx.refuse(lost);
            return Ok(());
        }
        kind => kind?,
    };
    if let Some(iterations) = over_the_limit(tx, &task, kind, coder)? {
        return block::at_iteration_limit(tx, task, coder, iterations);
    }
    let mode = worktree_mode(&task, kind, coder);
    let base = base_for(&task, kind, mode, head);
    task.record.reservation = Some(Reservation {
        by: coder,
        generation: entry.generation.unwrap_or_default(),
        expires: tx.now + RESERVATION,
        base_commit: base.clone(),
    });
    tx.effect(Effect::PrepareWorktree { task: id.clone(), mode, base: base.clone() });
    tx.reply("base_commit", base.as_str());
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

/// Second half: the worktree stands, the task is the coder's.
pub(super) fn claim(tx: &mut Tx<'_>, id: &TaskId, coder: AgentId) -> Result<(), Refusal> {
    let entry = registered(tx, coder, Role::Coder)?;
    let mut task = tx.task(id)?;
    let reservation = own_reservation(&task, &entry, coder)?;
    if let Some(held) = claimed_by(tx.board, coder, Some(id)) {
        return Err(Refusal::AgentBusy { agent: coder, task: held.id.clone() });
    }
    let kind = kind_of_claim(tx, id, coder)?;
    let previous = task.status.kept().coder;
    let fresh = worktree_mode(&task, kind, coder) == WorktreeMode::Fresh;
    count_claim(&mut task, kind, previous == Some(coder));
    if kind == ClaimKind::IntegrationFix {
        task.record.integration_fix = Some(true);
    } else if fresh && task.record.integration_fix.is_some() {
        task.record.integration_fix = Some(false);
    }
    if let (ClaimKind::Takeover, Some(previous)) = (kind, previous) {
        tx.free_agent(previous, id, AgentStatus::Idle)?;
    }
    let lease = tx.now + tx.config()?.lease(&task.record);
    let work = Work { coder, worktree: Worktree::of(id), base: Some(reservation.base_commit) };
    task.status = TaskStatus::Claimed { work, lease };
    task.record.reservation = None;
    hand_to_agent(tx, entry, coder, id, lease, kind);

    let event = event_of(kind);
    let past = previous.filter(|previous| *previous != coder).map(|previous| previous.to_string());
    let iteration = task.record.iteration.unwrap_or(1);
    let entry = HistoryEvent::new(tx.now, event, coder).with("iteration", iteration);
    task.remember(entry.with_some("previous", past));
    let detail = format!("iteration {iteration}: {}", task.record.description.as_deref().unwrap_or_default());
    tx.log_as(&coder.to_string(), LogAction::Task(event), Some(id), &detail);
    tx.reply("agent", coder.to_string());
    tx.reply("lease_expires", lease);
    tx.reply("iteration", iteration);
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

/// Gives up the first half, by its owner.
pub(super) fn cancel(tx: &mut Tx<'_>, id: &TaskId, coder: AgentId) -> Result<(), Refusal> {
    check_speaks_for(tx, coder)?;
    let mut task = tx.task(id)?;
    if task.record.reservation.as_ref().is_none_or(|reservation| reservation.by != coder) {
        return Err(Refusal::NoReservation { task: id.clone(), coder });
    }
    task.record.reservation = None;
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

fn kind_of_claim(tx: &Tx<'_>, id: &TaskId, coder: AgentId) -> Result<ClaimKind, Refusal> {
    let head = tx.board.head(id).ok_or_else(|| Refusal::UnknownTask { task: id.clone() })?;
    claim_kind(tx.board, head, coder, tx.now)
}

fn own_reservation(task: &Task, entry: &AgentRecord, coder: AgentId) -> Result<Reservation, Refusal> {
    let own = |reservation: &&Reservation| {
        reservation.by == coder && reservation.generation == entry.generation.unwrap_or_default()
    };
    let reservation = task.record.reservation.as_ref().filter(own);
    reservation.cloned().ok_or_else(|| Refusal::NoReservation { task: task.id.clone(), coder })
}

/// The same coder, a handoff and an integration fix go on in the worktree that stands; everybody else starts fresh.
fn worktree_mode(task: &Task, kind: ClaimKind, coder: AgentId) -> WorktreeMode {
    let kept = task.status.kept();
    let handed_over = task.record.handoff_pending == Some(true);
    let keeps = match kind {
        ClaimKind::Resume | ClaimKind::AfterRejection | ClaimKind::IntegrationFix => true,
        ClaimKind::First => kept.coder.is_none_or(|owner| owner == coder) || handed_over,
        ClaimKind::Reassign | ClaimKind::Takeover => handed_over,
    };
    if keeps && kept.worktree.is_some() { WorktreeMode::Keep } else { WorktreeMode::Fresh }
}

/// A worktree that goes on keeps its base; a fix takes the head that it has to merge in.
fn base_for(task: &Task, kind: ClaimKind, mode: WorktreeMode, head: &Sha) -> Sha {
    match (kind, mode) {
        (ClaimKind::IntegrationFix, _) | (_, WorktreeMode::Fresh) => head.clone(),
        (_, WorktreeMode::Keep) => task.status.kept().base.unwrap_or_else(|| head.clone()),
    }
}

/// The iterations that a re-claim by the same coder would exceed the limit with.
fn over_the_limit(tx: &Tx<'_>, task: &Task, kind: ClaimKind, coder: AgentId) -> Result<Option<u32>, Refusal> {
    let again = match kind {
        ClaimKind::AfterRejection => true,
        ClaimKind::IntegrationFix => task.status.kept().coder == Some(coder),
        ClaimKind::First | ClaimKind::Resume | ClaimKind::Reassign | ClaimKind::Takeover => false,
    };
    let done = task.record.iteration.unwrap_or(0);
    Ok((again && done >= tx.config()?.max_iterations(&task.record)).then_some(done))
}

fn count_claim(task: &mut Task, kind: ClaimKind, same_coder: bool) {
    let record = &mut task.record;
    record.iteration = Some(match kind {
        ClaimKind::Resume => record.iteration.unwrap_or(1),
        ClaimKind::AfterRejection => record.iteration.unwrap_or(0).saturating_add(1),
        ClaimKind::IntegrationFix if same_coder => record.iteration.unwrap_or(0).saturating_add(1),
        ClaimKind::IntegrationFix | ClaimKind::First | ClaimKind::Reassign | ClaimKind::Takeover => 1,
    });
    if !same_coder {
        record.review_cycles_current = Some(0);
        record.crashes = None;
        record.idle_exits = None;
    }
    record.review_cycles_current.get_or_insert(0);
    record.review_cycles_total.get_or_insert(0);
}

/// Owner and agent entry change in the same write, with the same lease.
fn hand_to_agent(
    tx: &mut Tx<'_>,
    mut entry: AgentRecord,
    coder: AgentId,
    task: &TaskId,
    lease: Timestamp,
    kind: ClaimKind,
) {
    entry.status = AgentStatus::Working;
    entry.current_task = Some(task.clone());
    entry.lease_expires = Some(lease);
    // A new session, of which nothing has been measured yet.
    entry.context_percent = None;
    entry.heartbeat = Some(tx.now);
    if kind != ClaimKind::Resume {
        entry.iterations_total = Some(entry.iterations_total.unwrap_or(0).saturating_add(1));
    }
    tx.put_agent(coder, entry);
}

fn event_of(kind: ClaimKind) -> EventName {
    match kind {
        ClaimKind::First => EventName::Claimed,
        ClaimKind::Resume => EventName::Resumed,
        ClaimKind::AfterRejection => EventName::ReclaimedAfterRejection,
        ClaimKind::Reassign => EventName::ReassignedAfterRejection,
        ClaimKind::IntegrationFix => EventName::ClaimedForIntegrationFix,
        ClaimKind::Takeover => EventName::ReclaimedAfterExpiry,
    }
}

/// A person takes a claim away. Works on the record, so that a broken one can be released too.
pub(super) fn release(
    tx: &mut Tx<'_>,
    id: &TaskId,
    role: ClaimRole,
    force: bool,
    reason: Option<&str>,
) -> Result<(), Refusal> {
    let mut record = tx.board.body(id)?.record.clone();
    let reason = reason.unwrap_or("released by the human");
    let as_coder = matches!(role, ClaimRole::Coder | ClaimRole::Both);
    let as_reviewer = matches!(role, ClaimRole::Reviewer | ClaimRole::Both);
    let (by, until) = match record.status {
        // A status that cannot be read, with an owner beside it, is a claim that somebody mistyped.
        None if as_coder && record.assigned_to.is_some() => (record.assigned_to, None),
        Some(Status::Claimed) if as_coder => (record.assigned_to, record.lease_expires),
        Some(Status::ReadyForReview) if as_reviewer && record.reviewing_by.is_some() => {
            (record.reviewing_by, record.review_lease_expires)
        }
        _ => return Err(Refusal::NothingToRelease { task: id.clone() }),
    };
    if let (Some(by), Some(until), false) = (by, until, force)
        && tx.now <= until
    {
        return Err(Refusal::LeaseLive { task: id.clone(), by, until });
    }
    if let Some(by) = by {
        tx.free_agent(by, id, AgentStatus::Idle)?;
    }
    if record.status != Some(Status::ReadyForReview) {
        clear_owned(&mut record);
        record.status = Some(Status::Unclaimed);
        record.reservation = None;
        record.iteration = None;
        record.handoff_pending = record.handoff_pending.map(|_| false);
        // Notes about work that is gone would lead the next coder astray.
        tx.drop_handoff(id)?;
        tx.effect(Effect::RemoveWorktree { task: id.clone() });
    } else {
        record.reviewing_by = None;
        record.review_lease_expires = None;
    }
    let event = tx.event(EventName::Released).with("reason", reason);
    let event = event.with_some("previous", by.map(|by| by.to_string()));
    record.history.get_or_insert_default().push(event);
    tx.log(LogAction::Task(EventName::Released), Some(id), reason);
    tx.reply("task", id.as_str());
    tx.reply("status", record.status.map_or("", Status::name));
    tx.put_record(id.clone(), record);
    Ok(())
}

/// A worktree by hand: only where the task is claimed or being claimed.
pub(super) fn create_worktree(tx: &mut Tx<'_>, id: &TaskId, fresh: bool, head: &Sha) -> Result<(), Refusal> {
    let task = tx.task(id)?;
    let reserved = task.record.reservation.as_ref().filter(|reservation| reservation.is_live(tx.now));
    let base = match (&task.status, reserved) {
        (TaskStatus::Claimed { work, .. }, _) => {
            check_speaks_for(tx, work.coder)?;
            work.base.clone().unwrap_or_else(|| head.clone())
        }
        (_, Some(reservation)) => {
            check_speaks_for(tx, reservation.by)?;
            reservation.base_commit.clone()
        }
        (_, None) => return Err(tx.wrong_status(&task, "a CLAIMED or reserved task")),
    };
    let mode = if fresh { WorktreeMode::Fresh } else { WorktreeMode::Keep };
    tx.effect(Effect::PrepareWorktree { task: id.clone(), mode, base });
    tx.reply_task(&task);
    Ok(())
}

/// Removes a worktree that nobody needs any more; what is unmerged is saved first.
pub(super) fn delete_worktree(tx: &mut Tx<'_>, id: &TaskId) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    match &mut task.status {
        TaskStatus::Blocked { kept, .. } => *kept = Kept { coder: kept.coder, ..Kept::default() },
        TaskStatus::Merged { .. } | TaskStatus::Superseded { .. } | TaskStatus::Abandoned => {}
        TaskStatus::Draft
        | TaskStatus::Unclaimed { .. }
        | TaskStatus::Claimed { .. }
        | TaskStatus::ReadyForReview { .. }
        | TaskStatus::Rejected { .. }
        | TaskStatus::Approved { .. }
        | TaskStatus::IntegrationFailed { .. } => {
            return Err(tx.wrong_status(&task, "BLOCKED or a final state"));
        }
    }
    tx.effect(Effect::RemoveWorktree { task: id.clone() });
    tx.log(LogAction::Recovered, Some(id), "worktree removed by hand");
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}
