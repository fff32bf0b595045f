//! `liza run`: a whole team in one process.

use std::fs;

use crate::running::{Running, until};
use crate::support::TestProject;

/// A project whose planner finds three things to do.
fn project() -> TestProject {
    let project = TestProject::bare();
    project.liza(&["init", "Say hello, say goodbye, say good night"]).ok();
    project
}

/// A provider of the config's own, whose sessions never end by themselves.
fn with_sleepers(project: &TestProject) {
    let script = project.home().join("sleeper.sh");
    fs::write(&script, "#!/bin/sh\ncat > /dev/null\nexec sleep 600\n").unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    let providers = format!("config:\n  providers:\n    sleeper: {{program: {}}}\n", script.display());
    let state = project.state().replacen("config:\n", &providers, 1);
    fs::write(project.root.join(".liza/state.yaml"), state).unwrap();
}

/// Covers: AG-16, AG-05
#[test]
fn one_command_brings_a_goal_to_its_end() {
    let project = project();
    let run = project.liza(&["run", "--cli", "rehearsal", "--plain"]);
    let said = run.ok().to_owned();
    assert!(
        said.starts_with("team: 1 × Planner (rehearsal), 2 × Coder (rehearsal), 1 × Code Reviewer"),
        "{said}"
    );
    assert!(said.contains("goal COMPLETED · 3 tasks: 3 merged"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
    let status = project.liza(&["status", "--json"]).result();
    assert_eq!(status["agents"].as_array().unwrap().len(), 0);
    // A goal that is decided needs no team.
    let again = project.liza(&["run", "--cli", "rehearsal"]);
    assert!(again.ok().contains("goal-1 is COMPLETED"), "{again:?}");
}

/// Covers: AG-16, CM-03
#[test]
fn the_config_says_who_is_in_the_team() {
    let project = project();
    let roles = "config:\n  roles:\n    coder: {provider: rehearsal, count: 3}\n    code_reviewer: {provider: rehearsal, count: 2}\n    planner: rehearsal\n";
    let state = project.state().replacen("config:\n", roles, 1);
    fs::write(project.root.join(".liza/state.yaml"), state).unwrap();
    let result = project.liza(&["run", "--json"]).result();
    let mut names: Vec<String> = result["ended"]
        .as_array()
        .unwrap()
        .iter()
        .map(|end| end["agent"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["code-reviewer-1", "code-reviewer-2", "coder-1", "coder-2", "coder-3", "planner-1"]);
    assert!(result["ended"].as_array().unwrap().iter().all(|end| end["end"] == "complete"), "{result}");
    assert_eq!(result["progress"]["merged"], 3);
}

/// Covers: AG-16
#[test]
fn a_second_team_says_so_instead_of_fighting() {
    let project = project();
    with_sleepers(&project);
    let mut first = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    first.until_said("plans");
    let error = project.liza(&["run", "--cli", "sleeper", "--json"]).refused(1, "already_running");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(&format!("process {}, since 20", first.id())), "{message}");
    let before = project.liza(&["status", "--json"]).result()["agents"].as_array().unwrap().len();
    assert_eq!(before, 4);
    first.signal("TERM");
    assert_eq!(first.ends(), 0, "{}", first.said());
    // What a killed one leaves keeps nobody out.
    let mut second = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    second.until_said("plans");
    second.signal("KILL");
    second.ends();
    let mut third = Running::liza(&project, &["run", "--cli", "sleeper", "--plain", "--coders", "0"]);
    third.until_said("team:");
    third.signal("TERM");
    third.ends();
}

/// Covers: AG-09, AG-16
#[test]
fn ctrl_c_once_stops_in_order_and_twice_at_once() {
    let project = project();
    with_sleepers(&project);
    project.add_task("t1");
    let mut run = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    run.until_said("works on t1");
    run.signal("INT");
    assert_eq!(run.ends(), 0, "{}", run.said());
    assert!(run.said().contains("stopping; once more ends it at once"), "{}", run.said());
    let status = project.liza(&["status", "--json"]).result();
    assert_eq!(status["agents"].as_array().unwrap().len(), 0, "{status}");
    assert_eq!(status["tasks"][0]["status"], "CLAIMED", "the claim is kept: {status}");

    // One that does not heed SIGTERM is ended by the second.
    let stubborn = "#!/bin/sh\ntrap '' TERM\ncat > /dev/null\nwhile :; do sleep 1; done\n";
    fs::write(project.home().join("sleeper.sh"), stubborn).unwrap();
    let mut run = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    run.until_said("works on t1");
    run.signal("INT");
    run.until_said("stopping");
    run.signal("INT");
    assert_eq!(run.ends(), 0, "{}", run.said());
    assert!(run.said().contains("ending at once"), "{}", run.said());
    let script = project.home().join("sleeper.sh").display().to_string();
    let left = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.contains(&script)).collect::<Vec<_>>()
    };
    assert!(until(|| left().is_empty().then_some(())).is_some(), "{:?}", left());
}

