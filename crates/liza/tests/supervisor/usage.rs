//! The usage of sessions: read from their output, added up, shown, and reported when the context is almost full.

use std::fs;

use liza_core::model::Status;
use serde_json::Value;

use crate::fixture::Bench;
use crate::support::process::wait_for;

fn bench(playbook: &str) -> Bench {
    let bench = Bench::new("coder_max_wait: 600\nmax_idle_exits: 1", &[]);
    fs::write(bench.home().join("playbook.yaml"), playbook).unwrap();
    bench.project.add_task("t1");
    bench.project.liza(&["add-task", "--id", "later", "--desc", "x", "--draft"]).ok();
    bench
}

fn agent_of(status: &Value) -> Value {
    let agents = status["agents"].as_array().unwrap();
    agents.iter().find(|agent| agent["id"] == "coder-1").cloned().unwrap_or_default()
}

fn task_of(status: &Value) -> Value {
    status["tasks"].as_array().unwrap().iter().find(|task| task["id"] == "t1").cloned().unwrap()
}

/// Covers: AG-14, AX-22
#[test]
fn reported_usage_adds_up_for_agent_and_task() {
    let bench = bench(
        "coder:
  - when: {session: 1}
    do:
      - usage: {input: 1000, output: 100, cached: 400, cost-usd: 0.25, context-percent: 88}
      - usage: {input: 500, output: 10, cost-usd: 0.5, context-percent: 34}
      - handoff: {summary: half of it, next-action: the rest}
  - when: {session: 2}
    do:
      - usage: {input: 11000, output: 7, context-percent: 12}
      - write: {path: t1.txt, text: done}
      - commit: done
      - submit
",
    );
    let mut coder = bench.agent(&["coder", "--cli", "rehearsal"]);
    bench.until_status("t1", Status::ReadyForReview);
    coder.wait_for_output("waiting");
    let status = bench.project.liza(&["status", "--json"]).result();
    let (agent, task) = (agent_of(&status), task_of(&status));
    let all = serde_json::json!({"input": 12_500, "output": 117, "cached": 400, "cost_usd": 0.75,
        "unpriced": 11_007});
    assert_eq!((&agent["usage"], &task["usage"]), (&all, &all), "{agent:#} {task:#}");
    assert_eq!(agent["context_percent"], 12, "the last reported value");
    let text = bench.project.liza(&["status"]).ok().to_owned();
    assert!(text.contains("context 12 % · 12.6k tokens, $0.75 + 11k"), "{text}");
    // The line of the sprint has no room for it at this width, and drops it as a whole.
    assert_eq!(text.matches("12.6k tokens, $0.75").count(), 2, "agent and task: {text}");
    assert_eq!((&status["sprint"]["usage"], &status["goal"]["usage"]), (&all, &all), "{status:#}");
    let shown = bench.project.liza(&["show", "t1"]).ok().to_owned();
    assert!(shown.contains("12,617 tokens (12,500 in, 117 out), 400 from the cache, $0.75"), "{shown}");
    coder.stop();
    let task = task_of(&bench.project.liza(&["status", "--json"]).result());
    assert_eq!(task["usage"], all, "the usage of the task stays when the agent is gone");
}

