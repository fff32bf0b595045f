//! A supervisor that is killed: no process of it remains, and another one continues its work.

use std::time::{Duration, Instant};

use liza_core::model::Status;
use liza_testkit::evidence::tried;

use crate::fixture::{Bench, CODER, REVIEWER};
use crate::support::process::{send_signal, wait_for, wait_up_to};

/// How often supervisors are killed.
const ROUNDS: u32 = 16;

/// Delays that differ between rounds and between runs.
fn some_moment(round: u32) -> Duration {
    use std::hash::{BuildHasher as _, RandomState};
    Duration::from_millis(RandomState::new().hash_one(round) % 700)
}

/// In rooms and without.
const BOTH: [&str; 2] = ["sandbox: off", "sandbox: require\nsandbox_min: isolated"];

/// Checks that the sessions were in rooms, if they had to be.
#[track_caller]
fn check_level(bench: &Bench, config: &str) {
    let said = bench.outputs();
    let is_isolated = said.contains("[liza: confinement isolated");
    assert_eq!(is_isolated, config != BOTH[0], "{config}: {said}");
}

/// Covers: AG-07, CL-08
#[test]
fn a_supervisor_killed_at_any_moment_leaves_nothing_running_and_a_new_one_continues() {
    kill_at_any_moment(BOTH[0]);
}

/// Covers: AG-07, RO-07
#[test]
#[cfg(target_os = "linux")]
fn a_supervisor_killed_at_any_moment_leaves_no_room_and_a_new_one_continues() {
    kill_at_any_moment(BOTH[1]);
}

fn kill_at_any_moment(config: &str) {
    let slow = format!("setsid sleep 1000 &\n(setsid sleep 1000 &)\nsleep 0.2\n{CODER}");
    let reviewer = format!("setsid sleep 1000 & sleep 0.1\n{REVIEWER}");
    let bench = Bench::new(config, &[("c", &slow), ("r", &reviewer)]);
    for task in ["t1", "t2", "t3"] {
        bench.project.add_task(task);
    }
    for round in 0..ROUNDS {
        let mut coder = bench.agent(&["coder", "--cli", "c", "--id", "coder-1"]);
        let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r", "--id", "code-reviewer-1"]);
        let begun = Instant::now();
        let moment = some_moment(round);
        wait_up_to(moment, || (begun.elapsed() >= moment).then_some(()));
        coder.kill();
        reviewer.kill();
        bench.until_nothing_runs();
        bench.check_valid();
    }
    let mut coder = bench.agent(&["coder", "--cli", "c", "--id", "coder-1"]);
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r", "--id", "code-reviewer-1"]);
    for task in ["t1", "t2", "t3"] {
        bench.until_status(task, Status::Merged);
    }
    assert_eq!((coder.wait(), reviewer.wait()), (0, 0), "{}{}", coder.output(), reviewer.output());
    bench.until_nothing_runs();
    bench.check_valid();
    check_level(&bench, config);
    let tree = bench.project.git(&["ls-tree", "--name-only", "integration"]);
    assert!(["t1.txt", "t2.txt", "t3.txt"].iter().all(|file| tree.contains(file)), "{tree}");
    tried(
        "supervisors with a session are killed at a random moment: nothing runs on, and the work goes on",
        2 * ROUNDS as usize,
    );
}

/// Covers: AG-02, AG-09
#[test]
fn the_id_of_an_agent_not_known_to_be_dead_is_free_after_its_lease() {
    let bench = Bench::new(
        "lease_duration: 17\nheartbeat_interval: 60",
        &[("c", "touch \"$HOME/begun\"; sleep 1000")],
    );
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("begun");
    coder.kill();
    bench.until_nothing_runs();
    // As if it had run on another machine.
    std::fs::write(bench.project.root.join(".liza/agent-locks/coder-1.lock"), "1 elsewhere\n").unwrap();
    let lease = bench.entry("coder-1").unwrap().lease_expires;
    let refused = bench.project.liza(&["agent", "coder", "--cli", "c", "--id", "coder-1", "--json"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(bench.entry("coder-1").unwrap().lease_expires, lease, "no supervisor renews it");
    let freed = wait_up_to(Duration::from_secs(40), || {
        let entry = bench.entry("coder-1")?;
        (!entry.is_live(liza_team::project::now())).then_some(())
    });
    assert!(freed.is_some());
    let mut again = bench.agent(&["coder", "--cli", "c"]);
    again.wait_for_output("working on t1");
    again.stop();
}

/// Covers: AG-07, RO-07
#[test]
#[cfg(target_os = "linux")]
fn if_the_helper_of_a_session_is_killed_its_supervisor_cleans_up_and_continues() {
    for config in BOTH {
        let script = "setsid sleep 1000 & echo begun; exec sleep 1000";
        let bench = Bench::new(&format!("{config}\nmax_crashes: 1"), &[("c", script)]);
        bench.project.add_task("t1");
        let mut coder = bench.agent(&["coder", "--cli", "c"]);
        wait_for("the session has begun", || bench.outputs().contains("\nbegun\n").then_some(()));
        let helper = bench.processes().into_iter().find(|(_, line)| line.contains("liza session")).unwrap();
        assert!(send_signal("KILL", &helper.0));
        bench.until_status("t1", Status::Blocked);
        coder.stop();
        bench.until_nothing_runs();
        check_level(&bench, config);
    }
}
