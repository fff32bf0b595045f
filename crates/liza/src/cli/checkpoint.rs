//! `liza checkpoint`: everybody stops for a human's look.

use std::path::PathBuf;

use liza_core::Command;
use liza_core::command::CheckpointCause;

use super::context::Context;
use super::error::CommandError;
use super::output::Reply;

/// Stop everybody for a look at the sprint.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza checkpoint
  liza resume --decision continue")]
pub(super) struct Args {
    /// Another project than the one that you are in.
    #[arg(value_name = "PROJECT_ROOT")]
    root: Option<PathBuf>,
}

/// Runs it.
pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, CommandError> {
    let context = context.at(args.root.as_deref())?;
    let command = Command::Checkpoint { cause: CheckpointCause::Human };
    context.submit_and_tell(command, |_| {
        "checkpoint: nothing new starts, running sessions come to an end\n\
         when you have looked: liza resume --decision continue"
            .to_owned()
    })
}
