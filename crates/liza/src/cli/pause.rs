//! `liza pause`: everybody stops for a while.

use liza_core::model::Value;
use liza_core::protocol::{Command, Pause};

use super::context::Context;
use super::error::CommandError;
use super::output::Reply;

/// Stop everybody for a while.
///
/// Running sessions end by themselves, or are ended after the grace period; claims are kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza pause")]
pub(super) struct Args {}

/// Runs it.
pub(super) fn run(context: &Context) -> Result<Reply, CommandError> {
    context.submit_and_tell(Command::from(Pause), |reply| match reply.get("changed") {
        Some(Value::Bool(false)) => "paused already; liza resume goes on".to_owned(),
        _ => "paused: nothing new starts, running sessions come to an end; liza resume goes on".to_owned(),
    })
}
