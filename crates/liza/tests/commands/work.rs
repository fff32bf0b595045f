//! The coder's and the code reviewer's commands: pre-check, mark-blocked, handoff.

use liza_team::project::now;

use crate::fixture::{claimed, submitted, under_review};
use crate::support::TestProject;

/// Covers: CM-03, TS-04
#[test]
fn a_pre_check_is_kept_in_the_history() {
    let project = TestProject::new();
    let generation = claimed(&project, "core", "coder-1");
    let words = ["pre-check", "core", "--intent", "- wrap it", "--validation", "cargo test"];
    let more = ["--assumption", "5xx is safe", "--risk", "slow", "--risk", "odd", "--file", "src/a.rs"];
    let run = project.liza_in("coder-1", generation, &[&words[..], &more].concat());
    assert!(run.ok().contains("liza submit-for-review core COMMIT"), "{}", run.stdout);
    let state = project.state();
    for fact in ["pre_execution_checkpoint", "- wrap it", "5xx is safe", "[slow, odd]"] {
        assert!(state.contains(fact), "{fact}: {state}");
    }
    let again = project.liza_in("coder-1", generation, &[&words[..], &["--json"]].concat());
    assert_eq!(again.result()["status"], "CLAIMED");
    let with = |agent: &str, words: &[&str]| {
        project.liza_as(agent, &[&["pre-check", "core", "--json"][..], words].concat())
    };
    with("coder-1", &["--intent", "", "--validation", "x"]).refused(1, "missing");
    with("coder-1", &["--intent", "x"]).refused(1, "usage");
    with("coder-2", &["--intent", "x", "--validation", "x"]).refused(1, "not_your_task");
    with("planner-1", &["--intent", "x", "--validation", "x"]).refused(1, "not_permitted");
    let error = project.liza(&[&words[..], &["--json"]].concat()).refused(1, "not_permitted");
    assert!(error["hint"].as_str().unwrap().contains("LIZA_AGENT_ID=AGENT"), "{error}");
}

/// Covers: LM-03, CM-03
#[test]
fn a_coder_blocks_its_task_with_a_reason_and_questions() {
    let project = TestProject::new();
    let generation = claimed(&project, "core", "coder-1");
    let with = |words: &[&str]| {
        project.liza_in("coder-1", generation, &[&["mark-blocked", "core", "--json"][..], words].concat())
    };
    with(&[]).refused(1, "missing");
    with(&["--reason", "unclear"]).refused(1, "missing");
    with(&["--reason", "unclear", "--question", " "]).refused(1, "missing");
    let four = ["--question", "a", "--question", "b", "--question", "c", "--question", "d"];
    with(&[&["--reason", "unclear"][..], &four].concat()).refused(1, "bad_text");
    let words = ["--reason", "- no spec", "--question", "-1 or 0?", "--attempted", "--verbose"];
    assert_eq!(with(&words).result()["status"], "BLOCKED");
    let state = project.state();
    for fact in ["blocked_reason: ", "-1 or 0?", "--verbose", "failed_by: [coder-1]"] {
        assert!(state.contains(fact), "{fact}: {state}");
    }
}

/// Covers: LM-03, SP-07
#[test]
fn a_person_needs_no_reason_to_send_a_task_back_to_the_planner() {
    let project = TestProject::new();
    project.add_task("core");
    let text = project.liza(&["mark-blocked", "core"]).ok().to_owned();
    assert_eq!(text, "core is BLOCKED; the planner decides: unblock-task, supersede-task or abandon-task\n");
    assert!(project.state().contains("blocked_reason: human override"));
    project.liza(&["mark-blocked", "core", "--json"]).refused(1, "wrong_status");
    project.liza(&["mark-blocked", "ghost", "--json"]).refused(1, "unknown_task");
    project.liza(&["mark-blocked", "../x", "--json"]).refused(1, "usage");
}

/// Covers: NT-02, CM-03
#[test]
fn a_coder_hands_off_a_clean_worktree() {
    let project = TestProject::new();
    let generation = claimed(&project, "core", "coder-1");
    let words = ["handoff", "core", "--summary", "- half done", "--next-action", "the rest", "--json"];
    project.write(".worktrees/core/new.txt", "not committed\n");
    let error = project.liza_in("coder-1", generation, &words).refused(1, "dirty_worktree");
    assert!(error["message"].as_str().unwrap().contains("new.txt"), "{error}");
    std::fs::remove_file(project.root.join(".worktrees/core/new.txt")).unwrap();
    let more = ["--approach", "a decorator", "--file", "src/a.rs", "--next-step", "tests", "--context", "91"];
    // From inside the worktree, as an agent would.
    let mut program = project.program();
    program.args(words).args(more).current_dir(project.root.join(".worktrees/core"));
    program.env("LIZA_AGENT_ID", "coder-1").env("LIZA_AGENT_GENERATION", generation.to_string());
    assert_eq!(project.run(&mut program).result()["status"], "CLAIMED");
    let state = project.state();
    for fact in ["handoff_pending: true", "context_used: 91%", "files_modified: [src/a.rs]", "role: coder"] {
        assert!(state.contains(fact), "{fact}: {state}");
    }
    let run = project.liza_in("coder-1", generation, &words[..6]);
    assert!(
        run.ok().contains("end your turn now (with exit code 42 if you can choose one)"),
        "{}",
        run.stdout
    );
}

