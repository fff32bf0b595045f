//! `liza abort`: the human ends the goal and its sprint.

use liza_core::protocol::Abort;

use crate::cli::confirm::{GOAL_ENDS, confirm_end};
use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Stop all work permanently: the goal and its sprint are ABORTED.
///
/// Nothing is deleted; worktrees and branches remain. To stop for a while, use `liza pause`. Asks first in a terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza abort")]
pub(crate) struct Args {
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.project()?;
    confirm_end(context, args.yes, GOAL_ENDS)?;
    let text = "aborted: all agents stop now, nothing is deleted. Start over: liza goal new \"GOAL\"";
    context.run(Abort, |_| text.to_owned())
}
