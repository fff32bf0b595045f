//! `liza convert-discovery`: a discovery has become a task.

use liza_core::model::{DiscoveryId, TaskId};
use liza_core::protocol::{Command, ConvertDiscovery};

use super::context::Context;
use super::error::CommandError;
use super::output::Reply;

/// Say which task a discovery became.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza convert-discovery disc-1 add-timeout")]
pub(super) struct Args {
    /// Which discovery.
    #[arg(value_name = "DISC")]
    discovery: DiscoveryId,
    /// Which task; it exists already.
    task: TaskId,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let Args { discovery, task } = args;
    let text = format!("{discovery} became {task}");
    context.submit_and_tell(Command::from(ConvertDiscovery { discovery, task }), |_| text)
}
