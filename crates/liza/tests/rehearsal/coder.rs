//! The coder: the default work, every step, and how it stops.

use crate::cast::{Player, ended};
use crate::support::TestProject;

fn claimed(project: &TestProject) -> Player<'_> {
    project.add_task("core");
    let coder = Player::new(project, "coder-1");
    coder.claim("core");
    coder
}

/// Covers: AG-15
#[test]
fn without_a_playbook_it_builds_tests_commits_and_submits() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let run = coder.code("core", "");
    let said = ended(&run, 42);
    assert!(
        said.starts_with("Mode: Liza [Coder]\ncore is CLAIMED, assigned_to coder-1\nCoder ready."),
        "{said}"
    );
    assert!(said.contains("$ liza submit-for-review core"), "{said}");
    assert_eq!(project.status("core"), "READY_FOR_REVIEW");
    let head = project.git_at(&project.tree("core"), &["rev-parse", "HEAD"]);
    assert_eq!(project.record("core").review_commit.unwrap().as_str(), head);
    let files = project.git(&["diff", "--name-only", "integration..task/core"]);
    assert_eq!(files, "src/core.sh\ntests/core.sh");
    assert!(project.state().contains("pre_execution_checkpoint"));
}

/// Covers: AG-15, NT-01
#[test]
fn every_step_of_a_scene_is_done() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let playbook = r#"
coder:
  - when: {task: other}
    do: [say: not this one]
  - when: {task: co*, agent: coder-1, iteration: 1, fix: false, session: 1}
    do:
      - say: "{agent} works on {task}, attempt {iteration}"
      - pre-check: {intent: try, validation: "true", assumptions: [a], risks: [r], files: [x.txt]}
      - write: {path: deep/x.txt, text: "one\n"}
      - append: {path: deep/x.txt, text: "two of {task}\n"}
      - write: {path: gone.txt, text: ""}
      - delete: gone.txt
      - check: grep -q two deep/x.txt
      - commit: "core: x"
      - anomaly: {type: trade_off, details: {what: w, why: y, debt_created: "true"}}
      - discover: {desc: no timeout, severity: high, urgency: immediate, recommendation: add one}
      - wait: 1
      - wait-for: {branch: "task/{task}", file: specs/vision.md}
      - liza: [validate]
      - handoff: {summary: half, next-action: rest, approach: slow, files: [x], next-steps: [y]}
    exit: 0
"#;
    let said = ended(&coder.code("core", playbook), 0).to_owned();
    assert!(
        said.contains("coder-1 works on core, attempt 1") && said.contains("found what it waited for"),
        "{said}"
    );
    let text = project.read(".worktrees/core/deep/x.txt");
    assert_eq!(text, "one\ntwo of core\n");
    assert!(!project.tree("core").join("gone.txt").exists());
    assert_eq!(project.git(&["log", "-1", "--format=%s", "task/core"]), "core: x");
    let state = project.state();
    for fact in ["no timeout", "debt_created: true", "handoff_pending: true", "next_action: rest"] {
        assert!(state.contains(fact), "{fact}: {state}");
    }
    // The scene fits the first session only.
    ended(&coder.code("core", playbook), 42);
    assert_eq!(project.status("core"), "READY_FOR_REVIEW");
}

/// Covers: AG-15, LM-03
#[test]
fn it_blocks() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let playbook = "coder:\n- do:\n  - block: {reason: no spec, questions: [Which?], attempted: [reading]}\n";
    ended(&coder.code("core", playbook), 42);
    assert_eq!(project.status("core"), "BLOCKED");
}