/// Covers: NT-02, CM-05
#[test]
fn handoff_refuses_bad_input() {
    let project = TestProject::new();
    claimed(&project, "core", "coder-1");
    let with = |agent: &str, task: &str, summary: &str| {
        project.liza_as(agent, &["handoff", task, "--summary", summary, "--next-action", "go", "--json"])
    };
    with("coder-1", "core", "").refused(1, "missing");
    with("coder-1", "core", "two\nlines").refused(1, "bad_text");
    with("coder-1", "core", &"long ".repeat(100)).refused(1, "bad_text");
    with("coder-2", "core", "x").refused(1, "not_your_task");
    with("code-reviewer-1", "core", "x").refused(1, "not_your_review");
    with("coder-1", "ghost", "x").refused(1, "unknown_task");
    let words = ["handoff", "core", "--summary", "x", "--next-action", "y", "--json"];
    project.liza(&words).refused(1, "not_permitted");
}

/// Covers: NT-02
#[test]
fn a_reviewer_hands_off_even_with_a_dirty_worktree() {
    let project = TestProject::new();
    let generation = under_review(&project, "core", "code-reviewer-1", now());
    project.write(".worktrees/core/report.txt", "left by a test run\n");
    let words = ["handoff", "core", "--summary", "half read", "--next-action", "read the rest"];
    project.liza_in("code-reviewer-1", generation, &words).ok();
    assert!(project.state().contains("role: code_reviewer"));
}

/// Covers: SP-02, CM-03
#[test]
fn metrics_are_counted_from_tasks_and_histories() {
    let project = TestProject::new();
    submitted(&project, "core", "coder-1");
    project.liza(&["add-task", "--id", "gone", "--desc", "x", "--draft"]).ok();
    project.liza(&["abandon-task", "gone", "--reason", "x"]).ok();
    let log = project.log();
    let result = project.liza(&["update-sprint-metrics", "--json"]).result();
    let counted = ["tasks_done", "tasks_in_progress", "iterations_total", "task_submitted_for_review_count"];
    assert_eq!(counted.map(|name| result[name].as_u64()), [Some(1); 4], "{result}");
    assert_eq!(result["review_verdict_approval_rate_percent"], serde_json::Value::Null);
    assert!(project.state().contains("tasks_done: 1"));
    assert_eq!(project.log(), log, "figures are no event");
    let text = project.liza(&["update-sprint-metrics"]).ok().to_owned();
    assert!(text.contains("tasks     1 ended, 1 in progress, 0 blocked"), "{text}");
    project.liza(&["update-sprint-metrics", "now", "--json"]).refused(1, "usage");
}

/// Covers: UI-03
#[test]
fn what_a_task_has_asked_stays_on_its_page_after_the_answer() {
    let project = TestProject::new();
    let generation = claimed(&project, "core", "coder-1");
    let words =
        ["mark-blocked", "core", "--reason", "unclear", "--question", "Round up?", "--attempted", "x"];
    project.liza_in("coder-1", generation, &words).ok();
    project.liza(&["answer", "core", "Round down"]).ok();
    let page = project.liza(&["show", "core"]).ok().to_owned();
    let (top, _) = page.split_once("HISTORY").unwrap();
    assert!(top.contains("Asked") && top.contains("Round up?") && top.contains("Round down"), "{page}");
}

/// Covers: UI-03, CM-05
#[test]
fn a_task_is_dropped_by_its_whole_name_and_not_dismissed() {
    let project = TestProject::new();
    project.add_task("a-page-about-stock");
    let error = project.liza(&["dismiss", "a-page-about-stock", "--json"]).refused(1, "usage");
    assert!(error["message"].as_str().unwrap().contains("liza abandon-task"), "{error}");
    let words = ["abandon-task", "a-page", "--reason", "not wanted", "--json"];
    let error = project.liza(&words).refused(1, "unknown_task");
    assert!(error["hint"].as_str().unwrap().starts_with("did you mean a-page-about-stock?"), "{error}");
}

/// Covers: AX-09
#[test]
fn a_person_blocks_a_draft_that_is_not_complete() {
    let project = TestProject::new();
    project.liza(&["add-task", "--id", "idea", "--desc", "an idea", "--draft"]).ok();
    project.liza(&["mark-blocked", "idea"]).ok();
    assert_eq!(project.status("idea"), "BLOCKED");
    assert_eq!(project.liza(&["validate"]).ok(), "VALID\n");
    project.liza(&["answer", "idea", "later"]).ok();
    assert_eq!(project.status("idea"), "DRAFT", "it does not get past its gates that way");
}
