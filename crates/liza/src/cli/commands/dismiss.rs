//! `liza dismiss`: closes a discovery that needs no task.

use liza_core::model::DiscoveryId;
use liza_core::protocol::DismissDiscovery;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Close a discovery without a task.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza dismiss disc-1")]
pub(crate) struct Args {
    /// The discovery.
    #[arg(value_name = "DISC")]
    discovery: DiscoveryId,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let text = format!("{} is dismissed", args.discovery);
    context.run(DismissDiscovery { discovery: args.discovery }, |_| text)
}
