//! `liza claim-task`: a coder gets a task and a worktree to do it in.

use liza_core::model::{AgentId, TaskId};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::{Reply, to_json, word};

/// Claim a task for a coder: reserve it, make its worktree, hand it over.
///
/// Whoever comes second is refused (exit 1) and leaves nothing behind. Unmerged work of an earlier coder is kept on
/// a branch rescue/TASK-N.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza claim-task retry-orders coder-1")]
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
    let claimed = work.claim(&args.task, args.agent);
        let claimed = claimed?;
    context.report_rescue(&args.task, claimed.worktree.rescued.as_ref());
    let reply = &claimed.written.reply;
    let text = format!(
        "{} is {}'s until {} (iteration {})\nworktree {}, branch {}",
        args.task,
        args.agent,
        word(reply, "lease_expires"),
        word(reply, "iteration"),
        word(reply, "worktree"),
        args.task.branch()
    );
    let mut result = to_json(reply);
    if let Some(rescue) = &claimed.worktree.rescued {
        result["rescued"] = rescue.branch.as_str().into();
    }
    result["made"] = claimed.worktree.created.into();
    Ok(Reply::new(text, result).at(claimed.written.revision.0))
}
