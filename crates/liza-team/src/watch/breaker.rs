//! The circuit breaker's report. `liza-core` finds the patterns.

use std::io;
use std::path::PathBuf;

use liza_core::model::{BreakerStatus, BreakerTrip, State, TaskId, Timestamp};
use liza_core::rules::breaker::{Finding, analyze};
use liza_host::durable::{self, replace_private_file};
use liza_host::secrets::Masker;

use crate::project::Project;
use liza_report::markdown_line;

use super::alert_files::archive;

pub const REPORT: &str = ".liza/circuit_breaker_report.md";

const CELL_MAX: usize = 200;

/// Further anomalies of one pattern are counted.
const MAX_LISTED: usize = 50;

/// Writes the report, once per trigger, and archives an older one. Returns its path if the breaker has fired.
pub fn report(project: &Project, state: &State, masker: &Masker) -> io::Result<Option<PathBuf>> {
    let Some(breaker) = state.board.circuit_breaker.ready() else { return Ok(None) };
    let Some(trigger) = breaker.current_trigger.as_ref() else { return Ok(None) };
    if breaker.status != BreakerStatus::Triggered {
        return Ok(None);
    }
    let path = project.root().join(REPORT);
    let heading = heading(trigger);
    match durable::read_text(&path) {
        Ok(text) if text.starts_with(&heading) => return Ok(Some(path)),
        Ok(text) => archive(&path, when(&text).unwrap_or(trigger.timestamp))?,
        Err(_) => {}
    }
    replace_private_file(&path, page(state, trigger, &analyze(state), masker).as_bytes())?;
    Ok(Some(path))
}

/// The first lines, which identify the trigger.
fn heading(trigger: &BreakerTrip) -> String {
    format!(
        "# Circuit breaker: {}\n\n- When: {}\n",
        cell(&trigger.pattern, &Masker::default()),
        trigger.timestamp
    )
}

fn when(text: &str) -> Option<Timestamp> {
    text.lines().find_map(|line| line.strip_prefix("- When: ")).and_then(|time| time.parse().ok())
}

fn page(state: &State, trigger: &BreakerTrip, findings: &[Finding], masker: &Masker) -> String {
    let cell = |text: &str| cell(text, masker);
    let mut page = heading(trigger);
    page.push_str(&format!("- Severity: {}\n", cell(trigger.severity.as_deref().unwrap_or("unknown"))));
    page.push_str(&format!("- Common factor: {}\n", cell(trigger.common_factor.as_deref().unwrap_or("–"))));
    if let Some(sprint) = state.board.sprint.ready() {
        page.push_str(&format!("- Sprint: {}\n", cell(&sprint.id)));
    }
    page.push_str("\nAll agents wait at a checkpoint. No task was changed. You decide how to continue.\n");
    // The pattern that made it fire first, then others.
    let (own, others): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.pattern.name() == trigger.pattern);
    for finding in own.iter().chain(&others) {
        page.push_str(&evidence(finding, masker));
    }
    if own.is_empty() {
        page.push_str("\nThe anomalies behind it are no longer on the blackboard; see .liza/log.yaml.\n");
    }
    let tasks = affected_tasks(trigger, findings);
    page.push_str("\n## Affected tasks\n\n| Task | Status | Specification |\n|---|---|---|\n");
    for task in &tasks {
        let record = state.board.body(task).ok().map(|body| body.record());
        let status = state.board.status(task).map_or("unknown".to_owned(), |status| status.to_string());
        let spec = record.and_then(|record| record.spec_ref.as_deref()).unwrap_or("–");
        page.push_str(&format!("| {} | {} | {} |\n", cell(task.as_str()), cell(&status), cell(spec)));
    }
    let named = specs(findings);
    if !named.is_empty() {
        let named: Vec<String> = named.iter().map(|spec| cell(spec)).collect();
        page.push_str(&format!("\nSpecifications named in the anomalies: {}\n", named.join(", ")));
    }
    page.push_str(CHECKLIST);
    page
}

const CHECKLIST: &str = "
## Checklist

- [ ] Is the common factor real, or a coincidence?
- [ ] Read the affected tasks: `liza show TASK`
- [ ] Fix the cause: the specification, the plan, the architecture, the tools or an external service
- [ ] If a specification changes: `liza spec-change --spec REF --change TEXT --triggered-by TASK`
- [ ] If tasks change: `liza supersede-task`, `liza abandon-task`, `liza add-task`, or leave a `liza note`
- [ ] Then run `liza resolve \"what you did\"`: work continues, and the trigger moves to the history
- [ ] Or run `liza abort` if the goal is no longer wanted
";

/// One pattern and the anomalies that show it.
fn evidence(finding: &Finding, masker: &Masker) -> String {
    let (pattern, cell) = (finding.pattern, |text: &str| cell(text, masker));
    let mut page = format!(
        "\n## {} ({})\n\nCommon factor: {}\n\n| When | Task | Reporter | Anomaly | Text |\n|---|---|---|---|---|\n",
        cell(pattern.name()),
        cell(pattern.severity()),
        cell(&finding.common_factor)
    );
    for (anomaly, text) in finding.evidence.iter().take(MAX_LISTED) {
        let task = anomaly.task.as_ref().map_or("–", TaskId::as_str);
        page.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            anomaly.timestamp,
            cell(task),
            cell(anomaly.reporter.as_deref().unwrap_or("–")),
            cell(&anomaly.kind),
            cell(text)
        ));
    }
    if finding.evidence.len() > MAX_LISTED {
        page.push_str(&format!("\nand {} more\n", finding.evidence.len() - MAX_LISTED));
    }
    page
}

fn affected_tasks(trigger: &BreakerTrip, findings: &[Finding]) -> Vec<TaskId> {
    let mut tasks = trigger.tasks.clone();
    tasks.extend(findings.iter().flat_map(Finding::tasks));
    tasks.sort();
    tasks.dedup();
    tasks
}

/// The specifications that the anomalies name.
fn specs(findings: &[Finding]) -> Vec<String> {
    let evidence = findings.iter().flat_map(|finding| &finding.evidence);
    let named = evidence.filter_map(|(anomaly, _)| anomaly.details.get("spec_ref"));
    let mut specs: Vec<String> = named.filter(|value| !value.is_blank()).map(ToString::to_string).collect();
    specs.sort();
    specs.dedup();
    specs
}

fn cell(text: &str, masker: &Masker) -> String {
    markdown_line(text, CELL_MAX, masker)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: SP-04
    #[test]
    fn text_from_agents_contains_no_markup_and_no_secrets() {
        let masker = Masker::new([("API_KEY", "hunter2-hunter2")]);
        let cases = [
            ("a|b\n| c", "a\\|b \\| c"),
            ("[x](https://evil)", "\\[x\\](https\\://evil)"),
            ("<img src=x> & `rm`", "\\<img src=x\\> \\& \\`rm\\`"),
            ("retry_loop _em_ __b__", "retry_loop \\_em\\_ \\_\\_b\\_\\_"),
            ("key hunter2-hunter2", "key \\[masked\\]"),
        ];
        for (given, shown) in cases {
            assert_eq!(cell(given, &masker), shown);
        }
        assert!(cell(&"x".repeat(5000), &masker).chars().count() <= CELL_MAX + 1);
    }
}