/// Covers: AG-15, RV-05, RV-11
#[test]
fn it_repairs_a_failed_merge_and_keeps_both_sides() {
    let project = TestProject::new();
    let (one, two) = (Player::new(&project, "coder-1"), Player::new(&project, "coder-2"));
    let reviewer = Player::new(&project, "code-reviewer-1");
    let playbook = r#"
coder:
  - when: {fix: false}
    do:
      - append: {path: list.md, text: "line of {task}\n"}
      - commit: "{task}"
      - submit
"#;
    for (coder, task) in [(&one, "left"), (&two, "right")] {
        project.add_task(task);
        coder.claim(task);
    }
    for (coder, task) in [(&one, "left"), (&two, "right")] {
        ended(&coder.code(task, playbook), 42);
        ended(&reviewer.review(task, playbook), 42);
        assert_eq!(project.status(task), "APPROVED");
    }
    reviewer.merge("left").ok();
    assert_eq!(reviewer.merge("right").code, 3);
    assert_eq!(project.status("right"), "INTEGRATION_FAILED");
    two.claim("right");
    ended(&two.code("right", playbook), 42);
    ended(&reviewer.review("right", playbook), 42);
    reviewer.merge("right").ok();
    let list = project.git(&["show", "integration:list.md"]);
    let mut lines: Vec<&str> = list.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["line of left", "line of right"]);
}

/// Covers: AG-15, AG-17
#[test]
fn it_stops_with_42_when_asked_to() {
    let project = TestProject::new();
    let coder = claimed(&project);
    // By a command: another agent has its ID now.
    project.liza(&["deregister", "coder-1"]).ok();
    project.register("coder-1");
    let prompt = coder.code_prompt("core");
    let run = project.run(coder.session(&prompt, "").current_dir(&project.root));
    assert!(ended(&run, 42).contains("$ liza pre-check core"), "{run:#?}");
    assert!(run.stdout.contains("asked to stop"), "{run:#?}");
    // By a missing worktree.
    project.liza(&["release-claim", "core", "--force", "--reason", "test"]).ok();
    let run = project.run(coder.session(&prompt, "").current_dir(&project.root));
    assert!(ended(&run, 42).contains("core is gone"), "{run:#?}");
    // By the blackboard: the task has no coder.
    std::fs::create_dir_all(project.tree("core")).unwrap();
    let run = project.run(coder.session(&prompt, "").current_dir(&project.root));
    assert!(ended(&run, 42).contains("core is UNCLAIMED, assigned_to none"), "{run:#?}");
    // By a file, before anything is done.
    project.liza(&["pause"]).ok();
    let run = project.run(coder.session(&prompt, "").current_dir(&project.root));
    assert!(ended(&run, 42).contains("PAUSE is present"), "{run:#?}");
}

/// Covers: AG-15
#[test]
fn a_failed_step_is_reported_and_ends_the_session_with_1() {
    let project = TestProject::new();
    let coder = claimed(&project);
    for (step, complaint) in [
        ("check: exit 7", "`exit 7` exited with 7"),
        ("commit: nothing", "nothing to commit"),
        ("merge", "no head to merge"),
        ("write: {path: ../x, text: y}", "not inside the worktree"),
        ("write: {path: /x, text: y}", "not inside the worktree"),
        ("delete: ghost", "cannot delete"),
        ("liza: [show-me]", "`liza show-me` exited with 1"),
        ("submit", "exited with 1"),
    ] {
        let run = coder.code("core", &format!("coder:\n- do:\n  - {step}\n"));
        assert_eq!(run.code, 1, "{run:#?}");
        assert!(run.stderr.contains(complaint), "{step}: {run:#?}");
    }
    assert_eq!(project.status("core"), "CLAIMED");
}

/// Covers: AG-15
#[test]
fn events_are_json_lines() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let mut session = coder.session(&coder.code_prompt("core"), "");
    let run = project.run(session.arg("--events").current_dir(project.tree("core")));
    let events: Vec<serde_json::Value> =
        ended(&run, 42).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().all(|event| event["agent"] == "coder-1"));
    let ran = |event: &&serde_json::Value| event["event"] == "ran";
    let last = events.iter().rfind(ran).unwrap();
    assert!(last["command"].as_str().unwrap().starts_with("liza submit-for-review core"), "{last}");
    assert_eq!(last["exit"], 0);
}
