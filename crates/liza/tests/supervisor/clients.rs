//! Clients that fail: what is shown, who waits, and that no task is blamed.

use liza_core::model::Status;

use crate::fixture::{Bench, CODER};
use crate::support::process::wait_for;

/// A claude that is not logged in.
const NO_LOGIN: &str = r#"echo x >> "$HOME/sessions"
echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"Invalid API key"}'
exit 1"#;

fn status(bench: &Bench) -> String {
    bench.project.liza(&["status"]).ok().to_owned()
}

fn sessions(bench: &Bench) -> usize {
    bench.until_file("sessions").lines().count()
}

/// The task is still with its coder, and nothing was counted.
#[track_caller]
fn not_blamed(bench: &Bench, id: &str) {
    let task = bench.task(id);
    assert_eq!((task.crashes, task.idle_exits), (None, None));
    let sprint = bench.state().board.sprint().unwrap().clone();
    assert_eq!(sprint.sessions.tasks.values().sum::<u32>(), 0, "{:?}", sprint.sessions);
}

/// Covers: SE-02, SE-03
#[test]
fn a_client_that_is_not_logged_in_stops_at_once_and_says_what_to_do() {
    let bench = Bench::new("", &[("claude", NO_LOGIN)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "claude"]);
    assert_eq!(coder.wait(), 1, "{}", coder.output());
    let said = coder.output();
    assert!(said.contains("claude cannot be used: Invalid API key. Run claude /login"), "{said}");
    assert_eq!(sessions(&bench), 1);
    not_blamed(&bench, "t1");
    let page = status(&bench);
    assert!(page.contains("CLIENT HELD") && page.contains("Run claude /login"), "{page}");
    let shown = bench.project.liza(&["show", "t1"]).ok().to_owned();
    assert!(shown.contains("session ended") && shown.contains("fault: auth"), "{shown}");
    // Started again, it tries again.
    assert_eq!(bench.agent(&["coder", "--cli", "claude"]).wait(), 1);
    assert_eq!(sessions(&bench), 2);
    bench.check_valid();
}

/// Covers: SE-03
#[test]
fn a_team_that_cannot_use_any_client_ends_with_a_failure_and_what_to_do() {
    let bench = Bench::new("", &[("claude", NO_LOGIN)]);
    bench.project.add_task("t1");
    let run = bench.project.liza(&["run", "--cli", "claude", "--plain"]);
    assert_eq!(run.code, 1, "{run:#?}");
    let ends =
        "the team ends: no agent program can be used (claude has no valid login). What to fix: liza status";
    assert!(run.stderr.contains(ends), "{run:#?}");
    let why =
        "the team has ended: no agent program can be used (claude has no valid login)\ngoal IN_PROGRESS";
    assert!(run.stdout.contains(&format!("\n{why}")), "{run:#?}");
    assert!(run.stdout.contains("needs you: CLIENT HELD") && run.stdout.contains("to continue"), "{run:#?}");
    let log = bench.project.liza(&["log"]).ok().to_owned();
    let words = log.split_whitespace().collect::<Vec<_>>().join(" ");
    let left = "leaves the team (no agent program can be used (claude has no valid login))";
    assert!(words.contains(left), "{log}");
    not_blamed(&bench, "t1");
}

/// Covers: AX-31
#[test]
fn suggested_commands_name_the_program_of_the_last_run() {
    let refused = "echo '{\"type\":\"turn.failed\",\"error\":{\"message\":\"401 Unauthorized\"}}'; exit 1";
    let bench = Bench::new("", &[("codex", refused), ("claude", NO_LOGIN)]);
    bench.project.add_task("t1");
    bench.project.liza(&["run", "--cli", "codex", "--plain"]);
    let page = status(&bench).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("continue: liza run --cli codex"), "{page}");
    assert!(page.contains("→ liza run --cli codex"), "{page}");
    let resumed = bench.project.liza(&["resume"]).ok().to_owned();
    assert!(resumed.contains("Start it: liza run --cli codex"), "{resumed}");
    let page = status(&bench);
    assert!(page.contains("liza run --cli codex") && !page.contains("liza run\n"), "{page}");
    // Another program starts only with a word about it.
    let run = bench.project.liza(&["run", "--plain"]);
    assert!(run.stderr.contains("to start the last one again: liza run --cli codex"), "{run:#?}");
}

