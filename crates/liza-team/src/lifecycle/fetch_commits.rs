//! Fetches commits of other machines that a person asks about. Moves no branch.

use liza_core::model::{Board, Sha, TaskId};
use liza_git::Repo;

use crate::engine::{EngineError, Exchange, integration_branch};
use crate::project::Project;

pub fn fetch_merged(project: &Project, commits: &[&Sha]) -> Result<(), EngineError> {
    if has_all(project, commits)? {
        return Ok(());
    }
    match Exchange::of(project)? {
        Some(exchange) => exchange.fetch_head().map(drop),
        None => Ok(()),
    }
}

pub fn fetch_submitted(project: &Project, task: &TaskId, commit: &Sha) -> Result<(), EngineError> {
    match Exchange::of(project)? {
        Some(exchange) => exchange.bring_submission(task, commit),
        None => Ok(()),
    }
}

/// The commits that the coder of a task on another machine has sent; `None` if there are none, or no remote.
pub fn fetch_sent(project: &Project, task: &TaskId) -> Result<Option<Sha>, EngineError> {
    match Exchange::of(project)? {
        Some(exchange) => exchange.latest_work(task),
        None => Ok(None),
    }
}

/// The head of the integration branch, wherever the last merge was made; `None` if there is no branch.
pub fn integration_head(project: &Project, board: &Board) -> Result<Option<Sha>, EngineError> {
    let recorded = board.goal.ready().and_then(|goal| goal.integration_head.clone());
    match recorded.filter(|_| board.config().is_ok_and(|config| config.remote.is_some())) {
        // The branch here may be behind that of the remote.
        Some(recorded) => {
            fetch_merged(project, &[&recorded])?;
            Ok(Some(recorded))
        }
        None => {
            let (repo, branch) = (project.repo()?, integration_branch(board)?);
            match Repo::head_on_disk(repo.common_dir(), &branch) {
                Some(head) => Ok(Some(head)),
                None => Ok(repo.tip(&branch)?),
            }
        }
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
