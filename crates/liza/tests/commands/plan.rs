//! The planner's commands.

use crate::fixture::{blocked, claimed};
use crate::support::TestProject;

const GATES: [&str; 6] = ["--spec", "specs/vision.md", "--done", "It works", "--scope", "All"];

fn draft(project: &TestProject, id: &str) {
    project.liza(&[&["add-task", "--id", id, "--desc", "Do it", "--draft"][..], &GATES].concat()).ok();
}

/// Covers: CM-03, IV-17, BB-13
#[test]
fn add_task_prints_whether_the_task_is_claimable() {
    let project = TestProject::new();
    let words = [&["add-task", "--id", "core", "--desc", "Do it"][..], &GATES].concat();
    assert_eq!(project.liza(&words).ok(), "core added: UNCLAIMED, ready for a coder\n");
    let more =
        ["--depends", "core", "--priority", "1", "--stretch", "--max-iterations", "3", "--lease", "900"];
    let words = [&["add-task", "--id", "orders", "--desc", "Do it"][..], &GATES, &more].concat();
    assert!(project.liza(&words).ok().contains("; it waits for core"));
    let words = ["add-task", "--id", "idea", "--desc", "Later", "--draft", "--depends", "", "--json"];
    let result = project.liza(&words).result();
    assert_eq!(result, serde_json::json!({"task": "idea", "status": "DRAFT"}));
    let state = project.state();
    for fact in ["priority: 1", "max_iterations: 3", "lease_duration_override: 900", "stretch: [orders]"] {
        assert!(state.contains(fact), "{fact}: {state}");
    }
}

/// Covers: TS-07, IV-03, IV-06, IV-13, CM-05
#[test]
fn add_task_refuses_an_invalid_task() {
    let project = TestProject::new();
    project.add_task("core");
    let with = |words: &[&str]| project.liza(&[&["add-task", "--json"][..], words].concat());
    with(&["--id", "core", "--desc", "Again", "--draft"]).refused(1, "task_exists");
    let error = with(&["--id", "a", "--desc", "No gates"]).refused(1, "gates_missing");
    assert_eq!(error["hint"], "add --spec, --done and --scope, or add --draft to complete it later");
    with(&["--id", "a", "--desc", " \n ", "--draft"]).refused(1, "missing");
    with(&["--id", "a", "--desc", "x", "--draft", "--priority", "-1"]).refused(1, "bad_text");
    with(&["--id", "a", "--desc", "x", "--draft", "--depends", "ghost"]).refused(1, "unknown_dependency");
    for limit in ["--max-iterations", "--max-review-cycles", "--lease"] {
        with(&["--id", "a", "--desc", "x", "--draft", limit, "0"]).refused(1, "usage");
    }
    for bad in ["../x", "a b", "-x", "", "A", "a--b", &"x".repeat(101)] {
        let error = with(&["--desc", "x", "--draft", &format!("--id={bad}")]).refused(1, "usage");
        assert!(error["message"].as_str().unwrap().contains("kebab-case"), "{bad:?}: {error}");
    }
    let missing = ["--id", "a", "--desc", "x", "--spec", "specs/none.md", "--done", "x", "--scope", "x"];
    let error = with(&missing).refused(1, "invalid");
    assert!(error["message"].as_str().unwrap().contains("specs/none.md"), "{error}");
    let mut program = project.program();
    let words = [&["add-task"][..], &missing].concat();
    project.run(program.args(words).env("SKIP_SPEC_FILE_CHECK", "true")).ok();
    assert_eq!(project.liza_as("coder-1", &["finalize", "--all"]).code, 1);
}

