//! `liza recover`: repairs git and the blackboard after a crash.

use liza_store::Store;
use liza_team::lifecycle::{Finding, FindingKind, RecoveryReport, recover};
use liza_team::project::Project;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Repair git and the blackboard after a crash.
///
/// Leaves alone what a live process is working on, and deletes nothing that is not saved elsewhere. You can run it at
/// any time: a second run finds nothing to repair.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza recover")]
pub(crate) struct Args {}

pub(crate) fn run(_: Args, context: &Context) -> Result<Reply, CommandError> {
    let restored = match Project::find(&context.directory) {
        Some(root) => Store::restore_lost(&root)?,
        None => None,
    };
    let project = context.project()?;
    let engine = context.engine(&project)?;
    let mut report = context.reported(&engine, recover(&engine))?;
    if let Some(notice) = restored {
        let (subject, found) = ("state.yaml".to_owned(), notice.to_string());
        let finding = Finding { kind: FindingKind::Blackboard, subject, found, done: "restored".to_owned() };
        report.repaired.insert(0, finding);
    }
    Ok(Reply::new(in_words(&report), as_json(&report)))
}

/// One line per finding: the finding and the repair.
pub(crate) fn in_words(report: &RecoveryReport) -> String {
    let line = |mark: &str, finding: &Finding| {
        format!("{mark} {}: {} – {}", finding.subject, finding.found, finding.done)
    };
    let repaired = report.repaired.iter().map(|finding| line("repaired", finding));
    let left = report.left.iter().map(|finding| line("left    ", finding));
    let lines: Vec<String> = repaired.chain(left).collect();
    if lines.is_empty() { "nothing to repair".to_owned() } else { lines.join("\n") }
}

pub(crate) fn as_json(report: &RecoveryReport) -> serde_json::Value {
    let one = |finding: &Finding| {
        let Finding { kind, subject, found, done } = finding;
        json!({"kind": kind.name(), "subject": subject, "found": found, "done": done})
    };
    let all = |findings: &[Finding]| findings.iter().map(one).collect::<Vec<_>>();
    json!({"repaired": all(&report.repaired), "left": all(&report.left)})
}
