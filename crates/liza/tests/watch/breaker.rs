//! `liza analyze` and `liza resolve`: the breaker fires once, its report is safe to read, a human resumes work.

use std::fs;

use crate::support::TestProject;

const REPORT: &str = ".liza/circuit_breaker_report.md";

fn log_errors(project: &TestProject, error: &str, times: usize) {
    for _ in 0..times {
        let detail = format!("error_pattern={error}");
        let words = ["anomaly", "retry_loop", "--task", "core", "--detail", "count=3", "--detail", &detail];
        project.liza(&words).ok();
    }
}

fn project_with_task() -> TestProject {
    let project = TestProject::new();
    project.add_task("core");
    project
}

/// Covers: SP-04, CM-03
#[test]
fn without_a_pattern_it_reports_that_and_changes_nothing() {
    let project = project_with_task();
    log_errors(&project, "timeout", 2);
    let result = project.liza(&["analyze", "--json"]).result();
    assert_eq!((result["status"].as_str(), result["fired"].as_bool()), (Some("OK"), Some(false)));
    assert_eq!((&result["report"], &result["findings"]), (&serde_json::Value::Null, &serde_json::json!([])));
    assert!(project.liza(&["analyze", "--exit-code"]).ok().starts_with("OK: no pattern"));
    assert!(project.state().contains("last_check: ") && !project.root.join(REPORT).exists());
    assert!(!project.root.join(".liza/CHECKPOINT").exists());
    project.liza(&["resolve", "x", "--json"]).refused(1, "nothing_to_resolve");
    project.liza_as("planner-1", &["analyze", "--json"]).refused(1, "not_permitted");
    project.liza_as("planner-1", &["resolve", "x", "--json"]).refused(1, "not_permitted");
}

/// Covers: SP-04, CM-01
#[test]
fn a_pattern_stops_all_agents_and_is_reported_with_its_evidence() {
    let project = project_with_task();
    log_errors(&project, "reset | by <peer> `x` sk-ant-REDACTED", 3);
    let tasks = project.liza(&["get", ".tasks"]).ok().to_owned();
    let run = project.liza(&["analyze"]);
    assert!(run.ok().starts_with("TRIGGERED: all agents stop"), "{run:?}");
    assert_eq!(project.liza(&["get", ".tasks"]).ok(), tasks, "no task is changed");
    assert_eq!(project.liza(&["get", ".sprint.status"]).ok().trim(), "CHECKPOINT");
    assert!(project.read(".liza/CHECKPOINT").starts_with("20"));
    let report = project.read(REPORT);
    for part in [
        "retry_cluster",
        "ARCHITECTURE_FLAW",
        "- When: 20",
        "- Common factor: ",
        "| core | human | retry_loop |",
    ] {
        assert!(report.contains(part), "{part:?} in\n{report}");
    }
    for part in [
        "| core | UNCLAIMED | specs/vision.md |",
        "liza resolve \"",
        "## Checklist",
        "reset \\| by \\<peer\\> \\`x\\`",
    ] {
        assert!(report.contains(part), "{part:?} in\n{report}");
    }
    assert!(!report.contains("abcdefghijklmnop"), "secrets are masked:\n{report}");
    let row = report.lines().find(|line| line.contains("| retry_loop |")).unwrap();
    assert_eq!(row.replace("\\|", "").matches('|').count(), 6, "one row stays one row: {row}");
}

/// Covers: SP-04
#[test]
fn it_fires_once_and_the_report_is_written_once_per_trigger() {
    let project = project_with_task();
    log_errors(&project, "timeout", 3);
    assert_eq!(project.liza(&["analyze", "--exit-code"]).code, 1);
    let first = project.read(REPORT);
    log_errors(&project, "timeout", 1);
    let again = project.liza(&["analyze", "--exit-code", "--json"]);
    assert_eq!((again.code, again.json()["result"]["fired"].as_bool()), (1, Some(false)));
    assert_eq!(project.read(REPORT), first, "the same trigger, the same report");
    assert_eq!(project.log().matches("action: circuit_breaker").count(), 1);
    fs::remove_file(project.root.join(REPORT)).unwrap();
    project.liza(&["analyze"]).ok();
    assert!(
        project.read(REPORT).starts_with(first.lines().next().unwrap()),
        "a lost report is written again"
    );
}

/// Covers: SP-04
#[test]
fn resolving_resumes_work_and_the_next_trigger_has_its_own_report() {
    let project = project_with_task();
    log_errors(&project, "timeout", 3);
    project.liza(&["analyze"]).ok();
    project.write(".liza/ESCALATION", "waiting\n");
    assert!(project.liza(&["resolve", "raised the limit"]).ok().contains("work continues"));
    let state = project.state();
    assert!(state.contains("resolution: raised the limit") && state.contains("resolved_at: "), "{state}");
    assert!(
        !project.root.join(".liza/CHECKPOINT").exists() && !project.root.join(".liza/ESCALATION").exists()
    );
    assert_eq!(project.liza(&["get", ".sprint.status"]).ok().trim(), "IN_PROGRESS");
    let first = project.read(REPORT);
    let resolved = liza_team::project::now();
    while liza_team::project::now() <= resolved {
        std::thread::yield_now();
    }
    assert!(project.liza(&["analyze"]).ok().starts_with("OK"), "resolved anomalies do not fire again");
    log_errors(&project, "out of memory", 3);
    project.liza(&["analyze"]).ok();
    assert_ne!(project.read(REPORT), first);
    let kept = fs::read_dir(project.root.join(".liza/archive")).unwrap().flatten().map(|entry| entry.path());
    let kept: Vec<_> = kept.filter(|path| path.to_string_lossy().contains("circuit_breaker")).collect();
    assert_eq!(fs::read_to_string(&kept[0]).unwrap(), first, "the older report is kept");
}