/// Covers: AX-25
#[test]
fn a_draft_that_a_person_completes_is_finalized_and_that_of_a_planner_waits_for_its_plan() {
    let project = TestProject::new();
    project.register("planner-1");
    for id in ["mine", "planned"] {
        project.liza(&["add-task", "--id", id, "--desc", "Do it", "--draft"]).ok();
    }
    let part = project.liza(&["edit-task", "mine", "--spec", "specs/vision.md", "--done", "It works"]);
    assert_eq!((part.ok().contains("UNCLAIMED"), project.status("mine")), (false, "DRAFT"));
    let whole = project.liza(&["edit-task", "mine", "--scope", "All"]).ok().to_owned();
    assert_eq!((whole.as_str(), project.status("mine")), ("mine changed; it is UNCLAIMED\n", "UNCLAIMED"));
    let log = project.liza(&["log", "mine"]).ok().to_owned();
    assert!(log.contains("makes mine ready for coders (changed scope)"), "{log}");
    project.liza_as("planner-1", &[&["edit-task", "planned"][..], &GATES].concat()).ok();
    assert_eq!(project.status("planned"), "DRAFT", "a planner finalizes its plan as a whole");
    // It was complete before: a correction decides nothing.
    project.liza(&["edit-task", "planned", "--scope", "More"]).ok();
    assert_eq!(project.status("planned"), "DRAFT");
}

/// Covers: TS-07, CM-03
#[test]
fn a_draft_is_edited_then_finalized() {
    let project = TestProject::new();
    project.liza(&["add-task", "--id", "core", "--desc", "Do it", "--draft"]).ok();
    let error = project.liza(&["finalize", "core", "--json"]).refused(1, "gates_missing");
    assert_eq!(error["hint"], "liza edit-task core --spec REF --done TEXT --scope TEXT");
    let text = project.liza(&[&["edit-task", "core"][..], &GATES].concat()).ok().to_owned();
    assert_eq!(text, "core changed; it is UNCLAIMED\n");
    draft(&project, "orders");
    project.liza(&["edit-task", "orders", "--depends", "core", "--priority", "2"]).ok();
    assert!(project.state().contains("depends_on: [core]"));
    project.liza(&["edit-task", "orders", "--depends", ""]).ok();
    assert!(!project.state().contains("depends_on: [core]"));
    let text = project.liza(&["finalize", "--all"]).ok().to_owned();
    assert_eq!(text, "UNCLAIMED, ready for coders: orders\n");
    let edited = project.liza(&["edit-task", "core", "--desc", "Better", "--json"]).result();
    assert_eq!(edited["status"], "UNCLAIMED");
    draft(&project, "third");
    let result = project.liza(&["finalize", "third", "--json"]).result();
    assert_eq!(result, serde_json::json!({"tasks": ["third"], "status": "UNCLAIMED"}));
}

/// Covers: TS-07, CM-05
#[test]
fn edit_task_and_finalize_refuse_bad_input() {
    let project = TestProject::new();
    claimed(&project, "core", "coder-1");
    let error = project.liza(&["edit-task", "core", "--desc", "x", "--json"]).refused(1, "wrong_status");
    assert!(error["message"].as_str().unwrap().contains("needs DRAFT or UNCLAIMED"), "{error}");
    project.liza(&["edit-task", "ghost", "--desc", "x", "--json"]).refused(1, "unknown_task");
    project.add_task("free");
    project.liza(&["edit-task", "free", "--json"]).refused(1, "nothing_to_do");
    project.liza(&["edit-task", "free", "--desc", "", "--json"]).refused(1, "missing");
    project.liza(&["edit-task", "free", "--priority", "-1", "--json"]).refused(1, "bad_text");
    project.liza(&["edit-task", "free", "--depends", "free", "--json"]).refused(1, "bad_text");
    project.liza(&["finalize", "--json"]).refused(1, "usage");
    project.liza(&["finalize", "free", "--all", "--json"]).refused(1, "usage");
    project.liza(&["finalize", "--all", "--json"]).refused(1, "nothing_to_do");
    // All of them or none.
    draft(&project, "good");
    project.liza(&["add-task", "--id", "bare", "--desc", "x", "--draft"]).ok();
    project.liza(&["finalize", "good", "bare", "--json"]).refused(1, "gates_missing");
    assert_eq!(project.state().matches("status: DRAFT").count(), 2);
}

