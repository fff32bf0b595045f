//! Why a flow did not come to its end; what was begun has been undone, or is settled by `recover`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use liza_core::model::{Refusal, TaskId};
use liza_store::StoreError;

use crate::git::{Branch, BranchError, GitError};

/// Why a flow did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The rules say no.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The blackboard could not be read or written.
    #[error(transparent)]
    Store(StoreError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The configured integration branch is no branch name.
    #[error("config.integration_branch: {0}")]
    Branch(#[from] BranchError),
    /// There is no integration branch.
    #[error("there is no branch {branch} to work from and to merge to")]
    NoIntegrationBranch {
        /// Its configured name.
        branch: Branch,
    },
    /// The approved commit does not fit; the task is INTEGRATION_FAILED.
    #[error("{task} conflicts with the integration branch in {}", files.join(", "))]
    Conflict {
        /// Whose.
        task: TaskId,
        /// Where.
        files: Vec<String>,
    },
    /// The approved commit has nothing in common with the integration branch; the task is INTEGRATION_FAILED.
    #[error("{task} has no common history with the integration branch")]
    Unrelated {
        /// Whose.
        task: TaskId,
    },
    /// The integration test was not green; the task is INTEGRATION_FAILED.
    #[error("{task}: {what}; its output is in {output}")]
    TestFailed {
        /// Whose.
        task: TaskId,
        /// How it ended.
        what: String,
        /// Where its output is.
        output: String,
    },
    /// A checkout of the integration branch could not follow; the task stays APPROVED.
    #[error("the checkout in {} cannot follow the integration branch: {message}", path.display())]
    CheckoutRefused {
        /// Whose checkout.
        path: PathBuf,
        /// Git's own words.
        message: String,
    },
    /// The branch moved under the merge, again and again; the task stays APPROVED.
    #[error("the integration branch moved {times} times while {task} was being merged")]
    Overtaken {
        /// Whose merge.
        task: TaskId,
        /// How often.
        times: u32,
    },
    /// Somebody else held a lock all the time.
    #[error("{} is held by another liza; gave up after {} s", path.display(), waited.as_secs())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Something about a file went wrong.
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

impl From<StoreError> for WorkError {
    #[allow(clippy::wildcard_enum_match_arm, reason = "only a refusal is told apart")]
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => Self::Refused(refusal),
            other => Self::Store(other),
        }
    }
}

impl WorkError {
    /// The refusal, where the rules said no.
    pub fn refusal(&self) -> Option<&Refusal> {
        if let Self::Refused(refusal) = self { Some(refusal) } else { None }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
