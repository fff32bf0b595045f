//! Manual edits of the blackboard while supervisors run: they take effect at once, and errors are reported with their
//! line. The poll interval is an hour, so that nothing is found by polling.

use std::fs;
use std::time::{Duration, Instant};

use liza_core::model::{Seconds, Status};

use crate::fixture::{Bench, CODER};
use crate::support::process::{Running, wait_for};

const SLOW: &str =
    "coder_poll_interval: 3600\ncoder_max_wait: 36000\nheartbeat_interval: 3600\nlease_duration: 30000";

/// A task as a person writes it.
const MANUAL_TASK: &str = "  - id: by-hand
    description: written by a person  # and with a comment
    status: UNCLAIMED
    priority: 1
    spec_ref: specs/vision.md
    done_when: it is done
    scope: all of it
    created: 2026-01-01T00:00:00Z
";

fn bench(script: &str) -> Bench {
    let bench = Bench::new(SLOW, &[("c", script)]);
    bench.project.liza(&["add-task", "--id", "later", "--desc", "x", "--draft"]).ok();
    bench
}

/// A coder without work.
fn waiting(bench: &Bench) -> Running {
    let coder = bench.agent(&["coder", "--cli", "c"]);
    coder.wait_for_output("waiting");
    // Nothing else is written from now on.
    wait_for("it is IDLE", || {
        (bench.entry("coder-1")?.status == liza_core::model::AgentStatus::Idle).then_some(())
    });
    coder
}

/// Saves the file as an editor does.
fn save(bench: &Bench, change: impl FnOnce(String) -> String) {
    let path = bench.project.root.join(".liza/state.yaml");
    let text = change(fs::read_to_string(&path).unwrap());
    fs::write(bench.home().join("edited"), text).unwrap();
    fs::rename(bench.home().join("edited"), path).unwrap();
}

fn inject(bench: &Bench, task: &str) {
    save(bench, |text| text.replacen("tasks:\n", &format!("tasks:\n{task}"), 1));
}

/// The line number of a text in the file, from 1.
fn line_of(bench: &Bench, text: &str) -> usize {
    bench.project.state().lines().position(|line| line.contains(text)).unwrap() + 1
}

/// Covers: SP-07, AG-06
#[test]
fn a_task_that_a_person_adds_to_the_file_is_claimed_within_a_second() {
    let bench = bench(CODER);
    let mut coder = waiting(&bench);
    inject(&bench, MANUAL_TASK);
    let begun = Instant::now();
    coder.wait_for_output("working on by-hand");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    bench.until_status("by-hand", Status::ReadyForReview);
    assert!(bench.project.state().contains("# and with a comment"));
    coder.stop();
    bench.check_valid();
}

/// Covers: SP-07, AG-07
#[test]
fn a_task_that_a_person_sets_to_blocked_stops_its_session_and_keeps_the_work() {
    let bench = bench("touch \"$HOME/begun\"; echo kept > kept.txt; touch \"$HOME/kept\"; sleep 1000");
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("kept");
    save(&bench, |text| {
        text.replacen("status: CLAIMED", "status: BLOCKED\n    blocked_reason: human override", 1)
    });
    coder.wait_for_output("the task is no longer its own");
    coder.wait_for_output("session ended");
    assert!(bench.tree("t1").join("kept.txt").exists());
    let free = || bench.entry("coder-1")?.current_task.is_none().then_some(());
    wait_for("the agent is free", free);
    let task = bench.task("t1");
    assert_eq!((task.status, task.crashes, task.idle_exits), (Some(Status::Blocked), None, None));
    bench.check_valid();
    let status = bench.project.liza(&["status", "--json"]).result();
    let triggers = status["planner_triggers"].as_array().unwrap();
    assert!(triggers.iter().any(|trigger| trigger["kind"] == "BLOCKED_TASKS"), "{triggers:?}");
    bench.project.liza(&["unblock-task", "t1", "--keep-worktree"]).ok();
    coder.wait_for_output("working on t1");
    coder.stop();
    bench.until_nothing_runs();
}

