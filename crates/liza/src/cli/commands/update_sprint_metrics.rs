//! `liza update-sprint-metrics`: recomputes the sprint's figures.

use liza_core::model::Metrics;
use liza_core::protocol::UpdateSprintMetrics;
use liza_core::text::count;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Recompute the sprint's figures.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza update-sprint-metrics")]
pub(crate) struct Args {}

pub(crate) fn run(_: Args, context: &Context) -> Result<Reply, CommandError> {
    context.run(UpdateSprintMetrics, figures)
}

pub(crate) fn figures(metrics: &Metrics) -> String {
    let percent = |rate: Option<u32>| rate.map_or("–".to_owned(), |rate| format!("{rate} %"));
    let counted = |number: u32, noun: &str| count(number as usize, noun);
    let mut text = format!(
        "tasks     {} ended, {} in progress, {} blocked\n\
         work      {}, {}, {}\n\
         verdicts  {} approved, {} rejected, approval rate {}",
        metrics.tasks_done,
        metrics.tasks_in_progress,
        metrics.tasks_blocked,
        counted(metrics.iterations_total, "iteration"),
        counted(metrics.task_submitted_for_review_count, "submission"),
        counted(metrics.review_cycles_total, "review cycle"),
        metrics.review_verdict_approvals,
        metrics.review_verdict_rejections,
        percent(metrics.review_verdict_approval_rate_percent),
    );
    if metrics.looks_rubber_stamped() {
        text.push_str("\nalmost everything is approved: check that the code reviewer reads the code");
    }
    text
}
