//! Prepares a task's worktree for a claim, and removes it when no agent needs it, under the task's lock and
//! after a new read of the blackboard: a late removal must not delete the next coder's worktree.

use std::time::Duration;

use liza_core::model::WorktreeMode;
use liza_core::model::{AgentRecord, Board, Sha, Status, TaskId, TaskSlot, Timestamp};
use liza_git::{Branch, PreparedWorktree, RemovedWorktree, Repo, Rescue};

use crate::project::{Project, now};

use super::error::EngineError;
use super::exchange::Exchange;
use super::locks::FileLock;
use super::{integration_branch, read};

/// The longest wait for another process that works on the same worktree.
const LOCK_TIMEOUT: Duration = Duration::from_secs(180);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discarded {
    /// It is removed, or did not exist.
    Removed(RemovedWorktree),
    /// An agent needs it now.
    Needed,
}

pub fn try_lock_task(project: &Project, task: &TaskId) -> Result<Option<FileLock>, EngineError> {
    FileLock::try_at(&FileLock::of_task(project.folder(), task))
}

pub fn lock_task(project: &Project, task: &TaskId) -> Result<FileLock, EngineError> {
    FileLock::at(&FileLock::of_task(project.folder(), task), LOCK_TIMEOUT)
}

/// The caller holds the task's lock.
pub fn prepare(
    repo: &Repo,
    (task, base, mode): (&TaskId, &Sha, WorktreeMode),
    integration: &Branch,
    _: &FileLock,
) -> Result<PreparedWorktree, EngineError> {
    Ok(repo.prepare_worktree(task, base, mode, integration)?)
}

/// Removes a task's worktree and branch, unless an agent needs them. Unmerged work is saved first.
pub fn discard(project: &Project, task: &TaskId) -> Result<Discarded, EngineError> {
    let lock = lock_task(project, task)?;
    discard_locked(project, task, &lock)
}

/// As [`discard`]; the caller holds the task's lock.
pub fn discard_locked(project: &Project, task: &TaskId, _: &FileLock) -> Result<Discarded, EngineError> {
    let board = read(project, &[task])?;
    if is_needed(&board, task, now()) {
        return Ok(Discarded::Needed);
    }
    let integration = integration_branch(&board)?;
    let exchange = Exchange::with(project, &board)?;
    if let Some(exchange) = &exchange {
        // Another machine's merges need not be saved. If the remote doesn't answer, they are.
        let _ = exchange.follow();
    }
    let removed = project.repo()?.remove_worktree(task, None, &integration)?;
    if let Some(exchange) = &exchange {
        clear_on_remote(exchange, &board, task, removed.rescued.as_ref());
    }
    Ok(Discarded::Removed(removed))
}

/// Sends saved work, and removes the references of a task that is over. `recover` repeats failed steps.
fn clear_on_remote(exchange: &Exchange<'_>, board: &Board, task: &TaskId, rescued: Option<&Rescue>) {
    let sent = rescued.map_or(Ok(()), |rescue| exchange.send_rescue(task, rescue));
    if sent.is_ok() && board.status(task).is_some_and(Status::is_terminal) {
        let _ = exchange.clear_task(task);
    }
}

/// True if an agent works in the task's worktree, may continue in it, or is about to create it.
pub fn is_needed(board: &Board, task: &TaskId, now: Timestamp) -> bool {
    let Some(TaskSlot { body, .. }) = board.tasks.get(task) else { return false };
    // An unreadable record may need the worktree, so it stays.
    let Some(body) = body.as_ref().filter(|body| body.faults().is_empty()) else { return true };
    let record = body.record();
    let in_use = record.worktree.is_some() || record.reservation.is_some() || record.status.is_none();
    in_use || has_session(board, task, now)
}

fn has_session(board: &Board, task: &TaskId, now: Timestamp) -> bool {
    let inside = |entry: &AgentRecord| entry.current_task.as_ref() == Some(task) && entry.is_live(now);
    board.agents.ready().is_none_or(|agents| agents.values().any(inside))
}
