//! `liza unblock-task`: the planner lets a blocked task continue.

use liza_core::model::{Status, TaskId};
use liza_core::protocol::UnblockTask;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Let a BLOCKED task continue.
///
/// By default another coder starts from scratch, and unmerged work is kept on a branch rescue/TASK-N. After two coders
/// have failed, only supersede-task and abandon-task are possible.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza unblock-task retry-orders
  liza unblock-task retry-orders --same-coder --reset-cycles --assessment \"the spec was unclear; it now requires 3\"")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// Reset the number of review cycles.
    #[arg(long)]
    reset_cycles: bool,
    /// Give it back to its coder, with its worktree.
    #[arg(long)]
    same_coder: bool,
    /// Let another coder continue in its worktree.
    #[arg(long, conflicts_with = "same_coder")]
    keep_worktree: bool,
    /// Your assessment; required from the planner after a review deadlock.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    assessment: Option<Text>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let name = args.task.clone();
    let who = match (args.same_coder, args.keep_worktree) {
        (true, _) => "its coder continues where it stopped",
        (false, true) => "another coder continues in its worktree",
        (false, false) => "another coder starts from scratch",
    };
    let command = UnblockTask {
        task: args.task,
        reset_cycles: args.reset_cycles,
        same_coder: args.same_coder,
        keep_worktree: args.keep_worktree,
        assessment: Text::read_some(args.assessment, context)?,
    };
    context.run(command, |reply| match reply.status == Some(Status::Draft) {
        true => format!("{name} is proposed again: the human approves the plan"),
        false => format!("{name} is UNCLAIMED: {who}"),
    })
}
