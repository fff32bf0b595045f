//! `liza align`: the planner says how the work stands to the goal.

use liza_core::protocol::Align;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::Reply;

/// Say how the work stands to the goal.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza align --summary \"Retry works for 2 of 5 endpoints; auth was split off\"")]
pub(crate) struct Args {
    /// How; - reads it from standard input.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Text,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Align { summary: args.summary.read(context)? };
    context.run(command, |_| "written to the goal's alignment history".to_owned())
}
