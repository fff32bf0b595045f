//! `liza align`: the planner records how the work relates to the goal.

use liza_core::protocol::Align;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Record how the work relates to the goal.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza align --summary \"Retry works for 2 of 5 endpoints; auth was split off\"")]
pub(crate) struct Args {
    /// What the work has achieved towards the goal; - reads standard input.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Text,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Align { summary: args.summary.read(context)? };
    context.run(command, |_| "added to the alignment history of the goal".to_owned())
}
