//! claim-task: reserves the task, creates the worktree, claims. The task is not CLAIMED before the last step.
//! The loser of a race leaves nothing behind and must not touch the winner's worktree.

use liza_core::model::{AgentId, AnomalyType, Fields, Revision, Status, TaskId, Value};
use liza_core::protocol::{CancelReservation, ClaimTask, Claimed, LogAnomaly, ReserveTask, Reserved};
use liza_git::{Branch, PreparedWorktree, is_sent};

use crate::engine::{
    Engine, EngineError, Exchange, FileLock, discard_locked, integration_branch, lock_task, prepare,
    try_lock_task,
};
use crate::project::machine::refuse_other_machine;
use crate::session::checkout_setup::set_up_worktree;

use super::found_merge::refuse_found_merge;
use super::take_work::{generation_of, take_work};

#[derive(Debug)]
pub struct TaskClaim {
    pub revision: Revision,
    pub claimed: Claimed,
    pub worktree: PreparedWorktree,
}

pub fn claim_task(engine: &Engine<'_>, task: &TaskId, coder: AgentId) -> Result<TaskClaim, EngineError> {
    let board = engine.read(&[])?;
    let integration = integration_branch(&board)?;
    let exchange = Exchange::of(engine.project())?;
    // Before the reservation: a remote that doesn't answer, or takes no work, costs no claim and no session.
    let head = match &exchange {
        Some(exchange) => {
            send_left_work(engine, exchange, task, coder)?;
            exchange.follow()?.head
        }
        None => engine.integration_head(&integration)?,
    };
    refuse_found_merge(engine, task, Some(&head))?;
    refuse_other_machine(engine.project(), &board, coder)?;
    // The lock comes before the reservation, so that a reservation without a lock proves that its claim died.
    // If another process holds the lock, the rules decide: it may be claiming, or just removing a worktree.
    let early = try_lock_task(engine.project(), task)?;
    let reserved = engine.execute(ReserveTask { task: task.clone(), coder, head })?.reply;
    let lock = match early.map_or_else(|| lock_task(engine.project(), task), Ok) {
        Ok(lock) => lock,
        Err(error) => {
            cancel(engine, task, coder);
            return Err(error);
        }
    };
    let order = WorktreeForClaim { exchange: exchange.as_ref(), integration: &integration, lock: &lock };
    let claimed = claim_reserved(engine, task, coder, &reserved, &order);
    if claimed.is_err() {
        cancel(engine, task, coder);
        // Keeps a worktree that an agent needs according to the blackboard.
        let _ = discard_locked(engine.project(), task, &lock);
    }
    claimed
}

struct WorktreeForClaim<'a> {
    exchange: Option<&'a Exchange<'a>>,
    integration: &'a Branch,
    lock: &'a FileLock,
}

fn claim_reserved(
    engine: &Engine<'_>,
    task: &TaskId,
    coder: AgentId,
    reserved: &Reserved,
    with: &WorktreeForClaim<'_>,
) -> Result<TaskClaim, EngineError> {
    let order = (task, &reserved.base_commit, reserved.mode);
    let brought = match with.exchange {
        Some(exchange) => exchange.bring_work(task, reserved.mode, &reserved.base_commit)?,
        None => None,
    };
    let mut worktree = prepare(engine.repo()?, order, with.integration, with.lock)?;
    if let (Some(exchange), Some(rescue)) = (with.exchange, &worktree.rescued) {
        // Unsent work stays on this machine.
        let _ = exchange.send_rescue(task, rescue);
    }
    worktree.rescued = worktree.rescued.or(brought);
    let board = engine.read(&[])?;
    let is_new = worktree.created || worktree.was_damaged;
    set_up_worktree(engine.project(), board.config()?, &worktree.path, is_new)?;
    let done = engine.execute(ClaimTask { task: task.clone(), coder })?;
    if worktree.was_damaged {
        report_damage(engine, task, &worktree);
    }
    Ok(TaskClaim { revision: done.revision, claimed: done.reply, worktree })
}

/// Sends commits that this coder's last session could not send: an unsubmittable session is not worth its cost.
fn send_left_work(
    engine: &Engine<'_>,
    exchange: &Exchange<'_>,
    task: &TaskId,
    coder: AgentId,
) -> Result<(), EngineError> {
    let project = engine.project();
    if is_sent(project.root(), task, generation_of(&engine.read(&[task])?, task)) {
        return Ok(());
    }
    let sender = exchange.sender(task)?;
    let board = engine.read(&[task])?;
    let holds = board.summary(task).is_some_and(|task| task.is(Status::Claimed) && task.is_held_by(coder));
    let generation = generation_of(&board, task);
    if !holds || is_sent(project.root(), task, generation) {
        return Ok(());
    }
    // A damaged worktree is repaired by the claim.
    match take_work(project, &board, task) {
        Ok(Some(head)) => sender.send(generation, &head),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Logs that a session damaged its repository; the claim still counts.
fn report_damage(engine: &Engine<'_>, task: &TaskId, worktree: &PreparedWorktree) {
    let kept = worktree.rescued.as_ref().map_or_else(String::new, |rescue| format!(" and {}", rescue.branch));
    let reality = format!("it was damaged; it was made again, and its work is on {}{kept}", task.branch());
    let details = Fields::from_iter([
        ("assumption".to_owned(), Value::from("the repository of the worktree is complete")),
        ("reality".to_owned(), Value::from(reality.as_str())),
    ]);
    let kind = AnomalyType::AssumptionViolated;
    let _ = engine.execute(LogAnomaly { kind, task: Some(task.clone()), details });
}

/// Cancels the reservation. If that fails, another agent has taken it over, or `recover` removes it.
fn cancel(engine: &Engine<'_>, task: &TaskId, coder: AgentId) {
    let _ = engine.execute(CancelReservation { task: task.clone(), coder });
}
