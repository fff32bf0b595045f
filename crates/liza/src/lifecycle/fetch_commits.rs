//! Brings commits here that a person asks about and another machine has made. Moves no branch.

use liza_core::model::{Sha, TaskId};

use crate::engine::{EngineError, Exchange};
use crate::project::Project;

/// Makes sure that commits of the integration branch are in this repository.
///
/// # Errors
/// When the remote cannot be reached, or git fails.
pub(crate) fn fetch_merged(project: &Project, commits: &[&Sha]) -> Result<(), EngineError> {
    if has_all(project, commits)? {
        return Ok(());
    }
    match Exchange::of(project)? {
        Some(exchange) => exchange.fetch_head().map(drop),
        None => Ok(()),
    }
}

/// Makes sure that a submitted commit is in this repository.
///
/// # Errors
/// When the remote does not have it or cannot be reached, or git fails.
pub(crate) fn fetch_submitted(project: &Project, task: &TaskId, commit: &Sha) -> Result<(), EngineError> {
    match Exchange::of(project)? {
        Some(exchange) => exchange.bring_submission(task, commit),
        None => Ok(()),
    }
}

/// What the coder of a task on another machine has sent; `None` if there is nothing, or no remote.
///
/// # Errors
/// When the remote cannot be reached, or git fails.
pub(crate) fn fetch_sent(project: &Project, task: &TaskId) -> Result<Option<Sha>, EngineError> {
    match Exchange::of(project)? {
        Some(exchange) => exchange.latest_work(task),
        None => Ok(None),
    }
}

fn has_all(project: &Project, commits: &[&Sha]) -> Result<bool, EngineError> {
    let repo = project.repo()?;
    for commit in commits {
        if !repo.has_commit(commit)? {
            return Ok(false);
        }
    }
    Ok(true)
}
