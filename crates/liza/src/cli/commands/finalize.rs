//! `liza finalize`: makes drafts claimable, all of them or none.

use liza_core::model::{Status, TaskId};
use liza_core::protocol::Finalize;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::list;
use crate::cli::ui::output::Reply;

/// Make DRAFT tasks claimable, all of them or none.
///
/// Each needs --spec, --done and --scope.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza finalize retry-core retry-orders
  liza finalize --all")]
pub(crate) struct Args {
    /// The tasks.
    #[arg(value_name = "TASK", required_unless_present = "all", conflicts_with = "all")]
    tasks: Vec<TaskId>,
    /// All DRAFT tasks.
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Finalize { tasks: args.tasks, unchanged_since: None };
    context.run(command, |reply| match reply.status == Status::Draft {
        true => format!("proposed; the human approves the plan: {}", list(&reply.tasks)),
        false => format!("UNCLAIMED, ready for coders: {}", list(&reply.tasks)),
    })
}
