//! A supervisor that was killed: the lock that it held proves that it is dead, and its ID is free at once.

use std::fs;
use std::time::Duration;

use liza_core::model::{EventName, Status};

use crate::fixture::{Bench, CODER, REVIEWER};
use crate::support::process::wait_up_to;

/// A coder that hangs the first time.
fn hangs_once() -> String {
    format!(
        r#"if [ ! -e "$HOME/begun" ]; then echo half > half.txt; touch "$HOME/begun"; sleep 1000; fi
{CODER}"#
    )
}

/// Covers: AG-02, AG-09, CL-10
#[test]
fn after_a_kill_a_fresh_coder_resumes_the_claim_at_once() {
    let bench = Bench::new("", &[("c", &hangs_once())]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("begun");
    coder.kill();
    let entry = bench.entry("coder-1").unwrap();
    assert!(entry.is_live(liza_team::project::now()), "its lease lasts for minutes");

    let mut fresh = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("t1", Status::ReadyForReview);
    let task = bench.task("t1");
    assert_eq!((task.assigned_to, task.iteration), (Some("coder-1".parse().unwrap()), Some(1)));
    assert!(task.history.unwrap().iter().any(|event| event.is(EventName::Resumed)));
    assert!(bench.entry("coder-1").unwrap().generation > entry.generation);
    assert!(bench.project.log().contains("replaces one whose supervisor died"), "{}", bench.project.log());
    fresh.stop();
    bench.until_nothing_runs();
}

/// Covers: AG-01, AG-02
#[test]
fn a_live_agent_keeps_its_id_and_a_dead_one_is_found_among_many() {
    let bench = Bench::new("coder_max_wait: 600", &[("c", CODER)]);
    bench.project.liza(&["add-task", "--id", "later", "--desc", "x", "--draft"]).ok();
    let mut first = bench.agent(&["coder", "--cli", "c"]);
    first.wait_for_output("coder-1          waiting");
    let mut second = bench.agent(&["coder", "--cli", "c"]);
    second.wait_for_output("coder-2          waiting");
    bench.project.liza(&["agent", "coder", "--cli", "c", "--id", "coder-1", "--json"]).refused(1, "refused");
    second.kill();
    let mut third = bench.agent(&["coder", "--cli", "c"]);
    third.wait_for_output("coder-2          waiting");
    let mut fourth = bench.agent(&["coder", "--cli", "c", "--id", "coder-4"]);
    fourth.wait_for_output("coder-4          waiting");
    fourth.kill();
    let mut again = bench.agent(&["coder", "--cli", "c", "--id", "coder-4"]);
    again.wait_for_output("coder-4          waiting");
    for supervisor in [&mut first, &mut third, &mut again] {
        supervisor.stop();
    }
}

/// Covers: AG-02, CL-10
#[test]
fn an_agent_that_never_held_a_lock_is_not_known_to_be_dead() {
    let bench = Bench::new("coder_max_wait: 600", &[("c", CODER)]);
    bench.project.liza(&["add-task", "--id", "later", "--desc", "x", "--draft"]).ok();
    // Registered manually, so without a process.
    bench.project.register("coder-1");
    let mut other = bench.agent(&["coder", "--cli", "c"]);
    other.wait_for_output("coder-2          waiting");
    other.stop();
    // After a clean exit, a person registers the ID: the lock belongs to another registration.
    bench.project.register("coder-2");
    bench.project.liza(&["agent", "coder", "--cli", "c", "--id", "coder-2", "--json"]).refused(1, "refused");
    // Without locks, the lease decides.
    let locks = bench.project.root.join(".liza/agent-locks");
    fs::remove_dir_all(&locks).unwrap();
    fs::write(&locks, "no folder").unwrap();
    let mut third = bench.agent(&["coder", "--cli", "c"]);
    third.wait_for_output("coder-3          waiting");
    third.kill();
    bench.project.liza(&["agent", "coder", "--cli", "c", "--id", "coder-3", "--json"]).refused(1, "refused");
}

/// Covers: AG-02
#[test]
fn a_planner_and_a_reviewer_that_were_killed_are_replaced_at_once() {
    let once = |begun: &str, then: &str| {
        format!("if [ ! -e \"$HOME/{begun}\" ]; then touch \"$HOME/{begun}\"; sleep 1000; fi\n{then}")
    };
    let bench = Bench::new(
        "",
        &[("c", CODER), ("r", &once("reviewing", REVIEWER)), ("q", &once("planning", "exit 42"))],
    );
    let mut planner = bench.agent(&["planner", "--cli", "q"]);
    bench.until_file("planning");
    planner.kill();
    let mut planner = bench.agent(&["planner", "--cli", "q", "--once"]);
    assert_eq!(planner.wait(), 0, "{}", planner.output());
    bench.project.add_task("t1");
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0);
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    bench.until_file("reviewing");
    reviewer.kill();
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    bench.until_status("t1", Status::Merged);
    assert_eq!(reviewer.wait(), 0, "{}", reviewer.output());
    assert!(reviewer.output().contains("t1 APPROVED"), "{}", reviewer.output());
}

