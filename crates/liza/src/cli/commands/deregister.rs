//! `liza deregister`: an agent goes.

use liza_core::model::AgentId;
use liza_core::protocol::Deregister;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Take an agent off the board.
///
/// What it has claimed stays its own until the lease ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza deregister coder-1")]
pub(crate) struct Args {
    /// Who.
    agent: AgentId,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let agent = args.agent;
    context.run(Deregister { agent }, |_| format!("{agent} is off the board"))
}
