//! Guards inside a session: a model that repeats itself, endless compactions, a budget that is used up while it runs.

use liza_core::model::Status;

use crate::fixture::Bench;
use crate::support::process::wait_for;

/// Begins a session of claude, and defines `turn N COMMAND ANSWER TOKENS`.
const CLAUDE: &str = r#"echo x >> "$HOME/sessions"
echo "$@" > "$HOME/arguments"
echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
turn() {
  echo '{"type":"assistant","message":{"id":"m'$1'","content":[{"type":"tool_use","id":"t'$1'","name":"Bash","input":{"command":"'$2'"}}],"usage":{"input_tokens":'$4'}},"parent_tool_use_id":null}'
  echo '{"type":"user","message":{"content":[{"tool_use_id":"t'$1'","type":"tool_result","content":"'$3'"}]}}'
  sleep 0.02
}
number=0
"#;

/// Repeats itself for ever.
const REPEATS: &str = "while :; do number=$((number + 1)); turn $number ls same 1; done";

/// Looks again and again at something that goes on, then ends.
const WAITS: &str =
    "while [ $number -lt 60 ]; do number=$((number + 1)); turn $number ls line-$number 1; done";

/// Compacts its conversation after each turn.
const COMPACTS: &str = r#"while :; do
  number=$((number + 1)); turn $number ls line-$number 1
  echo '{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto"}}'
done"#;

/// Reads 600,000 tokens in each turn.
const EXPENSIVE: &str = "while :; do number=$((number + 1)); turn $number ls line-$number 600000; done";

/// Ends because of the program's own limit.
const OWN_LIMIT: &str = r#"turn 1 ls a 1
echo '{"type":"result","subtype":"error_max_budget_usd","is_error":true,"terminal_reason":"budget_exhausted","errors":["Reached maximum budget ($3)"],"usage":{"input_tokens":9},"total_cost_usd":3.01}'
exit 1"#;

fn bench(config: &str, script: &str) -> Bench {
    let bench = Bench::new(config, &[("claude", &format!("{CLAUDE}{script}"))]);
    bench.project.add_task("t1");
    bench
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn log(bench: &Bench) -> String {
    words(bench.project.liza(&["log"]).ok())
}

/// Covers: AX-29
#[test]
fn a_session_that_repeats_itself_ends_and_in_the_end_its_task_is_blocked_for_that_reason() {
    let bench = bench("max_crashes: 2", REPEATS);
    let mut coder = bench.agent(&["coder", "--cli", "claude"]);
    bench.until_status("t1", Status::Blocked);
    let reason = "it made the same tool call 20 times in a row";
    let log = log(&bench);
    assert!(log.contains(&format!("claude was stopped: {reason}")), "{log}");
    assert_eq!(bench.until_file("sessions").lines().count(), 2, "{log}");
    let shown = words(bench.project.liza(&["show", "t1"]).ok());
    assert!(shown.contains(reason), "{shown}");
    let status = words(bench.project.liza(&["status"]).ok());
    assert!(!status.contains("CLIENT HELD"), "its program works: {status}");
    assert!(coder.output().contains(&format!("stopping the session: {reason}")), "{}", coder.output());
    coder.stop();
    bench.until_nothing_runs();
}

/// Covers: AX-29
#[test]
fn a_session_that_waits_for_something_goes_on_and_one_that_compacts_without_end_does_not() {
    let waiting = bench("", WAITS);
    assert_eq!(waiting.agent(&["coder", "--cli", "claude", "--once"]).wait(), 0);
    assert!(log(&waiting).contains("claude exited 0"), "{}", log(&waiting));
    let compacting = bench("", COMPACTS);
    compacting.agent(&["coder", "--cli", "claude", "--once"]).wait();
    let log = log(&compacting);
    assert!(log.contains("claude was stopped: its conversation was compacted 4 times"), "{log}");
    assert_eq!(compacting.task("t1").crashes, Some(1), "it counts, so that it ends");
}

/// A budget ended the only session: no task is blamed, and the team waits for the person.
#[track_caller]
fn ends_by_budget(bench: &Bench) {
    let mut coder = bench.agent(&["coder", "--cli", "claude"]);
    let checkpoint = bench.project.root.join(".liza/CHECKPOINT");
    wait_for("there is a checkpoint", || checkpoint.exists().then_some(()));
    wait_for("the session has ended", || log(bench).contains("claude was stopped").then_some(()));
    let log = log(bench);
    assert!(log.contains("claude was stopped: a budget is used up"), "{log}");
    assert_eq!(bench.until_file("sessions").lines().count(), 1, "{log}");
    let task = bench.task("t1");
    assert_eq!((task.crashes, task.idle_exits, task.status), (None, None, Some(Status::Claimed)));
    coder.stop();
}

/// Covers: AX-29
#[test]
fn a_budget_in_dollars_holds_within_a_session_by_the_prices_of_its_tokens() {
    let config = "budget: {task: {dollars: 3}}\nprices: {m: {input: 1, output: 10}}\nroles: {coder: {provider: claude, model: m}}\nstop_grace: 600";
    let bench = bench(config, EXPENSIVE);
    ends_by_budget(&bench);
    assert!(bench.until_text("arguments").contains("--max-budget-usd 3.0000"));
    let cost = bench.task("t1").usage.unwrap().cost_usd;
    assert!((3.0..5.0).contains(&cost), "at its next tool call: {cost}");
}

/// Covers: AX-29
#[test]
fn a_budget_in_tokens_holds_within_a_session() {
    let bench = bench("budget: {sprint: {tokens: 2000000}}\nstop_grace: 600", EXPENSIVE);
    ends_by_budget(&bench);
    assert!(!bench.until_text("arguments").contains("--max-budget-usd"));
}

/// Covers: AX-29
#[test]
fn a_program_that_keeps_the_budget_itself_is_not_at_fault() {
    let bench = bench("budget: {day: {dollars: 3}}\nstop_grace: 600", OWN_LIMIT);
    ends_by_budget(&bench);
}
