//! `liza finalize`: drafts become claimable, all together or not at all.

use liza_core::model::TaskId;
use liza_core::protocol::{Command, Finalize};

use super::context::Context;
use super::error::CommandError;
use super::output::{Reply, word};

/// Make DRAFT tasks claimable, all of them or none.
///
/// Each needs a spec, a done-when and a scope.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza finalize retry-core retry-orders
  liza finalize --all")]
pub(super) struct Args {
    /// Which tasks.
    #[arg(value_name = "TASK", required_unless_present = "all", conflicts_with = "all")]
    tasks: Vec<TaskId>,
    /// Every DRAFT there is.
    #[arg(long)]
    all: bool,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Command::from(Finalize { tasks: args.tasks });
    context.submit_and_tell(command, |reply| {
        format!("UNCLAIMED now, ready for coders: {}", word(reply, "tasks"))
    })
}
