//! `liza deregister`: an agent leaves the blackboard.

use liza_core::model::AgentId;
use liza_core::protocol::Deregister;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Remove an agent from the blackboard.
///
/// It keeps its claims until their leases end.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza deregister coder-1")]
pub(crate) struct Args {
    /// The agent.
    agent: AgentId,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let agent = args.agent;
    context.run(Deregister { agent }, |_| format!("{agent} is deregistered"))
}
