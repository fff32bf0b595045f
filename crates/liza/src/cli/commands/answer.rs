//! `liza answer`: the human answers what a task is waiting for.

use liza_core::model::{Status, TaskId};
use liza_core::protocol::{Answer, Answered};

use crate::cli::context::Context;
use crate::cli::task_name::meant_task;
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
    /// The task: its ID, or the beginning of it.
    task: TaskId,
    /// The answer; - reads it from standard input.
    #[arg(allow_hyphen_values = true)]
    text: Text,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let task = meant_task(&project.store().snapshot()?.board, args.task)?;
    let command = Answer { task, text: args.text.read(context)? };
    context.run_in(&project, command, said)
}

/// What becomes of the answer.
fn said(Answered { task, status, unblocked, coder }: &Answered) -> String {
    match (unblocked, status, coder) {
        (true, Some(Status::Draft), _) => format!("answered; {task} waits for your approval: liza plan"),
        (true, _, Some(coder)) => format!("answered; {coder} continues {task}"),
        (true, _, None) => format!("answered; a coder takes {task}"),
        (false, Some(Status::Blocked), _) => {
            format!("answered; two coders failed at {task}, so the planner decides with your answer")
        }
        (false, _, _) => format!("noted, for the agents of {task}"),
    }
}
