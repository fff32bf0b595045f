//! `liza pause`: everybody stops for a while.

use liza_core::protocol::Pause;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Stop everybody for a while.
///
/// Running sessions end by themselves, or are ended after the grace period; claims are kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza pause")]
pub(crate) struct Args {}

/// Runs it.
pub(crate) fn run(_: Args, context: &Context) -> Result<Reply, CommandError> {
    context.run(Pause, |reply| match reply.changed {
        false => "already paused; continue with liza resume".to_owned(),
        true => "paused: nothing new starts, running sessions end; continue with liza resume".to_owned(),
    })
}