/// Covers: SP-01, SP-07
#[test]
fn a_deadline_set_by_a_person_starts_a_checkpoint_when_it_passes() {
    let bench = bench(CODER);
    let mut coder = waiting(&bench);
    let soon = liza_team::project::now() + Seconds(2);
    save(&bench, |text| text.replacen("deadline: null", &format!("deadline: {soon}"), 1));
    let checkpoint = bench.project.root.join(".liza/CHECKPOINT");
    wait_for("the checkpoint exists", || checkpoint.exists().then_some(()));
    assert!(liza_team::project::now() >= soon && liza_team::project::now() <= soon + Seconds(2));
    coder.wait_for_output(".liza/CHECKPOINT is present; no new work starts");
    // The file exists before the write.
    wait_for("it is logged", || {
        bench.project.log().contains("the sprint's deadline has passed").then_some(())
    });
    bench.project.liza(&["resume"]).ok();
    coder.wait_for_output("resuming work");
    assert!(!checkpoint.exists(), "once");
    bench.project.add_task("t1");
    bench.until_status("t1", Status::ReadyForReview);
    coder.stop();
}

/// Covers: BB-07, SP-07
#[test]
fn a_typing_error_is_reported_with_its_line_and_no_agent_ends() {
    let bench = bench(CODER);
    let mut coder = waiting(&bench);
    let good = bench.project.state();
    let fix = |bench: &Bench| save(bench, |_| good.clone());

    save(&bench, |text| text.replacen("  - id: later", "  - id: [later", 1));
    coder.wait_for_output("no agent starts until it is fixed");
    let line = line_of(&bench, "id: [later");
    // Parsers differ on where a list that is not closed ends.
    let places = [line, line + 1].map(|line| format!("state.yaml:{line}:"));
    assert!(places.iter().any(|place| coder.output().contains(place)), "{}", coder.output());
    fix(&bench);
    coder.wait_for_output("the blackboard is readable again");

    inject(&bench, MANUAL_TASK);
    bench.until_status("by-hand", Status::ReadyForReview);
    coder.stop();
    bench.check_valid();
}

/// Covers: BB-07, IV-16, SP-07
#[test]
fn an_invalid_task_is_reported_with_its_line_and_the_others_continue() {
    let bench = bench(CODER);
    let mut coder = waiting(&bench);
    inject(&bench, &MANUAL_TASK.replace("UNCLAIMED", "UNCLAIMD"));
    let line = line_of(&bench, "UNCLAIMD");
    coder.wait_for_output("UNCLAIMD");
    assert!(coder.output().contains(&format!("(line {line}, column")), "line {line}: {}", coder.output());
    bench.project.add_task("t1");
    bench.until_status("t1", Status::ReadyForReview);
    save(&bench, |text| text.replace("UNCLAIMD", "UNCLAIMED"));
    coder.wait_for_output("fixed: by-hand");
    bench.until_status("by-hand", Status::ReadyForReview);
    coder.stop();
    bench.check_valid();
}

/// Covers: IV-06, IV-16, SP-07
#[test]
fn a_dangling_dependency_is_reported_with_its_line_and_the_others_continue() {
    let bench = bench(CODER);
    let mut coder = waiting(&bench);
    inject(&bench, &format!("{MANUAL_TASK}    depends_on: [unknown-task]\n"));
    let line = line_of(&bench, "id: by-hand");
    coder.wait_for_output("unknown-task");
    assert!(
        coder.output().contains(&format!("state.yaml:{line}: by-hand")),
        "line {line}: {}",
        coder.output()
    );
    bench.project.add_task("t1");
    bench.until_status("t1", Status::ReadyForReview);
    assert_eq!(bench.status("by-hand"), Status::Unclaimed, "it waits");
    save(&bench, |text| text.replace("depends_on: [unknown-task]", "depends_on: []"));
    coder.wait_for_output("fixed: by-hand");
    bench.until_status("by-hand", Status::ReadyForReview);
    coder.stop();
    bench.check_valid();
}
