//! `liza register`: adds an agent to the blackboard.

use liza_core::model::AgentId;
use liza_core::protocol::Register;
use liza_team::project::machine::machine_name;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Register an agent.
///
/// The agent gets a lease and a generation number; commands of an older generation are refused from then on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza register coder-1
  liza register code-reviewer-2 --json")]
pub(crate) struct Args {
    /// The agent: planner-N, coder-N or code-reviewer-N.
    agent: AgentId,
    /// The terminal in which it can be watched; default this one.
    #[arg(long, value_name = "TTY")]
    terminal: Option<String>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let agent = args.agent;
    let terminal = args.terminal.unwrap_or_else(|| context.screen.console.terminal());
    let project = context.project()?;
    let machine = Some(machine_name(project.folder()));
    let generation = project.store().new_generation();
    let command = Register { agent, terminal, machine, proven_dead: None, generation };
    context.run_in(&project, command, |reply| {
        let (generation, until) = (reply.generation, reply.lease_expires);
        format!(
            "{agent} is registered, with a lease until {until}\n\
             set in its sessions: LIZA_AGENT_ID={agent} LIZA_AGENT_GENERATION={generation}"
        )
    })
}
