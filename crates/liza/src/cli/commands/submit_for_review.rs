//! `liza submit-for-review`: the coder submits exactly one commit.

use std::str::FromStr;

use liza_core::model::{Refusal, Sha, TaskId};
use liza_team::lifecycle::{Submitter, submit_for_review};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Submit exactly this commit for review, then end your turn.
///
/// The worktree must be clean and at that commit, on the task's branch.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza submit-for-review retry-orders HEAD")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// The commit: its full or abbreviated hash, or HEAD of the task's worktree.
    commit: Submission,
}

#[derive(Debug, Clone)]
enum Submission {
    /// The commit that is checked out in the task's worktree.
    Head,
    Commit(Sha),
}

impl FromStr for Submission {
    type Err = <Sha as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "HEAD" { Ok(Self::Head) } else { text.parse().map(Self::Commit) }
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let engine = context.engine(&project)?;
    let commit = match args.commit {
        Submission::Commit(commit) => commit,
        Submission::Head => match project.repo()?.worktree_head(&args.task)? {
            Some(head) => head,
            None => {
                project.store().snapshot()?.board.body(&args.task)?;
                return Err(Refusal::WorktreeMissing { task: args.task.clone() }.into());
            }
        },
    };
    let submitter = if context.is_of_session() { Submitter::Session } else { Submitter::Person };
    let done = context.reported(&engine, submit_for_review(&engine, &args.task, &commit, submitter))?;
    let text = format!(
        "{} is ready for review at {}; end your turn now (with exit code 42 if you can choose one)",
        args.task, done.reply.commit
    );
    Ok(context.reply(&done, text))
}
