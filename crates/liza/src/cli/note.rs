//! `liza note`: the human has something to say to the agents.

use liza_core::model::TaskId;
use liza_core::protocol::{Command, WriteNote};

use super::context::Context;
use super::error::CommandError;
use super::input::Text;
use super::output::Reply;

/// Leave a note that agents read before they start.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza note \"There is a retry helper in src/utils/retry.py\" --for retry-orders
  liza note \"No new dependencies, please\"")]
pub(super) struct Args {
    /// What to say; - reads it from standard input.
    #[arg(allow_hyphen_values = true)]
    text: Text,
    /// Say it to whoever works on this task; to everybody when absent.
    #[arg(long = "for", value_name = "TASK")]
    to: Option<TaskId>,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let whom = args.to.as_ref().map_or("everybody".to_owned(), |task| format!("whoever works on {task}"));
    let command = Command::from(WriteNote { message: args.text.read()?, to: args.to });
    context.submit_and_tell(command, |_| format!("noted, for {whom}"))
}
