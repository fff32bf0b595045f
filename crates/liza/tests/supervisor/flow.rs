//! Work from claim to merge, and waiting for work.

use std::time::{Duration, Instant};

use liza::cli::session_commands;
use liza_agents::providers::Provider;
use liza_core::model::{EventName, Role, Status};
use liza_core::supervise::StopReason;
use liza_team::project::Project;
use liza_team::supervisor::{EndReason, Post, SupervisorOptions, run};

use crate::fixture::{Bench, CODER, REVIEWER};
use crate::support::process::wait_for;

/// Covers: AG-02, AG-04, AG-05, AG-10, NT-04
#[test]
fn a_task_goes_from_coder_to_reviewer_to_the_integration_branch() {
    let coder = format!("echo \"key $TEST_API_KEY in $TMPDIR\"; touch \"$TMPDIR/scratch\"\n{CODER}");
    let bench = Bench::new("", &[("c", &coder), ("r", REVIEWER)]);
    bench.project.add_task("t1");
    bench.project.liza(&["note", "Mind the gap", "--for", "t1"]).ok();
    let (mut coder, mut reviewer) =
        (bench.agent(&["coder", "--cli", "c"]), bench.agent(&["code-reviewer", "--cli", "r"]));
    bench.until_status("t1", Status::Merged);
    assert_eq!((coder.wait(), reviewer.wait()), (0, 0), "{}{}", coder.output(), reviewer.output());
    assert!(coder.output().contains("no work is left for this role"), "{}", coder.output());

    let log = bench.project.git(&["log", "--format=%s", "integration"]);
    assert!(log.contains("work on t1"), "{log}");
    assert!(bench.state().board.agents().unwrap().is_empty());
    let prompts = bench.prompts();
    assert!(prompts.iter().any(|prompt| prompt.contains("=== ASSIGNED TASK ===")));
    assert!(prompts.iter().any(|prompt| prompt.contains("=== REVIEW TASK ===")));
    assert!(prompts.iter().all(|prompt| prompt.contains("Mind the gap")));
    let outputs = bench.outputs();
    assert!(outputs.contains("key [masked] in"), "{outputs}");
    assert!(!outputs.contains("very-secret"), "{outputs}");
    assert!(bench.kept("tmp").is_empty(), "each session's own TMPDIR is gone");
    bench.until_nothing_runs();
    bench.check_valid();
}

/// Covers: AG-05, AG-08
#[test]
fn a_rejected_task_returns_to_its_coder_with_the_reason() {
    let reviewer = r#"
if [ -e "$HOME/rejected" ]; then "$LIZA" submit-verdict "$1" APPROVED "read it"; exit; fi
touch "$HOME/rejected"; "$LIZA" submit-verdict "$1" REJECTED "Blocking: the file says nothing about retries""#;
    let coder = r#"date +%N >> "$1.log"; git add . && git commit -qm more
"$LIZA" pre-check "$1" --intent again --validation none
"$LIZA" submit-for-review "$1" "$(git rev-parse HEAD)"; exit 42"#;
    let bench = Bench::new("", &[("c", coder), ("r", reviewer)]);
    bench.project.add_task("t1");
    let (mut coder, mut reviewer) =
        (bench.agent(&["coder", "--cli", "c"]), bench.agent(&["code-reviewer", "--cli", "r"]));
    bench.until_status("t1", Status::Merged);
    assert_eq!((coder.wait(), reviewer.wait()), (0, 0), "{}{}", coder.output(), reviewer.output());
    assert!(bench.prompts().iter().any(|prompt| prompt.contains("says nothing about retries")));
}

/// Covers: AG-06
#[test]
fn a_claimable_task_is_reserved_at_once_even_if_the_poll_interval_is_an_hour() {
    let block = r#""$LIZA" mark-blocked "$1" --reason "none" --question "which?""#;
    let bench = Bench::new("coder_poll_interval: 3600\ncoder_max_wait: 7200", &[("c", block)]);
    bench.project.liza(&["add-task", "--id", "later", "--desc", "x", "--draft"]).ok();
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    let state = bench.project.root.join(".liza/state.yaml");
    let mut best = Duration::MAX;
    for round in 0..5 {
        coder.wait_for_output("waiting");
        wait_for("it waits", || bench.entry("coder-1").filter(|entry| entry.current_task.is_none()));
        let task = format!("t{round}");
        bench.project.add_task(&task);
        let written = Instant::now();
        wait_for("it is reserved", || {
            let text = std::fs::read_to_string(&state).ok()?;
            let entry = text.split("- id: ").find(|entry| entry.starts_with(&format!("{task}\n")))?;
            (entry.contains("reservation:") || entry.contains("assigned_to: coder-1")).then_some(())
        });
        best = best.min(written.elapsed());
        bench.until_status(&task, Status::Blocked);
    }
    // The machine may be busy in one round, but not in all of them.
    assert!(best < Duration::from_millis(100), "{best:?}");
    coder.stop();
}

