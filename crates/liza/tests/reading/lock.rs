//! `liza lock`: read, write by path, modify under the lock.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Run, TestProject};

fn with_task() -> TestProject {
    let project = TestProject::new();
    project.add_task("one");
    project
}

/// Covers: CM-04
#[test]
fn reading_prints_the_file() {
    let project = with_task();
    assert_eq!(project.liza(&["lock", "read"]).ok(), project.state());
    assert_eq!(project.liza(&["lock", "read", "--json"]).result()["tasks"][0]["id"], "one");
    TestProject::bare().liza(&["lock", "read", "--json"]).refused(1, "no_project");
}

/// Covers: CM-04, BB-11
#[test]
fn a_path_is_set_with_the_type_of_its_field() {
    let project = with_task();
    let write = |path: &str, value: &str| project.liza(&["lock", "write", path, value]).ok().to_owned();
    write(".config.max_review_cycles", "3");
    write(".tasks[0].ticket", "017");
    write(".tasks[] | select(.id == \"one\") | .description", "- begins with a dash: and # more");
    project.liza(&["lock", "write", ".tasks[0].labels", "[api, urgent]", "--yaml"]).ok();
    let get = |path: &str| project.liza(&["get", path, "--json"]).result();
    assert_eq!(get(".config.max_review_cycles"), 3);
    assert_eq!(get(".tasks[0].ticket"), "017");
    assert_eq!(get(".tasks[0].labels[1]"), "urgent");
    assert_eq!(get(".tasks[0].description"), "- begins with a dash: and # more");
    assert_eq!(
        get(".tasks[0].revision"),
        get(".revision").as_u64().unwrap() - 1,
        "labels are not a known field"
    );
    assert_eq!(project.log().matches("action: edit").count(), 4);
}

/// Covers: CM-04, CM-05
#[test]
fn an_invalid_change_is_refused_and_nothing_is_written() {
    let project = with_task();
    let before = project.state();
    let refused = |path: &str, value: &str, code: &str| {
        project.liza(&["lock", "write", path, value, "--json"]).refused(1, code);
        assert_eq!(project.state(), before, "{path}");
    };
    refused(".tasks[0].status", "DOING", "invalid");
    refused(".tasks[0].status", "CLAIMED", "invalid");
    refused(".config.max_review_cycles", "many", "invalid");
    refused(".tasks[9].description", "x", "bad_path");
    refused(".tasks[x]", "x", "bad_path");
}

/// Covers: CM-04, AG-12, AC-14
#[test]
fn an_agent_sets_unknown_fields_and_the_notes_of_its_own_task() {
    let project = with_task();
    let generation = project.register("coder-1");
    project.register("coder-2");
    let write = |agent: &str, path: &str, value: &str| -> Run {
        project.liza_as(agent, &["lock", "write", path, value, "--json"])
    };
    write("coder-1", ".tasks[0].my_note", "x").ok();
    write("coder-1", ".mine", "x").ok();
    write("coder-1", ".agents.coder-1.mood", "fine").ok();
    for path in
        [".tasks[0].status", ".tasks[0].done_when", ".config.lease_duration", ".agents.coder-1.terminal"]
    {
        write("coder-1", path, "1").refused(1, "not_permitted");
    }
    write("coder-1", ".tasks[0].blocked_reason", "mine?").refused(1, "not_permitted");
    project.liza(&["lock", "write", ".tasks[0].assigned_to", "coder-1"]).ok();
    write("coder-1", ".tasks[0].blocked_reason", "mine").ok();
    write("coder-1", ".tasks[0].description", "easier").refused(1, "not_permitted");
    write("coder-2", ".tasks[0].blocked_reason", "no, mine").refused(1, "not_permitted");
    project.liza_in("coder-1", generation - 1, &["lock", "write", ".x", "1", "--json"]).refused(42, "fenced");
    project.write(".liza/ABORT", "");
    write("coder-1", ".tasks[0].my_note", "y").refused(42, "halted");
}

