//! checkpoint, pause, resume, abort: repeated, without effect, at the wrong time.

use crate::support::TestProject;

fn has_stop_file(project: &TestProject, file: &str) -> bool {
    project.root.join(".liza").join(file).exists()
}

fn entries(project: &TestProject) -> usize {
    project.liza(&["log", "--json"]).result().as_array().unwrap().len()
}

fn revision(project: &TestProject) -> u64 {
    project.liza(&["status", "--json"]).json()["revision"].as_u64().unwrap()
}

/// Covers: SP-03, CM-03
#[test]
fn a_checkpoint_writes_the_file_and_the_summary() {
    let project = TestProject::new();
    project.add_task("core");
    let result = project.liza(&["checkpoint", "--json"]).result();
    assert_eq!((&result["sprint"], &result["changed"]), (&"CHECKPOINT".into(), &true.into()));
    assert_eq!(result["digest"][0], "0 of 1 planned task merged");
    let path = project.root.join(".liza/sprint_summary.md");
    assert_eq!(result["summary"], path.to_str().unwrap());
    let since = project.read(".liza/CHECKPOINT");
    let time: Result<liza_core::model::Timestamp, _> = since.lines().next().unwrap().parse();
    assert!(time.is_ok(), "{since}");
    let page = project.read(".liza/sprint_summary.md");
    assert!(page.starts_with("# Sprint summary: sprint-1\n") && page.contains("| core "), "{page}");
    assert!(page.contains("**Sprint** CHECKPOINT"), "{page}");
    for part in ["Figures", "Judging", "Burn-up", "Needs you", "Tasks", "Review checklist", "Decide"] {
        assert!(page.contains(&format!("\n## {part}\n")), "{part}: {page}");
    }
    assert!(page.contains("**Nothing but the code reviewer judges.**"), "{page}");
}

/// Covers: SP-03, SP-07
#[test]
fn a_second_checkpoint_only_writes_a_new_summary() {
    let project = TestProject::new();
    project.liza(&["checkpoint"]).ok();
    let (file, log) = (project.read(".liza/CHECKPOINT"), entries(&project));
    project.add_task("late");
    let text = project.liza(&["checkpoint"]).ok().to_owned();
    assert!(text.starts_with("already at a checkpoint"), "{text}");
    assert!(text.contains(".liza/sprint_summary.md") && text.contains("0 of 1 planned"), "{text}");
    assert!(project.read(".liza/sprint_summary.md").contains("| late "));
    assert_eq!(project.read(".liza/CHECKPOINT"), file, "with its original start time");
    assert_eq!(entries(&project), log + 1, "only the task is logged");
    assert_eq!(project.liza(&["checkpoint", "--json"]).result()["changed"], false);
}

/// Covers: SP-03
#[test]
fn a_summary_that_cannot_be_written_does_not_undo_the_checkpoint() {
    let project = TestProject::new();
    std::fs::create_dir_all(project.root.join(".liza/sprint_summary.md/in-the-way")).unwrap();
    let run = project.liza(&["checkpoint", "--json"]);
    assert!(run.result()["summary"].is_null(), "{run:?}");
    assert!(run.stderr.contains("cannot write the summary"), "{run:?}");
    assert!(has_stop_file(&project, "CHECKPOINT"));
    let left = std::fs::read_dir(project.root.join(".liza")).unwrap().flatten();
    let left: Vec<String> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.contains(".md.tmp")), "{left:?}");
}

/// Covers: SP-03, CM-01
#[test]
fn a_checkpoint_can_name_another_project() {
    let (here, there) = (TestProject::new(), TestProject::new());
    let run = here.run(here.program().arg("checkpoint").arg(&there.root).arg("--json"));
    assert_eq!(run.result()["summary"], there.root.join(".liza/sprint_summary.md").to_str().unwrap());
    assert!(has_stop_file(&there, "CHECKPOINT") && !has_stop_file(&here, "CHECKPOINT"));
    assert!(there.root.join(".liza/sprint_summary.md").exists());
}

/// Covers: SP-07
#[test]
fn resuming_without_a_pause_writes_nothing() {
    let project = TestProject::new();
    let (before, log) = (revision(&project), entries(&project));
    assert_eq!(project.liza(&["resume"]).ok(), "not paused; no team is running. Start it: liza run\n");
    let result = project.liza(&["resume", "--json"]).result();
    assert_eq!((&result["paused"], &result["changed"]), (&false.into(), &false.into()));
    assert_eq!((revision(&project), entries(&project)), (before, log));
    // A PAUSE file created manually is a pause like any other.
    project.write(".liza/PAUSE", "");
    assert_eq!(project.liza(&["resume", "--json"]).result()["changed"], true);
    assert_eq!(entries(&project), log + 1);
    assert!(!has_stop_file(&project, "PAUSE"));
}

