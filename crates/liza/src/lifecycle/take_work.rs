//! Brings what a session has committed into the project, so that a lost worktree costs no commit.

use liza_core::model::{Board, Generation, Sha, TaskId};

use crate::engine::EngineError;
use crate::git::is_taken;
use crate::project::Project;

/// Takes the commits of a task's worktree; returns its HEAD, or `None` where there is no worktree.
///
/// # Errors
/// When the worktree's repository is damaged, or git fails.
pub fn take_work(project: &Project, board: &Board, task: &TaskId) -> Result<Option<Sha>, EngineError> {
    Ok(project.repo()?.take_work(task, generation(board, task))?)
}

/// Takes what coders have committed since the last time, at a renewal of their claims. What cannot be taken now is taken by
/// the submission, by the end of the session, or by a rescue.
pub fn take_new_commits(project: &Project, claims: &[(TaskId, Generation)]) {
    for (task, generation) in claims {
        if !is_taken(project.root(), task, *generation)
            && let Ok(repo) = project.repo()
        {
            let _ = repo.take_work(task, *generation);
        }
    }
}

/// The registration whose session works on the task; none if no session does.
pub(super) fn generation(board: &Board, task: &TaskId) -> Generation {
    let coder = board.body(task).ok().and_then(|body| body.record().assigned_to);
    let entry = coder.and_then(|coder| board.agents.ready()?.get(&coder));
    entry.and_then(|entry| entry.generation).unwrap_or_default()
}
