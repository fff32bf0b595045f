//! The planner: a plan from a goal, a decision for each trigger, the end of the goal.

use crate::cast::{Player, ended};
use crate::support::TestProject;

fn blocked(project: &TestProject, task: &str, coder: &str) {
    project.add_task(task);
    let coder = Player::new(project, coder);
    coder.claim(task);
    let playbook = "coder:\n- do:\n  - block: {reason: no spec, questions: [Which?]}\n";
    ended(&coder.code(task, playbook), 42);
}

/// Covers: AG-15, AG-11
#[test]
fn without_a_playbook_it_splits_the_goal_into_tasks_and_finalizes_them_together() {
    let project = TestProject::bare();
    project.liza(&["init", "Retry orders, retry payments and log it"]).ok();
    let planner = Player::new(&project, "planner-1");
    let run = planner.plan("");
    let said = ended(&run, 42);
    assert!(said.starts_with("Mode: Liza [Planner]\n"), "{said}");
    for task in ["retry-orders-1", "retry-payments-2", "log-it-3"] {
        assert_eq!(project.status(task), "UNCLAIMED", "{task}");
    }
    assert!(project.state().contains("The plan covers every part of the goal"));
}

/// Covers: AG-15, AG-20
#[test]
fn without_a_vision_it_asks_instead_of_inventing() {
    let project = TestProject::new();
    std::fs::remove_file(project.root.join("specs/vision.md")).unwrap();
    let planner = Player::new(&project, "planner-1");
    ended(&planner.plan(""), 42);
    let state = project.state();
    assert!(state.contains("spec_gap") && !state.contains("id: retry"), "{state}");
}

/// Covers: AG-15, LM-05
#[test]
fn without_a_playbook_it_replaces_a_blocked_task() {
    let project = TestProject::new();
    blocked(&project, "core", "coder-1");
    project.add_task("held");
    project.liza(&["mark-blocked", "held"]).ok();
    let planner = Player::new(&project, "planner-1");
    ended(&planner.plan(""), 42);
    assert_eq!(project.status("core"), "SUPERSEDED");
    assert_eq!(project.status("core-v2"), "UNCLAIMED");
    assert_eq!(project.status("held"), "UNCLAIMED");
    assert!(project.record("core-v2").description.unwrap().starts_with("Do it"));
}

/// Covers: AG-15, AG-11
#[test]
fn each_trigger_has_its_own_scene() {
    let project = TestProject::new();
    blocked(&project, "one", "coder-1");
    blocked(&project, "two", "coder-2");
    blocked(&project, "three", "coder-3");
    let playbook = r#"
planner:
  - when: {trigger: BLOCKED_TASKS, task: one}
    do:
      - unblock: {task: one, same-coder: true, assessment: "use 3"}
  - when: {trigger: BLOCKED_TASKS, task: two, session: 1}
    do:
      - abandon: {task: two, reason: not worth it}
      - align: One is left
    exit: 0
"#;
    let planner = Player::new(&project, "planner-1");
    ended(&planner.plan(playbook), 0);
    assert_eq!(project.status("two"), "ABANDONED");
    assert_eq!(project.status("three"), "SUPERSEDED");
    assert!(["UNCLAIMED", "CLAIMED"].contains(&project.status("one")));
    let state = project.state();
    assert!(state.contains("use 3") && state.contains("One is left"), "{state}");
}

/// Covers: AG-15, SP-01
#[test]
fn it_completes_the_goal_after_the_last_sprint() {
    let project = TestProject::new();
    let planner = Player::new(&project, "planner-1");
    ended(&planner.plan(""), 42);
    project.liza(&["abandon-task", "retry-everything-1", "--reason", "x"]).ok();
    planner.complete_sprint();
    let run = planner.plan("");
    ended(&run, 42);
    assert!(run.stdout.contains("$ liza goal complete"), "{}", run.stdout);
    assert!(project.liza(&["goal", "show"]).ok().contains("COMPLETED"));
}