/// Covers: AG-04, AG-16
#[test]
fn a_pause_is_told_once_for_the_whole_team() {
    let project = project();
    project.add_task("t1");
    project.liza(&["pause"]).ok();
    let mut run = Running::liza(&project, &["run", "--cli", "rehearsal", "--plain"]);
    run.until_said("holding: PAUSE stands");
    project.liza(&["resume"]).ok();
    assert_eq!(run.ends(), 0, "{}", run.said());
    let said = run.said();
    assert_eq!(said.matches("holding").count(), 1, "{said}");
    assert!(said.contains("going on"), "{said}");
}

/// Covers: AG-16
#[test]
fn a_terminal_has_a_progress_line_that_is_gone_at_the_end() {
    let project = project();
    let mut run = Running::liza_in_terminal(&project, &["run", "--cli", "rehearsal"]);
    assert_eq!(run.ends(), 0, "{}", run.said());
    let said = run.said();
    assert!(said.contains("of 3 merged"), "{said}");
    // What a terminal shows of the last line: whatever comes after the last time that it was cleared.
    let summary = said.lines().find(|line| line.contains("goal COMPLETED")).unwrap();
    assert_eq!(summary.rsplit("\u{1b}[2K").next().unwrap(), "goal COMPLETED · 3 tasks: 3 merged");
    let last = said.lines().last().unwrap();
    assert_eq!(last, "merging the integration branch is yours; liza goal new \"GOAL\" goes on");
    let shown = said.lines().find(|line| line.contains("plans")).unwrap();
    assert!(shown.rsplit("\u{1b}[2K").next().unwrap().contains("planner-1"), "{shown:?}");
}

/// Covers: AG-13, AG-16
#[test]
fn a_program_that_is_missing_is_said_before_anybody_starts() {
    let project = project();
    let error = project.liza(&["run", "--cli", "rehearsal", "--coder-cli", "nobody", "--json"]);
    error.refused(1, "unknown_provider");
    let providers = "config:\n  providers:\n    gone: {program: /nowhere/agent, install: get it}\n";
    let state = project.state().replacen("config:\n", providers, 1);
    fs::write(project.root.join(".liza/state.yaml"), state).unwrap();
    let error = project.liza(&["run", "--cli", "rehearsal", "--coder-cli", "gone", "--json"]);
    assert_eq!(error.refused(5, "program_missing")["hint"], "get it");
    assert!(!project.log().contains("registered"), "{}", project.log());
}

/// Covers: AG-16, CM-05
#[test]
fn a_git_without_a_name_is_said_before_anybody_starts() {
    let project = project();
    let nameless = |args: &[&str]| {
        let names =
            ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"];
        let mut command = project.command(env!("CARGO_BIN_EXE_liza"));
        names.iter().for_each(|name| {
            command.env_remove(name);
        });
        project.run(command.env("GIT_CONFIG_GLOBAL", "/dev/null").args(args))
    };
    for args in [
        ["run", "--cli", "rehearsal", "--json"].as_slice(),
        &["agent", "coder", "--cli", "rehearsal", "--json"],
    ] {
        let error = nameless(args).refused(3, "git");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("set user.name and user.email"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert!(!project.log().contains("registered"), "{}", project.log());
}

/// Covers: AG-16, CM-05
#[test]
fn a_vision_that_nobody_wrote_is_told() {
    let project = TestProject::bare();
    fs::remove_file(project.root.join("specs/vision.md")).unwrap();
    project.liza(&["init", "Say hello", "--template"]).ok();
    let run = project.liza(&["run", "--cli", "rehearsal", "--plain"]);
    assert!(run.ok().contains("the plan has 1 task, which is open"), "{run:#?}");
    assert!(run.stdout.contains("goal COMPLETED · 1 task: 1 merged"), "{run:#?}");
    // Whoever was quick to claim the only task does not make the planner's session fruitless.
    assert!(!run.stdout.contains("no result"), "{run:#?}");
    assert!(run.stderr.contains("specs/vision.md is still the template"), "{run:#?}");
}
