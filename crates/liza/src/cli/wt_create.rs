//! `liza wt-create`: a task's worktree, made or mended by hand.

use liza_core::ids::TaskId;

use super::context::Context;
use super::error::CommandError;
use super::output::{Reply, to_json, word};

/// Make the worktree of a task that is CLAIMED or being claimed.
///
/// What is there stays, unless --fresh is given: then it starts again from the task's base, and unmerged work is
/// kept on a branch rescue/TASK-N.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza wt-create --fresh retry-orders")]
pub(super) struct Args {
    /// Which task.
    task: TaskId,
    /// Start again from the base.
    #[arg(long)]
    fresh: bool,
}

/// Runs it.
pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let work = context.work(&project)?;
    let created = work.create_worktree(&args.task, args.fresh);
    context.tell_notices(&work.notices());
    let (written, ensured) = created?;
    context.tell_rescue(&args.task, ensured.rescued.as_ref());
    let how = if ensured.created { "made" } else { "was there" };
    let worktree = ensured.path.strip_prefix(project.root()).unwrap_or(&ensured.path).display().to_string();
    let mut result = to_json(&written.reply);
    result["worktree"] = worktree.clone().into();
    result["made"] = ensured.created.into();
    if let Some(rescue) = &ensured.rescued {
        result["rescued"] = rescue.branch.as_str().into();
    }
    let text = format!("{worktree} {how}, on {} ({})", args.task.branch(), word(&written.reply, "status"));
    Ok(Reply::new(text, result).at(written.revision.0))
}
