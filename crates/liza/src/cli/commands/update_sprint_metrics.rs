//! `liza update-sprint-metrics`: the sprint's figures, computed anew.

use liza_core::model::Metrics;
use liza_core::protocol::{CompleteSprint, UpdateSprintMetrics};
use liza_core::rules::metrics::sprint_metrics;
use serde_json::json;

use crate::project::Project;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Compute the sprint's figures anew.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza update-sprint-metrics")]
pub(crate) struct Args {}

/// Runs it.
pub(crate) fn run(_: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let (metrics, revision) = recount(&project, context)?;
    Ok(Reply::new(figures(&metrics), json!(metrics)).at(revision))
}

/// Counts anew and writes it down; gives the figures and the revision that now stands.
pub(crate) fn recount(project: &Project, context: &Context) -> Result<(Metrics, u64), CommandError> {
    // From a snapshot: counting through all histories is nothing to do under the lock.
    let metrics = sprint_metrics(&project.store().snapshot()?);
    let done = project.submit(
        context.actor()?,
        None,
        UpdateSprintMetrics { metrics: metrics.clone() },
    )?;
    Ok((metrics, done.revision.0))
}

/// Ends the sprint where its last task has come to its end, with its last figures; gives the revision that then
/// stands. Refused as long as the sprint is not complete, and to agents: then their supervisor does it.
pub(crate) fn complete_sprint(project: &Project, context: &Context) -> Option<u64> {
    let done = project.submit(context.actor().ok()?, None, CompleteSprint).ok()?;
    // The figures can be counted again at any time.
    Some(recount(project, context).map_or(done.revision.0, |(_, revision)| revision))
}

/// The same after a command that may have ended the last task; its reply tells of it.
pub(crate) fn and_complete_sprint(project: &Project, context: &Context, mut reply: Reply) -> Reply {
    if let Some(revision) = complete_sprint(project, context) {
        reply
            .text
            .push_str("\nthe sprint is COMPLETED: liza retro looks back, liza goal complete ends the goal");
        reply.result["sprint"] = json!("COMPLETED");
        reply.revision = Some(revision);
    }
    reply
}

/// The figures for people.
pub(crate) fn figures(metrics: &Metrics) -> String {
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