/// Covers: LM-05, LM-08, CM-03
#[test]
fn supersede_replaces_a_task_in_one_write() {
    let project = TestProject::new();
    blocked(&project, "all", "coder-1");
    project.liza(&["add-task", "--id", "after", "--desc", "x", "--draft", "--depends", "all"]).ok();
    draft(&project, "core");
    draft(&project, "orders");
    let before = project.log().matches("action:").count();
    let words = ["supersede-task", "all", "--by", "core,orders", "--reason", "too broad"];
    let text = project.liza(&[&words[..], &["--root-cause", "two things in one"]].concat()).ok().to_owned();
    assert_eq!(text, "all is SUPERSEDED; ready for coders: core, orders\n");
    assert_eq!(project.log().matches("action:").count(), before + 1);
    let state = project.state();
    for fact in [
        "superseded_by: [core, orders]",
        "supersedes: [all]",
        "event: rescope_all",
        "depends_on: [core, orders]",
    ] {
        assert!(state.contains(fact), "{fact}: {state}");
    }
    assert!(!project.root.join(".worktrees/all").exists());
    draft(&project, "new");
    let words = [
        "supersede-task",
        "core",
        "--by",
        "new",
        "--reason",
        "r",
        "--root-cause",
        "c",
        "--summary",
        "S",
        "--json",
    ];
    let result = project.liza(&words).result();
    assert_eq!((&result["status"], &result["superseded_by"][0]), (&"SUPERSEDED".into(), &"new".into()));
}

/// Covers: LM-05, LM-06, CM-05
#[test]
fn supersede_and_abandon_refuse_bad_input() {
    let project = TestProject::new();
    claimed(&project, "busy", "coder-1");
    project.add_task("free");
    let by = |task: &str, by: &str| {
        project.liza(&["supersede-task", task, "--by", by, "--reason", "r", "--root-cause", "c", "--json"])
    };
    by("busy", "free").refused(1, "wrong_status");
    by("free", "ghost").refused(1, "bad_replacement");
    by("free", "free").refused(1, "bad_replacement");
    by("free", "").refused(1, "missing");
    by("free", "../x").refused(1, "usage");
    by("ghost", "free").refused(1, "unknown_task");
    project.liza(&["supersede-task", "free", "--by", "x", "--json"]).refused(1, "usage");
    let words = ["supersede-task", "free", "--by", "busy", "--reason", " ", "--root-cause", "c", "--json"];
    project.liza(&words).refused(1, "missing");
    project.liza(&["abandon-task", "free", "--json"]).refused(1, "usage");
    project.liza(&["abandon-task", "free", "--reason", "", "--json"]).refused(1, "missing");
    project.liza(&["abandon-task", "busy", "--reason", "r", "--json"]).refused(1, "wrong_status");
    project
        .liza_as("coder-1", &["abandon-task", "free", "--reason", "r", "--json"])
        .refused(1, "not_permitted");
    let text = project.liza(&["abandon-task", "free", "--reason", "-1 users"]).ok().to_owned();
    assert!(text.starts_with("free is ABANDONED"), "{text}");
    let error = project.liza(&["abandon-task", "free", "--reason", "r", "--json"]).refused(1, "wrong_status");
    assert!(error["message"].as_str().unwrap().contains("the state is final"), "{error}");
    let third = ["add-task", "--id", "third", "--desc", "x", "--draft"];
    project.liza(&third).ok();
    let result = project.liza(&["abandon-task", "third", "--reason", "r", "--json"]).result();
    assert_eq!(result, serde_json::json!({"task": "third", "status": "ABANDONED"}));
}

/// Covers: LM-06, LM-07, CM-03
#[test]
fn unblock_has_three_ways_to_continue_a_task() {
    let project = TestProject::new();
    blocked(&project, "fresh", "coder-1");
    let text = project.liza(&["unblock-task", "fresh"]).ok().to_owned();
    assert_eq!(text, "fresh is UNCLAIMED: another coder starts from scratch\n");
    assert!(!project.root.join(".worktrees/fresh").exists());
    blocked(&project, "same", "coder-2");
    let rejected = project.state().replace("review_cycles_current: 0", "review_cycles_current: 2");
    project.write(".liza/state.yaml", &rejected);
    let result = project.liza(&["unblock-task", "same", "--same-coder", "--reset-cycles", "--json"]).result();
    assert_eq!((&result["status"], &result["worktree"]), (&"UNCLAIMED".into(), &".worktrees/same".into()));
    let cycles = |number: u32| project.state().matches(&format!("review_cycles_current: {number}")).count();
    assert_eq!((cycles(0), cycles(2)), (1, 1), "only that task's");
    blocked(&project, "kept", "coder-3");
    project.liza(&["unblock-task", "kept", "--keep-worktree", "--assessment", "- it was me"]).ok();
    assert!(project.root.join(".worktrees/kept").exists());
}

