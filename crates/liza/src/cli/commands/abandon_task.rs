//! `liza abandon-task`: the planner abandons a task.

use liza_core::model::{Actor, Board, Refusal, TaskId};
use liza_core::protocol::AbandonTask;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::task_name::meant_task;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Abandon a task.
///
/// Its unmerged work is kept on a branch rescue/TASK-N.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza abandon-task retry-ftp --reason \"FTP is no longer used\"")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// Why it is abandoned.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Text,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    if context.actor()? == Actor::Human {
        check_whole(&project.store().snapshot()?.board, &args.task)?;
    }
    let name = args.task.clone();
    let command = AbandonTask { task: args.task, reason: args.reason.read(context)? };
    context.run_in(&project, command, |_| {
        format!("{name} is ABANDONED; the planner handles tasks that depend on it")
    })
}

/// Refuses the beginning of an ID, and names the task: an irreversible step needs the whole ID.
fn check_whole(board: &Board, given: &TaskId) -> Result<(), CommandError> {
    let meant = meant_task(board, given.clone())?;
    if meant == *given {
        return Ok(());
    }
    let error = CommandError::from(Refusal::UnknownTask { task: given.clone() });
    Err(error.hint(format!("did you mean {meant}? This needs the whole ID")))
}
