//! `liza abort`: the human stops everything for good.

use liza_core::protocol::Abort;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Stop everything for good: the goal and its sprint are ABORTED.
///
/// Nothing is deleted; worktrees and branches stay. To stop for a while, use `liza pause`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza abort")]
pub(crate) struct Args {}

/// Runs it.
pub(crate) fn run(_: Args, context: &Context) -> Result<Reply, CommandError> {
    let text = "aborted: every agent stops now, nothing is deleted; liza goal new \"GOAL\" starts over";
    context.run(Abort, |_| text.to_owned())
}
