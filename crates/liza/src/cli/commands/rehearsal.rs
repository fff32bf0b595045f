//! `liza rehearsal`: the built-in agent program, which supervisors start like any provider's.
//!
//! Only passes arguments, environment and input to `liza-rehearsal`.

use std::io;
use std::path::Path;

use liza_rehearsal::{
    OutputFormat, PLAYBOOK_VARIABLE, Playbook, RehearsalError, SessionOptions, hang, run_session,
};
use liza_team::project::{AGENT_GENERATION, AGENT_ID};
use liza_team::run::playbook::{self, PlaybookError};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

/// Play one agent session from a playbook; reads the prompt from standard input.
///
/// LIZA_PLAYBOOK names the playbook; if it has no scene for the session, the agent does the default work of its role.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// Print each step as a line of JSON.
    #[arg(long)]
    events: bool,
    /// Never end.
    #[arg(long, hide = true)]
    hang: bool,
    /// In a session of its own.
    #[arg(long, hide = true, requires = "hang")]
    detached: bool,
}

/// Runs it. The exit code is that of the session.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    if args.hang {
        hang(args.detached);
    }
    let text = |name: &str| context.environment.text(name).map(str::to_owned);
    let options = SessionOptions {
        playbook: match text(PLAYBOOK_VARIABLE) {
            Some(path) => playbook::load(Path::new(&path))?.0,
            None => Playbook::default(),
        },
        agent_id: text(AGENT_ID),
        generation: text(AGENT_GENERATION).and_then(|number| number.parse().ok()),
        format: if args.events { OutputFormat::JsonLines } else { OutputFormat::Text },
    };
    let code = run_session(io::stdin().lock(), &options)?;
    Ok(Reply::already_written().exit(Exit::Session(code)))
}

impl From<PlaybookError> for CommandError {
    fn from(error: PlaybookError) -> Self {
        bad_playbook(error.to_string())
    }
}

fn bad_playbook(message: String) -> CommandError {
    CommandError::refused("bad_playbook", message)
        .hint("the page \"Playbooks\" of the documentation describes the format")
}

impl From<RehearsalError> for CommandError {
    fn from(error: RehearsalError) -> Self {
        let message = error.to_string();
        match error {
            RehearsalError::UnreadablePrompt(_)
            | RehearsalError::Prompt(_)
            | RehearsalError::WrongAgent { .. } => Self::refused("bad_prompt", message)
                .hint("let Liza write the prompt: liza agent ROLE --cli rehearsal"),
            RehearsalError::OutsideWorktree(_) | RehearsalError::NotApplicable(_) => bad_playbook(message),
            RehearsalError::Io { .. } => Self::refused("io", message),
            RehearsalError::GitMissing(_) => Self::refused("git_missing", message).exit(Exit::Missing),
            RehearsalError::Git { .. } => Self::refused("git", message).exit(Exit::Git),
            RehearsalError::CommandFailed { .. }
            | RehearsalError::NothingToCommit
            | RehearsalError::EmptyDiff { .. }
            | RehearsalError::OutOfScope { .. }
            | RehearsalError::NoTests => Self::refused("scene_failed", message),
        }
    }
}