/// Covers: AG-02, AG-09
#[test]
fn recover_removes_dead_agents_and_keeps_live_ones() {
    let bench = Bench::new("coder_max_wait: 600", &[("c", &hangs_once())]);
    bench.project.add_task("t1");
    let mut dead = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("begun");
    dead.kill();
    bench.until_nothing_runs();
    let mut alive = bench.agent(&["coder", "--cli", "c", "--id", "coder-7"]);
    alive.wait_for_output("coder-7          waiting");
    bench.project.register("coder-9");
    let result = bench.project.liza(&["recover", "--json"]).result();
    let repaired: Vec<_> = result["repaired"].as_array().unwrap().iter().map(|one| &one["subject"]).collect();
    assert_eq!(repaired, ["coder-1"], "{result:#}");
    assert_eq!(result["repaired"][0]["kind"], "registration");
    assert!(bench.entry("coder-1").is_none());
    assert!(bench.entry("coder-7").is_some() && bench.entry("coder-9").is_some());
    assert_eq!(bench.status("t1"), Status::Claimed, "its claim waits for it");
    alive.stop();
    let mut again = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("t1", Status::ReadyForReview);
    again.stop();
}

/// Covers: AG-07
#[test]
fn a_session_waits_until_the_previous_one_has_ended_completely() {
    let bench = Bench::new("", &[("c", "touch \"$HOME/begun\"; sleep 1000")]);
    bench.project.add_task("t1");
    let folder = bench.project.root.join(".liza/agent-locks");
    fs::create_dir_all(&folder).unwrap();
    // As the helper of a killed supervisor does while it ends the remaining processes.
    let before = fs::File::create(folder.join("coder-1.session")).unwrap();
    before.lock().unwrap();
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    coder.wait_for_output("working on t1");
    let begun = || bench.home().join("begun").exists().then_some(());
    assert_eq!(wait_up_to(Duration::from_millis(700), begun), None);
    before.unlock().unwrap();
    bench.until_file("begun");
    coder.stop();
    bench.until_nothing_runs();
}

/// Covers: UI-03
#[test]
fn a_killed_agent_is_shown_as_dead_at_once() {
    let bench = Bench::new("", &[("c", &hangs_once())]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("begun");
    let liveness = || {
        let agents = bench.project.liza(&["status", "--json"]).result()["agents"].clone();
        agents[0]["liveness"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(liveness(), "live");
    coder.kill();
    assert_eq!(liveness(), "dead");
    let page = bench.project.liza(&["status"]).ok().to_owned();
    assert!(page.contains("✗ coder-1  dead, was WORKING t1"), "{page}");
    assert!(page.contains("STOPPED 1"), "{page}");
    // Looking does not take its name: the next coder resumes the claim.
    let mut fresh = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("t1", Status::ReadyForReview);
    fresh.stop();
    bench.until_nothing_runs();
}