/// Covers: BB-11
#[test]
fn a_stale_revision_is_refused() {
    let project = with_task();
    let write = |revision: &str, path: &str| {
        project.liza(&["lock", "write", path, "x", "--if-revision", revision, "--json"])
    };
    write("1", ".tasks[0].description").refused(4, "stale_revision");
    write("2", ".tasks[0].description").ok();
    write("2", ".mine").refused(4, "stale_revision");
}

/// Covers: CM-04
#[test]
fn a_command_changes_the_file_under_the_lock() {
    let project = with_task();
    let sed = "sed 's/Do it/Do it well/' .liza/state.yaml > x && mv x \"$LIZA_STATE\"";
    let below = project.root.join("specs");
    project.run(project.program().args(["lock", "modify", sed]).current_dir(&below)).ok();
    assert!(project.state().contains("description: Do it well"));
    assert_eq!(project.liza(&["get", ".tasks[0].revision", "--json"]).result(), 3);
    project.liza(&["lock", "modify", "sed", "-i.bak", "s/well/best/", ".liza/state.yaml"]).ok();
    assert!(project.state().contains("description: Do it best"));
    let result = project.liza(&["lock", "modify", "echo this is not JSON", "--json"]).result();
    assert_eq!(result["changed"], false);
}

/// Covers: CM-04, CM-02
#[test]
fn a_command_that_fails_or_writes_an_invalid_file_is_undone() {
    let project = with_task();
    let before = project.state();
    let refused = |command: &[&str], exit: i32, code: &str| {
        let error = project.liza(&[&["--json", "lock", "modify"], command].concat()).refused(exit, code);
        assert_eq!(project.state(), before, "{command:?}");
        error
    };
    let error = refused(&["echo x >> .liza/state.yaml; exit 7"], 1, "command_failed");
    assert!(error["status"] == 7 && error["message"].as_str().unwrap().contains('7'), "{error}");
    refused(&["echo rubbish > .liza/state.yaml"], 1, "invalid");
    refused(&["rm .liza/state.yaml"], 1, "invalid");
    refused(&["sed -i.bak 's/UNCLAIMED/CLAIMED/' .liza/state.yaml; rm -f .liza/*.bak"], 1, "invalid");
    refused(&["no-such-program-here", "x"], 5, "no_program");
    assert_eq!(project.liza(&["lock", "modify", "--json"]).code, 1, "no command");
}

/// Covers: CM-04, BB-10
#[test]
fn a_nested_write_fails_at_once() {
    let project = with_task();
    let liza = env!("CARGO_BIN_EXE_liza");
    let command = format!("{liza} note hello --json > {0}/out; echo $? > {0}/code", project.home().display());
    project.liza(&["lock", "modify", &command]).ok();
    let read = |name: &str| fs::read_to_string(project.home().join(name)).unwrap();
    assert_eq!(read("code"), "2\n");
    assert!(read("out").contains("\"code\":\"locked\""), "{}", read("out"));
    project.liza(&["lock", "modify", &format!("{liza} status")]).ok();
}

/// A replacement for yq that understands the two expressions of the specification.
const YQ: &str = r#"#!/bin/sh
[ "$1" = -i ] && [ $# = 3 ] || exit 64
value() { printf '%s' "$expression" | sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p"; }
expression=$2
case $expression in
*.spec_changes*)
  awk -v t="$(value timestamp)" -v s="$(value spec)" -v c="$(value change)" -v b="$(value triggered_by)" '
    /^spec_changes:/ { print "spec_changes:\n  - timestamp: " t "\n    spec: \"" s "\"\n    change: " c "\n    triggered_by: " b; next }
    { print }' "$3" > "$3.yq" && mv "$3.yq" "$3" ;;
*'.id == "task-3" and .status == "DRAFT"'*)
  sed 's/status: DRAFT/status: UNCLAIMED/' "$3" > "$3.yq" && mv "$3.yq" "$3" ;;
*) exit 65 ;;
esac
"#;

/// The commands of the specification, literally.
const FINALIZE: &str = r#"~/.liza/scripts/liza-lock.sh modify "
  yq -i '(.tasks[] | select(.id == \"task-3\" and .status == \"DRAFT\")) |=
    select(.done_when != null and .spec_ref != null) |
    .status = \"UNCLAIMED\"' .liza/state.yaml
