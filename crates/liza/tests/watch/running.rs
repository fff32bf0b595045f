//! A real `liza watch`: stop files created manually act like the commands, and it sleeps when nothing happens.

use std::fs;
use std::time::{Duration, Instant};

use liza_core::model::{Actor, Seconds, SprintStatus, Timestamp};
use liza_core::protocol::{Abort, Checkpoint, CheckpointCause, Command, Pause};
use liza_status::alarms::AlarmKind;
use liza_team::engine::Engine;
use liza_team::observe::reconcile::Reconciler;

use crate::fixture::Clocked;
use crate::support::TestProject;
use crate::support::process::{Running, wait_for};

fn sprint_status(project: &TestProject) -> String {
    project.liza(&["get", ".sprint.status"]).ok().trim().to_owned()
}

fn until_sprint(project: &TestProject, status: SprintStatus) {
    wait_for(&format!("the sprint is {status}"), || {
        (sprint_status(project) == status.to_string()).then_some(())
    });
}

fn touch(project: &TestProject, file: &str) {
    project.write(&format!(".liza/{file}"), "");
}

fn remove(project: &TestProject, file: &str) {
    fs::remove_file(project.root.join(".liza").join(file)).unwrap();
}

fn entries(project: &TestProject, detail: &str) -> usize {
    project.log().matches(detail).count()
}

fn an_hour() -> [&'static str; 4] {
    ["watch", "--no-desktop", "--interval", "3600"]
}

/// Covers: SP-01, SP-07
#[test]
fn a_manual_checkpoint_starts_and_ends_with_its_file() {
    let project = TestProject::new();
    let mut watching = Running::liza(&project, &an_hour());
    watching.wait_for_output("watching");
    touch(&project, "CHECKPOINT");
    watching.wait_for_output("CHECKPOINT was created: the sprint waits for liza resume");
    until_sprint(&project, SprintStatus::Checkpoint);
    assert_eq!(project.read(".liza/CHECKPOINT"), "", "the person's file does not change");
    remove(&project, "CHECKPOINT");
    watching.wait_for_output("CHECKPOINT was removed: the sprint continues");
    until_sprint(&project, SprintStatus::InProgress);
    assert_eq!(entries(&project, "CHECKPOINT was created by hand"), 1);
    assert_eq!(entries(&project, "CHECKPOINT was removed by hand"), 1);
    watching.signal("INT");
    assert_eq!(watching.wait(), 0);
}

/// Covers: SP-07
#[test]
fn a_manual_pause_is_logged_once_and_its_end_once() {
    let project = TestProject::new();
    let watching = Running::liza(&project, &an_hour());
    watching.wait_for_output("watching");
    touch(&project, "PAUSE");
    watching.wait_for_output("PAUSE was created");
    remove(&project, "PAUSE");
    watching.wait_for_output("PAUSE was removed");
    assert_eq!(entries(&project, "PAUSE was created by hand"), 1);
    assert_eq!(entries(&project, "PAUSE was removed by hand"), 1);
}

/// Covers: SP-01, SP-07
#[test]
fn a_manual_abort_is_permanent() {
    let project = TestProject::new();
    let watching = Running::liza(&project, &an_hour());
    watching.wait_for_output("watching");
    touch(&project, "ABORT");
    watching.wait_for_output("ABORT was created: goal and sprint are aborted");
    until_sprint(&project, SprintStatus::Aborted);
    remove(&project, "ABORT");
    project.liza(&["pause"]).ok();
    project.liza(&["resume"]).ok();
    assert_eq!(sprint_status(&project), "ABORTED");
    assert_eq!(project.liza(&["get", ".goal.status"]).ok().trim(), "ABORTED");
}

/// Covers: SP-07
#[test]
fn stop_files_of_commands_are_left_alone() {
    let project = TestProject::new();
    let mut watching = Running::liza(&project, &an_hour());
    watching.wait_for_output("watching");
    for verb in ["checkpoint", "resume", "pause", "resume", "checkpoint", "resume"] {
        project.liza(&[verb]).ok();
    }
    // Its next report shows that it has checked all of them.
    touch(&project, "PAUSE");
    watching.wait_for_output("PAUSE was created");
    watching.stop();
    assert_eq!(project.log().matches("by hand").count(), 1, "{}", project.log());
}