/// Covers: AG-05
#[test]
fn a_lone_coder_ends_without_work_and_reports_why_it_waited() {
    let bench = Bench::new("coder_max_wait: 2", &[("c", CODER)]);
    bench.project.liza(&["add-task", "--id", "later", "--desc", "x", "--draft"]).ok();
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    assert_eq!(coder.wait(), 0);
    assert!(coder.output().contains("waiting: 1 draft not finalized yet"), "{}", coder.output());
    assert!(coder.output().contains("(coder_max_wait); ending"), "{}", coder.output());
}

/// Covers: NT-02
#[test]
fn handoff_notes_reach_the_next_session_and_the_flag_is_cleared() {
    let coder = format!(
        r#"if [ ! -e "$HOME/handed" ]; then touch "$HOME/handed"
"$LIZA" handoff "$1" --summary "half way there" --next-action "write the second half"; exit 42; fi
{CODER}"#
    );
    let bench = Bench::new("", &[("c", &coder)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("t1", Status::ReadyForReview);
    let prompts = bench.prompts();
    assert_eq!(prompts.len(), 2);
    assert!(!prompts[0].contains("write the second half"));
    assert!(prompts[1].contains("write the second half"), "{}", prompts[1]);
    let task = bench.task("t1");
    assert_ne!(task.handoff_pending, Some(true));
    assert!(task.history.unwrap().iter().any(|event| event.is(EventName::Handoff)));
    coder.stop();
}

/// Covers: CL-07, CL-08
#[test]
fn leases_are_renewed_while_a_session_runs_and_under_pause() {
    let bench =
        Bench::new("heartbeat_interval: 1\nlease_duration: 25\nstop_grace: 1", &[("c", "sleep 1000")]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    let renewed = || {
        let first = wait_for("it is here", || bench.entry("coder-1")?.lease_expires);
        wait_for("the lease is renewed", || {
            bench.entry("coder-1")?.lease_expires.filter(|lease| *lease > first)
        });
    };
    bench.until_status("t1", Status::Claimed);
    renewed();
    let held = wait_for("both leases", || {
        Some((bench.task("t1").lease_expires?, bench.entry("coder-1")?.lease_expires?))
    });
    assert_eq!(held.0, held.1, "task and agent have the same lease");
    bench.project.liza(&["pause"]).ok();
    coder.wait_for_output("no new work starts");
    renewed();
    coder.stop();
}

/// Covers: AG-04, CL-05, CL-08
#[test]
fn a_team_shares_one_loop_and_one_heartbeat_and_no_task_is_done_twice() {
    let bench = Bench::new("heartbeat_interval: 1", &[("c", CODER), ("r", REVIEWER)]);
    for number in 1..=5 {
        bench.project.add_task(&format!("t{number}"));
    }
    let project = Project::open(&bench.project.root).unwrap();
    let config = bench.state().board.config().unwrap().clone();
    let with_variables = |mut provider: Provider| {
        provider.add_environment(bench.variables());
        provider
    };
    let post = |role: Role, name: &str| Post {
        role,
        agent: None,
        provider: with_variables(Provider::choose(&config, role, Some(name)).unwrap()),
        task: None,
        once: false,
        interactive: false,
    };
    let coder = || post(Role::Coder, "c");
    let posts = vec![coder(), coder(), coder(), post(Role::CodeReviewer, "r")];
    let options = SupervisorOptions::alone(env!("CARGO_BIN_EXE_liza").into(), session_commands());
    let ends = run(&project, posts, options, &|_| ()).unwrap();
    assert_eq!(ends.len(), 4);
    for end in ends {
        assert!(matches!(end.reason, EndReason::Stop(StopReason::RoleComplete)), "{end:?}");
    }
    for number in 1..=5 {
        let task = bench.task(&format!("t{number}"));
        assert_eq!(task.status, Some(Status::Merged));
        let claims = task.history.unwrap().iter().filter(|event| event.is(EventName::Claimed)).count();
        assert_eq!(claims, 1);
    }
    assert!(bench.state().board.agents().unwrap().is_empty());
    bench.until_nothing_runs();
}

/// Covers: AG-09
#[test]
fn a_team_exits_cleanly_at_its_time_limit() {
    let bench = Bench::new("", &[("c", "exec sleep 600")]);
    bench.project.add_task("t1");
    let project = Project::open(&bench.project.root).unwrap();
    let config = bench.state().board.config().unwrap().clone();
    let mut provider = Provider::choose(&config, Role::Coder, Some("c")).unwrap();
    provider.add_environment(bench.variables());
    let post = Post { role: Role::Coder, agent: None, provider, task: None, once: false, interactive: false };
    // Long enough for a claim on a busy machine.
    let limit = Some(Duration::from_secs(5));
    let options = SupervisorOptions {
        limit,
        ..SupervisorOptions::alone(env!("CARGO_BIN_EXE_liza").into(), session_commands())
    };
    let ends = run(&project, vec![post], options, &|_| ()).unwrap();
    assert!(matches!(ends[0].reason, EndReason::Signalled), "{ends:?}");
    assert_eq!(bench.status("t1"), Status::Claimed);
    assert!(bench.state().board.agents().unwrap().is_empty());
    bench.until_nothing_runs();
}
