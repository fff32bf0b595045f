//! `liza retry-validation`: the human lets the commands that validate a task run again on the same commit.

use liza_core::model::TaskId;
use liza_core::protocol::RetryValidation;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Let the commands that validate a task run again on the same commit.
///
/// A review waits if a command fails without the task's change too, or is not installed; a commit that failed cannot be
/// submitted again. When you have corrected what was wrong outside of the work, this forgets the result.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza retry-validation retry-orders")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.run(RetryValidation { task: args.task }, |reply| {
        format!("{}: its commands run again at the next review", reply.task)
    })
}