/// Covers: LM-04, LM-06, CM-05
#[test]
fn unblock_refuses_bad_input() {
    let project = TestProject::new();
    project.add_task("free");
    let error = project.liza(&["unblock-task", "free", "--json"]).refused(1, "wrong_status");
    assert_eq!(error["hint"], "liza claim-task free AGENT");
    project.liza(&["unblock-task", "free", "--same-coder", "--keep-worktree", "--json"]).refused(1, "usage");
    blocked(&project, "hard", "coder-1");
    project.liza(&["unblock-task", "hard"]).ok();
    blocked(&project, "hard", "coder-2");
    let error = project.liza(&["unblock-task", "hard", "--json"]).refused(1, "hypothesis_exhausted");
    assert!(error["hint"].as_str().unwrap().starts_with("liza supersede-task hard"), "{error}");
}

/// Covers: NT-01, CM-03
#[test]
fn align_appends_to_the_history_of_the_goal() {
    let project = TestProject::new();
    let words = ["align", "--summary", "- 2 of 5 done"];
    assert_eq!(project.liza_as("planner-1", &words).ok(), "added to the alignment history of the goal\n");
    assert!(project.state().contains("event: alignment"));
    project.liza(&["align", "--summary", "", "--json"]).refused(1, "missing");
    project.liza_as("coder-1", &["align", "--summary", "x", "--json"]).refused(1, "not_permitted");
    assert_eq!(project.liza(&["align", "--summary", "x", "--json"]).result()["event"], "alignment");
}

/// Covers: UI-12
#[test]
fn add_makes_a_draft_that_the_planner_completes() {
    let project = TestProject::new();
    let said = project.liza(&["add", "Log every retry, with its reason"]).ok().to_owned();
    assert_eq!(said, "log-every-retry-with-its-reason added as a DRAFT; the planner completes it\n");
    let record = project.record("log-every-retry-with-its-reason");
    assert_eq!(record.spec_ref.as_deref(), Some("specs/vision.md"));
    let triggers = project.liza(&["status", "--json"]).result()["planner_triggers"].to_string();
    assert!(triggers.contains("NEW_DRAFT") && triggers.contains("log-every-retry"), "{triggers}");
    let again = project.liza(&["add", "Log every retry, with its reason", "--json"]).result();
    assert_eq!(again["task"], "log-every-retry-with-its-reason-2");
    let done = ["--done", "a test shows it", "--scope", "the client", "--json"];
    let ready = project.liza(&[&["add", "Count retries"][..], &done].concat()).result();
    assert_eq!((&ready["task"], &ready["status"]), (&"count-retries".into(), &"UNCLAIMED".into()));
    project.liza_as("planner-1", &["add", "x", "--json"]).refused(1, "not_permitted");
    project.liza(&["add", " ", "--json"]).refused(1, "missing");
}

