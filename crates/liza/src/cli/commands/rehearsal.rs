//! `liza rehearsal`: the built-in agent program, started by supervisors as any provider is.

use std::io::{self, Read as _};
use std::path::Path;
use std::process;

use crate::rehearsal::{PLAYBOOK, RehearsalError, Voice, hang, rehearse};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// A prompt is a few pages; more is a mistake.
const PROMPT_MAX: u64 = 16 << 20;

/// Play one agent session from a playbook: prompt on standard input.
///
/// LIZA_PLAYBOOK names the playbook; without it the session does the obvious right thing.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// Tell what is done as lines of JSON.
    #[arg(long)]
    events: bool,
    /// Never end.
    #[arg(long, hide = true)]
    hang: bool,
    /// In a session of its own.
    #[arg(long, hide = true, requires = "hang")]
    detached: bool,
}

/// Runs it. The session's own exit code is the agent's, not one of the program's.
pub(crate) fn run(args: &Args, _: &Context) -> Result<Reply, CommandError> {
    if args.hang {
        hang(args.detached);
    }
    let prompt = read_prompt()?;
    let playbook = std::env::var_os(PLAYBOOK).filter(|path| !path.is_empty());
    let voice = if args.events { Voice::Events } else { Voice::Lines };
    match rehearse(&prompt, playbook.as_deref().map(Path::new), voice) {
        Ok(code) => process::exit(i32::from(code)),
        Err(error) => Err(error.into()),
    }
}

fn read_prompt() -> Result<String, CommandError> {
    let unreadable = |error: io::Error| CommandError::refused("bad_prompt", format!("the prompt: {error}"));
    let mut prompt = String::new();
    io::stdin().lock().take(PROMPT_MAX).read_to_string(&mut prompt).map_err(unreadable)?;
    Ok(prompt)
}

impl From<RehearsalError> for CommandError {
    fn from(error: RehearsalError) -> Self {
        let message = error.to_string();
        match error {
            RehearsalError::Git(error) => error.into(),
            RehearsalError::Prompt(_) | RehearsalError::WrongAgent { .. } => {
                Self::refused("bad_prompt", message)
                    .hint("liza agent ROLE --cli rehearsal starts it as it should be")
            }
            RehearsalError::Playbook(_) | RehearsalError::Outside(_) | RehearsalError::NoPart(_) => {
                Self::refused("bad_playbook", message).hint("docs/guide/playbooks.md has the format")
            }
            RehearsalError::Io { .. } => Self::refused("io", message),
            RehearsalError::Failed { .. }
            | RehearsalError::NothingToCommit
            | RehearsalError::EmptyDiff { .. }
            | RehearsalError::BeyondScope { .. }
            | RehearsalError::NoTests => Self::refused("scene_failed", message),
        }
    }
}
