//! `liza spec-change`: logs that a specification changed.

use liza_core::protocol::RecordSpecChange;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Log that a specification changed, so that agents read it again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza spec-change --spec specs/retry.md#auth --change \"token refresh is retried\" --triggered-by retry-orders")]
pub(crate) struct Args {
    /// The specification: a file in the project, with an optional #anchor.
    #[arg(long, value_name = "REF")]
    spec: String,
    /// How it changed.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    change: Text,
    /// What made it necessary: a task or a text.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    triggered_by: Text,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let text = format!("change to {} logged", args.spec);
    let command = RecordSpecChange {
        spec: args.spec,
        change: args.change.read(context)?,
        triggered_by: args.triggered_by.read(context)?,
    };
    context.run(command, |_| text)
}
