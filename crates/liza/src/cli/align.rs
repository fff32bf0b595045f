//! `liza align`: the planner says how the work stands to the goal.

use liza_core::protocol::{Align, Command};

use super::context::Context;
use super::error::CommandError;
use super::input::Text;
use super::output::Reply;

/// Say how the work stands to the goal.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza align --summary \"Retry works for 2 of 5 endpoints; auth was split off\"")]
pub(super) struct Args {
    /// How; - reads it from standard input.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Text,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Command::from(Align { summary: args.summary.read()? });
    context.submit_and_tell(command, |_| "written to the goal's alignment history".to_owned())
}
