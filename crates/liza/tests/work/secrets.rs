//! Secrets are masked in everything that is stored, and what may hold one can be read by its owner only.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::fixture::*;
use crate::support::TestProject;

const KEY: &str = "sk-ant-0123456789abcdefghijklmnop";
const VALUE: &str = "hunter2-hunter2-hunter2";
const URL: &str = "https://user:pass-word-1234@example.com/x";

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[track_caller]
fn nothing_leaks(project: &TestProject) {
    for file in files(&project.root.join(".liza")) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        for secret in [KEY, VALUE, "pass-word-1234"] {
            assert!(!text.contains(secret), "{} has {secret}:\n{text}", file.display());
        }
    }
}

/// Covers: AT-10
#[test]
fn secrets_are_masked_in_the_log_of_an_integration_test() {
    let project = team();
    let script = format!("echo key {KEY}; echo url {URL} >&2; echo value $MY_TOKEN; echo kept; exit 1");
    let folder = project.home().join("elsewhere");
    project.git(&["worktree", "add", "-q", "-f", "--detach", folder.to_str().unwrap(), "integration"]);
    let head = commit(&project, &folder, "scripts/integration-test.sh", &format!("{script}\n"));
    project.git(&["update-ref", "refs/heads/integration", &head]);
    project.liza(&["accept-integration"]).ok();
    project.liza(&["config", "pass_env", "[MY_TOKEN]"]).ok();
    approved(&project, "one");
    let merged = project.run(project.program().args(["wt-merge", "one", "--json"]).env("MY_TOKEN", VALUE));
    merged.refused(3, "integration_test_broken");
    let log = project.read(".liza/integration-tests/one-1.log");
    assert_eq!(log.lines().last(), Some("kept"), "{log}");
    assert_eq!(log.matches("[masked]").count(), 3, "{log}");
    nothing_leaks(&project);
}

/// Covers: AT-10
#[test]
fn secrets_in_what_agents_and_people_write_are_not_stored() {
    let project = team();
    let text = format!("used {KEY} and {VALUE} at {URL}");
    let run = |agent: Option<&str>, words: &[&str]| {
        let mut program = project.program();
        program.args(words).env("MY_TOKEN", VALUE);
        if let Some(agent) = agent {
            program.env("LIZA_AGENT_ID", agent);
        }
        project.run(&mut program).ok();
    };
    run(None, &["note", &text]);
    claimed(&project, "one", "coder-1");
    run(Some("coder-1"), &["handoff", "one", "--summary", &text, "--next-action", &text]);
    run(Some("coder-1"), &["discover", "--task", "one", "--desc", &text, "--severity", "high"]);
    run(
        Some("coder-1"),
        &["mark-blocked", "one", "--reason", &text, "--question", &text, "--attempted", &text],
    );
    run(
        None,
        &[
            "lock",
            "modify",
            &format!(": {text}; sed -i 's/^config:/config:\\n  max_crashes: 6/' \"$LIZA_STATE\""),
        ],
    );
    run(None, &["watch", "--once"]);
    run(None, &["checkpoint"]);
    assert!(project.log().contains("[masked]") && project.state().contains("[masked]"));
    nothing_leaks(&project);
}

/// Covers: AT-10
#[test]
fn what_may_hold_a_secret_can_be_read_by_its_owner_only() {
    let project = team();
    approved(&project, "one");
    merge(&project, "one").ok();
    claimed(&project, "two", "coder-1");
    project
        .liza_as("coder-1", &["mark-blocked", "two", "--reason", "x", "--question", "y", "--attempted", "z"])
        .ok();
    project.liza(&["watch", "--once"]);
    project.liza(&["archive"]);
    let folder = project.root.join(".liza");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for name in ["state.yaml", "log.yaml", "alerts.log"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
    // Locks and markers hold nothing.
    let holds_text =
        |path: &&PathBuf| fs::metadata(path).unwrap().len() > 0 && !path.to_string_lossy().contains("lock");
    for file in files(&folder).iter().filter(holds_text) {
        assert_eq!(mode(file) & 0o077, 0, "{}", file.display());
    }
}

/// Covers: AT-10
#[test]
fn a_setting_may_be_a_secret() {
    let project = team();
    project.liza(&["lock", "write", ".config.escalation_webhook", URL]).ok();
    assert!(project.state().contains(URL));
    assert!(!project.log().contains("pass-word-1234"), "{}", project.log());
}

const HOOK: &str = "https://hooks.example.com/services/T000/B000/tail-end";

/// Covers: AX-13
#[test]
fn the_address_of_a_webhook_is_shown_on_request_only() {
    let project = team();
    let other = HOOK.replace("B000", "B001");
    assert!(!project.liza(&["config", "escalation_webhook", &other]).ok().contains("tail-end"));
    let sed = format!("sed -i 's|{other}|{HOOK}|' .liza/state.yaml");
    project.liza(&["lock", "modify", &sed]).ok();
    assert!(project.state().contains(HOOK));
    project.liza(&["lock", "write", ".config.escalation_webhook", HOOK]).ok();
    assert!(!project.log().contains("tail-end"), "{}", project.log());
    let ways = [&["get"][..], &["get", ".config.escalation_webhook"], &["lock", "read"], &["config"]];
    for way in ways {
        for json in [&[][..], &["--json"]] {
            let shown = project.liza(&[way, json].concat()).ok().to_owned();
            assert!(!shown.contains("tail-end") && shown.contains("(masked address)"), "{way:?}: {shown}");
            if way != ["config"] {
                assert!(project.liza(&[way, json, &["--secrets"]].concat()).ok().contains(HOOK));
                let as_agent = [way, &["--secrets", "--json"]].concat();
                project.liza_as("coder-1", &as_agent).refused(1, "not_permitted");
            }
        }
    }
}

/// Covers: AX-13
#[test]
fn the_mask_of_an_address_that_is_written_back_keeps_the_address() {
    let project = team();
    project.liza(&["config", "escalation_webhook", HOOK]).ok();
    let shown = project.liza(&["get", ".config.escalation_webhook"]).ok().trim().to_owned();
    project.liza(&["lock", "write", ".config.escalation_webhook", &shown]).ok();
    project.liza(&["config", "escalation_webhook", &shown]).ok();
    let copy = project.liza(&["lock", "copy", "--json"]).json();
    let text = copy["result"]["text"].as_str().unwrap().replacen("goal:", "mine: 1\ngoal:", 1);
    assert!(!text.contains("tail-end"), "{text}");
    let revision = copy["revision"].to_string();
    project.liza_with(&["lock", "apply", "--at", &revision, "--command", "sed"], &text).ok();
    let state = project.state();
    assert!(state.contains(&format!("escalation_webhook: {HOOK}")) && state.contains("mine: 1"), "{state}");
}

/// Covers: SE-10
#[test]
fn kept_conversations_are_removed_with_the_worktree_of_their_task() {
    let project = team();
    let kept = project.root.join(".liza/conversations");
    for task in ["one", "two"] {
        fs::create_dir_all(kept.join(task).join("claude")).unwrap();
        fs::write(kept.join(task).join("claude/1.jsonl"), "{}\n").unwrap();
    }
    rejected(&project, "two");
    assert!(kept.join("two").exists(), "its next session may resume it");
    approved(&project, "one");
    merge(&project, "one").ok();
    assert!(!kept.join("one").exists() && kept.join("two").exists());
}
