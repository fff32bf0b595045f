//! `liza claim-task`: a coder gets a task and a worktree.

use liza_core::model::{AgentId, TaskId};
use liza_team::lifecycle::{TaskClaim, claim_task};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::{Reply, to_json};

/// Claim a task for a coder and make its worktree.
///
/// If two agents claim a task at the same time, the second is refused (exit 1) and nothing of its attempt remains.
/// Unmerged work of an earlier coder is kept on a branch rescue/TASK-N.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza claim-task retry-orders coder-1")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// The coder; must be registered.
    agent: AgentId,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let engine = context.engine(&project)?;
    let claim = context.reported(&engine, claim_task(&engine, &args.task, args.agent))?;
    let TaskClaim { revision, claimed, worktree } = claim;
    context.report_rescue(&args.task, worktree.rescued.as_ref());
    let path = worktree.path.strip_prefix(project.root()).unwrap_or(&worktree.path).display();
    let text = format!(
        "{} is claimed by {}, lease until {} (attempt {})\nworktree {path}, branch {}",
        args.task,
        args.agent,
        claimed.lease_expires,
        claimed.iteration,
        args.task.branch()
    );
    let mut result = to_json(&claimed);
    if let Some(rescue) = &worktree.rescued {
        result["rescued"] = rescue.branch.as_str().into();
    }
    result["made"] = worktree.created.into();
    Ok(Reply::new(text, result).at(revision.0))
}
