//! Errors of a command or a sequence of commands. Started steps are undone, or left to `recover`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use liza_core::model::{Refusal, Sha};
use liza_git::{Branch, BranchError, GitError};
use liza_store::StoreError;

use crate::session::checkout_setup::SetupError;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Refused(Box<Refusal>),
    #[error(transparent)]
    Store(StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The acceptance tests that no session reads cannot run; no task is to blame.
    #[error("config.holdout: {problem}")]
    Holdout { problem: String },
    #[error("config.integration_branch: {0}")]
    Branch(#[from] BranchError),
    #[error("the integration branch {branch} does not exist")]
    NoIntegrationBranch { branch: Branch },
    #[error(
        "{branch} on the remote {remote} is at {}, without {}, which is merged: someone moved it back or replaced it",
        found.short(), recorded.short()
    )]
    RemoteRewound { remote: String, branch: Branch, recorded: Sha, found: Sha },
    #[error("{branch} here is at {}, which the remote {remote} does not have ({})", local.short(), found.short())]
    LocalCommits { remote: String, branch: Branch, local: Sha, found: Sha },
    #[error("the remote {remote} has no branch {branch}")]
    NoRemoteBranch { remote: String, branch: Branch },
    #[error("{branch} on the remote {remote} moved during each of {attempts} attempts to merge")]
    RemoteBusy { remote: String, branch: Branch, attempts: u32 },
    #[error(
        "{refusal}. Its merge {} is on {branch} of the remote {remote} and could not be taken back: {source}",
        merge.short()
    )]
    NotTakenBack {
        refusal: Box<Refusal>,
        remote: String,
        branch: Branch,
        merge: Sha,
        source: Box<EngineError>,
    },
    #[error("another liza process holds {}; timed out after {} s", path.display(), waited.as_secs())]
    Locked { path: PathBuf, waited: Duration },
    #[error("written, but {} could not be removed: {source}", path.display())]
    Effect { path: PathBuf, source: io::Error },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        if let StoreError::Refused(refusal) = error { Self::Refused(refusal) } else { Self::Store(error) }
    }
}

impl EngineError {
    pub fn refusal(&self) -> Option<&Refusal> {
        if let Self::Refused(refusal) = self { Some(refusal) } else { None }
    }

    /// The command that fixes the integration branch of the remote; `None` for other errors.
    pub fn branch_answer(&self) -> Option<String> {
        match self {
            Self::RemoteRewound { remote, branch, recorded, found } => {
                Some(answer_rewound(remote, branch, (recorded, found)))
            }
            Self::LocalCommits { .. } => Some(ANSWER_LOCAL_COMMITS.to_owned()),
            Self::NoRemoteBranch { remote, branch } => Some(answer_no_branch(remote, branch)),
            Self::NotTakenBack { branch, .. } => {
                Some(format!("to keep it: liza accept-integration; to drop it, revert it on {branch} first"))
            }
            Self::Refused(_)
            | Self::Store(_)
            | Self::Git(_)
            | Self::Setup(_)
            | Self::Holdout { .. }
            | Self::Branch(_)
            | Self::NoIntegrationBranch { .. }
            | Self::RemoteBusy { .. }
            | Self::Locked { .. }
            | Self::Effect { .. }
            | Self::Io { .. } => None,
        }
    }

    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

/// The command that accepts commits which only the branch here has, and publishes them.
pub(super) const ANSWER_LOCAL_COMMITS: &str = "liza accept-integration";

/// The command that restores merged work on the remote's branch, if that has not moved since.
pub(super) fn answer_rewound(remote: &str, branch: &Branch, (recorded, found): (&Sha, &Sha)) -> String {
    format!("git push --force-with-lease={branch}:{found} {remote} {recorded}:refs/heads/{branch}")
}

pub(super) fn answer_no_branch(remote: &str, branch: &Branch) -> String {
    format!("git push {remote} {branch}")
}
