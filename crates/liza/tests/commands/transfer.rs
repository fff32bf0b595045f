//! `export` and `import` between two projects with files; the tests of several machines do it with a database.

use std::fs;

use crate::support::TestProject;

/// A project with a comment, an archived entry and a task, and its export.
fn exported() -> (TestProject, String) {
    let project = TestProject::new();
    for task in ["first", "second"] {
        project.add_task(task);
    }
    let text = project.state().replacen("tasks:\n", "tasks: # mine\n", 1);
    fs::write(project.root.join(".liza/state.yaml"), text).unwrap();
    fs::create_dir_all(project.root.join(".liza/archive")).unwrap();
    project.write(".liza/archive/old.yaml", "id: old # kept\n");
    project.liza(&["note", "look at first"]).ok();
    let said = project.liza(&["export", "backup.yaml"]).ok().to_owned();
    assert!(said.contains("exported to backup.yaml"), "{said}");
    let text = project.read("backup.yaml");
    (project, text)
}

/// Covers: MM-09
#[test]
fn an_exported_blackboard_fills_an_empty_one() {
    let (from, text) = exported();
    assert_eq!(from.liza(&["export"]).ok().trim_end(), text.trim_end(), "the same on standard output");
    let to = TestProject::new();
    to.write("backup.yaml", &text);
    let result = to.liza(&["import", "backup.yaml", "--json"]).result();
    assert_eq!((&result["tasks"], &result["archived"]), (&2.into(), &1.into()), "{result}");
    assert_eq!(to.tasks_in(liza_core::model::Status::Unclaimed), ["first", "second"]);
    assert!(to.state().contains("tasks: # mine"), "{}", to.state());
    assert_eq!(to.read(".liza/archive/old.yaml"), "id: old # kept\n");
    for entry in from.log().split("\n\n") {
        assert!(to.log().contains(entry.trim()), "{entry}\n---\n{}", to.log());
    }
    assert!(to.log().contains("action: imported"), "{}", to.log());
    to.liza(&["validate"]).ok();
    to.liza(&["import", "backup.yaml", "--json"]).refused(1, "exists");
    // It goes on from there.
    to.add_task("third");
}

/// Covers: MM-09
#[test]
fn what_cannot_be_imported_changes_nothing() {
    let project = TestProject::new();
    let (state, log) = (project.state(), project.log());
    project.write("state.yaml", &state);
    project.write("newer.yaml", "liza_export: 99\nstate: ''\n");
    project.write("broken.yaml", "liza_export: 1\nstate: \"tasks: [\"\n");
    project.liza(&["import", "state.yaml", "--json"]).refused(1, "bad_file");
    project.liza(&["import", "newer.yaml", "--json"]).refused(1, "bad_file");
    project.liza(&["import", "missing.yaml", "--json"]).refused(1, "io");
    project.liza(&["import", "broken.yaml", "--json"]).refused(4, "broken_state");
    project.liza_as("planner-1", &["import", "newer.yaml", "--json"]).refused(1, "not_permitted");
    project.liza_as("planner-1", &["export", "--json"]).refused(1, "not_permitted");
    assert_eq!((project.state(), project.log()), (state, log));
}

/// Covers: MM-01
#[test]
fn an_address_with_a_password_is_refused_and_not_repeated() {
    let project = TestProject::bare();
    for words in [
        &["join", "postgres://liza:hunter2-secret@127.0.0.1:1/team", "--json"][..],
        &["init", "A goal", "--store", "postgres://liza:hunter2-secret@127.0.0.1:1/team", "--json"],
    ] {
        let run = project.liza(words);
        run.refused(1, "bad_address");
        assert!(!format!("{run:?}").replace(words[words.len() - 2], "").contains("hunter2"), "{run:?}");
    }
    project.liza(&["join", "mysql://liza@127.0.0.1/team", "--json"]).refused(1, "bad_address");
    assert!(!project.root.join(".liza").exists());
}
