//! `liza abandon-task`: the planner abandons a task.

use liza_core::model::TaskId;
use liza_core::protocol::AbandonTask;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
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

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let name = args.task.clone();
    let command = AbandonTask { task: args.task, reason: args.reason.read(context)? };
    context.run(command, |_| format!("{name} is ABANDONED; the planner handles tasks that depend on it"))
}
