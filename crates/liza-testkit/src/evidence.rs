//! Notes for the scorecard: how often a test tried what must not break anything.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;

/// The file that `just faults` gives to the tests.
const FILE: &str = "LIZA_EVIDENCE";

/// What the tests of several files try.
pub const KILLED_AT_A_CALL: &str =
    "a writer of the blackboard is killed at a system call: nothing is lost or written twice";
pub const KILLED_AT_RANDOM: &str =
    "a writer of the blackboard is killed at a random moment: nothing is lost or written twice";
pub const DATABASE_FAILS: &str = "the database fails under a command (failover, restart, lost answer or commit, partition, full disk, clock): it only waits";

/// The runs with real processes that are compared with runs in memory: `LIZA_RUNS`, or 300 in `just full`; `None` in the gate, which has a few.
pub fn real_runs() -> Option<usize> {
    let wanted = env::var("LIZA_RUNS").ok().and_then(|text| text.parse().ok());
    wanted.or_else(|| env::var_os("LIZA_FULL").map(|_| 300))
}

/// Notes that this fault was tried so often, if somebody collects it. Called where the test has passed: one that fails notes nothing.
pub fn tried(fault: &str, times: usize) {
    let Some(path) = env::var_os(FILE) else { return };
    let line = format!("{}\n", serde_json::json!({"fault": fault, "n": times}));
    // One write: tests run at the same time.
    OpenOptions::new().append(true).open(path).unwrap().write_all(line.as_bytes()).unwrap();
}
