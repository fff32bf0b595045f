//! Which ID an agent gets.

use crate::fixture::{Bench, CODER};

/// Covers: AG-01, AG-02
#[test]
fn an_agent_id_must_match_the_role_and_be_free() {
    let bench = Bench::new("coder_max_wait: 600", &[("c", CODER)]);
    bench.project.liza(&["add-task", "--id", "later", "--desc", "x", "--draft"]).ok();
    let agent =
        |words: &[&str]| bench.project.liza(&[&["agent", "coder", "--cli", "c", "--json"], words].concat());
    assert!(
        agent(&["--id", "planner-1"]).refused(1, "bad_agent_id")["message"]
            .as_str()
            .unwrap()
            .contains("coder-N")
    );
    agent(&["--id", "bob"]).refused(1, "bad_agent_id");
    let mut named = bench.project.program();
    named.args(["agent", "coder", "--cli", "c", "--json"]).env("LIZA_AGENT_ID", "code-reviewer-1");
    bench.project.run(&mut named).refused(1, "bad_agent_id");

    let mut first = bench.agent(&["coder", "--cli", "c"]);
    first.wait_for_output("coder-1          waiting");
    let mut second = bench.agent(&["coder", "--cli", "c"]);
    second.wait_for_output("coder-2          waiting");
    agent(&["--id", "coder-2"]).refused(1, "refused");
    assert!(bench.entry("coder-2").is_some(), "a failed registration removes no agent");
    first.stop();
    second.stop();
    assert!(bench.state().board.agents().unwrap().is_empty());
}