/// Covers: SP-01
#[test]
fn the_deadline_starts_one_checkpoint_by_itself() {
    let project = TestProject::new();
    let watching = Running::liza(&project, &an_hour());
    watching.wait_for_output("watching");
    let due: Timestamp = liza_team::project::now() + Seconds(2);
    project.liza(&["sprint", "deadline", &due.to_string()]).ok();
    watching.wait_for_output("the sprint's deadline has passed");
    until_sprint(&project, SprintStatus::Checkpoint);
    assert!(project.read(".liza/CHECKPOINT").starts_with("20"));
    watching.wait_for_output("SPRINT DEADLINE: sprint-1 was due at");
    project.liza(&["resume"]).ok();
    touch(&project, "PAUSE");
    watching.wait_for_output("PAUSE was created");
    assert_eq!(sprint_status(&project), "IN_PROGRESS", "once");
    assert_eq!(entries(&project, "the sprint's deadline has passed"), 1);
}

/// Covers: SP-04, SP-05
#[test]
fn with_analyze_the_breaker_checks_every_new_anomaly() {
    let project = TestProject::new();
    project.add_task("core");
    let watching = Running::liza(&project, &["watch", "--no-desktop", "--analyze", "--interval", "3600"]);
    watching.wait_for_output("watching");
    for _ in 0..3 {
        let words = ["anomaly", "retry_loop", "--task", "core", "--detail", "count=3"];
        project.liza(&[&words[..], &["--detail", "error_pattern=connection reset"]].concat()).ok();
    }
    watching.wait_for_output("🚨 CIRCUIT BREAKER: retry_cluster");
    assert_eq!(sprint_status(&project), "CHECKPOINT");
    assert!(project.read(".liza/circuit_breaker_report.md").contains("connection reset"));
}

/// Covers: SP-05, CM-03
#[test]
fn alarms_are_printed_as_json_and_a_deleted_project_ends_the_watch() {
    let project = TestProject::new();
    project.add_task("core");
    let mut watching = Running::liza(&project, &["watch", "--json", "--quiet", "--no-desktop"]);
    project.liza(&["mark-blocked", "core", "--reason", "no spec", "--question", "?"]).ok();
    watching.wait_for_output("\n");
    let line: serde_json::Value = serde_json::from_str(watching.output().lines().next().unwrap()).unwrap();
    assert_eq!((line["event"].as_str(), line["level"].as_str()), (Some("blocked"), Some("warning")));
    fs::rename(project.root.join(".liza"), project.root.join("gone")).unwrap();
    assert_eq!(watching.wait(), 1, "{}", watching.output());
}

/// Covers: SP-05
#[cfg(target_os = "linux")]
#[test]
fn an_idle_watcher_rarely_wakes() {
    let project = TestProject::new();
    let watching = Running::liza(&project, &["watch", "--no-desktop"]);
    watching.wait_for_output("watching");
    // How often the kernel has woken one of its threads.
    let switches = || -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", watching.id())).unwrap();
        let count = |path: std::path::PathBuf| {
            let text = fs::read_to_string(path.join("status")).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        tasks.flatten().map(|task| count(task.path())).sum()
    };
    let passed = |seconds: u64| {
        let end = Instant::now() + Duration::from_secs(seconds);
        wait_for("the time has passed", || (Instant::now() >= end).then_some(()));
    };
    passed(2);
    let before = switches();
    passed(6);
    let woken = switches() - before;
    assert!(woken <= 3, "{woken} wakes in 6 s");
}

/// Covers: SP-05
#[test]
fn a_file_that_is_being_saved_is_no_alarm() {
    let mut world = Clocked::new();
    let mut watcher = world.watcher(liza_team::watch::WatchOptions { desktop: false, ..Default::default() });
    watcher.check(world.now);
    let good = world.test.state();
    world.test.write(".liza/state.yaml", "goal: [");
    world.now = world.now + Seconds(1);
    assert!(watcher.check(world.now).new.is_empty());
    assert!(watcher.pending().is_some(), "it checks again soon");
    world.now = world.now + Seconds(1);
    world.test.write(".liza/state.yaml", &good);
    assert!(watcher.check(world.now).new.is_empty());
    world.test.write(".liza/state.yaml", "goal: [");
    watcher.check(world.now);
    world.now = world.now + Seconds(2);
    let kinds: Vec<_> = watcher.check(world.now).new.iter().map(|alert| alert.kind).collect();
    assert_eq!(kinds, [AlarmKind::InvalidState]);
}

