//! `liza abandon-task`: the planner gives a task up.

use liza_core::model::TaskId;
use liza_core::protocol::{AbandonTask, Command};

use super::context::Context;
use super::error::CommandError;
use super::input::Text;
use super::output::Reply;
use super::update_sprint_metrics::and_complete_sprint;

/// Give a task up.
///
/// What was not merged of it is saved on a rescue branch.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza abandon-task retry-ftp --reason \"nobody uses FTP any more\"")]
pub(super) struct Args {
    /// Which task.
    task: TaskId,
    /// Why.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Text,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let name = args.task.clone();
    let command = Command::from(AbandonTask { task: args.task, reason: args.reason.read()? });
    let project = context.project()?;
    let reply = context.submit_and_tell_in(&project, command, |_| {
        format!("{name} is ABANDONED; tasks that depend on it need the planner")
    })?;
    Ok(and_complete_sprint(&project, context, reply))
}
