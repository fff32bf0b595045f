//! `liza wt-delete`: takes away a worktree that nobody needs.

use liza_core::model::TaskId;
use liza_core::protocol::{Command, DeleteWorktree};

use super::context::Context;
use super::error::CommandError;
use super::output::Reply;

/// Remove the worktree and branch of a task that is BLOCKED or over.
///
/// Unmerged work is kept on a branch rescue/TASK-N first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza wt-delete retry-orders")]
pub(super) struct Args {
    /// Which task.
    task: TaskId,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let name = args.task.clone();
    context.submit_and_tell(Command::from(DeleteWorktree { task: args.task }), |_| {
        format!("the worktree and the branch of {name} are gone")
    })
}
