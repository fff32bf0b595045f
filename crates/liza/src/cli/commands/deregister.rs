//! `liza deregister`: an agent leaves the blackboard.

use liza_core::model::{AgentId, Generation};
use liza_core::protocol::Deregister;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Remove an agent from the blackboard, and end it if it runs.
///
/// Its session and its supervisor end, on any machine. What it has committed is kept. Its claims stay until their leases end;
/// then another agent can take the tasks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza deregister coder-1
  liza deregister coder-1 --if-generation 12")]
pub(crate) struct Args {
    /// The agent.
    agent: AgentId,
    /// Only this registration: refused if the agent has registered again since. `liza status --json` shows it.
    #[arg(long, value_name = "N")]
    if_generation: Option<u64>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let (agent, if_generation) = (args.agent, args.if_generation.map(Generation));
    context.run(Deregister::of(agent, if_generation), |_| format!("{agent} is deregistered"))
}