/// Covers: AG-15, AX-22
#[test]
fn a_rehearsal_uses_no_tokens() {
    let bench = bench("coder: []\n");
    let mut coder = bench.agent(&["coder", "--cli", "rehearsal", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    assert_eq!(bench.task("t1").usage, None);
    let status = bench.project.liza(&["status"]).ok().to_owned();
    let shown = bench.project.liza(&["show", "t1"]).ok().to_owned();
    assert!(!status.contains("tokens") && !shown.contains("Used "), "{status}\n{shown}");
}

/// Covers: AG-14
#[test]
fn at_ninety_percent_the_human_and_the_agent_are_notified() {
    let bench = bench(
        "coder:
  - when: {session: 1}
    do:
      - usage: {context-percent: 93.4}
      - wait-for: {file: go-on}
      - liza: [show, '{task}']
      - handoff: {summary: half of it, next-action: the rest}
      - liza: [show, '{task}']
  - do: [{wait-for: {file: never}}]
",
    );
    let mut coder = bench.agent(&["coder", "--cli", "rehearsal"]);
    coder.wait_for_output("93 % of its context is used; it should hand off");
    let alert = wait_for("the alert is raised", || {
        let status = bench.project.liza(&["status", "--json"]).result();
        status["alerts"].as_array().unwrap().iter().find(|alert| alert["kind"] == "CONTEXT FULL").cloned()
    });
    assert_eq!(alert["text"], "coder-1 on t1 — 93 % of its context is used, it should hand off");
    bench.project.write("go-on", "");
    coder.wait_for_output("session ended");
    let said = bench.outputs();
    assert_eq!(said.matches("93 % of your context is used").count(), 1, "not after the handoff: {said}");
    assert!(said.contains("liza handoff t1 --summary"), "{said}");
    wait_for("a new session begins with an empty context", || {
        (bench.kept("agent-prompts").len() == 2 && bench.entry("coder-1")?.context_percent.is_none())
            .then_some(())
    });
    let status = bench.project.liza(&["status", "--json"]).result();
    let kinds: Vec<&Value> =
        status["alerts"].as_array().unwrap().iter().map(|alert| &alert["kind"]).collect();
    assert!(!kinds.contains(&&Value::from("CONTEXT FULL")), "{kinds:?}");
    coder.stop();
}

/// Covers: AG-14, AG-10
#[test]
fn invalid_events_and_floods_in_the_output_are_harmless() {
    let bench = bench(
        r#"coder:
  - do:
      - say: '{"type":"usage","input":-5}'
      - say: '{"type":"usage","input":1e400,"cost_usd":1e400}'
      - say: '{"type":"usage","input":18446744073709551616}'
      - say: '{"type":"usage","input":1,"context_percent":1000000}'
      - say: '{"type":"usage","key":"very-secret-value-0123456789","output":5}'
      - say: '  {"type":"usage","output":700}'
      - check: echo '{"type":"usage","output":9000}'
      - misbehave: {flood: 18000}
      - usage: {output: 2}
"#,
    );
    let mut coder = bench.agent(&["coder", "--cli", "rehearsal", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    assert!(coder.output().contains("too much output"), "{}", coder.output());
    let usage = bench.task("t1").usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cost_usd), (0, 7, 0.0), "events after the flood count too");
    assert!(!bench.project.state().contains("very-secret") && !bench.outputs().contains("very-secret"));
    bench.check_valid();
}

/// Sessions that cost two dollars each and leave the work unfinished.
const EXPENSIVE: &str = "coder:
  - do:
      - usage: {input: 1000, output: 100, cost-usd: 2.0}
      - handoff: {summary: half of it, next-action: the rest}
";

/// Covers: SE-06
#[test]
fn a_budget_that_is_used_up_is_a_checkpoint_until_it_is_raised() {
    let bench =
        Bench::new("coder_max_wait: 600\nbudget: {sprint: {dollars: 3}, day: {tokens: 1000000}}", &[]);
    fs::write(bench.home().join("playbook.yaml"), EXPENSIVE).unwrap();
    bench.project.add_task("t1");
    let mut coder = bench.agent_in_zone("Pacific/Kiritimati", &["coder", "--cli", "rehearsal"]);
    let checkpoint = bench.project.root.join(".liza/CHECKPOINT");
    wait_for("there is a checkpoint", || checkpoint.exists().then_some(()));
    let page = bench.project.liza(&["status"]).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("budget: the sprint $4.00 of $3.00"), "{page}");
    assert!(page.contains("BUDGET") && page.contains("liza config budget.sprint.dollars"), "{page}");
    let refused = bench.project.liza(&["resume", "--json"]).refused(1, "budget_used_up");
    assert!(refused["hint"].to_string().contains("liza config budget.sprint.dollars"), "{refused}");
    // It is 14 hours ahead of UTC all year.
    let today = bench.state().board.sprint().unwrap().today.clone().unwrap();
    assert_eq!((today.until.unix() + 14 * 3600) % 86_400, 0, "{today:?}");
    let left = today.until.unix() - liza_team::project::now().unix();
    assert!((0..=86_400).contains(&left), "{left}");
    bench.project.liza(&["config", "budget.sprint.dollars", "50"]).ok();
    bench.project.liza(&["resume"]).ok();
    let cost = || bench.task("t1").usage.map_or(0.0, |usage| usage.cost_usd);
    wait_for("work continues", || (cost() > 4.0).then_some(()));
    coder.stop();
}

/// Covers: SE-06
#[test]
fn a_budget_in_dollars_needs_a_cost() {
    let config = "budget: {task: {dollars: 3}}";
    let bench = Bench::new(config, &[("codex", "exit 0")]);
    bench.project.add_task("t1");
    let refused = bench.project.liza(&["agent", "coder", "--cli", "codex", "--once", "--json"]);
    let error = refused.refused(1, "no_price");
    assert!(error["hint"].as_str().unwrap().contains("liza config roles.ROLE.model MODEL"), "{error}");
    bench.project.liza(&["run", "--cli", "codex", "--json"]).refused(1, "no_price");
    // What the hint says works, for a model with a dot in its name, too.
    bench.project.liza(&["config", "roles.coder", "{provider: codex, model: gpt-4.1}"]).ok();
    let error = bench.project.liza(&["agent", "coder", "--once", "--json"]).refused(1, "no_price");
    assert!(
        error["hint"].as_str().unwrap().contains(r#"liza config 'prices."gpt-4.1"' '{input:"#),
        "{error}"
    );
    bench.project.liza(&["config", r#"prices."gpt-4.1""#, "{input: 1, output: 10, cached: 0.1}"]).ok();
    assert!((bench.state().board.config().unwrap().prices["gpt-4.1"].output - 10.0).abs() < 0.1);
    let script = r#"echo '{"type":"turn.completed","usage":{"input_tokens":1000000,"cached_input_tokens":600000,"output_tokens":20000}}'"#;
    let prices = "budget: {task: {dollars: 3}}\nprices: {gpt-5: {input: 1, output: 10, cached: 0.1}}\nroles: {coder: {provider: codex, model: gpt-5}}";
    let bench = Bench::new(prices, &[("codex", script)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--once"]);
    coder.wait();
    let cost = bench.task("t1").usage.unwrap().cost_usd;
    assert!((cost - 0.66).abs() < 1e-9, "{cost}: {}", coder.output());
}

/// Covers: AX-32
#[test]
fn a_cost_of_zero_with_tokens_is_an_unknown_cost_and_a_budget_in_dollars_says_so() {
    let script = r#"echo '{"type":"step_finish","sessionID":"s","part":{"cost":0,"tokens":{"input":9000,"output":1000}}}'"#;
    let bench = Bench::new("budget: {sprint: {dollars: 3}}", &[("opencode", script)]);
    bench.project.add_task("t1");
    bench.agent(&["coder", "--cli", "opencode", "--once"]).wait();
    let usage = bench.task("t1").usage.unwrap();
    assert_eq!((usage.dollars(), usage.unpriced), (None, 10_000));
    let page = bench.project.liza(&["status"]).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    let alarm = "BUDGET the sprint: $0.00 and 10k tokens without a price of $3.00 used";
    assert!(page.contains(alarm) || page.contains(&alarm.replacen("BUDGET ", "BUDGET: ", 1)), "{page}");
}
