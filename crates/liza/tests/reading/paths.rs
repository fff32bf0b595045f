//! `liza get`: paths into the blackboard.

use serde_json::json;

use crate::boards::{BUSY, project};

/// Covers: CM-04
#[test]
fn a_path_prints_its_matches() {
    let project = project(BUSY);
    let get = |path: &str| project.liza(&["get", path]).ok().to_owned();
    assert_eq!(get(".goal.id"), "goal-1\n");
    assert_eq!(get("goal.id"), "goal-1\n");
    assert_eq!(get(".tasks[0].id"), "retry-core\n");
    assert_eq!(get(".tasks[] | select(.status == \"UNCLAIMED\") | .id"), "retry-mail\nretry-report\n");
    assert_eq!(get(".agents.\"coder-1\".status"), "WORKING\n");
    assert_eq!(get(".sprint.scope.planned[1]"), "retry-users\n");
    assert!(get(".config").starts_with("max_coder_iterations: 10\n"), "{}", get(".config"));
    assert_eq!(get(".config.max_review_cycles"), "5\n");
    assert!(get(".").starts_with("version: 1\n"));
}

/// Covers: CM-03
#[test]
fn programs_get_values_with_their_types() {
    let project = project(BUSY);
    let get = |path: &str| project.liza(&["get", path, "--json"]).result();
    assert_eq!(get(".revision"), json!(40));
    assert_eq!(get(".sprint.scope.stretch"), json!(["retry-docs"]));
    assert_eq!(get(".tasks[] | select(.id == \"retry-docs\") | .priority"), json!([5]));
    assert_eq!(get(".agents.planner-1.current_task"), json!(null));
}

/// Covers: CM-05
#[test]
fn a_path_without_match_or_with_bad_syntax_is_refused() {
    let project = project(BUSY);
    project.liza(&["get", ".nobody.here", "--json"]).refused(1, "nothing_there");
    project.liza(&["get", ".tasks[x]", "--json"]).refused(1, "bad_path");
}