/// Covers: UI-12
#[test]
fn a_plan_waits_for_the_humans_approval_if_that_is_wanted() {
    let project = TestProject::new();
    project.register("planner-1");
    project.liza(&["lock", "write", ".config.plan_approval", "true"]).ok();
    let add = |id: &str, more: &[&str]| {
        let words = [&["add-task", "--id", id, "--desc", "Do it"][..], &GATES, more].concat();
        project.liza_as("planner-1", &words)
    };
    assert_eq!(add("now", &[]).ok(), "now proposed: the human approves the plan\n");
    add("later", &["--draft"]).ok();
    let said = project.liza_as("planner-1", &["finalize", "later"]).ok().to_owned();
    assert!(said.starts_with("proposed; the human approves the plan: later"), "{said}");
    assert_eq!((project.status("now"), project.status("later")), ("DRAFT", "DRAFT"));
    let status = project.liza(&["status", "--json"]).result();
    let needs = status["needs_you"].to_string();
    assert!(needs.contains("liza plan --approve") && needs.contains(r#""task":"later""#), "{needs}");
    let page = project.liza(&["status"]).ok().to_owned();
    assert!(page.contains("DRAFT 2, see NEEDS YOU") && page.contains("1. now: Do it."), "{page}");
    assert_eq!(page.matches("later").count(), 1, "{page}");
    assert_eq!(project.liza(&["status", "--all"]).ok().matches("later").count(), 2);
    assert!(!status["planner_triggers"].to_string().contains("INITIAL_PLANNING"), "{status}");
    let shown = project.liza(&["plan"]).ok().to_owned();
    assert!(shown.contains("2 tasks for you to approve") && shown.contains("It works"), "{shown}");
    project.liza_as("planner-1", &["plan", "--approve", "--json"]).refused(1, "not_permitted");
    // What the human says about it lets the planner plan again.
    project.liza(&["note", "smaller, please"]).ok();
    let status = project.liza(&["status", "--json"]).result();
    assert!(status["planner_triggers"].to_string().contains("HUMAN_DECISION"), "{status}");
    // Neither a block nor an edit is a way around it.
    project.liza(&["mark-blocked", "now"]).ok();
    let said = project.liza_as("planner-1", &["unblock-task", "now", "--assessment", "fine"]).ok().to_owned();
    assert_eq!(said, "now is proposed again: the human approves the plan\n");
    assert_eq!(project.status("now"), "DRAFT");
    let said = project.liza(&["plan", "--approve"]).ok().to_owned();
    assert!(said.contains("approved, ready for coders: now, later"), "{said}");
    assert_eq!((project.status("now"), project.status("later")), ("UNCLAIMED", "UNCLAIMED"));
    project.liza_as("planner-1", &["edit-task", "now", "--priority", "1"]).ok();
    assert_eq!(project.status("now"), "UNCLAIMED");
    project.liza_as("planner-1", &["edit-task", "now", "--scope", "More"]).ok();
    assert_eq!(project.status("now"), "DRAFT");
    project.liza(&["plan", "--approve"]).ok();
    project.liza(&["plan", "--approve", "--json"]).refused(1, "nothing_to_do");
    assert_eq!(project.liza(&["plan"]).ok(), "no plan waits for your approval\n");
}

/// Covers: UI-12
#[test]
fn a_plan_that_changed_since_it_was_read_is_not_approved() {
    let project = TestProject::new();
    project.liza(&["config", "plan_approval", "true"]).ok();
    draft(&project, "now");
    project.liza_as("planner-1", &["finalize", "now"]).ok();
    let shown = project.liza(&["plan"]).ok().to_owned();
    assert_eq!(shown.lines().next(), Some("1 task for you to approve: liza plan --approve"));
    let status = project.liza(&["status", "--json"]).result();
    let need = status["needs_you"].as_array().unwrap().iter().find(|need| need["kind"] == "PLAN PROPOSED");
    let need = need.unwrap_or_else(|| panic!("{status}"));
    assert_eq!(need["command"], "liza plan --approve");
    let seen = need["seen"].to_string();
    let words = ["plan", "--approve", "--if-revision", &seen, "--json"];
    project.liza_as("planner-1", &["edit-task", "now", "--desc", "Something else"]).ok();
    let error = project.liza(&words).refused(4, "stale_revision");
    assert!(error["hint"].as_str().unwrap().contains("read it again: liza plan"), "{error}");
    // Other changes of the blackboard do not matter.
    let shown: serde_json::Value = serde_json::from_str(&project.liza(&["plan", "--json"]).stdout).unwrap();
    let seen = shown["revision"].to_string();
    project.liza(&["note", "unrelated"]).ok();
    project.liza(&["plan", "--approve", "--if-revision", &seen]).ok();
    assert_eq!(project.status("now"), "UNCLAIMED");
}
