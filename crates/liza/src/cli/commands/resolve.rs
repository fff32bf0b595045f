//! `liza resolve`: the human has fixed the problem that the circuit breaker found.

use liza_core::protocol::Resolve;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Record how you fixed what the circuit breaker found, and continue.
///
/// The trigger and your text go to the history, and the checkpoint ends. The anomalies found so far do not fire again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza resolve \"the rate limit is in the specification now\"")]
pub(crate) struct Args {
    /// How it was fixed.
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    resolution: Text,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Resolve { resolution: args.resolution.read(context)? };
    context.run(command, |_| "resolved: the checkpoint has ended, work continues".to_owned())
}
