//! claim-task: a coder gets a task and a worktree, in two steps.
//!
//! `rules/claimable.rs` decides who may claim. The first step only reserves; the second comes when the
//! worktree exists, so no observer sees CLAIMED without one.

use serde::Serialize;

use crate::model::{
    AgentId, AgentRecord, AgentStatus, Assignment, Config, EventName, HistoryEvent, LogAction, Refusal,
    Reservation, Role, Seconds, Section, Sha, Task, TaskId, TaskStatus, Timestamp, Worktree, WorktreeMode,
};
use crate::rules::claimable::{ClaimKind, claim_kind, claimed_by};
use crate::rules::session_budget::SessionBudget;

use super::blocking::{at_iteration_limit, at_session_limit};
use super::budget::check_budget;
use super::operation::{LoadScope, Rule, Stage};
use super::ownership::{check_acts_for, registered};
use super::permission::{Rights, SUPERVISION};
use super::reply::TaskReply;
use super::tx::Tx;

/// The time to create the worktree; then the reservation expires by itself.
const RESERVATION: Seconds = Seconds(120);

/// First step: reserves the task while its worktree is made.
#[derive(Debug, Clone, PartialEq)]
pub struct ReserveTask {
    pub task: TaskId,
    pub coder: AgentId,
    /// The head of the integration branch.
    pub head: Sha,
}

/// Second step: the worktree exists, the task is the coder's.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimTask {
    pub task: TaskId,
    pub coder: AgentId,
}

/// The claim will not be completed; its owner gives the reservation back.
#[derive(Debug, Clone, PartialEq)]
pub struct CancelReservation {
    pub task: TaskId,
    pub coder: AgentId,
}

/// A reservation, with the worktree that has to be made now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reserved {
    #[serde(flatten)]
    pub task: TaskReply,
    /// The start of a new worktree.
    pub base_commit: Sha,
    #[serde(skip)]
    pub mode: WorktreeMode,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Claimed {
    #[serde(flatten)]
    pub task: TaskReply,
    pub agent: AgentId,
    /// The end of the coder's lease.
    pub lease_expires: Timestamp,
    /// The number of this claim among the coder's claims of the task.
    pub iteration: u32,
}

/// The length of a reservation: time to fetch earlier work, and to create and set up the worktree.
fn reservation(config: &Config) -> Seconds {
    let setup = config.setup.as_ref().map_or(0, |_| config.setup_limit.0);
    let fetch = config.remote.as_ref().map_or(0, |_| config.remote_limit.0);
    Seconds(RESERVATION.0.saturating_add(setup).saturating_add(fetch))
}

impl Rule for ReserveTask {
    type Reply = Reserved;
    const VERB: &'static str = "claim-task";
    const RIGHTS: Rights = SUPERVISION;
    const STAGE: Stage = Stage::Starts;
    const LOADS: LoadScope = LoadScope::all(&[Section::Config, Section::Goal, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Reserved, Refusal> {
        let (id, coder) = (&self.task, self.coder);
        let entry = registered(tx, coder, Role::Coder)?;
        let mut task = tx.task(id)?;
        check_free(tx, coder, id)?;
        let kind = match kind_of_claim(tx, id, coder) {
            Err(lost @ (Refusal::Reserved { .. } | Refusal::ClaimedByOther { .. })) => {
                tx.log_as(coder, LogAction::ClaimFailed, Some(id), &lost.to_string());
                return Err(tx.refuse_but_write(lost));
            }
            kind => kind?,
        };
        let budget = SessionBudget::of_task(id, &task.record);
        if let Err(refusal) = check_budget(tx, &budget) {
            return Err(at_session_limit(tx, task, refusal)?);
        }
        if let Some(iterations) = exceeded_iterations(tx, &task, kind, coder)? {
            return Err(at_iteration_limit(tx, task, coder, iterations));
        }
        let mode = worktree_mode(&task, kind, coder);
        let base_commit = base_for(&task, kind, mode, &self.head);
        tx.require_own_repositories();
        task.record.reservation = Some(Reservation {
            by: coder,
            generation: entry.generation.unwrap_or_default(),
            expires: tx.now + reservation(tx.config()?),
            base_commit: base_commit.clone(),
        });
        Ok(Reserved { task: tx.put(task), base_commit, mode })
    }
}

impl Rule for ClaimTask {
    type Reply = Claimed;
    const VERB: &'static str = "claim-task (second step)";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::all(&[Section::Config, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Claimed, Refusal> {
        let (id, coder) = (&self.task, self.coder);
        let entry = registered(tx, coder, Role::Coder)?;
        let mut task = tx.task(id)?;
        let reservation = own_reservation(&task, &entry, coder)?;
        check_free(tx, coder, id)?;
        let kind = kind_of_claim(tx, id, coder)?;
        let budget = SessionBudget::of_task(id, &task.record);
        budget.charge(&mut tx.sprint()?.sessions);
        let previous = task.status.prior_work().coder;
        let fresh = worktree_mode(&task, kind, coder) == WorktreeMode::Fresh;
        let same_coder = is_same_coder(&task, coder);
        count_claim(&mut task, kind, same_coder);
        if kind == ClaimKind::IntegrationFix {
            task.record.integration_fix = Some(true);
        } else if fresh && task.record.integration_fix.is_some() {
            task.record.integration_fix = Some(false);
        }
        if kind == ClaimKind::Takeover {
            tx.free_agents(previous, id, AgentStatus::Idle)?;
        }
        let lease_expires = tx.now + tx.config()?.lease(&task.record);
        let work = Assignment { coder, worktree: Worktree::of(id), base: Some(reservation.base_commit) };
        task.status = TaskStatus::Claimed { work, lease: lease_expires };
        task.record.reservation = None;
        task.record.previous_coder = None;
        assign(tx, entry, coder, id, lease_expires, kind);

        let event = event_of(kind);
        let other = previous.filter(|previous| *previous != coder).map(|previous| previous.to_string());
        let iteration = task.record.iteration.unwrap_or(1);
        let entry = HistoryEvent::new(tx.now, event, coder).with("iteration", iteration);
        task.push_event(entry.with_some("previous", other));
        let detail =
            format!("attempt {iteration}: {}", task.record.description.as_deref().unwrap_or_default());
        tx.log_as(coder, LogAction::Task(event), Some(id), &detail);
        Ok(Claimed { task: tx.put(task), agent: coder, lease_expires, iteration })
    }
}

impl Rule for CancelReservation {
    type Reply = TaskReply;
    const VERB: &'static str = "claim-task (cancel)";
    const RIGHTS: Rights = SUPERVISION;

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        check_acts_for(tx, self.coder)?;
        let mut task = tx.task(&self.task)?;
        if task.record.reservation.as_ref().is_none_or(|reservation| reservation.by != self.coder) {
            return Err(Refusal::NoReservation { task: self.task.clone(), coder: self.coder });
        }
        task.record.reservation = None;
        Ok(tx.put(task))
    }
}

