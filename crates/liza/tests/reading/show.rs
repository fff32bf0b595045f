//! `liza show`.

use crate::boards::{BUSY, project};
use crate::support::TestProject;

/// The history has dates; everything else is relative.
fn masked(page: &str) -> String {
    let (top, history) = page.split_once("HISTORY").unwrap();
    let lines = history.lines().map(|line| match line.get(..19) {
        Some(start) if !start.starts_with(' ') => format!("2026-01-01 00:00:00{}", &line[19..]),
        Some(_) | None => line.to_owned(),
    });
    format!("{top}HISTORY{}", lines.collect::<Vec<_>>().join("\n"))
}

/// Covers: NT-04
#[test]
fn a_task_with_its_notes_and_history() {
    let project = project(BUSY);
    let run = project.run(project.program().args(["show", "retry-users"]).env("COLUMNS", "80"));
    insta::assert_snapshot!(masked(run.ok()));
}

/// Covers: CM-03
#[test]
fn programs_get_the_record_and_what_belongs_to_it() {
    let result = project(BUSY).liza(&["show", "retry-users", "--json"]).result();
    assert_eq!(result["task"]["command"], "liza submit-for-review retry-users COMMIT");
    assert_eq!(result["record"]["status"], "CLAIMED");
    assert_eq!(result["needed_by"][0], "retry-report");
    assert_eq!(result["handoff"]["next_action"], "Test the timeout");
    assert_eq!(result["notes"].as_array().unwrap().len(), 2);
    assert_eq!(result["anomalies"][0]["type"], "trade_off");
}

/// Covers: CM-05
#[test]
fn an_unknown_task_is_refused_with_a_hint() {
    let project = TestProject::new();
    let error = project.liza(&["show", "nobody", "--json"]).refused(1, "unknown_task");
    assert!(error["hint"].as_str().unwrap().contains("liza status"));
    assert_eq!(project.liza(&["show", "../x", "--json"]).code, 1);
}
