//! `liza resolve`: the human has settled what the circuit breaker found.

use liza_core::protocol::{Command, Resolve};

use super::context::Context;
use super::error::CommandError;
use super::input::Text;
use super::output::Reply;

/// Say how you settled what the circuit breaker found, and go on.
///
/// The trigger goes to the history with your words and the checkpoint ends. What was found before does not fire again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza resolve \"the rate limit is in the specification now\"")]
pub(super) struct Args {
    /// How it was settled.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    resolution: Text,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Command::from(Resolve { resolution: args.resolution.read()? });
    context.submit_and_tell(command, |_| "resolved: the checkpoint is over, work goes on".to_owned())
}
