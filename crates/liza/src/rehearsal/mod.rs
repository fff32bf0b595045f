//! The rehearsal agent: plays planner, coder and code reviewer from a playbook, with real commits and real commands.
//!
//! Knows of its work what its prompt says and changes the blackboard only by calling `liza`, as any agent program
//! does. Without a playbook, or without a scene for the moment, it does the obvious right thing.

mod code;
mod git;
mod misbehave;
mod obvious;
mod plan;
mod play;
pub mod playbook;
pub mod prompt;
mod review;
mod stage;
pub mod step;
mod steps;

use std::io;
use std::path::{Path, PathBuf};

use liza_core::model::Sha;

use crate::git::GitError;

pub use misbehave::hang;
pub use playbook::{Playbook, PlaybookError};
pub use prompt::{Prompt, PromptError};
pub use stage::Voice;

/// The variable that names the playbook.
pub const PLAYBOOK: &str = "LIZA_PLAYBOOK";

/// Why a session could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// The prompt is not one of ours.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The playbook is not one.
    #[error(transparent)]
    Playbook(#[from] PlaybookError),
    /// Git said no.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The prompt and the environment are about different agents.
    #[error("the prompt is for {prompt}, LIZA_AGENT_ID says {environment}")]
    WrongAgent {
        /// Whom the prompt is for.
        prompt: String,
        /// Who we are.
        environment: String,
    },
    /// A command that had to succeed did not.
    #[error("`{command}` ended with {code}: {words}")]
    Failed {
        /// Which.
        command: String,
        /// Its exit code; -1 for a signal.
        code: i32,
        /// The last thing that it said.
        words: String,
    },
    /// A step that this session's prompt has nothing for.
    #[error("{0}")]
    NoPart(&'static str),
    /// A path of a playbook leads out of the worktree.
    #[error("{} is not inside the worktree; `misbehave: {{write-outside: ...}}` does that on purpose", .0.display())]
    Outside(PathBuf),
    /// There is nothing to commit.
    #[error("nothing to commit: the worktree is as the base left it")]
    NothingToCommit,
    /// There is nothing to review.
    #[error("the change {base}..{commit} is empty")]
    EmptyDiff {
        /// From here.
        base: Sha,
        /// To here.
        commit: Sha,
    },
    /// The change has files that it should not have.
    #[error("the change goes beyond {within:?}: {files:?}")]
    BeyondScope {
        /// The patterns.
        within: Vec<String>,
        /// What none of them matches.
        files: Vec<String>,
    },
    /// The change has no test.
    #[error("the change has no test")]
    NoTests,
}

impl RehearsalError {
    fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }
}

/// Why a scene ends before its last step.
#[derive(Debug)]
enum Halt {
    /// A command or a halt file said: stop now.
    Stop,
    /// Something went wrong.
    Failed(RehearsalError),
}

impl<E: Into<RehearsalError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Halt::Failed(error.into())
    }
}

/// What a step comes to.
type Done = Result<(), Halt>;

/// Plays one session and gives the exit code that it ends with.
///
/// # Errors
///
/// When prompt or playbook cannot be read, or a step fails that had to succeed.
pub fn rehearse(prompt: &str, playbook: Option<&Path>, voice: Voice) -> Result<u8, RehearsalError> {
    let length = prompt.len();
    let prompt = Prompt::read(prompt)?;
    let environment = std::env::var(crate::project::AGENT_ID).unwrap_or_default();
    if !environment.is_empty() && environment != prompt.agent.to_string() {
        return Err(RehearsalError::WrongAgent { prompt: prompt.agent.to_string(), environment });
    }
    let playbook = match playbook {
        Some(path) => Playbook::load(path)?,
        None => Playbook::default(),
    };
    let stage = stage::Stage::new(prompt, length, voice);
    let played = play::play(&stage, &playbook);
    stage.tell_real_usage();
    played
}
