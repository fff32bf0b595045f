//! `liza claim-review`: a code reviewer claims a review.

use liza_core::model::{AgentId, TaskId, Worktree};
use liza_core::protocol::ReviewClaimed;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;
use crate::lifecycle::claim_review;

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

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let engine = context.engine(&project)?;
    let done = context.reported(&engine, claim_review(&engine, &args.task, args.agent))?;
    let ReviewClaimed { task, commit, review_lease_expires, .. } = &done.reply;
    let worktree = task.worktree.as_ref().map_or("", Worktree::as_str);
    let text = format!(
        "{} reviews {} at {commit}, lease until {review_lease_expires}\nworktree {worktree}",
        args.agent, args.task,
    );
    Ok(context.reply(&done, text))
}
