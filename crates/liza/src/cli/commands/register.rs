//! `liza register`: an agent comes.

use liza_core::model::AgentId;
use liza_core::protocol::Register;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Register an agent.
///
/// Gives it a lease and a generation; commands of an older generation are refused from now on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza register coder-1
  liza register code-reviewer-2 --json")]
pub(crate) struct Args {
    /// Who: planner-N, coder-N or code-reviewer-N.
    agent: AgentId,
    /// Where a person can watch it; this terminal when absent.
    #[arg(long, value_name = "TTY")]
    terminal: Option<String>,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let agent = args.agent;
    let terminal = args.terminal.unwrap_or_else(|| context.screen.console.terminal());
    context.run(Register { agent, terminal, proven_dead: None }, |reply| {
        let (generation, until) = (reply.generation, reply.lease_expires);
        format!(
            "{agent} is registered, with a lease until {until}\n\
             its sessions set LIZA_AGENT_ID={agent} LIZA_AGENT_GENERATION={generation}"
        )
    })
}