/// Covers: SP-07
#[test]
fn a_second_pause_changes_nothing() {
    let project = TestProject::new();
    project.liza(&["pause"]).ok();
    let (file, log) = (project.read(".liza/PAUSE"), entries(&project));
    assert_eq!(project.liza(&["pause"]).ok(), "already paused; to continue: liza resume\n");
    assert_eq!(project.liza(&["pause", "--json"]).result()["changed"], false);
    assert_eq!((project.read(".liza/PAUSE"), entries(&project)), (file, log));
}

/// Covers: SP-01, SP-07
#[test]
fn the_decision_to_stop_does_not_resume() {
    let project = TestProject::new();
    project.add_task("core");
    project.liza(&["checkpoint"]).ok();
    let text = project.liza(&["resume", "--decision", "stop", "--note", "too dear"]).ok().to_owned();
    assert!(text.contains("the goal is ABORTED; start over"), "{text}");
    assert!(has_stop_file(&project, "ABORT") && !has_stop_file(&project, "CHECKPOINT"));
    let sprint = project.liza(&["sprint", "--json"]).result();
    assert_eq!(sprint["sprint"]["status"], "ABORTED");
    assert_eq!(sprint["sprint"]["decisions"][0]["decision"], "stop");
    project.liza(&["resume", "--decision", "stop", "--json"]).refused(1, "goal_not_open");
}

/// Covers: SP-01, SP-07
#[test]
fn a_pivot_keeps_its_reason_and_no_agent_works_until_it_is_done() {
    let project = TestProject::new();
    project.add_task("core");
    project.liza(&["checkpoint"]).ok();
    project.liza(&["abort"]).ok();
    assert!(
        has_stop_file(&project, "ABORT") && !has_stop_file(&project, "CHECKPOINT"),
        "the checkpoint has ended"
    );
    project.liza(&["resume", "--decision", "pivot", "--note", "queues instead"]).ok();
    assert!(has_stop_file(&project, "ABORT"));
    project.liza(&["goal", "new", "Queues"]).ok();
    assert!(!has_stop_file(&project, "ABORT"));
    let kept = project.read(".liza/archive/sprint-1.yaml");
    assert!(kept.contains("decision: pivot") && kept.contains("queues instead"), "{kept}");
}

/// Covers: SP-01, SP-07
#[test]
fn a_new_goal_reports_the_stop_files_that_are_still_present() {
    let project = TestProject::new();
    project.liza(&["checkpoint"]).ok();
    project.liza(&["pause"]).ok();
    project.liza(&["goal", "complete"]).ok();
    assert!(!has_stop_file(&project, "CHECKPOINT"), "the decision ends the checkpoint");
    project.write(".liza/CHECKPOINT", "");
    let run = project.liza(&["goal", "new", "Next", "--json"]);
    assert_eq!(run.result()["stop_files"], serde_json::json!(["PAUSE"]));
    assert!(
        has_stop_file(&project, "PAUSE") && !has_stop_file(&project, "CHECKPOINT"),
        "that checkpoint belonged to the last sprint"
    );
    project.liza(&["goal", "complete"]).ok();
    let text = project.liza(&["goal", "new", "And next"]).ok().to_owned();
    let expected = "goal-3 is set. .liza/PAUSE is still present; to let the planner start: liza resume\n";
    assert!(text.starts_with(expected), "{text}");
}

/// Covers: SP-01, CM-05
#[test]
fn every_refusal_states_the_situation_and_what_to_do() {
    let project = TestProject::new();
    let refuses = |words: &[&str], code: &str, message: &str| {
        let error = project.liza(&[words, &["--json"]].concat()).refused(1, code);
        assert_eq!(error["message"], message, "{words:?}");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("liza ")), "{words:?}: {error}");
    };
    refuses(
        &["sprint", "new"],
        "sprint_status",
        "the sprint is IN_PROGRESS; sprint new needs a finished sprint",
    );
    project.add_task("core");
    refuses(&["goal", "complete"], "tasks_open", "1 task is still open: core");
    refuses(&["goal", "new", "x"], "tasks_open", "1 task is still open: core");
    project.liza(&["abort"]).ok();
    refuses(&["abort"], "goal_not_open", "the goal is ABORTED");
    refuses(&["sprint", "new"], "goal_not_open", "the goal is ABORTED");
    refuses(&["checkpoint"], "sprint_status", "the sprint is ABORTED; checkpoint needs an open sprint");
    let deadline = "the sprint is ABORTED; sprint deadline needs an open sprint";
    refuses(&["sprint", "deadline", "+1h"], "sprint_status", deadline);
}
