//! What an agent is doing, while it does it and afterwards.

use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::fixture::Bench;
use crate::support::process::{Running, wait_for};

/// A claude that runs a tool until the test lets it continue.
const SLOW: &str = r#"echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"I run the tests."},{"type":"tool_use","name":"Bash","input":{"command":"cargo test"}}]}}'
while [ ! -e "$HOME/go-on" ]; do sleep 0.05; done
echo '{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"They pass."}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"They pass."}'"#;

fn agent_of(bench: &Bench) -> serde_json::Value {
    let status = bench.project.liza(&["status", "--json"]).result();
    status["agents"]
        .as_array()
        .unwrap()
        .iter()
        .find(|agent| agent["id"] == "coder-1")
        .cloned()
        .unwrap_or_default()
}

/// Covers: SE-07
#[test]
fn the_last_action_is_shown_and_tail_follows_the_session() {
    let bench = Bench::new("quiet_limit: 60", &[("claude", SLOW)]);
    bench.project.add_task("t1");
    bench.project.liza(&["tail", "coder-1", "--json"]).refused(1, "no_output");
    let mut coder = bench.agent(&["coder", "--cli", "claude", "--once"]);
    let entry = wait_for("the last action is shown", || {
        Some(agent_of(&bench)).filter(|agent| agent["last_action"] == "Bash: cargo test")
    });
    assert_eq!(
        (&entry["client"], entry["output_age"].as_u64().is_some()),
        (&"claude".into(), true),
        "{entry}"
    );
    let page = bench.project.liza(&["status"]).ok().to_owned();
    assert!(page.contains("Bash: cargo test") && !page.contains("QUIET SESSION"), "{page}");

    let output = bench.kept("agent-outputs").pop().unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(100);
    File::options().append(true).open(output).unwrap().set_modified(long_ago).unwrap();
    let page = bench.project.liza(&["status"]).ok().to_owned();
    assert!(page.contains("QUIET SESSION") && page.contains("no output for 1m"), "{page}");
    assert!(page.contains("See it: liza tail"), "{page}");

    let mut program = bench.project.program();
    program.args(["tail", "coder-1"]);
    let mut tail = Running::start(&bench.project, program);
    tail.wait_for_output("Bash: cargo test");
    assert!(!tail.output().contains("They pass"));
    std::fs::write(bench.home().join("go-on"), "").unwrap();
    assert_eq!(tail.wait(), 0);
    assert!(
        tail.output().contains("I run the tests.") && tail.output().contains("They pass."),
        "{}",
        tail.output()
    );
    assert_eq!(coder.wait(), 0);
    let after = bench.project.liza(&["tail", "coder-1", "--last", "1"]).ok().to_owned();
    assert_eq!(after.trim(), "They pass.");
}

/// A coder that goes on for a while after its submission.
const TALKATIVE: &str = r#"
coder:
  - do:
      - pre-check: {intent: "adds a file", validation: "it exists"}
      - write: {path: a.txt, text: "a\n"}
      - commit: "Add a.txt"
      - submit
      - wait-for: {file: go-on}
      - say: "These are my last words."
"#;

/// Covers: UI-01, UI-03
#[test]
fn a_submission_is_reported_at_once_and_its_session_is_shown_until_it_ends() {
    let bench = Bench::new("", &[]);
    std::fs::write(bench.home().join("playbook.yaml"), TALKATIVE).unwrap();
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "rehearsal", "--once"]);
    coder.wait_for_output("t1 submitted for review at");
    let entry = agent_of(&bench);
    assert_eq!(
        (&entry["next"]["what"], &entry["next"]["on"]),
        (&"end_session".into(), &"t1".into()),
        "{entry}"
    );
    let page = bench.project.liza(&["status"]).ok().to_owned();
    assert!(page.contains("ENDING its work on t1"), "{page}");
    let tail_of = |of: &str| {
        let mut program = bench.project.program();
        program.args(["tail", of]);
        let tail = Running::start(&bench.project, program);
        tail.wait_for_output("submit-for-review");
        tail
    };
    let tails = ["coder-1", "t1"].map(tail_of);
    std::fs::write(bench.project.root.join("go-on"), "").unwrap();
    for mut tail in tails {
        assert_eq!(tail.wait(), 0, "{}", tail.output());
        assert!(tail.output().contains("These are my last words."), "{}", tail.output());
    }
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    assert_eq!(coder.output().matches("submitted for review").count(), 1, "{}", coder.output());
}
