//! A lock that another process holds: three attempts, 1–5 s apart, then exit 2.

use std::fs::File;
use std::time::{Duration, Instant};

use crate::fixture::{Bench, CODER};
use crate::support::process::{Running, wait_up_to};

fn bench() -> Bench {
    let bench = Bench::new("lock_timeout: 1\ncoder_max_wait: 600", &[("c", CODER)]);
    bench.project.liza(&["add-task", "--id", "later", "--desc", "x", "--draft"]).ok();
    bench
}

/// Takes the same lock that flock(1) takes.
fn hold(bench: &Bench) -> File {
    let file = File::options().write(true).open(bench.project.root.join(".liza/state.yaml.lock")).unwrap();
    file.lock().unwrap();
    file
}

/// Checks that it still runs after an attempt has failed.
fn still_tries(coder: &mut Running) {
    let ended = wait_up_to(Duration::from_millis(1500), || coder.exit_code());
    assert_eq!(ended, None, "{}", coder.output());
}

/// Covers: AG-05, BB-10
#[test]
fn after_three_attempts_it_exits_with_2_and_changes_nothing() {
    let bench = bench();
    let lock = hold(&bench);
    let before = bench.project.state();
    let begun = Instant::now();
    let run = bench.project.liza(&["agent", "coder", "--cli", "c", "--json"]);
    run.refused(2, "locked");
    let waited = begun.elapsed();
    // Three waits of one second, and two pauses of one to five seconds between them.
    assert!(waited >= Duration::from_secs(5), "{waited:?}");
    assert!(waited <= Duration::from_secs(3 + 10 + 5), "{waited:?}");
    drop(lock);
    assert_eq!(bench.project.state(), before);
}

/// Covers: AG-05
#[test]
fn a_lock_that_is_released_in_time_is_no_error() {
    let bench = bench();
    let lock = hold(&bench);
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    still_tries(&mut coder);
    drop(lock);
    coder.wait_for_output("waiting");
    // The same later: a write waits for the lock.
    let lock = hold(&bench);
    coder.signal("TERM");
    still_tries(&mut coder);
    drop(lock);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    assert_eq!(bench.entry("coder-1"), None);
}
