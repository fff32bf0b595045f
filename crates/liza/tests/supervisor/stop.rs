//! PAUSE, ABORT, signals, a broken blackboard: which processes stop, how, and what is kept.

use std::fs;

use liza_core::model::{EventName, Status};

use crate::fixture::{Bench, CODER, REVIEWER};
use crate::support::process::wait_for;

/// Covers: AG-07, AG-17
#[test]
fn pause_stops_a_session_after_its_grace_period_and_resume_continues() {
    let slow = format!(
        r#"if [ ! -e "$HOME/begun" ]; then touch "$HOME/begun"; echo half > half.txt; sleep 1000; fi
{CODER}"#
    );
    let bench = Bench::new("stop_grace: 1", &[("c", &slow)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("begun");
    bench.project.liza(&["pause"]).ok();
    coder.wait_for_output(".liza/PAUSE or .liza/CHECKPOINT is present");
    coder.wait_for_output(".liza/PAUSE is present; no new work starts");
    let task = bench.task("t1");
    assert_eq!((task.status, task.crashes, task.idle_exits), (Some(Status::Claimed), None, None));
    assert!(bench.tree("t1").join("half.txt").exists());
    assert!(bench.entry("coder-1").is_some());
    bench.project.liza(&["resume"]).ok();
    bench.until_status("t1", Status::ReadyForReview);
    coder.stop();
    bench.until_nothing_runs();
}

/// Covers: AG-04, AG-07
#[test]
fn abort_stops_session_and_supervisor_at_once() {
    let bench = Bench::new("", &[("c", "touch \"$HOME/begun\"; sleep 1000")]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("begun");
    bench.project.liza(&["abort"]).ok();
    assert_eq!(coder.wait(), 0);
    assert!(coder.output().contains(".liza/ABORT is present"), "{}", coder.output());
    assert_eq!((bench.status("t1"), bench.entry("coder-1")), (Status::Claimed, None));
    bench.until_nothing_runs();
}

/// Covers: AG-02, AG-09
#[test]
fn a_signal_stops_both_cleanly_and_the_same_agent_resumes_its_claim() {
    for signal in ["TERM", "INT"] {
        let slow = format!(
            r#"if [ ! -e "$HOME/begun" ]; then touch "$HOME/begun"; sleep 1000; fi
{CODER}"#
        );
        let bench = Bench::new("", &[("c", &slow)]);
        bench.project.add_task("t1");
        let mut coder = bench.agent(&["coder", "--cli", "c"]);
        bench.until_file("begun");
        coder.signal(signal);
        assert_eq!(coder.wait(), 0, "{}", coder.output());
        assert_eq!((bench.status("t1"), bench.entry("coder-1")), (Status::Claimed, None));
        assert_eq!(bench.task("t1").crashes, None);
        bench.until_nothing_runs();

        let mut again = bench.agent(&["coder", "--cli", "c"]);
        bench.until_status("t1", Status::ReadyForReview);
        let task = bench.task("t1");
        assert_eq!(task.assigned_to, Some("coder-1".parse().unwrap()));
        assert!(task.history.unwrap().iter().any(|event| event.is(EventName::Resumed)));
        again.stop();
    }
}

/// Covers: AG-09
#[test]
fn a_second_signal_does_not_wait_for_the_session() {
    let stubborn = "trap '' TERM; touch \"$HOME/begun\"; while :; do sleep 1; done";
    let bench = Bench::new("", &[("c", stubborn)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("begun");
    coder.signal("INT");
    coder.wait_for_output("stopping the session");
    coder.signal("INT");
    assert_eq!(coder.wait(), 0);
    assert_eq!(bench.entry("coder-1"), None);
    bench.until_nothing_runs();
}

/// Covers: AG-07
#[test]
fn a_session_whose_task_a_person_released_is_stopped() {
    let bench = Bench::new("", &[("c", "touch \"$HOME/begun\"; echo kept > kept.txt; sleep 1000")]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    bench.until_file("begun");
    let words = ["release-claim", "t1", "--role", "coder", "--force", "--reason", "mine"];
    bench.project.liza(&words).ok();
    assert_eq!(coder.wait(), 0);
    assert!(coder.output().contains("the task is no longer its own"), "{}", coder.output());
    bench.until_nothing_runs();
}

/// Covers: CL-10
#[test]
fn a_supervisor_without_its_registration_ends_and_removes_no_other() {
    let bench = Bench::new("coder_max_wait: 600", &[("c", CODER)]);
    bench.project.liza(&["add-task", "--id", "later", "--desc", "x", "--draft"]).ok();
    let mut old = bench.agent(&["coder", "--cli", "c"]);
    old.wait_for_output("waiting");
    bench.project.liza(&["deregister", "coder-1"]).ok();
    let generation = bench.project.register("coder-1");
    assert_eq!(old.wait(), 42, "{}", old.output());
    assert_eq!(bench.entry("coder-1").unwrap().generation.unwrap().0, generation);
}

/// Covers: AG-05
#[test]
fn on_a_broken_blackboard_no_agent_is_started_until_it_is_fixed() {
    let bench = Bench::new("coder_max_wait: 600", &[("c", CODER)]);
    bench.project.liza(&["add-task", "--id", "later", "--desc", "x", "--draft"]).ok();
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    coder.wait_for_output("waiting");
    let good = bench.project.state();
    let path = bench.project.root.join(".liza/state.yaml");
    fs::write(&path, format!("{good}\n  - broken: [\n")).unwrap();
    coder.wait_for_output("no agent starts until it is fixed");
    fs::write(&path, good).unwrap();
    coder.wait_for_output("the blackboard is readable again");
    bench.project.add_task("t1");
    bench.until_status("t1", Status::ReadyForReview);
    coder.stop();
    wait_for("it is off the board", || bench.entry("coder-1").is_none().then_some(()));
}

/// Covers: CL-07
#[test]
fn a_supervisor_that_cannot_renew_stops_its_agent_before_the_lease_ends() {
    let bench = Bench::new(
        "heartbeat_interval: 1\nlease_duration: 20",
        &[("c", "touch \"$HOME/begun\"; sleep 1000")],
    );
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("begun");
    let good = bench.project.state();
    let path = bench.project.root.join(".liza/state.yaml");
    fs::write(&path, format!("{good}\n  - broken: [\n")).unwrap();
    coder.wait_for_output("the lease could not be renewed");
    coder.wait_for_output("session ended");
    fs::write(&path, good).unwrap();
    let lease = bench.entry("coder-1").unwrap().lease_expires.unwrap();
    assert!(liza_team::project::now() < lease, "it was stopped in time");
    assert_eq!(bench.status("t1"), Status::Claimed);
    coder.wait_for_output("the blackboard is readable again");
    coder.stop();
    bench.until_nothing_runs();
}

/// Covers: AG-09
#[test]
fn a_second_signal_during_a_long_integration_test_leaves_the_task_approved_and_nothing_running() {
    let coder = format!("mkdir scripts; printf '#!/bin/sh\\ntouch \"$HOME/testing\"; sleep 1000\\n' > scripts/integration-test.sh
chmod +x scripts/integration-test.sh\n{CODER}");
    let bench = Bench::new("", &[("c", &coder), ("r", REVIEWER)]);
    bench.project.add_task("t1");
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0);
    // Work that brings its own gate needs two code reviewers, or the human.
    bench.project.liza(&["submit-verdict", "t1", "APPROVED"]).ok();
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    bench.until_file("testing");
    // The first one waits for the merge.
    reviewer.signal("INT");
    reviewer.wait_for_output("stopping; press Ctrl-C again");
    assert_eq!(reviewer.exit_code(), None, "{}", reviewer.output());
    reviewer.stop();
    assert!(reviewer.output().contains("t1: its merge was stopped"), "{}", reviewer.output());
    assert_eq!((bench.status("t1"), bench.entry("code-reviewer-1")), (Status::Approved, None));
    bench.until_nothing_runs();
}

/// Covers: AG-07, UI-01
#[test]
fn a_review_ends_when_the_person_gives_the_verdict() {
    let bench = Bench::new("", &[("c", CODER), ("r", "touch \"$HOME/reviews\"; exec sleep 1000")]);
    bench.project.add_task("t1");
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0);
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    bench.until_file("reviews");
    bench.project.liza(&["submit-verdict", "t1", "APPROVED", "read it myself"]).ok();
    reviewer.wait_for_output("session ended");
    wait_for("the merge", || (bench.status("t1") == Status::Merged).then_some(()));
    reviewer.stop();
    bench.until_nothing_runs();
}

/// Covers: AG-08
#[test]
fn a_session_that_has_submitted_and_does_not_end_is_stopped_after_its_grace_period() {
    let lingers =
        CODER.replace("exit 42", "touch \"$HOME/submitted\"; trap 'exit 1' TERM; while :; do sleep 1; done");
    let bench = Bench::new("stop_grace: 2\nmax_crashes: 1\nmax_idle_exits: 1", &[("c", &lingers)]);
    bench.project.add_task("t1");
    bench.project.add_task("t2");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("submitted");
    let begun = std::time::Instant::now();
    coder.wait_for_output("stopping the session: the work is done");
    assert!(begun.elapsed().as_millis() >= 900, "it had its grace period");
    bench.until_status("t2", Status::ReadyForReview);
    coder.wait_for_output("working on t2");
    let task = bench.task("t1");
    assert_eq!((task.status, task.crashes, task.idle_exits), (Some(Status::ReadyForReview), None, None));
    assert_eq!(task.failed_by, None);
    coder.stop();
    bench.until_nothing_runs();
}