/// A coder has one task at a time.
fn check_free(tx: &Tx<'_>, coder: AgentId, id: &TaskId) -> Result<(), Refusal> {
    match claimed_by(tx.board, coder, Some(id)) {
        Some(held) => Err(Refusal::AgentBusy { agent: coder, task: held.id.clone() }),
        None => Ok(()),
    }
}

fn kind_of_claim(tx: &Tx<'_>, id: &TaskId, coder: AgentId) -> Result<ClaimKind, Refusal> {
    let summary = tx.board.summary(id).ok_or_else(|| Refusal::UnknownTask { task: id.clone() })?;
    claim_kind(tx.board, summary, coder, tx.now)
}

fn own_reservation(task: &Task, entry: &AgentRecord, coder: AgentId) -> Result<Reservation, Refusal> {
    let own = |reservation: &&Reservation| {
        reservation.by == coder && reservation.generation == entry.generation.unwrap_or_default()
    };
    let reservation = task.record.reservation.as_ref().filter(own);
    reservation.cloned().ok_or_else(|| Refusal::NoReservation { task: task.id.clone(), coder })
}

/// The same coder, a handoff and an integration fix continue in the existing worktree; others start fresh.
fn worktree_mode(task: &Task, kind: ClaimKind, coder: AgentId) -> WorktreeMode {
    let prior = task.status.prior_work();
    let handed_off = task.record.handoff_pending == Some(true);
    let keeps = match kind {
        ClaimKind::Resume | ClaimKind::AfterRejection | ClaimKind::IntegrationFix => true,
        ClaimKind::First => prior.coder.is_none_or(|owner| owner == coder) || handed_off,
        ClaimKind::Reassign | ClaimKind::Takeover => handed_off,
    };
    if keeps && prior.worktree.is_some() { WorktreeMode::Keep } else { WorktreeMode::Fresh }
}

/// A kept worktree keeps its base; a fix takes the head that it must merge in.
fn base_for(task: &Task, kind: ClaimKind, mode: WorktreeMode, head: &Sha) -> Sha {
    match (kind, mode) {
        (ClaimKind::IntegrationFix, _) | (_, WorktreeMode::Fresh) => head.clone(),
        (_, WorktreeMode::Keep) => task.status.prior_work().base.unwrap_or_else(|| head.clone()),
    }
}

/// The iterations so far, if one more claim by the same coder would exceed the limit.
fn exceeded_iterations(
    tx: &Tx<'_>,
    task: &Task,
    kind: ClaimKind,
    coder: AgentId,
) -> Result<Option<u32>, Refusal> {
    let again = match kind {
        ClaimKind::AfterRejection => true,
        ClaimKind::First | ClaimKind::IntegrationFix => is_same_coder(task, coder),
        ClaimKind::Resume | ClaimKind::Reassign | ClaimKind::Takeover => false,
    };
    let done = task.record.iteration.unwrap_or(0);
    Ok((again && done >= tx.config()?.max_iterations(&task.record)).then_some(done))
}

/// True if the coder continues its own work: the task is still its own, or the last claim was.
fn is_same_coder(task: &Task, coder: AgentId) -> bool {
    task.status.prior_work().coder == Some(coder)
        || task.record.past().last_coder == Some(coder.to_string().as_str())
}

fn count_claim(task: &mut Task, kind: ClaimKind, same_coder: bool) {
    let record = &mut task.record;
    record.iteration = Some(match kind {
        ClaimKind::Resume => record.iteration.unwrap_or(1),
        ClaimKind::AfterRejection => record.iteration.unwrap_or(0).saturating_add(1),
        ClaimKind::First | ClaimKind::IntegrationFix if same_coder => {
            record.iteration.unwrap_or(0).saturating_add(1)
        }
        ClaimKind::IntegrationFix | ClaimKind::First | ClaimKind::Reassign | ClaimKind::Takeover => 1,
    });
    if !same_coder {
        record.review_cycles_current = Some(0);
        record.clear_exit_counts();
    }
    record.review_cycles_current.get_or_insert(0);
    record.review_cycles_total.get_or_insert(0);
}

/// Task and agent entry change in the same write, with the same lease.
fn assign(
    tx: &mut Tx<'_>,
    mut entry: AgentRecord,
    coder: AgentId,
    task: &TaskId,
    lease: Timestamp,
    kind: ClaimKind,
) {
    entry.begin_session(AgentStatus::Working, task, lease, tx.now);
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
