//! `liza abort`: the human stops everything for good.

use liza_core::protocol::{Abort, Command};

use super::context::Context;
use super::error::CommandError;
use super::output::Reply;

/// Stop everything for good: the goal and its sprint are ABORTED.
///
/// Nothing is deleted; worktrees and branches stay. To stop for a while, use `liza pause`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza abort")]
pub(super) struct Args {}

/// Runs it.
pub(super) fn run(context: &Context) -> Result<Reply, CommandError> {
    let text = "aborted: every agent stops now, nothing is deleted; liza goal new \"GOAL\" starts over";
    context.submit_and_tell(Command::from(Abort), |_| text.to_owned())
}
