//! A whole sprint by its commands, then the next sprint, then the next goal.

use liza_core::model::Timestamp;
use serde_json::{Value, json};

use crate::support::TestProject;

/// Takes a task from claim to merge, as agents and supervisors do.
fn merge(project: &TestProject, task: &str) {
    for agent in ["coder-1", "code-reviewer-1"] {
        if project.liza(&["heartbeat", agent]).code != 0 {
            project.register(agent);
        }
    }
    project.liza(&["claim-task", task, "coder-1"]).ok();
    let tree = project.root.join(".worktrees").join(task);
    project.write(&format!(".worktrees/{task}/{task}.txt"), "done\n");
    project.git_at(&tree, &["add", "."]);
    project.git_at(&tree, &["commit", "-qm", "work"]);
    let head = project.git_at(&tree, &["rev-parse", "HEAD"]);
    project.liza_as("coder-1", &["submit-for-review", task, &head]).ok();
    project.liza(&["claim-review", task, "code-reviewer-1"]).ok();
    project.liza_as("code-reviewer-1", &["submit-verdict", task, "APPROVED"]).ok();
    project.liza_as("code-reviewer-1", &["wt-merge", task]).ok();
}

fn sprint(project: &TestProject) -> Value {
    project.liza(&["sprint", "show", "--json"]).result()["sprint"].clone()
}

fn triggers(project: &TestProject) -> Vec<String> {
    let status = project.liza(&["status", "--json"]).result();
    let all = status["planner_triggers"].as_array().unwrap();
    all.iter().map(|trigger| trigger["kind"].as_str().unwrap().to_owned()).collect()
}

/// Covers: SP-01, SP-02, SP-03, SP-09, CM-03
#[test]
fn from_checkpoint_to_the_next_goal() {
    let project = TestProject::new();
    project.add_task("core");
    project.add_task("extra");
    merge(&project, "core");
    assert_eq!(sprint(&project)["status"], "IN_PROGRESS", "one task is open");

    project.liza(&["checkpoint"]).ok();
    assert_eq!(sprint(&project)["status"], "CHECKPOINT");
    project.liza(&["resume", "--decision", "replan", "--note", "extra can go"]).ok();
    let now = sprint(&project);
    assert_eq!((&now["status"], &now["timeline"]["ended"]), (&json!("IN_PROGRESS"), &Value::Null));
    assert!(now["timeline"]["checkpoint_at"].as_str().unwrap().parse::<Timestamp>().is_ok());
    assert_eq!(now["decisions"][0]["note"], "extra can go");

    let text = project.liza(&["abandon-task", "extra", "--reason", "not needed"]).ok().to_owned();
    assert!(text.contains("The sprint is COMPLETED. Review it: liza retro"), "{text}");
    let over = sprint(&project);
    assert_eq!((&over["status"], &over["metrics"]["tasks_done"]), (&json!("COMPLETED"), &json!(2)));
    assert!(over["timeline"]["ended"].as_str().unwrap().parse::<Timestamp>().is_ok());
    assert_eq!(triggers(&project), ["HUMAN_DECISION", "SPRINT_COMPLETED"], "the planner judges the goal");

    let page = project.liza(&["retro"]).ok().to_owned();
    assert!(
        page.starts_with("# Retrospective: sprint-1\n") && page.contains("replan: extra can go"),
        "{page}"
    );
    assert!(page.contains("extra was abandoned: not needed"), "{page}");
    assert_eq!(sprint(&project)["retrospective"], Value::Null, "only printed");
    let written = project.liza(&["retro", "--write", "--json"]).result();
    assert_eq!((&written["sprint"], &written["written"]), (&json!("sprint-1"), &json!(true)));
    assert_eq!(sprint(&project)["retrospective"], written["text"]);
    let shown = project.liza(&["sprint"]).ok().to_owned();
    assert!(shown.contains(written["text"].as_str().unwrap().trim_end()), "{shown}");
    assert!(shown.contains("decided   20") && shown.contains("replan: extra can go"), "{shown}");

    assert_eq!(project.liza(&["sprint", "new", "--json"]).result()["sprint"], "sprint-2");
    let archived = project.read(".liza/archive/sprint-1.yaml");
    assert!(archived.contains("Retrospective: sprint-1") && archived.contains("tasks_done: 2"), "{archived}");
    let next = sprint(&project);
    assert_eq!((&next["status"], &next["retrospective"]), (&json!("IN_PROGRESS"), &Value::Null));
    let page = project.liza(&["retro"]).ok().to_owned();
    assert!(
        page.contains("| This sprint | sprint-1 |") && page.contains("|           0 |        2 |     -2 |"),
        "{page}"
    );

    assert_eq!(project.liza(&["goal", "complete", "--json"]).result()["goal"], "COMPLETED");
    assert_eq!(project.liza(&["goal", "new", "Next", "--json"]).result()["goal"], "goal-2");
    let third = sprint(&project);
    assert_eq!((&third["id"], &third["goal_ref"]), (&json!("sprint-3"), &json!("goal-2")));
    assert!(project.root.join(".liza/archive/goal-1.yaml").exists());
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
}

