//! Guards inside the sessions of real programs: a model that repeats itself, and one that spends its budget.

use liza_core::model::Status;

use crate::fixture::{Client, Scripted};
use crate::model_server::{Conversation, Move};
use crate::support::process::{Running, wait_up_to};

/// A project with one task and one coder whose model does this for ever.
fn start(
    client: Client,
    config: &[(&str, &str)],
    brain: impl Fn(&Conversation) -> Move + Send + Sync + 'static,
) -> (Scripted, Running) {
    let scripted = Scripted::new(brain);
    for (key, value) in config {
        scripted.project.set_config(key, value);
    }
    scripted.project.add_task("t1");
    let mut liza = scripted.liza(&[client]);
    liza.args(["agent", "coder", "--cli", client.name()]);
    let coder = Running::start(&scripted.project, liza);
    (scripted, coder)
}

/// The same command for ever: its session ends after 20 of them.
fn repeats(client: Client) {
    let same = |_: &Conversation| Move::Run("echo the same".to_owned());
    let (scripted, mut coder) = start(client, &[("max_crashes", "1")], same);
    let blocked = wait_up_to(std::time::Duration::from_secs(120), || {
        (scripted.project.record("t1").status == Some(Status::Blocked)).then_some(())
    });
    assert!(blocked.is_some(), "{}", coder.output());
    let shown = scripted.project.liza(&["show", "t1"]).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("it made the same tool call 20 times in a row"), "{shown}");
    let requests = scripted.model.requests().iter().filter(|request| request.starts_with("POST")).count();
    assert!(requests < 60, "{requests}");
    coder.stop();
}

/// Covers: AX-29
#[test]
fn needs_goose_a_model_that_repeats_itself_is_stopped() {
    repeats(Client::Goose);
}

/// Covers: AX-29
#[test]
fn needs_codex_a_model_that_repeats_itself_is_stopped() {
    repeats(Client::Codex);
}

/// Covers: AX-29
#[test]
fn needs_claude_a_model_that_repeats_itself_is_stopped() {
    repeats(Client::Claude);
}

/// A budget ends the session of a model that would go on for ever, and no task is blamed.
fn keeps_budget(client: Client, budget: &str) {
    let others = |conversation: &Conversation| Move::Run(format!("echo {}", conversation.tool_results));
    let (scripted, mut coder) = start(client, &[("budget", budget)], others);
    let log = || scripted.project.liza(&["log"]).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    let ended =
        wait_up_to(std::time::Duration::from_secs(120), || log().contains("ends its session").then_some(()));
    assert!(ended.is_some(), "{}\n{}", log(), coder.output());
    let reason = format!("{} was stopped: a budget is used up", client.name());
    assert!(log().contains(&reason), "{}\n{}", log(), coder.output());
    let task = scripted.project.record("t1");
    assert_eq!((task.crashes, task.idle_exits), (None, None));
    coder.stop();
}

/// Covers: AX-29
#[test]
fn needs_claude_a_budget_in_dollars_holds_within_a_session() {
    keeps_budget(Client::Claude, "{task: {dollars: 0.002}}");
}

/// Covers: AX-29
#[test]
fn needs_codex_a_budget_in_tokens_holds_within_a_session() {
    keeps_budget(Client::Codex, "{task: {tokens: 200}}");
}

/// Covers: AX-29
#[test]
fn needs_goose_a_budget_in_tokens_holds_within_a_session() {
    keeps_budget(Client::Goose, "{task: {tokens: 200}}");
}
