//! Why a session fails, and why a scene ends before its last step.

use std::io;
use std::path::{Path, PathBuf};

use crate::prompt::PromptError;

/// Why a session could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// Standard input has no readable text.
    #[error("cannot read the prompt: {0}")]
    UnreadablePrompt(#[source] io::Error),
    /// The text is not a prompt of Liza.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The prompt and the environment name different agents.
    #[error("the prompt is for {prompt}, but LIZA_AGENT_ID is {environment}")]
    WrongAgent {
        /// The agent that the prompt names.
        prompt: String,
        /// The agent that the environment names.
        environment: String,
    },
    /// A file could not be read or written, or a program not started.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        /// The file or the program.
        path: PathBuf,
        source: io::Error,
    },
    /// `git` is not on the path.
    #[error("cannot run git: {0}")]
    GitMissing(#[source] io::Error),
    /// A git command failed that the playbook did not ask for.
    #[error("`{command}` exited with {code}: {message}")]
    Git {
        command: String,
        /// Its exit code; -1 for a signal.
        code: i32,
        message: String,
    },
    /// A command of the playbook that has to succeed failed.
    #[error("`{command}` exited with {code}: {message}")]
    CommandFailed {
        command: String,
        /// Its exit code; -1 for a signal.
        code: i32,
        /// The most useful line of its output.
        message: String,
    },
    /// The session's prompt has nothing that the step can act on.
    #[error("{0}")]
    NotApplicable(&'static str),
    /// A path of the playbook leads out of the worktree.
    #[error("{} is not inside the worktree; to write there on purpose, use `misbehave: {{write-outside: ...}}`", .0.display())]
    OutsideWorktree(PathBuf),
    /// The worktree has no change, and no commit beyond its base.
    #[error("nothing to commit: the worktree has no changes since its base")]
    NothingToCommit,
    /// The change under review has no files.
    #[error("the change {base}..{commit} is empty")]
    EmptyDiff { base: String, commit: String },
    /// The change has files that `within` does not allow.
    #[error("the change has files outside {within:?}: {files:?}")]
    OutOfScope {
        within: Vec<String>,
        /// The files that match none of them.
        files: Vec<String>,
    },
    /// The change has no test.
    #[error("the change has no test")]
    NoTests,
}

impl RehearsalError {
    /// Returns the error for an operation on `path`, for `map_err`.
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

/// Why a scene ends before its last step.
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
