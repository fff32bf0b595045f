//! Why a command or a sequence of commands failed; what was begun has been undone, or is repaired by `recover`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use liza_core::model::Refusal;
use liza_store::StoreError;

use crate::git::{Branch, BranchError, GitError};

/// Why it failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The blackboard could not be read or written.
    #[error(transparent)]
    Store(StoreError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The configured integration branch is not a branch name.
    #[error("config.integration_branch: {0}")]
    Branch(#[from] BranchError),
    /// There is no integration branch.
    #[error("there is no branch {branch}, which is configured as the integration branch")]
    NoIntegrationBranch {
        /// Its configured name.
        branch: Branch,
    },
    /// Another process held a lock the whole time.
    #[error("another liza process holds {}; gave up after {} s", path.display(), waited.as_secs())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The blackboard was written, but a stop file could not be removed.
    #[error("written, but {} could not be removed: {source}", path.display())]
    Effect {
        /// The stop file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be read, written or removed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
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
    /// The refusal, if the rules said no.
    pub fn refusal(&self) -> Option<&Refusal> {
        if let Self::Refused(refusal) = self { Some(refusal) } else { None }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
