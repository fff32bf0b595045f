//! `liza wt-delete`: removes a worktree that is no longer needed.

use liza_core::model::TaskId;
use liza_core::protocol::DeleteWorktree;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Remove the worktree and branch of a task that is BLOCKED or has ended.
///
/// Unmerged work is kept on a branch rescue/TASK-N first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza wt-delete retry-orders")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let name = args.task.clone();
    context.run(DeleteWorktree { task: args.task }, |_| format!("worktree and branch of {name} removed"))
}
