//! `liza resolve`: the human has settled what the circuit breaker found.

use liza_core::protocol::Resolve;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::Reply;

/// Say how you settled what the circuit breaker found, and go on.
///
/// The trigger goes to the history with your words and the checkpoint ends. What was found before does not fire again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza resolve \"the rate limit is in the specification now\"")]
pub(crate) struct Args {
    /// How it was settled.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    resolution: Text,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Resolve { resolution: args.resolution.read(context)? };
    context.run(command, |_| "resolved: the checkpoint is over, work goes on".to_owned())
}
