//! The planner: what wakes it, how often, and what it may not change.

use liza_core::model::AgentStatus;

use crate::fixture::Bench;
use crate::support::process::wait_for;

/// Covers: AG-03, AG-11
#[test]
fn the_same_trigger_wakes_the_planner_once_and_a_new_one_again() {
    let script = r#"until [ -e "$HOME/go" ]; do sleep 0.05; done
"$LIZA" anomaly spec_gap --detail question="Where to begin?"; exit 0"#;
    let bench = Bench::new("", &[("p", script)]);
    let mut planner = bench.agent(&["planner", "--cli", "p"]);
    let shown = |status| move |entry: &liza_core::model::AgentRecord| entry.status == status;
    wait_for("it plans", || bench.entry("planner-1").filter(shown(AgentStatus::Planning)));
    std::fs::write(bench.home().join("go"), "").unwrap();
    wait_for("it waits", || bench.entry("planner-1").filter(shown(AgentStatus::Waiting)));
    planner.wait_for_output("waiting for work");
    assert!(bench.prompts()[0].contains("=== PLANNING CONTEXT ==="));
    // A change that does not concern it: the supervisor does not wake the planner.
    bench.project.liza(&["pause"]).ok();
    planner.wait_for_output("no new work starts");
    bench.project.liza(&["resume"]).ok();
    planner.wait_for_output("resuming work");
    assert_eq!(bench.prompts().len(), 1);
    bench.project.liza(&["note", "Begin with the parser"]).ok();
    let has_note = |prompt: &String| prompt.contains("Begin with the parser");
    wait_for("a new trigger wakes it", || bench.prompts().get(1).filter(|prompt| has_note(prompt)).map(drop));
    planner.stop();
}

/// Covers: SP-01, AG-11
#[test]
fn a_planner_that_abandons_the_last_task_is_woken_once_to_judge_the_goal() {
    let script = r#""$LIZA" abandon-task t1 --reason "not needed" ||
"$LIZA" anomaly spec_gap --detail question="Is that all?"; exit 0"#;
    let bench = Bench::new("", &[("p", script)]);
    bench.project.add_task("t1");
    bench.project.liza(&["mark-blocked", "t1"]).ok();
    let mut planner = bench.agent(&["planner", "--cli", "p"]);
    let judging = |prompt: &String| prompt.contains("WAKE TRIGGER: SPRINT_COMPLETED");
    wait_for("it judges the goal", || bench.prompts().get(1).filter(|prompt| judging(prompt)).map(drop));
    planner.wait_for_output("waiting for work");
    let sprint = bench.state().board.sprint.ready().cloned().unwrap();
    assert_eq!((sprint.status.to_string().as_str(), sprint.metrics.tasks_done), ("COMPLETED", 1));
    bench.project.liza(&["pause"]).ok();
    planner.wait_for_output("no new work starts");
    bench.project.liza(&["resume"]).ok();
    planner.wait_for_output("resuming work");
    assert_eq!(bench.prompts().len(), 2, "once");
    planner.stop();
}

/// Covers: AG-11
#[test]
fn a_planner_that_changes_the_project_raises_an_alarm_and_nothing_is_undone() {
    let script = r#"echo mine > ../../planned.txt; "$LIZA" add-task --id t1 --desc d --draft"#;
    let bench = Bench::new("", &[("p", script)]);
    let mut planner = bench.agent(&["planner", "--cli", "p", "--once"]);
    assert_eq!(planner.wait(), 0, "{}", planner.output());
    assert!(planner.output().contains("the project's own checkout changed"), "{}", planner.output());
    assert_eq!(bench.project.read("planned.txt"), "mine\n");
    assert_eq!(bench.state().journal.anomalies.len(), 1);
}

/// Covers: AG-11, UI-03
#[test]
fn what_the_person_changes_during_a_confined_planning_session_is_not_the_planners() {
    let script =
        r#"until [ -e ../../mine.txt ]; do sleep 0.02; done; "$LIZA" add-task --id t1 --desc d --draft"#;
    let bench = Bench::new("sandbox: auto", &[("p", script)]);
    let mut planner = bench.agent(&["planner", "--cli", "p", "--once"]);
    wait_for("it plans", || (!bench.prompts().is_empty()).then_some(()));
    bench.project.write("mine.txt", "a person works here too\n");
    assert_eq!(planner.wait(), 0, "{}", planner.output());
    assert!(!planner.output().contains("own checkout changed"), "{}", planner.output());
    assert_eq!(bench.state().journal.anomalies.len(), 0);
}

/// Covers: AG-05
#[test]
fn a_planner_that_crashes_repeatedly_is_no_longer_started() {
    let bench = Bench::new("max_crashes: 1", &[("p", "exit 7")]);
    let mut planner = bench.agent(&["planner", "--cli", "p"]);
    assert_eq!(planner.wait(), 1, "{}", planner.output());
    assert!(
        planner.output().contains("1 planning session in a row ended without a result"),
        "{}",
        planner.output()
    );
    assert_eq!(bench.entry("planner-1"), None);
}

/// Covers: IS-15, SE-08
#[test]
fn the_planners_copy_is_set_up_and_a_failure_is_no_session() {
    let script = r#"test -e .mcp.json || cp ready "$HOME/ready"; "$LIZA" add-task --id t1 --desc d --draft"#;
    let set_up = "setup: test -e \"$HOME/broken\" && exit 1; echo {} > .mcp.json; echo yes > ready";
    let bench = Bench::new(set_up, &[("p", script)]);
    std::fs::write(bench.home().join("broken"), "").unwrap();
    let mut planner = bench.agent(&["planner", "--cli", "p"]);
    planner.wait_for_output("config.setup failed in .worktrees/");
    assert_eq!(bench.state().board.sprint().unwrap().sessions.planner, 0);
    std::fs::remove_file(bench.home().join("broken")).unwrap();
    assert_eq!(bench.until_text("ready"), "yes\n");
    planner.stop();
}
