//! Agents that misbehave: no process of theirs remains, and no work is lost.

use std::fs;

use liza_core::model::Status;

use crate::fixture::{Bench, CODER, REVIEWER};
use crate::support::process::{send_signal, wait_for};

/// Covers: AG-05
#[test]
fn crashes_are_counted_and_at_the_limit_the_task_is_blocked_with_its_work_kept() {
    let bench = Bench::new("max_crashes: 1", &[("c", "echo precious > unsaved.txt; exit 3")]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("t1", Status::Blocked);
    let reason = bench.task("t1").blocked_reason.unwrap();
    assert!(reason.contains("coder-1 crashed 1 time"), "{reason}");
    assert_eq!(fs::read_to_string(bench.tree("t1").join("unsaved.txt")).unwrap(), "precious\n");
    coder.stop();
    bench.until_nothing_runs();
    bench.check_valid();
}

/// Covers: AG-05, AG-09
#[test]
fn killing_only_the_child_counts_as_a_crash_and_starts_it_again() {
    let bench = Bench::new("", &[("c", "echo $$ >> \"$HOME/pids\"; exec sleep 1000")]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    let first = bench.until_text("pids");
    assert!(send_signal("KILL", first.trim()));
    wait_for("it is started again", || (bench.until_file("pids").lines().count() == 2).then_some(()));
    assert_eq!(bench.task("t1").crashes, Some(1));
    assert_eq!(bench.status("t1"), Status::Claimed);
    coder.stop();
    bench.until_nothing_runs();
}

/// Covers: AG-05, AG-07
#[test]
fn a_session_that_hangs_is_ended_at_its_limit() {
    let bench = Bench::new("session_limit: 1\nmax_crashes: 1", &[("c", "sleep 1000")]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("t1", Status::Blocked);
    assert!(coder.output().contains("it ran too long"), "{}", coder.output());
    coder.stop();
    bench.until_nothing_runs();
}

/// Covers: AG-07
#[test]
fn a_session_that_ignores_sigterm_is_killed_with_its_children() {
    let stubborn = r#"trap '' TERM INT HUP
setsid sh -c 'trap "" TERM; echo hidden > "$HOME/hidden"; while :; do sleep 1; done' &
env -i setsid sleep 1000 &
while :; do sleep 1; done"#;
    let bench = Bench::new("session_limit: 1\nmax_crashes: 1", &[("c", stubborn)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_file("hidden");
    bench.until_status("t1", Status::Blocked);
    assert!(coder.output().contains("killing the session"), "{}", coder.output());
    coder.stop();
    bench.until_nothing_runs();
}

/// Covers: AG-07
#[test]
fn children_that_a_session_leaves_behind_are_killed() {
    let coder = format!(
        "setsid sh -c 'setsid sleep 1000 & sleep 1000' & (setsid sleep 1001 &)\nenv -i setsid sleep 1002 &\n{CODER}"
    );
    let bench = Bench::new("", &[("c", &coder)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0);
    assert_eq!(bench.status("t1"), Status::ReadyForReview);
    assert_eq!(bench.running(), Vec::<String>::new());
    let sleeping = |seconds: &str| {
        let lines = fs::read_dir("/proc").unwrap().flatten();
        lines
            .filter(|entry| {
                fs::read(entry.path().join("cmdline"))
                    .is_ok_and(|line| line == format!("sleep\0{seconds}\0").as_bytes())
            })
            .count()
    };
    assert_eq!(sleeping("1002"), 0, "a process that cleared its environment is found by its parent");
}

/// Covers: AG-08
#[test]
fn a_coder_that_does_nothing_three_times_is_blocked() {
    let bench = Bench::new("", &[("c", "echo left > draft.txt; exit 0")]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("t1", Status::Blocked);
    let reason = bench.task("t1").blocked_reason.unwrap();
    assert!(reason.contains("ended without a result 3 times"), "{reason}");
    assert_eq!(bench.prompts().len(), 3);
    assert_eq!(fs::read_to_string(bench.tree("t1").join("draft.txt")).unwrap(), "left\n");
    coder.stop();
}

/// Covers: AG-08
#[test]
fn a_reviewer_without_a_verdict_loses_the_review_and_leaves_it_to_another() {
    let bench = Bench::new("max_idle_exits: 2", &[("c", CODER), ("r", "exit 0"), ("good", REVIEWER)]);
    bench.project.add_task("t1");
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0);
    let mut idle = bench.agent(&["code-reviewer", "--cli", "r"]);
    idle.wait_for_output("drops the review of t1");
    assert_eq!(bench.task("t1").reviewing_by, None);
    let mut other = bench.agent(&["code-reviewer", "--cli", "good"]);
    bench.until_status("t1", Status::Merged);
    assert_eq!((other.wait(), idle.wait()), (0, 0));
}

/// Covers: AG-10
#[test]
fn a_flood_of_output_fills_neither_memory_nor_disk_and_delays_no_agent() {
    let flood = format!("yes 'nothing to see here, nothing at all' | head -c 80000000\n{CODER}");
    let bench = Bench::new("", &[("c", &flood)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0);
    assert!(coder.output().contains("too much output"), "{}", coder.output());
    assert_eq!(bench.status("t1"), Status::ReadyForReview);
    let kept = fs::metadata(&bench.kept("agent-outputs")[0]).unwrap().len();
    assert!(kept < 17 << 20, "{kept}");
}

/// Covers: AG-12, CL-10
#[test]
fn commands_outside_the_role_or_of_an_old_generation_change_nothing() {
    let bold = r#"
"$LIZA" submit-verdict "$1" APPROVED "read it"; echo "verdict $?"
"$LIZA" abandon-task "$1" --reason no; echo "abandon $?"
"$LIZA" wt-merge "$1"; echo "merge $?"
"$LIZA" deregister coder-1; echo "deregister $?"
"$LIZA" agent coder; echo "agent $?"
echo x > "$HOME/ready"; while [ ! -e "$HOME/go" ]; do sleep 0.1; done
exit 0"#;
    let bench = Bench::new("", &[("c", bold)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    bench.until_file("ready");
    // A process that is left of an earlier session; in a session of today its variables would not count.
    let mut old = bench.project.program();
    old.args(["mark-blocked", "t1", "--reason", "x", "--question", "y", "--json"]);
    old.env("LIZA_AGENT_ID", "coder-1").env("LIZA_AGENT_GENERATION", "1");
    bench.project.run(&mut old).refused(42, "fenced");
    fs::write(bench.project.home().join("go"), "").unwrap();
    assert_eq!(coder.wait(), 0);
    let outputs = bench.outputs();
    for line in ["verdict 1", "abandon 1", "merge 1", "deregister 1", "agent 1"] {
        assert!(outputs.contains(line), "{line}: {outputs}");
    }
    assert_eq!(bench.status("t1"), Status::Claimed);
    assert_eq!(bench.task("t1").idle_exits, Some(1));
}

/// Covers: AG-08
#[test]
fn files_written_outside_the_worktree_are_neither_merged_nor_lost() {
    let stray = format!("echo stray > ../../stray.txt; echo changed >> ../../specs/vision.md\n{CODER}");
    let bench = Bench::new("", &[("c", &stray), ("r", REVIEWER)]);
    bench.project.add_task("t1");
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0);
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    bench.until_status("t1", Status::Merged);
    assert_eq!(reviewer.wait(), 0);
    let merged = bench.project.git(&["show", "--stat", "--format=", "integration"]);
    assert!(merged.contains("t1.txt") && !merged.contains("stray") && !merged.contains("vision"), "{merged}");
    assert_eq!(bench.project.read("stray.txt"), "stray\n");
    assert!(bench.project.read("specs/vision.md").contains("changed"));
}