/// Covers: SE-03
#[test]
fn a_session_that_retries_without_a_login_is_stopped() {
    let script = r#"echo '{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":500,"error_status":401,"error":"unauthorized"}'
sleep 600"#;
    let bench = Bench::new("", &[("claude", script)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "claude"]);
    assert_eq!(coder.wait(), 1, "{}", coder.output());
    assert!(coder.output().contains("Run claude /login"), "{}", coder.output());
    bench.until_nothing_runs();
    not_blamed(&bench, "t1");
}

/// Covers: SE-04
#[test]
fn at_a_limit_the_next_client_of_the_list_takes_over() {
    let limit = r#"echo x >> "$HOME/sessions"
echo '{"type":"turn.failed","error":{"message":"You have hit your usage limit. Try again in 2 hours."}}'
exit 1"#;
    let roles = "roles: {coder: {provider: [codex, other]}}";
    let bench = Bench::new(roles, &[("codex", limit), ("other", CODER)]);
    bench.project.add_task("t1");
    bench.project.add_task("t2");
    let mut coder = bench.agent(&["coder"]);
    bench.until_status("t1", Status::ReadyForReview);
    bench.until_status("t2", Status::ReadyForReview);
    assert_eq!(sessions(&bench), 1);
    let page = status(&bench);
    let times = ["tried again in 1h", "tried again in 2h"];
    let is_timed = times.iter().any(|time| page.contains(time));
    assert!(page.contains("codex: usage limit reached") && is_timed, "{page}");
    coder.stop();
}

/// Covers: SE-04
#[test]
fn a_client_at_its_limit_is_tried_again_when_the_limit_ends() {
    let script = format!(
        r#"echo x >> "$HOME/sessions"
if [ $(wc -l < "$HOME/sessions") = 1 ]; then
  echo '{{"type":"turn.failed","error":{{"message":"Rate limit reached. Try again in 1s."}}}}'
  exit 1
fi
{CODER}"#
    );
    let bench = Bench::new("", &[("codex", &script)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "codex"]);
    coder.wait_for_output("codex is held for the team: usage limit reached");
    not_blamed(&bench, "t1");
    // The shortest pause is 30 s; the human need not wait for it.
    bench.project.liza(&["resume"]).ok();
    bench.until_status("t1", Status::ReadyForReview);
    coder.stop();
}

/// Covers: SE-12
#[test]
fn a_client_that_fails_alike_on_every_task_blocks_none_of_them() {
    let bench = Bench::new(
        "coder_max_wait: 600",
        &[("c", "echo x >> \"$HOME/sessions\"; echo 'cannot start'; exit 0")],
    );
    for task in ["t1", "t2", "t3"] {
        bench.project.add_task(task);
    }
    let mut first = bench.agent(&["coder", "--cli", "c"]);
    let mut second = bench.agent(&["coder", "--cli", "c"]);
    wait_for("the client is held", || status(&bench).contains("CLIENT HELD").then_some(()));
    let page = status(&bench);
    assert!(page.contains("c: failed") && page.contains("exited 0: cannot start"), "{page}");
    for task in ["t1", "t2", "t3"] {
        assert_ne!(bench.status(task), Status::Blocked, "{page}");
    }
    assert!(sessions(&bench) <= 5);
    first.stop();
    second.stop();
}

/// Covers: AX-30
#[test]
fn a_session_without_a_word_of_its_model_counts_against_no_task() {
    let banner = "starting session | provider: openai model: m";
    let lost = r#"{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"Network error: Could not connect"}]}}"#;
    let no_network = format!(
        "echo '{banner}'\necho '{lost}'\necho '{{\"type\":\"complete\",\"total_tokens\":0}}'; exit 0"
    );
    let cases = [
        ("goose", no_network.as_str(), "goose: provider not available", "Network error: Could not connect"),
        (
            "claude",
            "echo 'gar bage'; exit 0",
            "claude: failed",
            "exited 0 without an answer of the model: gar bage",
        ),
        ("codex", "exit 3", "codex: failed", "exited 3 without an answer of the model: it printed nothing"),
    ];
    for (client, script, what, why) in cases {
        let bench = Bench::new("", &[(client, script)]);
        bench.project.add_task("t1");
        let mut coder = bench.agent(&["coder", "--cli", client]);
        coder.wait_for_output("is held for the team");
        not_blamed(&bench, "t1");
        let page = status(&bench).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains("CLIENT HELD") && page.contains(what) && page.contains(why), "{page}");
        coder.stop();
    }
}
