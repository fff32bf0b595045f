//! Errors that end a session or a scene early.

use std::io;
use std::path::{Path, PathBuf};

use crate::prompt::PromptError;

#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    #[error("cannot read the prompt: {0}")]
    UnreadablePrompt(#[source] io::Error),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error("the prompt is for {prompt}, but LIZA_AGENT_ID is {environment}")]
    WrongAgent { prompt: String, environment: String },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot run git: {0}")]
    GitMissing(#[source] io::Error),
    #[error("`{command}` exited with {code}: {message}")]
    Git {
        command: String,
        /// Its exit code; -1 for a signal.
        code: i32,
        message: String,
    },
    #[error("`{command}` exited with {code}: {message}")]
    CommandFailed {
        command: String,
        /// Its exit code; -1 for a signal.
        code: i32,
        /// The most useful line of its output.
        message: String,
    },
    #[error("{0}")]
    NotApplicable(&'static str),
    #[error("{} is not inside the worktree; to write there on purpose, use `misbehave: {{write-outside: ...}}`", .0.display())]
    OutsideWorktree(PathBuf),
    #[error("nothing to commit: the worktree has no changes since its base")]
    NothingToCommit,
    #[error("the change {base}..{commit} is empty")]
    EmptyDiff { base: String, commit: String },
    #[error("the change has files outside {within:?}: {files:?}")]
    OutOfScope { within: Vec<String>, files: Vec<String> },
    #[error("the change has no test")]
    NoTests,
}

impl RehearsalError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// Turns the failure of a playbook's command into an error.
pub(crate) fn require_success(
    command: impl Into<String>,
    code: i32,
    message: impl Into<String>,
) -> Result<(), RehearsalError> {
    match code {
        0 => Ok(()),
        code => Err(RehearsalError::CommandFailed { command: command.into(), code, message: message.into() }),
    }
}

#[derive(Debug)]
pub(crate) enum StepError {
    /// A command or a stop file asks the agent to stop.
    Stopped,
    Failed(RehearsalError),
}

impl<E: Into<RehearsalError>> From<E> for StepError {
    fn from(error: E) -> Self {
        StepError::Failed(error.into())
    }
}

pub(crate) type StepResult<T = ()> = Result<T, StepError>;
