//! `liza edit`: an editor on a copy, merged block by block.

use std::path::Path;

use crate::support::{Run, TestProject};

fn with_tasks() -> TestProject {
    let project = TestProject::new();
    project.add_task("one");
    project.add_task("two");
    project
}

/// Runs `liza edit` with a shell command as the editor; the copy is its `$1`.
fn edit(project: &TestProject, editor: &str, arguments: &[&str]) -> Run {
    let script = project.home().join("editor");
    std::fs::write(
        &script,
        format!("set -e\nedited() {{ sed \"$1\" \"$2\" > \"$2.x\"; mv \"$2.x\" \"$2\"; }}\n{editor}\n"),
    )
    .unwrap();
    let editor = format!("sh {}", script.display());
    let liza = Path::new(env!("CARGO_BIN_EXE_liza")).parent().unwrap();
    let path = format!("{}:{}", liza.display(), std::env::var("PATH").unwrap());
    project.run(project.program().arg("edit").args(arguments).env("EDITOR", editor).env("PATH", path))
}

/// Covers: BB-16
#[test]
fn concurrent_changes_of_others_are_kept() {
    let project = with_tasks();
    let editor =
        "liza note meanwhile; liza edit-task two --priority 1; edited 's/Do it/Do it well # really/' \"$1\"";
    let run = edit(&project, editor, &["one"]);
    assert!(run.ok().contains("change applied"), "{run:#?}");
    let state = project.state();
    for kept in ["description: Do it well # really", "message: meanwhile", "priority: 1"] {
        assert!(state.contains(kept), "{kept} in\n{state}");
    }
    assert_eq!(state.matches("Do it well").count(), 1);
    assert!(!project.root.join(".liza/edits").exists());
    assert_eq!(project.liza(&["validate"]).ok(), "VALID\n");
}

/// Covers: BB-16
#[test]
fn the_whole_file_can_be_edited() {
    let project = with_tasks();
    project.set_config("max_review_cycles", "5");
    let editor = "liza register coder-1; edited 's/max_review_cycles: 5/max_review_cycles: 7 # mine/' \"$1\"";
    let result = edit(&project, editor, &["--json"]);
    // The commands inside the editor print too; ours is the last line.
    let last = result.stdout.lines().last().unwrap();
    assert!(last.contains("\"changed\":true"), "{result:#?}");
    assert!(project.state().contains("max_review_cycles: 7 # mine"));
    assert!(project.state().contains("coder-1:"));
}

/// Covers: BB-16
#[test]
fn a_conflict_is_named_and_the_copy_is_kept() {
    let project = with_tasks();
    let editor = "liza edit-task one --priority 1 >&2; edited 's/priority: 3/priority: 5/' \"$1\"";
    let error = edit(&project, editor, &["one", "--json"]).refused(4, "conflict");
    assert_eq!(error["places"][0], "tasks.one.priority", "{error}");
    let copy = std::fs::read_to_string(error["copy"].as_str().unwrap()).unwrap();
    assert!(copy.contains("priority: 5"), "{copy}");
    assert!(project.state().contains("priority: 1"));
}

/// Covers: BB-16, CM-05
#[test]
fn an_invalid_change_is_refused_and_the_copy_is_kept() {
    let project = with_tasks();
    let before = project.state();
    let error =
        edit(&project, "edited 's/UNCLAIMED/CLAIMED/' \"$1\"", &["one", "--json"]).refused(1, "invalid");
    assert!(error["hint"].as_str().unwrap().contains(".liza/edits/"), "{error}");
    edit(&project, "echo '{[' >> \"$1\"", &["--json"]).refused(1, "invalid");
    assert_eq!(project.state(), before);
}

/// Covers: CM-05
#[test]
fn no_change_a_missing_editor_and_an_unknown_task() {
    let project = with_tasks();
    let before = project.state();
    assert!(edit(&project, "true", &[]).ok().contains("nothing"));
    edit(&project, "exit 3", &["--json"]).refused(1, "editor_failed");
    edit(&project, "true", &["nobody", "--json"]).refused(1, "unknown_task");
    let missing = project.run(project.program().args(["edit", "--json"]).env("EDITOR", "no-such-editor"));
    missing.refused(5, "no_program");
    project.liza_as("coder-1", &["edit", "--json"]).refused(1, "not_permitted");
    assert_eq!(project.state(), before);
}

/// Covers: BB-16
#[test]
fn an_outdated_save_can_be_merged() {
    let project = with_tasks();
    let opened = project.state();
    project.liza(&["note", "in between"]).ok();
    project.write(".liza/state.yaml", &opened.replacen("Do it", "Do it my way", 1));
    let run = project.liza(&["note", "after"]);
    assert!(run.stderr.contains("stale-1"), "{run:#?}");
    assert!(!project.state().contains("my way"));
    assert!(project.liza(&["status"]).ok().contains("STALE EDIT"));
    project.liza(&["edit", "--from", ".liza/state.yaml.stale-1"]).ok();
    let state = project.state();
    assert!(
        state.contains("Do it my way") && state.contains("in between") && state.contains("after"),
        "{state}"
    );
    assert!(!project.liza(&["status"]).ok().contains("STALE EDIT"));
    project.liza(&["edit", "--from", "nowhere", "--json"]).refused(1, "no_file");
}

