//! Notes and reports: anomaly, discover, convert-discovery, note, spec-change.

use crate::fixture::claimed;
use crate::support::TestProject;

/// Covers: NT-01, IV-12, CM-03
#[test]
fn an_anomaly_has_typed_details_and_belongs_to_a_role() {
    let project = TestProject::new();
    claimed(&project, "core", "coder-1");
    let with =
        |agent: &str, words: &[&str]| project.liza_as(agent, &[&["anomaly", "--json"][..], words].concat());
    let loops = ["retry_loop", "--task", "core", "--detail", "count=3", "--detail", "error_pattern=a=b"];
    assert_eq!(with("coder-1", &loops).result()["type"], "retry_loop");
    let state = project.state();
    assert!(state.contains("count: 3") && state.contains("error_pattern: a=b"), "{state}");
    let trade = [
        "trade_off",
        "--task",
        "core",
        "--detail",
        "what=-x",
        "--detail",
        "why=y",
        "--detail",
        "debt_created=yes",
    ];
    with("coder-1", &trade).result();
    assert!(project.state().contains("debt_created: true"));
    let error = with("coder-1", &["retry_loop", "--task", "core", "--detail", "count=many"])
        .refused(1, "bad_details");
    assert!(error["message"].as_str().unwrap().contains("error_pattern"), "{error}");
    assert_eq!(
        error["hint"],
        "liza anomaly retry_loop --task TASK --detail count=N --detail error_pattern=TEXT"
    );
    with("code-reviewer-1", &["trade_off", "--task", "core"]).refused(1, "not_your_duty");
    with("coder-1", &["spec_ambiguity", "--task", "ghost"]).refused(1, "unknown_task");
    let error = with("coder-1", &["oddity", "--task", "core"]).refused(1, "usage");
    assert!(error["message"].as_str().unwrap().contains("retry_loop"), "{error}");
    for bad in ["count", "=3", "a b=3", "x\ny=3"] {
        with("coder-1", &["spec_ambiguity", "--task", "core", "--detail", bad]).refused(1, "usage");
    }
    let text = project.liza_as("coder-1", &["anomaly", "spec_ambiguity", "--task", "core"]);
    assert_eq!(text.ok(), "spec_ambiguity is logged; continue with your task\n");
}

/// Covers: NT-03, CM-03
#[test]
fn a_discovery_becomes_a_task_once() {
    let project = TestProject::new();
    claimed(&project, "core", "coder-1");
    let words = ["discover", "--task", "core", "--desc", "- no timeout", "--severity", "high"];
    assert_eq!(
        project.liza_as("coder-1", &words).ok(),
        "disc-1 added: the planner decides when it next plans\n"
    );
    let more = ["--urgency", "immediate", "--recommendation", "--fix it", "--json"];
    let result = project.liza_as("coder-1", &[&words[..], &more].concat()).result();
    assert_eq!(result, serde_json::json!({"discovery": "disc-2"}));
    let state = project.state();
    for fact in ["during: core", "by: coder-1", "urgency: deferred", "urgency: immediate"] {
        assert!(state.contains(fact), "{fact}: {state}");
    }
    project.add_task("timeout");
    assert_eq!(
        project.liza(&["convert-discovery", "disc-1", "timeout"]).ok(),
        "disc-1 is converted to timeout\n"
    );
    assert!(project.state().contains("converted_to_task: timeout"));
    let convert = |disc: &str, task: &str| project.liza(&["convert-discovery", disc, task, "--json"]);
    convert("disc-1", "timeout").refused(1, "already_converted");
    convert("disc-9", "timeout").refused(1, "unknown_discovery");
    convert("disc-2", "ghost").refused(1, "unknown_task");
    convert("disc-x", "timeout").refused(1, "usage");
    assert_eq!(convert("disc-2", "timeout").result()["task"], "timeout");
}

/// Covers: NT-03, CM-05
#[test]
fn discover_refuses_bad_input() {
    let project = TestProject::new();
    let with = |words: &[&str]| project.liza(&[&["discover", "--json"][..], words].concat());
    with(&["--desc", "", "--severity", "low"]).refused(1, "missing");
    with(&["--desc", "x", "--severity", "awful"]).refused(1, "usage");
    with(&["--desc", "x"]).refused(1, "usage");
    with(&["--desc", "x", "--severity", "low", "--task", "ghost"]).refused(1, "unknown_task");
    assert_eq!(project.state().matches("disc-").count(), 0);
}

/// Covers: NT-01, NT-04, SP-07, CM-03, AX-23
#[test]
fn a_note_is_for_one_task_or_for_all_agents() {
    let project = TestProject::new();
    project.add_task("core");
    let text = project.liza(&["note", "- use the helper", "--for", "core"]).ok().to_owned();
    let readers =
        "the coder that takes core, the code reviewer that takes core, the planner when it plans next";
    assert_eq!(text, format!("note added; it is read by {readers}\n"));
    project.liza(&["abandon-task", "core", "--reason", "late"]).ok();
    let text = project.liza(&["note", "too late", "--for", "core"]).ok().to_owned();
    assert_eq!(text, "note added, but no agent reads it: no session on core follows\n");
    let text = project.liza(&["note", "no new dependencies"]).ok().to_owned();
    assert!(
        text.starts_with("note added; it is read by the planner when it plans next, the coder"),
        "{text}"
    );
    assert!(project.state().contains("for: core"));
    assert_eq!(project.liza(&["note", "x", "--for", "core", "--json"]).result()["for"], "core");
    project.liza(&["note", "x", "--for", "ghost", "--json"]).refused(1, "unknown_task");
    project.liza(&["note", " \t", "--json"]).refused(1, "missing");
    let error = project.liza_as("coder-1", &["note", "x", "--json"]).refused(1, "not_permitted");
    assert_eq!(error["message"], "coder-1 may not note: that is for the human");
}

/// Covers: NT-01, CM-03
#[test]
fn a_change_to_a_specification_is_logged() {
    let project = TestProject::new();
    let with = |words: &[&str]| project.liza(&[&["spec-change"][..], words].concat());
    let words = ["--spec", "specs/vision.md#a", "--change", "- 3 retries", "--triggered-by", "core"];
    assert_eq!(with(&words).ok(), "change to specs/vision.md#a logged\n");
    assert!(project.log().contains("spec_updated"));
    let json = [&words[..], &["--json"]].concat();
    assert_eq!(with(&json).result()["spec"], "specs/vision.md#a");
    with(&["--spec", "a.md", "--change", "", "--triggered-by", "x", "--json"]).refused(1, "missing");
    with(&["--spec", "a.md", "--change", "x", "--json"]).refused(1, "usage");
    let run = project.liza_as("planner-1", &[&["spec-change"][..], &json].concat());
    run.refused(1, "not_permitted");
}
