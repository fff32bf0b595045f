//! Tasks whose checkouts cannot be set up do not hold the others, and each try is reported.

use crate::fixture::{Bench, CODER};

const REJECTS: &str = r#""$LIZA" submit-verdict "$1" REJECTED "Blockers: 1 - [blocker] a.txt:1 - no""#;

/// How often a checkout was set up.
fn tries(bench: &Bench, checkout: &str) -> usize {
    let logs = bench.kept("setup");
    logs.iter().filter(|path| path.to_string_lossy().ends_with(&format!("-{checkout}.log"))).count()
}

/// Covers: SE-08
#[test]
fn a_review_that_cannot_be_set_up_comes_after_the_others() {
    let bench = Bench::new("", &[("c", CODER), ("r", REJECTS)]);
    bench.project.set_config("setup", r#""case $PWD in */.prepared-t1) exit 3;; esac""#);
    for task in ["t1", "t2", "t3"] {
        bench.project.add_task(task);
        assert_eq!(bench.agent(&["coder", task, "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
    }
    let review = || {
        let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r", "--once"]);
        assert_eq!(reviewer.wait(), 0, "{}\n{}", reviewer.output(), bench.outputs());
        reviewer.output()
    };
    let output = review();
    assert!(
        output.contains("cannot claim t1 (1 time): config.setup failed in .worktrees/.prepared-t1"),
        "{output}"
    );
    assert_eq!((bench.status("t2").to_string().as_str(), tries(&bench, "prepared-t1")), ("REJECTED", 1));
    let output = review();
    assert!(!output.contains("cannot claim t1"), "{output}");
    assert_eq!((bench.status("t3").to_string().as_str(), tries(&bench, "prepared-t1")), ("REJECTED", 1));
}

/// Covers: SE-08
#[test]
fn a_task_that_again_and_again_cannot_be_claimed_is_an_alert() {
    let bench = Bench::new("", &[("c", CODER)]);
    bench.project.set_config("setup", r#""case $PWD in */t1) exit 3;; esac""#);
    for task in ["t1", "t2", "t3", "t4"] {
        bench.project.add_task(task);
    }
    // Which prints alerts only.
    let coder = bench.agent(&["coder", "--cli", "c", "--quiet"]);
    coder.wait_for_output("cannot claim t1 (3 times)");
    let output = coder.output();
    assert_eq!(["(1 time)", "(2 times)"].map(|times| output.contains(times)), [false; 2], "{output}");
    let status = bench.project.liza(&["status", "--json"]).result();
    let kinds = status["alerts"].as_array().unwrap().iter().map(|alert| alert["kind"].as_str().unwrap());
    let of_setup: Vec<&str> = kinds.filter(|kind| ["SETUP FAILED", "WORK FAILS"].contains(kind)).collect();
    assert!(of_setup.len() <= 1 && !of_setup.contains(&"WORK FAILS"), "{of_setup:?}");
}
