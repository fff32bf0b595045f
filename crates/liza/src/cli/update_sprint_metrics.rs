//! `liza update-sprint-metrics`: the sprint's figures, computed anew.

use liza_core::Command;
use liza_core::metrics::{Metrics, sprint_metrics};
use serde_json::json;

use super::context::Context;
use super::error::CommandError;
use super::output::Reply;

/// Compute the sprint's figures anew.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza update-sprint-metrics")]
pub(super) struct Args {}

/// Runs it.
pub(super) fn run(context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    // From a snapshot: counting through all histories is nothing to do under the lock.
    let metrics = sprint_metrics(&project.store().snapshot()?);
    let done = context.submit(&project, Command::UpdateMetrics { metrics: metrics.clone() })?;
    Ok(Reply::new(figures(&metrics), json!(metrics)).at(done.revision))
}

/// The figures for people.
pub(super) fn figures(metrics: &Metrics) -> String {
    let percent = |rate: Option<u32>| rate.map_or("–".to_owned(), |rate| format!("{rate} %"));
    let mut text = format!(
        "tasks     {} done, {} in progress, {} blocked\n\
         work      {} iterations, {} submissions, {} review cycles\n\
         verdicts  {} approved, {} rejected, approval rate {}",
        metrics.tasks_done,
        metrics.tasks_in_progress,
        metrics.tasks_blocked,
        metrics.iterations_total,
        metrics.task_submitted_for_review_count,
        metrics.review_cycles_total,
        metrics.review_verdict_approvals,
        metrics.review_verdict_rejections,
        percent(metrics.review_verdict_approval_rate_percent),
    );
    if metrics.looks_rubber_stamped() {
        text.push_str("\nalmost everything is approved: does the code reviewer read the code?");
    }
    text
}
