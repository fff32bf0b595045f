//! pause, resume, checkpoint, abort: the state and the stop file together.

use crate::fixture::claimed;
use crate::support::TestProject;

fn is_present(project: &TestProject, file: &str) -> bool {
    project.root.join(".liza").join(file).exists()
}

/// Covers: SP-07, AG-17, CM-03
#[test]
fn a_pause_lasts_until_it_is_resumed() {
    let project = TestProject::new();
    let text = project.liza(&["pause"]).ok().to_owned();
    assert!(text.contains("to continue: liza resume"), "{text}");
    assert!(project.read(".liza/PAUSE").starts_with("20"), "since when");
    assert_eq!(project.liza(&["pause", "--json"]).result()["paused"], true);
    let text = project.liza(&["resume"]).ok().to_owned();
    assert!(text.starts_with("resumed; no team is running. Start it: liza run"), "{text}");
    assert!(project.liza(&["resume"]).ok().starts_with("not paused; no team is running"));
    project.register("coder-1");
    project.liza(&["pause"]).ok();
    assert!(project.liza(&["resume"]).ok().starts_with("work continues"));
    assert!(!is_present(&project, "PAUSE"));
    assert_eq!(project.liza(&["resume", "--json"]).result()["paused"], false);
    project.liza_as("coder-1", &["pause", "--json"]).refused(1, "not_permitted");
    project.liza_as("planner-1", &["resume", "--json"]).refused(1, "not_permitted");
}

/// Covers: SP-01, SP-03, SP-07, CM-03
#[test]
fn a_checkpoint_is_resumed_with_a_decision() {
    let project = TestProject::new();
    assert_eq!(project.liza(&["checkpoint", "--json"]).result()["sprint"], "CHECKPOINT");
    assert!(is_present(&project, "CHECKPOINT") && project.state().contains("status: CHECKPOINT"));
    project.liza(&["resume", "--decision", "sleep", "--json"]).refused(1, "usage");
    project.liza(&["resume", "--decision", "adjust specs", "--note", "- auth first"]).ok();
    assert!(!is_present(&project, "CHECKPOINT"));
    let state = project.state();
    assert!(state.contains("decision: adjust specs") && state.contains("- auth first"), "{state}");
    let text = project.liza(&["checkpoint"]).ok().to_owned();
    // The same command as in NEEDS YOU.
    assert!(text.ends_with("After your review: liza resume\n"), "{text}");
    project.liza_as("planner-1", &["checkpoint", "--json"]).refused(1, "not_permitted");
    project.liza(&["checkpoint", "/nowhere", "--json"]).refused(1, "no_directory");
}

/// Covers: SP-01, SP-07, AG-17, CM-03
#[test]
fn an_abort_is_permanent() {
    let project = TestProject::new();
    let generation = claimed(&project, "core", "coder-1");
    assert!(project.liza(&["abort"]).ok().contains("nothing is deleted"));
    assert!(is_present(&project, "ABORT") && project.root.join(".worktrees/core").exists());
    assert_eq!(project.state().matches("status: ABORTED").count(), 2, "goal and sprint");
    let words = ["mark-blocked", "core", "--reason", "x", "--question", "y", "--json"];
    project.liza_in("coder-1", generation, &words).refused(42, "halted");
    project.liza(&["abort", "--json"]).refused(1, "goal_not_open");
    project.liza(&["checkpoint", "--json"]).refused(1, "sprint_status");
    let text = project.liza(&["resume"]).ok().to_owned();
    assert!(text.contains("the goal is ABORTED; start over"), "{text}");
    assert!(is_present(&project, "ABORT"));
}

/// Covers: AG-17
#[test]
fn finished_work_is_accepted_during_a_pause() {
    let project = TestProject::new();
    let generation = claimed(&project, "core", "coder-1");
    project.liza(&["pause"]).ok();
    let words = ["mark-blocked", "core", "--reason", "x", "--question", "y"];
    project.liza_in("coder-1", generation, &words).ok();
}
