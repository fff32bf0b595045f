//! The goal and the sprint.

use crate::fixture::claimed;
use crate::support::TestProject;

/// Covers: SP-01, CM-03
#[test]
fn the_goal_is_shown_completed_and_followed_by_the_next() {
    let project = TestProject::new();
    let text = project.liza(&["goal"]).ok().to_owned();
    assert!(text.starts_with("goal-1  IN_PROGRESS  Retry everything\nspec  specs/vision.md\n"), "{text}");
    assert!(text.contains("initialization"), "{text}");
    assert_eq!(project.liza(&["goal", "show"]).ok(), text);
    let shown = project.liza(&["goal", "show", "--json"]).result();
    assert_eq!(shown["goal"]["status"], "IN_PROGRESS");
    assert_eq!(shown["alignment_history"][0]["event"], "initialization");

    project.add_task("core");
    let error = project.liza(&["goal", "complete", "--json"]).refused(1, "tasks_open");
    assert!(error["message"].as_str().unwrap().contains("core"), "{error}");
    let error = project.liza(&["goal", "new", "Next", "--json"]).refused(1, "tasks_open");
    assert!(error["hint"].as_str().unwrap().contains("liza abort, then liza goal new"), "{error}");
    project.liza(&["abandon-task", "core", "--reason", "x"]).ok();
    assert!(project.liza_as("planner-1", &["goal", "complete"]).ok().starts_with("the goal is COMPLETED"));
    project.liza(&["goal", "complete", "--json"]).refused(1, "goal_not_open");
    let add = ["add-task", "--id", "late", "--desc", "x", "--draft", "--json"];
    project.liza(&add).refused(1, "goal_not_open");

    project.liza(&["goal", "new", "", "--json"]).refused(1, "missing");
    project.liza(&["goal", "new", "x", "--spec", "none.md", "--json"]).refused(1, "missing_spec");
    project.liza(&["goal", "new", "x", "--spec", "../x.md", "--json"]).refused(1, "bad_spec");
    project.liza_as("planner-1", &["goal", "new", "x", "--json"]).refused(1, "not_permitted");
    assert_eq!(
        project.liza(&["goal", "new", "- Next"]).ok(),
        "goal-2 is set. Start the team: liza run\n\
         specs/vision.md is still that of the last goal: change it before the planner reads it\n"
    );
    project.write("specs/next.md", "# Next\n");
    let named = project.liza(&["goal", "new", "After that", "--spec", "specs/next.md"]);
    assert_eq!(named.ok(), "goal-3 is set. Start the team: liza run\n");
    assert!(project.root.join(".liza/archive/core.yaml").exists());
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
}

/// Covers: SP-01, SP-07
#[test]
fn an_aborted_goal_stops_all_agents_until_the_next_is_stated() {
    let project = TestProject::new();
    let generation = claimed(&project, "core", "coder-1");
    project.liza_as("planner-1", &["goal", "abort", "--json"]).refused(1, "not_permitted");
    assert_eq!(project.liza(&["goal", "abort", "--json"]).result()["goal"], "ABORTED");
    assert!(project.root.join(".liza/ABORT").exists());
    project.liza_in("coder-1", generation, &["heartbeat", "coder-1", "--json"]).refused(42, "halted");
    project.liza(&["goal", "abort", "--json"]).refused(1, "goal_not_open");
    let result = project.liza(&["goal", "new", "Again", "--json"]).result();
    assert_eq!(result["goal"], "goal-2");
    assert!(!project.root.join(".liza/ABORT").exists());
    assert!(!project.root.join(".worktrees/core").exists());
}

/// Covers: SP-01, CM-03
#[test]
fn the_sprint_is_shown_with_its_plan_and_figures() {
    let project = TestProject::new();
    assert!(project.liza(&["sprint"]).ok().contains("nothing is planned yet"));
    project.add_task("core");
    let text = project.liza(&["sprint", "show"]).ok().to_owned();
    assert!(text.starts_with("sprint-1  IN_PROGRESS\nstarted "), "{text}");
    assert!(text.contains("UNCLAIMED           core") && text.contains("tasks     0 ended"), "{text}");
    let result = project.liza(&["sprint", "show", "--json"]).result();
    assert_eq!(result["sprint"]["scope"]["planned"][0], "core");
    assert_eq!(result["metrics"]["tasks_done"], 0);
}

/// Covers: SP-01, SP-09, CM-03
#[test]
fn the_deadline_is_set_and_the_next_sprint_started() {
    let project = TestProject::new();
    let time = "2099-01-01T00:00:00Z";
    let text = project.liza(&["sprint", "deadline", time, "--utc"]).ok().to_owned();
    assert!(text.starts_with("all agents stop at a checkpoint at 2099-01-01 00:00:00"), "{text}");
    assert_eq!(project.liza(&["sprint", "deadline", time, "--json"]).result()["deadline"], time);
    project.liza(&["sprint", "deadline", "+8h"]).ok();
    assert!(!project.state().contains(time));
    assert!(project.liza(&["sprint", "deadline", "none"]).ok().contains("no deadline"));
    assert!(project.state().contains("deadline: null"));
    for bad in ["tomorrow", "", "-1h", "2099-01-01"] {
        project.liza(&["sprint", "deadline", bad, "--json"]).refused(1, "usage");
    }
    let error = project.liza(&["sprint", "new", "--json"]).refused(1, "sprint_status");
    assert_eq!(error["message"], "the sprint is IN_PROGRESS; sprint new needs a finished sprint");
    project.liza_as("coder-1", &["sprint", "deadline", time, "--json"]).refused(1, "not_permitted");
}

/// Covers: UI-03, SP-01
#[test]
fn needs_script_a_person_at_a_terminal_is_asked_before_the_goal_ends() {
    for command in ["abort", "goal abort", "resume --decision stop"] {
        let project = TestProject::new();
        project.liza(&["checkpoint"]).ok();
        // The terminal's width decides where the lines break.
        let said = project.liza_at_terminal(command, "\n").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("cannot be undone") && said.contains("nothing was ended"), "{command}: {said}");
        assert_eq!(project.liza(&["goal", "--json"]).result()["goal"]["status"], "IN_PROGRESS", "{command}");
        let said = project.liza_at_terminal(&format!("{command} --yes"), "");
        assert!(said.contains("abort") || said.contains("ABORTED"), "{command}: {said}");
        assert_eq!(project.liza(&["goal", "--json"]).result()["goal"]["status"], "ABORTED", "{command}");
    }
}
