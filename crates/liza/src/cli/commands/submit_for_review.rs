//! `liza submit-for-review`: the coder submits exactly one commit.

use liza_core::model::{Sha, TaskId};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;
use crate::lifecycle::submit_for_review;

/// Submit exactly this commit for review, then stop with exit code 42.
///
/// The worktree must be clean and at that commit, on the task's branch.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza submit-for-review retry-orders \"$(git rev-parse HEAD)\"")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// The commit: its full or abbreviated hash.
    commit: Sha,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let engine = context.engine(&project)?;
    let done = context.reported(&engine, submit_for_review(&engine, &args.task, &args.commit))?;
    let text =
        format!("{} is ready for review at {}; stop now with exit code 42", args.task, done.reply.commit);
    Ok(context.reply(&done, text))
}
