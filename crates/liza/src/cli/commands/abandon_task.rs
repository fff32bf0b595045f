//! `liza abandon-task`: the planner gives a task up.

use liza_core::model::TaskId;
use liza_core::protocol::AbandonTask;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::Reply;

/// Give a task up.
///
/// What was not merged of it is saved on a rescue branch.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza abandon-task retry-ftp --reason \"nobody uses FTP any more\"")]
pub(crate) struct Args {
    /// Which task.
    task: TaskId,
    /// Why.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Text,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let name = args.task.clone();
    let command = AbandonTask { task: args.task, reason: args.reason.read(context)? };
    context.run(command, |_| format!("{name} is ABANDONED; tasks that depend on it need the planner"))
}
