//! The first contact of a new project with its git remote. Later failures are provoked now: a remote that
//! doesn't answer, references that it refuses, a branch that demands pull requests.

use std::time::Duration;

use liza_core::model::{Config, Sha};
use liza_git::{Branch, GitError, PushOutcome, RefChange, Repo};

use crate::engine::EngineError;

/// Tries the remote; returns the head of its integration branch, if it has one.
pub fn try_remote(repo: &Repo, name: &str, branch: &Branch) -> Result<Option<Sha>, EngineError> {
    let probe = repo.work_remote(name, limit()).probe(branch)?;
    match probe.refusal {
        Some(message) => Err(refused(name, branch, message)),
        None => Ok(probe.head),
    }
}

pub fn create_on_remote(repo: &Repo, name: &str, branch: &Branch, at: &Sha) -> Result<(), EngineError> {
    let create = RefChange::Move { name: branch.full(), from: None, to: at.clone() };
    match repo.work_remote(name, limit()).push(&[create])? {
        PushOutcome::Done => Ok(()),
        PushOutcome::Moved => Err(refused(name, branch, "someone has just created it".to_owned())),
        PushOutcome::Refused { message } => Err(refused(name, branch, message)),
    }
}

fn refused(name: &str, branch: &Branch, message: String) -> EngineError {
    let what = format!("a push to {branch}");
    GitError::RemoteRefused { remote: name.to_owned(), what, message }.into()
}

fn limit() -> Duration {
    Duration::from_secs(Config::default().remote_limit.0)
}
