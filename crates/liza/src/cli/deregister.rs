//! `liza deregister`: an agent goes.

use liza_core::model::AgentId;
use liza_core::protocol::{Command, Deregister};

use super::context::Context;
use super::error::CommandError;
use super::output::Reply;

/// Take an agent off the board.
///
/// What it has claimed stays its own until the lease ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza deregister coder-1")]
pub(super) struct Args {
    /// Who.
    agent: AgentId,
}

/// Runs it.
pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, CommandError> {
    let agent = args.agent;
    context.submit_and_tell(Command::from(Deregister { agent }), |_| format!("{agent} is off the board"))
}
