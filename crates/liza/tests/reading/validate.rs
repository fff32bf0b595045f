//! `liza validate`.

use serde_json::json;

use crate::boards::{BUSY, FIRE, dated, project};
use crate::support::TestProject;

/// Covers: IV-15
#[test]
fn a_valid_board_prints_one_word() {
    let project = project(BUSY);
    let run = project.liza(&["validate"]);
    assert_eq!(run.ok(), "VALID\n", "{run:?}");
    assert_eq!(project.liza(&["validate", "--json"]).result()["valid"], true);
}

/// Covers: IV-15, CM-02, AX-22
#[test]
fn every_violation_is_a_line_and_the_exit_code_is_1() {
    let project = project(FIRE);
    let run = project.liza(&["validate"]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.lines().all(|line| line.starts_with("INVALID: ")), "{run:#?}");
    for violation in
        ["INVALID: broken: ", "INVALID: orphan: spec_ref specs/missing.md", "INVALID: coder-1: WORKING"]
    {
        assert!(run.stdout.contains(violation), "{violation} in {run:#?}");
    }
    let error = project.liza(&["validate", "--json"]).refused(1, "invalid");
    assert_eq!(error["violations"].as_array().unwrap().len(), run.stdout.lines().count());
    let status = project.liza(&["status", "--json"]).result();
    let needs = status["needs_you"].as_array().unwrap();
    let counted = error["message"].as_str().unwrap();
    assert!(counted.contains(" of them with an alarm of its own"), "{counted}");
    assert!(needs.iter().any(|need| need["text"].as_str().unwrap().starts_with(counted)), "{needs:#?}");
    let lax = project.run(project.program().arg("validate").env("SKIP_SPEC_FILE_CHECK", "true"));
    assert!(!lax.stdout.contains("missing.md"), "{lax:#?}");
}

/// Covers: IV-15, CM-01
#[test]
fn another_file_can_be_checked() {
    let project = TestProject::new();
    project.write("copy.yaml", &dated(FIRE));
    let run = project.liza(&["validate", "copy.yaml"]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("INVALID: broken: "), "{run:#?}");
    assert_eq!(project.liza(&["validate"]).ok(), "VALID\n");
    project.write("garbage.yaml", "tasks: [");
    let run = project.liza(&["validate", "garbage.yaml"]);
    assert!(run.code == 1 && run.stdout.starts_with("INVALID: "), "{run:#?}");
    project.liza(&["validate", "nowhere.yaml", "--json"]).refused(1, "io");
}

/// Covers: IV-16
#[test]
fn a_task_that_lacks_what_commands_need_is_a_warning() {
    let project = project(BUSY);
    project
        .write(".liza/state.yaml", &project.state().replace("    worktree: .worktrees/retry-orders\n", ""));
    let run = project.liza(&["validate"]);
    assert_eq!(run.ok(), "VALID\n", "{run:#?}");
    assert!(run.stderr.contains("WARNING: ") && run.stderr.contains("retry-orders"), "{run:#?}");
    let result = project.liza(&["validate", "--json"]).result();
    assert_eq!(result["violations"], json!([]));
    assert_eq!(result["warnings"].as_array().unwrap().len(), 1, "{result}");
}
