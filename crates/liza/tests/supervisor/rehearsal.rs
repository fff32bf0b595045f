//! The rehearsal agent with supervisors: a whole team without a model, and every misbehaviour of its playbooks.

use liza_core::model::{GoalStatus, Status};

use crate::fixture::Bench;
use crate::support::process::wait_for;

/// Covers: AG-05, AG-11, AG-15
#[test]
fn a_team_of_rehearsal_agents_reaches_the_goal() {
    let bench = Bench::new("", &[]);
    let agent = |role: &str| bench.agent(&[role, "--cli", "rehearsal"]);
    let (mut planner, mut coder, mut reviewer) = (agent("planner"), agent("coder"), agent("code-reviewer"));
    let reached = || (bench.state().board.goal.ready()?.status == GoalStatus::Completed).then_some(());
    wait_for("the goal is reached", reached);
    let ends = (planner.wait(), coder.wait(), reviewer.wait());
    assert_eq!(ends, (0, 0, 0), "{}{}{}", planner.output(), coder.output(), reviewer.output());
    assert!(bench.state().board.summaries().all(|head| head.is(Status::Merged)));
    assert!(bench.state().board.agents().unwrap().is_empty());
    bench.until_nothing_runs();
    bench.check_valid();
}

/// Every misbehaviour, one task each, under one supervisor.
const PLAYBOOK: &str = r#"
coder:
  - when: {task: a-crash}
    do: [{misbehave: crash}]
  - when: {task: b-hang}
    do: [{misbehave: hang}]
  - when: {task: c-stubborn}
    do: [{misbehave: ignore-sigterm}]
  - when: {task: d-children}
    do: [{misbehave: {leave-children: 3}}, {misbehave: hang}]
  - when: {task: e-outside}
    do: [{misbehave: {write-outside: {path: stray.txt, text: stray}}}, {misbehave: crash}]
  - when: {task: f-idle}
    exit: 0
  - when: {task: g-flood}
    do: [{misbehave: {flood: 20000}}, {misbehave: crash}]
  - when: {task: h-role}
    do: [{misbehave: {out-of-role: [submit-verdict, "{task}", APPROVED]}}, {misbehave: crash}]
  - when: {task: i-old}
    do: [{misbehave: {old-generation: [mark-blocked, "{task}", --reason, x, --question, y]}}, {misbehave: crash}]
"#;

/// Covers: AG-05, AG-07, AG-08, AG-12, CL-10
#[test]
fn after_every_kind_of_misbehaviour_the_task_is_blocked_and_the_next_one_is_done() {
    let bench = Bench::new("max_crashes: 1\nmax_idle_exits: 1\nsession_limit: 2", &[]);
    std::fs::write(bench.home().join("playbook.yaml"), PLAYBOOK).unwrap();
    let tasks = [
        "a-crash",
        "b-hang",
        "c-stubborn",
        "d-children",
        "e-outside",
        "f-idle",
        "g-flood",
        "h-role",
        "i-old",
        "j-good",
    ];
    for task in tasks {
        bench.project.add_task(task);
    }
    // Several coders, since each waits a while after a crash.
    let mut coders = [1, 2, 3, 4].map(|_| bench.agent(&["coder", "--cli", "rehearsal"]));
    let (good, bad) = tasks.split_last().unwrap();
    for task in bad {
        bench.until_status(task, Status::Blocked);
        let by = bench.task(task).history.unwrap().last().unwrap().agent.clone();
        // Another generation in its variables does not count in a session: it blocks its own task.
        let blocked_by = if *task == "i-old" { "coder-" } else { "system" };
        assert!(by.as_deref().is_some_and(|by| by.starts_with(blocked_by)), "{task}: {by:?}");
    }
    bench.until_status(good, Status::ReadyForReview);
    for coder in &mut coders {
        coder.stop();
    }
    assert_eq!(bench.project.read("stray.txt"), "stray");
    bench.until_nothing_runs();
    bench.check_valid();
}
