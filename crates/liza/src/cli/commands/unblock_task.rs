//! `liza unblock-task`: the planner lets a blocked task go on.

use liza_core::model::TaskId;
use liza_core::protocol::UnblockTask;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::Reply;

/// Let a BLOCKED task go on.
///
/// It starts afresh with another coder, unless an option says otherwise; what was not merged is saved on a rescue
/// branch. After two coders have failed only supersede-task and abandon-task are left.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza unblock-task retry-orders
  liza unblock-task retry-orders --same-coder --reset-cycles --assessment \"the spec was unclear, now it says 3\"")]
pub(crate) struct Args {
    /// Which task.
    task: TaskId,
    /// Start with a full budget of review cycles.
    #[arg(long)]
    reset_cycles: bool,
    /// Give it back to its coder, worktree and all.
    #[arg(long)]
    same_coder: bool,
    /// Let another coder go on in its worktree.
    #[arg(long, conflicts_with = "same_coder")]
    keep_worktree: bool,
    /// What you make of it; after a review deadlock the planner has to say.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    assessment: Option<Text>,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let name = args.task.clone();
    let who = match (args.same_coder, args.keep_worktree) {
        (true, _) => "its coder goes on where it was",
        (false, true) => "another coder goes on in its worktree",
        (false, false) => "another coder starts afresh",
    };
    let command = UnblockTask {
        task: args.task,
        reset_cycles: args.reset_cycles,
        same_coder: args.same_coder,
        keep_worktree: args.keep_worktree,
        assessment: Text::read_some(args.assessment, context)?,
    };
    context.run(command, |_| format!("{name} is UNCLAIMED: {who}"))
}
