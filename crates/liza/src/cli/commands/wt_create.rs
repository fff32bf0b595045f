//! `liza wt-create`: creates or repairs a task's worktree by hand.

use liza_core::model::{Status, TaskId};
use liza_team::lifecycle::{CreatedWorktree, create_worktree};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::{Reply, to_json};

/// Create the worktree of a task that is CLAIMED or being claimed.
///
/// An existing worktree is kept. With --fresh it starts again from the task's base, and unmerged work is kept on a
/// branch rescue/TASK-N.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza wt-create --fresh retry-orders")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// Start again from the task's base commit.
    #[arg(long)]
    fresh: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let engine = context.engine(&project)?;
    let created = context.reported(&engine, create_worktree(&engine, &args.task, args.fresh))?;
    let CreatedWorktree { revision, order, worktree } = created;
    context.report_rescue(&args.task, worktree.rescued.as_ref());
    let how = if worktree.created { "created" } else { "exists" };
    let path = worktree.path.strip_prefix(project.root()).unwrap_or(&worktree.path).display().to_string();
    let mut result = to_json(&order);
    result["worktree"] = path.clone().into();
    result["made"] = worktree.created.into();
    if let Some(rescue) = &worktree.rescued {
        result["rescued"] = rescue.branch.as_str().into();
    }
    let status = order.task.status.map_or("?", Status::name);
    let text = format!("{path} {how}, on {} ({status})", args.task.branch());
    Ok(Reply::new(text, result).at(revision.0))
}
