//! `liza recover`: settles what a crash left.

use serde_json::json;

use crate::work::{Finding, Report};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;
use super::update_sprint_metrics::and_complete_sprint;

/// Settle what a crash left, in git and on the blackboard.
///
/// Whatever a living process is at is left to it; nothing is deleted that has not been saved. Run it as often as you
/// like: a second run finds nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza recover")]
pub(crate) struct Args {}

/// Runs it.
pub(crate) fn run(_: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let work = context.work(&project)?;
    let report = work.recover();
        let report = report?;
    let reply = Reply::new(in_words(&report), as_json(&report));
    Ok(and_complete_sprint(&project, context, reply))
}

/// What was found and done, a line each.
pub(crate) fn in_words(report: &Report) -> String {
    let line = |mark: &str, finding: &Finding| {
        format!("{mark} {}: {} – {}", finding.subject, finding.found, finding.done)
    };
    let settled = report.settled.iter().map(|finding| line("settled", finding));
    let left = report.left.iter().map(|finding| line("left   ", finding));
    let lines: Vec<String> = settled.chain(left).collect();
    if lines.is_empty() { "nothing to settle".to_owned() } else { lines.join("\n") }
}

/// The same for programs.
pub(crate) fn as_json(report: &Report) -> serde_json::Value {
    let one = |finding: &Finding| {
        let Finding { kind, subject, found, done } = finding;
        json!({"kind": kind.name(), "subject": subject, "found": found, "done": done})
    };
    let all = |findings: &[Finding]| findings.iter().map(one).collect::<Vec<_>>();
    json!({"settled": all(&report.settled), "left": all(&report.left)})
}
