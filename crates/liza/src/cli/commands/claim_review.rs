//! `liza claim-review`: a code reviewer takes a review.

use liza_core::model::{AgentId, TaskId};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::{Reply, to_json, word};

/// Claim a review for a code reviewer.
///
/// Refused when the worktree has moved since the submission: the task then goes back to its coder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza claim-review retry-orders code-reviewer-1")]
pub(crate) struct Args {
    /// Which task.
    task: TaskId,
    /// For whom; registered before.
    agent: AgentId,
}

/// Runs it.
pub(crate) fn run(args: &Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let work = context.work(&project)?;
    let written = work.claim_review(&args.task, args.agent);
        let written = written?;
    let text = format!(
        "{} reviews {} at {} until {}\nworktree {}",
        args.agent,
        args.task,
        word(&written.reply, "commit"),
        word(&written.reply, "review_lease_expires"),
        word(&written.reply, "worktree")
    );
    Ok(Reply::new(text, to_json(&written.reply)).at(written.revision.0))
}