/// Covers: SP-08
#[test]
fn a_task_that_is_called_like_a_goal_or_a_sprint_is_archived_beside_it() {
    let project = TestProject::new();
    for id in ["goal-1", "sprint-1"] {
        project.add_task(id);
        project.liza(&["abandon-task", id, "--reason", &format!("{id} is not needed")]).ok();
    }
    project.liza(&["goal", "complete"]).ok();
    project.liza(&["goal", "new", "Next"]).ok();
    project.liza(&["archive", "--older-than", "0s"]).ok();
    for id in ["goal-1", "sprint-1"] {
        let shown = project.liza(&["show", id]).ok().to_owned();
        assert!(shown.contains(&format!("{id} is not needed")), "{shown}");
        let record = project.read(&format!(".liza/archive/{id}.yaml"));
        assert!(!record.contains("is not needed"), "the goal and the sprint have their own: {record}");
    }
}

/// Covers: SP-01
#[test]
fn the_merge_of_the_last_task_ends_the_sprint() {
    let project = TestProject::new();
    project.add_task("core");
    merge(&project, "core");
    let over = sprint(&project);
    assert_eq!(
        (&over["status"], &over["metrics"]["review_verdict_approvals"]),
        (&json!("COMPLETED"), &json!(1))
    );
    project.add_task("more");
    assert_eq!(sprint(&project)["id"], "sprint-2", "the next task starts the next sprint");
}

/// Covers: SP-01
#[test]
fn tasks_abandoned_during_a_checkpoint_end_the_sprint_afterwards() {
    let project = TestProject::new();
    project.add_task("core");
    project.liza(&["checkpoint"]).ok();
    project.liza(&["abandon-task", "core", "--reason", "x"]).ok();
    assert_eq!(sprint(&project)["status"], "CHECKPOINT", "the checkpoint is still active");
    assert_eq!(project.liza(&["resume", "--json"]).result()["sprint"], "COMPLETED");
    assert_eq!(sprint(&project)["status"], "COMPLETED");
}

/// Covers: SP-01
#[test]
fn a_draft_or_a_planning_session_keeps_the_sprint_open() {
    let project = TestProject::new();
    project.add_task("core");
    project.liza(&["add-task", "--id", "idea", "--desc", "x", "--draft"]).ok();
    project.liza(&["abandon-task", "core", "--reason", "x"]).ok();
    assert_eq!(sprint(&project)["status"], "IN_PROGRESS");
    project.liza(&["sprint", "new", "--json"]).refused(1, "sprint_status");
    project.liza(&["abandon-task", "idea", "--reason", "x"]).ok();
    assert_eq!(sprint(&project)["status"], "COMPLETED");
}

/// Covers: SP-09
#[test]
fn a_retrospective_by_the_human_is_kept_and_not_overwritten() {
    let project = TestProject::new();
    project.liza(&["retro", "--write"]).ok();
    project.liza(&["retro", "--write"]).ok();
    project.write("words.md", "Smaller tasks.\n");
    project.liza(&["retro", "--file", "words.md"]).ok();
    assert_eq!(sprint(&project)["retrospective"], "Smaller tasks.");
    let error = project.liza(&["retro", "--write", "--json"]).refused(1, "retrospective_exists");
    assert!(error["hint"].as_str().unwrap().contains("--force"), "{error}");
    project.liza_with(&["retro", "--file", "-"], "- Fewer, larger reviews.").ok();
    let shown = project.liza(&["sprint", "show"]).ok().to_owned();
    assert!(shown.contains("- Fewer, larger reviews."), "{shown}");
    project.liza(&["retro", "--write", "--force"]).ok();
    project.liza(&["retro", "--file", "none.md", "--json"]).refused(1, "io");
    project.liza(&["retro", "--force", "--json"]).refused(1, "usage");
    project.liza_with(&["retro", "--file", "-", "--json"], " \n").refused(1, "missing");
    project.liza_as("planner-1", &["retro"]).ok();
    project.liza_as("planner-1", &["retro", "--write", "--json"]).refused(1, "not_permitted");
}

/// Covers: SP-02, SP-08, SP-09
#[test]
fn the_metrics_of_a_sprint_survive_the_archiving_of_its_tasks() {
    let project = TestProject::new();
    project.add_task("core");
    merge(&project, "core");
    project.liza(&["archive", "--older-than", "0s"]).ok();
    assert!(project.liza(&["retro"]).ok().contains("| Approved                        |           1 |"));
    project.liza(&["sprint", "new"]).ok();
    let kept = project.read(".liza/archive/sprint-1.yaml");
    assert!(kept.contains("review_verdict_approvals: 1") && kept.contains("tasks_done: 1"), "{kept}");
}

/// Covers: SP-08, SP-09
#[test]
fn terminal_tasks_can_be_archived_after_their_sprint() {
    let project = TestProject::new();
    project.add_task("core");
    merge(&project, "core");
    project.liza(&["sprint", "new"]).ok();
    let moved = project.liza(&["archive", "--older-than", "0s", "--json"]).result();
    assert_eq!(moved["archived"], json!(["core"]));
    assert!(project.read(".liza/archive/core.yaml").contains("status: MERGED"));
    // Its ID stays taken, and tasks that depend on it may start.
    let words = ["add-task", "--id", "core", "--desc", "x", "--draft", "--json"];
    project.liza(&words).refused(1, "task_exists");
    let words = ["add-task", "--id", "next", "--desc", "x", "--spec", "specs/vision.md", "--done", "x"];
    project.liza(&[&words[..], &["--scope", "x", "--depends", "core"]].concat()).ok();
    assert_eq!(project.liza(&["status", "--json"]).result()["claimable"], json!(["next"]));
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
}
