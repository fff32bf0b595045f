//! `liza heartbeat`: renews an agent's leases.

use liza_core::model::{AgentId, Seconds};
use liza_core::protocol::Heartbeat;
use liza_team::lifecycle::take_new_commits;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Renew the lease of an agent and of its claims.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza heartbeat coder-1
  liza heartbeat coder-1 --for 1800    # before a long test run")]
pub(crate) struct Args {
    /// The agent.
    agent: AgentId,
    /// How long the lease lasts, at most a day; default as configured.
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    length: Option<u64>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let agent = args.agent;
    let actor = context.actor()?;
    let generation = actor.generation().filter(|_| actor.agent() == Some(agent));
    let command = Heartbeat { agents: vec![(agent, generation)], length: args.length.map(Seconds) };
    let project = context.project()?;
    let done = context.execute(&project, command)?;
    take_new_commits(&project, &done.reply.claims);
    let until = done.reply.lease_expires.map_or(String::new(), |until| until.to_string());
    Ok(context.reply(&done, format!("the lease of {agent} runs until {until}")))
}
