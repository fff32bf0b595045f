//! `liza note`: the human has something to say to the agents.

use liza_core::model::TaskId;
use liza_core::protocol::WriteNote;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::Reply;

/// Leave a note that agents read before they start.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza note \"There is a retry helper in src/utils/retry.py\" --for retry-orders
  liza note \"No new dependencies, please\"")]
pub(crate) struct Args {
    /// What to say; - reads it from standard input.
    #[arg(allow_hyphen_values = true)]
    text: Text,
    /// Say it to whoever works on this task; to everybody when absent.
    #[arg(long = "for", value_name = "TASK")]
    to: Option<TaskId>,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let whom = args.to.as_ref().map_or("everybody".to_owned(), |task| format!("whoever works on {task}"));
    let command = WriteNote { message: args.text.read(context)?, to: args.to };
    context.run(command, |_| format!("noted, for {whom}"))
}
