//! `liza note`: the human leaves a note for the agents.

use liza_core::model::TaskId;
use liza_core::protocol::WriteNote;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::task_name::meant_task;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Leave a note that agents read before they start.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza note \"There is a retry helper in src/utils/retry.py\" --for retry-orders
  liza note \"No new dependencies, please\"")]
pub(crate) struct Args {
    /// The note; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    text: Text,
    /// Only for agents that work on this task (its ID, or the beginning of it); default all agents.
    #[arg(long = "for", value_name = "TASK")]
    to: Option<TaskId>,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let to = match args.to {
        Some(task) => Some(meant_task(&project.store().snapshot()?.board, task)?),
        None => None,
    };
    let whom = to.as_ref().map_or("all agents".to_owned(), |task| format!("agents that work on {task}"));
    let command = WriteNote { message: args.text.read(context)?, to };
    context.run_in(&project, command, |_| format!("note added for {whom}"))
}
