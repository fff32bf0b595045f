//! `liza claim-review`: a code reviewer claims a review.

use liza_core::model::{AgentId, TaskId};
use liza_core::protocol::ReviewClaimed;
use liza_team::lifecycle::claim_review;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Claim a review for a code reviewer.
///
/// Refused if the worktree has changed since the submission: the task then goes back to its coder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza claim-review retry-orders code-reviewer-1")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// The code reviewer; must be registered.
    agent: AgentId,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let engine = context.engine(&project)?;
    let done = context.reported(&engine, claim_review(&engine, &args.task, args.agent))?;
    let ReviewClaimed { commit, review_lease_expires, .. } = &done.reply;
    let path = project.repo()?.review_path(&args.task);
    let path = path.strip_prefix(project.root()).unwrap_or(&path).display().to_string();
    let text = format!(
        "{} reviews {} at {commit}, lease until {review_lease_expires}\nin {path}, a checkout of exactly that commit",
        args.agent, args.task,
    );
    let mut reply = context.reply(&done, text);
    reply.result["worktree"] = path.into();
    Ok(reply)
}