/// `liza edit one` in a terminal of its own, with these keys typed.
fn edit_at_terminal(project: &TestProject, editor: &str, keys: &str) -> String {
    let script = project.home().join("editor");
    std::fs::write(&script, editor).unwrap();
    let mut terminal = project.command("script");
    terminal.args(["-qec", &format!("{} edit one", env!("CARGO_BIN_EXE_liza")), "/dev/null"]);
    terminal.env("EDITOR", format!("sh {}", script.display())).env("TERM", "dumb");
    terminal.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child =
        terminal.spawn().expect("script(1) is installed; ./check leaves this test out without it");
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), keys.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Covers: BB-16, CM-05
#[test]
fn needs_script_a_person_at_a_terminal_is_asked_to_fix_an_invalid_change() {
    // Invalid the first time, fixed the second time.
    let editor = r#"if [ -e "$HOME/again" ]; then with='s/status: NONSENSE/status: UNCLAIMED/;s/Do it/Do it well/'
else touch "$HOME/again"; with='s/status: UNCLAIMED/status: NONSENSE/'; fi
sed "$with" "$1" > "$1.x" && mv "$1.x" "$1""#;
    let project = with_tasks();
    let said = edit_at_terminal(&project, editor, "y\n");
    assert!(said.contains("NONSENSE") && said.contains("open your copy again to fix it? [Y/n]"), "{said}");
    assert!(said.contains("change applied"), "{said}");
    assert!(project.state().contains("description: Do it well"), "{}", project.state());

    let project = with_tasks();
    let before = project.state();
    let said = edit_at_terminal(&project, editor, "n\n");
    assert!(said.contains("your copy is kept in"), "{said}");
    assert_eq!(project.state(), before);
}

/// Covers: AC-20
#[test]
fn a_rewrite_of_the_whole_file_is_reported_everywhere() {
    let project = TestProject::new();
    let board = "{version: 1, revision: 9, goal: {id: goal-1, description: d, status: IN_PROGRESS}, # mine\n tasks: [], agents: {}, config: {}}\n";
    project.write(".liza/state.yaml", board);
    let run = project.liza(&["note", "x"]);
    run.ok();
    assert!(run.stderr.contains("before-rewrite-1"), "{run:#?}");
    assert_eq!(project.read(".liza/state.yaml.before-rewrite-1"), board);
    assert!(project.log().contains("before-rewrite-1"), "{}", project.log());
    let status = project.liza(&["status"]);
    assert!(status.ok().contains("before-rewrite-1"), "{status:#?}");
}

/// Covers: AC-21
#[test]
fn a_file_without_a_revision_is_used_and_can_be_merged() {
    let project = with_tasks();
    let state = project.state();
    let revision = state.lines().find(|line| line.starts_with("revision:")).unwrap().to_owned();
    let without = state.replacen(&format!("{revision}\n"), "", 1).replacen("Do it", "Do it my way", 1);
    project.write(".liza/mine.yaml", &without);
    project.liza(&["edit", "--from", ".liza/mine.yaml"]).ok();
    assert!(project.state().contains("Do it my way"), "{}", project.state());
    project.write(".liza/state.yaml", &without.replacen("my way", "at once", 1));
    let run = project.liza(&["note", "after"]);
    run.ok();
    assert!(run.stderr.contains("without a revision"), "{run:#?}");
    assert!(project.state().contains("Do it at once"), "{}", project.state());
}

/// Covers: AC-25, AC-28, AT-09
#[test]
fn a_lost_blackboard_is_explained_and_restored() {
    let project = with_tasks();
    let ours = project.state();
    std::fs::remove_file(project.root.join(".liza/state.yaml")).unwrap();
    let error = project.liza(&["status", "--json"]).refused(4, "lost");
    assert_eq!(error["hint"], "liza recover", "{error}");
    let init = project.liza(&["init", "again"]);
    assert!(init.stderr.contains("liza recover"), "{init:#?}");
    let run = project.liza(&["recover"]);
    assert!(run.ok().contains("was restored"), "{run:#?}");
    assert!(
        project.state().contains("Do it") && project.state().len() + 200 > ours.len(),
        "{}",
        project.state()
    );
    project.write(".liza/state.yaml", &project.state().replacen("version: 1", "version: 3", 1));
    let invalid = project.liza(&["validate"]);
    assert!(invalid.code != 0 && invalid.stdout.contains("version 3"), "{invalid:#?}");
}

/// Covers: AC-28
#[test]
fn a_damaged_log_is_reported() {
    let project = with_tasks();
    project.liza(&["note", "first"]).ok();
    project.liza(&["note", "second"]).ok();
    project.write(".liza/log.yaml", &project.log().replacen("detail: first", "detail: [first", 1));
    let validate = project.liza(&["validate"]);
    assert!(validate.stderr.contains("log.yaml:") && validate.ok().contains("VALID"), "{validate:#?}");
    let doctor = project.liza(&["doctor"]);
    assert!(doctor.stdout.contains("log.yaml:"), "{doctor:#?}");
}

/// Covers: AX-09
#[test]
fn a_file_that_is_not_yaml_is_blamed_and_not_the_blackboard() {
    let project = with_tasks();
    project.write("mine.yaml", &project.state().replacen("\ngoal:\n", "\ngoal: [\n", 1));
    let error = project.liza(&["edit", "--from", "mine.yaml", "--json"]).refused(1, "invalid");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("mine.yaml:") && !message.contains("state.yaml"), "{error}");
}
