//! `liza finalize`: drafts become claimable, all together or not at all.

use liza_core::model::TaskId;
use liza_core::protocol::Finalize;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::list;
use crate::cli::ui::output::Reply;

/// Make DRAFT tasks claimable, all of them or none.
///
/// Each needs a spec, a done-when and a scope.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza finalize retry-core retry-orders
  liza finalize --all")]
pub(crate) struct Args {
    /// Which tasks.
    #[arg(value_name = "TASK", required_unless_present = "all", conflicts_with = "all")]
    tasks: Vec<TaskId>,
    /// Every DRAFT there is.
    #[arg(long)]
    all: bool,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Finalize { tasks: args.tasks };
    context.run(command, |reply| format!("UNCLAIMED now, ready for coders: {}", list(&reply.tasks)))
}
