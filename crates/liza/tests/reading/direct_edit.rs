//! What someone changes in state.yaml without a command: logged, shown to the human, and dismissed.

use crate::support::TestProject;

/// Covers: AT-04
#[test]
fn a_status_that_was_written_into_the_file_needs_the_human_until_it_is_dismissed() {
    let project = TestProject::new();
    project.add_task("one");
    project.write(".liza/state.yaml", &project.state().replacen("status: UNCLAIMED", "status: ABANDONED", 1));
    project.liza(&["note", "x"]).ok();
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(status.contains("DIRECT EDIT") && status.contains("tasks.one.status"), "{status}");
    let log = project.liza(&["log", "--json"]).ok().to_owned();
    assert!(log.contains("edited by hand"), "{log}");
    let needs = project.liza(&["status", "--json"]).json()["result"]["needs_you"].clone();
    let command = needs[0]["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[..2], ["liza", "dismiss"]);
    let watched = project.liza(&["watch", "--once"]);
    assert!(format!("{watched:?}").contains("DIRECT EDIT"), "{watched:?}");
    project.liza_as("coder-1", &["dismiss", words[2], "--json"]).refused(1, "not_permitted");
    project.liza(&words[1..]).ok();
    assert!(!project.liza(&["status"]).ok().contains("DIRECT EDIT"));
    project.liza(&["dismiss", words[2], "--json"]).refused(1, "unknown_edit");
    assert!(project.liza(&["dismiss", "task-1"]).stderr.contains("edit-N"));
}

/// Covers: AX-10
#[test]
fn a_look_notices_an_edit_before_any_write_and_the_person_can_dismiss_it() {
    let project = TestProject::new();
    project.add_task("one");
    project.write(".liza/state.yaml", &project.state().replacen("status: UNCLAIMED", "status: ABANDONED", 1));
    let written = project.state();
    let needs = project.liza(&["status", "--json"]).json()["result"]["needs_you"].clone();
    assert_eq!(needs[0]["kind"], "DIRECT EDIT", "{needs}");
    assert_eq!(project.state(), written, "a look writes nothing");
    let command = needs[0]["command"].as_str().unwrap().to_owned();
    let words: Vec<&str> = command.split(' ').collect();
    project.liza(&words[1..]).ok();
    assert!(!project.liza(&["status"]).ok().contains("DIRECT EDIT"));
    let log = project.liza(&["log", "--json"]).ok().to_owned();
    assert!(log.contains("edited by hand"), "{log}");
}

/// Covers: AT-04
#[test]
fn lock_write_and_lock_modify_are_logged_with_their_author_and_are_no_direct_edits() {
    let project = TestProject::new();
    project.add_task("one");
    project.liza(&["lock", "write", ".config.integration_branch", "other"]).ok();
    project.liza(&["lock", "modify", "sed -i 's/other/integration/' .liza/state.yaml"]).ok();
    project.liza(&["note", "x"]).ok();
    let log = std::fs::read_to_string(project.root.join(".liza/log.yaml")).unwrap();
    assert!(!log.contains("edited by hand"), "{log}");
    assert_eq!(log.matches("action: edit\n").count(), 2, "{log}");
    assert!(log.contains("lock modify sed"), "{log}");
    assert!(!project.liza(&["status"]).ok().contains("DIRECT EDIT"));
}

/// Covers: AX-09
#[test]
fn lock_write_on_a_task_that_has_ended_is_an_alarm_like_a_direct_edit() {
    let project = TestProject::new();
    for id in ["one", "two"] {
        project.add_task(id);
        project.liza(&["abandon-task", id, "--reason", "not needed"]).ok();
    }
    let write = |key: &str, value: &str| {
        let path = format!(".tasks[] | select(.id == \"one\") | .{key}");
        project.liza(&["lock", "write", &path, value]).ok();
    };
    write("description", "better");
    assert!(!project.liza(&["status"]).ok().contains("DIRECT EDIT"), "as with a direct edit");
    write("status", "UNCLAIMED");
    assert!(project.liza(&["status"]).ok().contains("only commands should change it: tasks.one.status"));
    write("priority", "1");
    project.liza(&["lock", "modify", "sed -i s/ABANDONED/UNCLAIMED/ .liza/state.yaml"]).ok();
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(status.contains("tasks.two.status") && status.matches("DIRECT EDIT").count() == 2, "{status}");
}
