//! `liza convert-discovery`: links a discovery to the task that handles it.

use liza_core::model::{DiscoveryId, TaskId};
use liza_core::protocol::ConvertDiscovery;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Record which task a discovery became.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza convert-discovery disc-1 add-timeout")]
pub(crate) struct Args {
    /// The discovery.
    #[arg(value_name = "DISC")]
    discovery: DiscoveryId,
    /// The task; must exist.
    task: TaskId,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let Args { discovery, task } = args;
    let text = format!("{discovery} is converted to {task}");
    context.run(ConvertDiscovery { discovery, task }, |_| text)
}
