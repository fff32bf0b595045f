//! `liza wt-merge`: an approved commit goes to the integration branch.

use liza_core::model::TaskId;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::{Reply, to_json, word};
use super::update_sprint_metrics::and_complete_sprint;

/// Merge an APPROVED task: exactly the approved commit, tested first.
///
/// No checkout is disturbed. A conflict or a red scripts/integration-test.sh leaves the branch as it was and makes
/// the task INTEGRATION_FAILED (exit 3).
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza wt-merge retry-orders")]
pub(crate) struct Args {
    /// Which task.
    task: TaskId,
}

/// Runs it.
pub(crate) fn run(args: &Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let work = context.work(&project)?;
    let merged = work.merge(&args.task);
        let merged = merged?;
    context.report_rescue(&args.task, merged.rescued.as_ref());
    if let Some(error) = &merged.left {
        context.screen.note(&format!("liza: merged, but something is left to do: {error}"));
        context.screen.note("  hint: liza recover");
    }
    let reply = &merged.written.reply;
    let text = format!(
        "{} is MERGED at {} (drift {} commit(s))",
        args.task,
        word(reply, "merge_commit"),
        word(reply, "drift_commits")
    );
    let mut result = to_json(reply);
    if let Some(rescue) = &merged.rescued {
        result["rescued"] = rescue.branch.as_str().into();
    }
    let reply = Reply::new(text, result).at(merged.written.revision.0);
    Ok(and_complete_sprint(&project, context, reply))
}
