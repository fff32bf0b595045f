//! `liza answer`: the human answers what a task is waiting for.

use liza_core::model::{Status, TaskId};
use liza_core::protocol::{Answer, Answered};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::Reply;

/// Answer an agent's question about a task.
///
/// The agents of the task get the answer with their next prompt. A BLOCKED task goes back to its coder, unless two
/// coders failed at it: then the planner decides with your answer. Refills the task's session budget.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza answer retry-orders \"Three times, then give up with exit code 4\"")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// The answer; - reads it from standard input.
    #[arg(allow_hyphen_values = true)]
    text: Text,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Answer { task: args.task, text: args.text.read(context)? };
    context.run(command, |Answered { task, status, unblocked }| match (unblocked, status) {
        (true, _) => format!("noted; {task} is UNCLAIMED and goes back to its coder"),
        (false, Some(Status::Blocked)) => {
            format!("noted; two coders failed at {task}, so the planner decides with your answer")
        }
        (false, _) => format!("noted, for the agents of {task}"),
    })
}