""#;
const SPEC_CHANGE: &str = r#"~/.liza/scripts/liza-lock.sh modify "
  yq -i '.spec_changes += [{
    \"timestamp\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\",
    \"spec\": \"specs/retry-logic.md#auth\",
    \"change\": \"Added auth token refresh retry behavior\",
    \"triggered_by\": \"task-4a\"
  }]' .liza/state.yaml
""#;

/// Covers: CM-01, CM-04
#[test]
fn the_commands_of_the_specification_work_literally() {
    let project = TestProject::new();
    let words = ["add-task", "--id", "task-3", "--desc", "x", "--spec", "specs/vision.md", "--done", "x"];
    project.liza(&[&words[..], &["--scope", "x", "--draft"]].concat()).ok();
    let scripts = project.home().join(".liza/scripts");
    fs::create_dir_all(&scripts).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_liza"), scripts.join("liza-lock.sh")).unwrap();
    let tools = project.home().join("tools");
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("yq"), YQ).unwrap();
    fs::set_permissions(tools.join("yq"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let shell = |line: &str| project.run(project.command("sh").args(["-c", line]).env("PATH", &path));
    shell(FINALIZE).ok();
    assert_eq!(project.liza(&["get", ".tasks[0].status"]).ok(), "UNCLAIMED\n");
    shell(SPEC_CHANGE).ok();
    assert_eq!(project.liza(&["get", ".spec_changes[0].triggered_by"]).ok(), "task-4a\n");
    assert!(shell("~/.liza/scripts/liza-lock.sh read").ok().starts_with("version:"));
    project.register("coder-1");
    let lease = "~/.liza/scripts/liza-lock.sh write '.agents.coder-1.lease_expires' '2099-01-17T15:00:00Z'";
    shell(lease).ok();
    assert_eq!(project.liza(&["get", ".agents.coder-1.lease_expires"]).ok(), "2099-01-17T15:00:00Z\n");
}

/// Covers: AT-12
#[test]
fn an_agent_cannot_hold_the_lock_for_long() {
    let project = TestProject::new();
    project.add_task("one");
    project.register("coder-1");
    project.liza(&["lock", "write", ".config.lock_timeout", "2"]).ok();
    let before = project.state();
    let slow = project.liza_as(
        "coder-1",
        &["--json", "lock", "modify", "echo x >> \"$LIZA_STATE\"; exec cat /dev/zero > /dev/null"],
    );
    slow.refused(1, "too_slow");
    assert_eq!(project.state(), before);
    project.liza(&["note", "the lock is free"]).ok();
}

/// Covers: AC-19
#[test]
fn a_stop_file_that_comes_during_the_wait_for_the_lock_applies() {
    let project = TestProject::new();
    project.add_task("one");
    let generation = project.register("coder-1");
    let lock = project.root.join(".liza/state.yaml.lock");
    let mut holder = std::process::Command::new("flock")
        .arg(&lock)
        .args(["sh", "-c", "echo held; read line"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(holder.stdout.as_mut().unwrap()), &mut line)
        .unwrap();
    let mut waiting = project.program();
    waiting.args(["lock", "write", ".tasks[0].mine", "x"]);
    waiting.env("LIZA_AGENT_ID", "coder-1").env("LIZA_AGENT_GENERATION", generation.to_string());
    let mut waiting =
        waiting.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    // It waits once it has opened the lock file.
    let files = format!("/proc/{}/fd", waiting.id());
    let waits = || {
        std::fs::read_dir(&files)
            .into_iter()
            .flatten()
            .flatten()
            .any(|file| std::fs::read_link(file.path()).is_ok_and(|path| path == lock))
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !waits() {
        assert!(std::time::Instant::now() < deadline, "it does not wait for the lock");
        std::thread::yield_now();
    }
    project.write(".liza/ABORT", "");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert!(!waiting.wait().unwrap().success(), "ABORT was missed");
    assert!(!project.state().contains("mine"));
}
