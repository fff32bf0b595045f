//! A task's worktree as the blackboard wants it: made for a claim, put back, taken away.
//!
//! Whoever changes a tree holds the task's lock and asks the blackboard again under it: a removal that comes late
//! must not meet the next coder's tree.

use std::time::Duration;

use liza_core::Command;
use liza_core::agent::AgentRecord;
use liza_core::board::{Board, Slot};
use liza_core::effect::Effect;
use liza_core::ids::TaskId;
use liza_core::time::Timestamp;

use crate::git::{Branch, PreparedWorktree, RemovedWorktree, Repo};
use crate::project::{Project, now};

use super::error::WorkError;
use super::locks::FileLock;
use super::{Work, Written, glance, integration_branch};

/// How long another process may work on the same tree before a caller gives up waiting for it.
const PATIENCE: Duration = Duration::from_secs(180);

/// What became of a worktree that was to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discarded {
    /// It is gone, or was not there.
    Removed(RemovedWorktree),
    /// Somebody needs it now.
    Needed,
}

/// Removes a task's worktree and branch, unless the blackboard says by now that somebody needs them. What is
/// unmerged is saved first.
///
/// # Errors
///
/// When git fails, or another process works on the tree for long.
pub fn discard(project: &Project, task: &TaskId) -> Result<Discarded, WorkError> {
    discard_in(project, project.repo()?, task)
}

/// The same in a repository that has been opened.
pub(super) fn discard_in(project: &Project, repo: &Repo, task: &TaskId) -> Result<Discarded, WorkError> {
    let lock = FileLock::at(&FileLock::of_task(project.folder(), task), PATIENCE)?;
    discard_under(project, repo, task, &lock)
}

/// The same, by the holder of the task's lock.
pub(super) fn discard_under(
    project: &Project,
    repo: &Repo,
    task: &TaskId,
    _: &FileLock,
) -> Result<Discarded, WorkError> {
    let board = glance(project, &[task])?;
    if is_needed(&board, task, now()) {
        return Ok(Discarded::Needed);
    }
    let integration = integration_branch(&board)?;
    Ok(Discarded::Removed(repo.remove_worktree(task, None, &integration)?))
}

/// Whether somebody works in the task's worktree, may go on in it, or is about to have it made.
pub(super) fn is_needed(board: &Board, task: &TaskId, now: Timestamp) -> bool {
    let Some(Slot { body, .. }) = board.tasks.get(task) else { return false };
    // What cannot be read may be anything: it stays.
    let Some(body) = body.as_ref().filter(|body| body.faults.is_empty()) else { return true };
    let record = &body.record;
    let waits = record.worktree.is_some() || record.reservation.is_some() || record.status.is_none();
    waits || is_inside(board, task, now)
}

/// Whether an agent's session may still be in the worktree.
fn is_inside(board: &Board, task: &TaskId, now: Timestamp) -> bool {
    let inside = |entry: &AgentRecord| entry.current_task.as_ref() == Some(task) && entry.is_live(now);
    board.agents.ready().is_none_or(|agents| agents.values().any(inside))
}

impl Work<'_> {
    pub(super) fn try_task_lock(&self, task: &TaskId) -> Result<Option<FileLock>, WorkError> {
        FileLock::try_at(&FileLock::of_task(self.project.folder(), task))
    }

    pub(super) fn task_lock(&self, task: &TaskId) -> Result<FileLock, WorkError> {
        FileLock::at(&FileLock::of_task(self.project.folder(), task), PATIENCE)
    }

    /// Makes a worktree by hand, for a task that is claimed or being claimed.
    ///
    /// # Errors
    ///
    /// When the rules refuse it, or git fails.
    pub fn create_worktree(
        &self,
        task: &TaskId,
        fresh: bool,
    ) -> Result<(Written, PreparedWorktree), WorkError> {
        let integration = integration_branch(&self.glance(&[])?)?;
        let head = self.head_of(&integration)?;
        let lock = self.task_lock(task)?;
        let written = self.submit(Command::CreateWorktree { task: task.clone(), fresh, head })?;
        let ensured = self.prepare(&written.effects, &integration, &lock)?;
        Ok((written, ensured))
    }

    /// Makes the worktree that a command asked for.
    pub(super) fn prepare(
        &self,
        effects: &[Effect],
        integration: &Branch,
        _: &FileLock,
    ) -> Result<PreparedWorktree, WorkError> {
        let wanted = effects.iter().find_map(|effect| match effect {
            Effect::PrepareWorktree { task, mode, base } => Some((task, *mode, base)),
            Effect::RemoveWorktree { .. } | Effect::Raise(_) | Effect::Lower(_) => None,
        });
        let Some((task, mode, base)) = wanted else {
            let what = "a worktree to make".to_owned();
            return Err(WorkError::Refused(Box::new(liza_core::Refusal::NotLoaded { what })));
        };
        Ok(self.repo()?.prepare_worktree(task, base, mode, integration)?)
    }
}
