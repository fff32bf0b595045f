//! `liza analyze`: the circuit breaker searches the anomalies for patterns.

use std::path::PathBuf;

use liza_core::model::BreakerStatus;
use liza_core::protocol::RecordAnalysis;
use liza_core::rules::breaker::{Finding, analyze};
use liza_core::text::{count, one_line};
use liza_host::secrets::Masker;
use liza_team::watch::breaker;
use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::{Reply, to_json};

/// Search the anomalies for patterns that no single agent can see.
///
/// Reads the unresolved anomalies of this sprint. If a pattern is found, all agents stop at a checkpoint and
/// .liza/circuit_breaker_report.md explains why; tasks are not changed. `liza resolve` ends the checkpoint.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza analyze
  liza analyze --exit-code || echo \"the circuit breaker has fired\"")]
pub(crate) struct Args {
    /// The project; default the one in the current folder.
    #[arg(value_name = "PROJECT_ROOT")]
    root: Option<PathBuf>,
    /// Exit with 1 if the circuit breaker has fired, now or earlier.
    #[arg(long)]
    exit_code: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let context = context.at(args.root.as_deref())?;
    let project = context.project()?;
    let findings = analyze(&project.store().snapshot()?);
    let done = context.execute(&project, RecordAnalysis { findings: findings.clone() })?;
    let report = breaker::report(&project, &project.store().snapshot()?, &Masker::of_process())
        .map_err(|error| CommandError::refused("io", format!("cannot write {}: {error}", breaker::REPORT)))?;
    let triggered = done.reply.status == BreakerStatus::Triggered;
    let mut result = to_json(&done.reply);
    if let Value::Object(object) = &mut result {
        object.insert("report".to_owned(), json!(report.as_ref().map(|_| breaker::REPORT)));
        object.insert("findings".to_owned(), findings.iter().map(finding).collect());
    }
    let exit = if triggered && args.exit_code { Exit::Refused } else { Exit::Success };
    let text = text(triggered, done.reply.fired, &findings);
    Ok(Reply::new(text, result).at(done.revision.0).exit(exit))
}

fn text(triggered: bool, fired: bool, findings: &[Finding]) -> String {
    if !triggered {
        return "OK: no pattern in the anomalies of this sprint".to_owned();
    }
    let head = if fired {
        "TRIGGERED: all agents stop at a checkpoint"
    } else {
        "TRIGGERED earlier and not resolved yet"
    };
    let mut lines = vec![head.to_owned()];
    for found in findings {
        let factor = one_line(&Masker::of_process().mask(&found.common_factor), 100);
        let (name, severity) = (found.pattern.name(), found.pattern.severity());
        let anomalies = count(found.evidence.len(), "anomaly");
        lines.push(format!("  {name} ({severity}): {factor}, {anomalies}"));
    }
    lines.push(format!("Read {}, then: liza resolve \"HOW YOU FIXED IT\"", breaker::REPORT));
    lines.join("\n")
}

fn finding(found: &Finding) -> Value {
    let evidence = found.evidence.iter().map(|(anomaly, text)| {
        json!({
            "timestamp": anomaly.timestamp,
            "task": anomaly.task,
            "type": anomaly.kind,
            "reporter": anomaly.reporter,
            "text": text,
        })
    });
    json!({
        "pattern": found.pattern.name(),
        "severity": found.pattern.severity(),
        "common_factor": found.common_factor,
        "tasks": found.tasks(),
        "evidence": evidence.collect::<Value>(),
    })
}