/// Covers: SP-07
#[test]
fn a_mismatch_counts_only_after_a_moment() {
    let mut world = Clocked::new();
    let mut reconciler = Reconciler::default();
    let mut reconcile = |world: &Clocked| {
        let state = world.state();
        let done = reconciler.reconcile(&world.project, &state, world.now);
        (done, reconciler.next_check(&state, world.now))
    };
    assert_eq!(reconcile(&world), (None, None));
    world.create_stop_file("CHECKPOINT");
    let soon = Some(Duration::from_secs(1));
    assert_eq!(reconcile(&world), (None, soon));
    world.now = world.now + Seconds(1);
    assert_eq!(reconcile(&world), (None, soon), "a command may be about to write the blackboard");
    world.remove_stop_file("CHECKPOINT");
    assert_eq!(reconcile(&world), (None, None), "the command wrote it");
    world.create_stop_file("CHECKPOINT");
    assert_eq!(reconcile(&world).0, None, "a new mismatch");
    world.now = world.now + Seconds(2);
    let (done, again) = reconcile(&world);
    assert!(done.is_some_and(|words| words.starts_with("CHECKPOINT was created")) && again.is_none());
    world.now = world.now - Seconds(3600);
    world.create_stop_file("PAUSE");
    assert_eq!(reconcile(&world).0, None);
    world.now = world.now - Seconds(3600);
    assert_eq!(reconcile(&world).0, None, "a clock that was set back starts again");
    world.now = world.now + Seconds(2);
    assert!(reconcile(&world).0.is_some_and(|words| words.starts_with("PAUSE was created")));
}

/// Covers: SP-07
#[test]
fn two_watchers_of_the_same_file_record_it_once() {
    let mut world = Clocked::new();
    let mut both = [Reconciler::default(), Reconciler::default()];
    world.create_stop_file("PAUSE");
    // Both have read the same state before either one writes.
    let state = world.state();
    both.iter_mut().for_each(|one| assert_eq!(one.reconcile(&world.project, &state, world.now), None));
    world.now = world.now + Seconds(2);
    let done = both.iter_mut().filter_map(|one| one.reconcile(&world.project, &state, world.now)).count();
    assert_eq!(done, 1);
    assert_eq!(entries(&world.test, "PAUSE was created by hand"), 1);
}

/// Covers: SP-06, SP-07
#[test]
fn a_stop_killed_after_its_write_is_not_taken_for_a_manual_removal() {
    let mut world = Clocked::new();
    let mut reconciler = Reconciler::default();
    for (command, file) in [
        (Command::from(Pause), "PAUSE"),
        (Command::from(Checkpoint { cause: CheckpointCause::Human }), "CHECKPOINT"),
        (Command::from(Abort), "ABORT"),
    ] {
        // The effects of the write are never carried out.
        let _unfinished = Engine::new(&world.project, Actor::Human).submit(command).unwrap();
        assert!(world.has_file(file), "{file}");
        for _ in 0..3 {
            let state = world.state();
            assert_eq!(reconciler.reconcile(&world.project, &state, world.now), None, "{file}");
            world.now = world.now + Seconds(2);
        }
    }
    assert_eq!(entries(&world.test, "removed by hand"), 0);
}

/// Covers: SP-07
#[test]
fn a_refused_stop_leaves_no_file() {
    let world = Clocked::new();
    world.human(Abort);
    let checkpoint = Checkpoint { cause: CheckpointCause::Human };
    Engine::new(&world.project, Actor::Human).execute(checkpoint).unwrap_err();
    assert!(!world.has_file("CHECKPOINT"));
}

/// Covers: SP-06
#[test]
fn an_escalation_ends_with_a_checkpoint_that_was_removed_manually() {
    let mut world = Clocked::new();
    let mut watcher = world.watcher(liza_team::watch::WatchOptions { desktop: false, ..Default::default() });
    world.human(Checkpoint { cause: CheckpointCause::Human });
    world.at_minute(121);
    watcher.check(world.now);
    assert!(world.has_file("ESCALATION"));
    fs::remove_file(world.test.root.join(".liza/ESCALATION")).unwrap();
    watcher.check(world.now);
    assert!(world.has_file("ESCALATION"), "it is written again while the checkpoint waits");
    world.remove_stop_file("CHECKPOINT");
    watcher.check(world.now);
    assert!(!world.has_file("ESCALATION"));
}
