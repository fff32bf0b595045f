//! `liza pause`: all agents stop for a while.

use liza_core::protocol::Pause;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Stop all agents for a while.
///
/// Running sessions are stopped after a grace period, unless they end first; claims are kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza pause")]
pub(crate) struct Args {}

pub(crate) fn run(_: Args, context: &Context) -> Result<Reply, CommandError> {
    context.run(Pause, |reply| match reply.changed {
        false => "already paused; to continue: liza resume".to_owned(),
        // One row of a narrow screen: what running sessions do is among what needs the human.
        true => "paused: no new work starts; to continue: liza resume".to_owned(),
    })
}
