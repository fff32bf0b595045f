//! People edit the file while the store writes it.

use std::time::Duration;

use liza_core::model::LogEntry;
use liza_store::{LOCK_HELD_ENV, Notice, StoreError, ValueSyntax};

use crate::support::*;

fn entry() -> LogEntry {
    LogEntry { action: "edit".to_owned(), detail: "manual".to_owned(), ..first_entry() }
}

/// Covers: BB-16
#[test]
fn an_edit_of_the_current_version_is_kept() {
    let project = Project::new("edit");
    project.add_task("one");
    project.write(&project.text().replace("priority: 3", "priority: 1 # urgent"));
    assert_eq!(project.run(note("x")), 3);
    assert!(project.text().contains("priority: 1 # urgent"));
    assert!(!project.names().iter().any(|name| name.contains("stale")));
}

/// Covers: BB-16
#[test]
fn a_save_of_an_older_version_does_not_undo_a_write() {
    for by_rename in [false, true] {
        for unchanged in [false, true] {
            let project = Project::new("stale");
            project.add_task("one");
            let opened = project.text();
            project.add_task("two");
            let ours = project.text();
            let theirs = if unchanged { opened } else { opened.replace("priority: 3", "priority: 1") };
            if by_rename {
                std::fs::write(project.file("their-copy"), &theirs).unwrap();
                std::fs::rename(project.file("their-copy"), project.file("state.yaml")).unwrap();
            } else {
                project.write(&theirs);
            }
            let outcome = project.submit(note("x")).unwrap();
            let [Notice::StaleSave { kept, based_on, current }] = &outcome.notices[..] else {
                panic!("{:?}", outcome.notices)
            };
            assert_eq!((*based_on, *current, outcome.revision.0), (Some(2), 3, 4));
            assert_eq!(std::fs::read_to_string(kept).unwrap(), theirs);
            assert_eq!(kept.file_name().unwrap(), "state.yaml.stale-1");
            let state = project.store().snapshot().unwrap();
            assert_eq!(state.board.tasks.len(), 2, "{}", project.text());
            assert!(project.text().starts_with(&ours[..10]));
            assert_eq!(project.log().matches("- timestamp").count(), 4);
        }
    }
}

/// Covers: BB-16
#[test]
fn recovery_restores_our_version_byte_for_byte() {
    let project = Project::new("recover");
    let mut versions = vec![project.text()];
    for id in ["one", "two", "three"] {
        project.add_task(id);
        versions.push(project.text());
    }
    project.run(register("coder-1"));
    // The version before an unlogged write: only the missing temporary file shows that the write is complete.
    versions.push(project.text());
    project.run(heartbeat("coder-1"));
    let ours = project.text();
    for (n, old) in versions.iter().enumerate() {
        project.write(old);
        let notices = project.store().recover().unwrap();
        assert!(matches!(&notices[..], [Notice::StaleSave { .. }]), "{n}: {notices:?}");
        assert_eq!(project.text(), ours, "{n}");
        assert!(project.store().recover().unwrap().is_empty());
    }
    project.write("garbage: [");
    assert!(matches!(&project.store().recover().unwrap()[..], [Notice::StaleSave { based_on: None, .. }]));
    assert_eq!(project.text(), ours);
}

/// Covers: CM-04
#[test]
fn a_value_written_by_path_takes_the_type_of_its_field() {
    let project = Project::new("path");
    project.add_task("one");
    project.run(register("coder-1"));
    let store = project.store();
    let set = |path: &str, value: &str| {
        store.begin_edit().unwrap().set(path, value, ValueSyntax::BySchema, &entry(), now())
    };
    set(".tasks[] | select(.id == \"one\") | .priority", "1").unwrap();
    set(".tasks[0].my_field", "017").unwrap();
    set(".agents.coder-1.terminal", "no").unwrap();
    set(".agents.coder-1.heartbeat", "2025-01-17T15:00:00Z").unwrap();
    let text = project.text();
    for line in ["    priority: 1\n", "    my_field: \"017\"\n", "    terminal: \"no\"\n"] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let before = project.text();
    for (path, value) in
        [(".tasks[0].status", "DOING"), (".tasks[7].x", "1"), (".nowhere.x", "1"), (".tasks[0].id", "../x")]
    {
        let error = set(path, value).unwrap_err();
        assert!(matches!(error, StoreError::Violates(_) | StoreError::Path(_)), "{path}: {error:?}");
        assert_eq!(project.text(), before, "{path}");
    }
    assert_eq!(store.read_path(".tasks[].id").unwrap(), [liza_core::model::Value::from("one")]);
    let yaml =
        store.begin_edit().unwrap().set(".tasks[0].extra", "{a: [1, 2]}", ValueSyntax::Yaml, &entry(), now());
    assert!(yaml.is_ok() && project.text().contains("    extra:\n      a: [1, 2]\n"), "{}", project.text());
}

/// Covers: CM-04, IV-16
#[test]
fn the_edit_of_a_command_under_the_lock_is_kept_or_undone() {
    let project = Project::new("modify");
    project.add_task("one");
    let store = project.store();
    let mut session = store.begin_edit().unwrap();
    session.begin_modify(now()).unwrap();
    project.write(&project.text().replace("priority: 3", "priority: 5"));
    assert_eq!(session.finish_modify(&entry(), now()).unwrap().revision.0, 3);
    assert!(project.text().contains("priority: 5"));

    let before = project.text();
    for bad in [
        "garbage: [",
        "version: 1\n",
        &before.replace("UNCLAIMED", "CLAIMED"),
        &before.replace("status: UNCLAIMED", "status: X"),
    ] {
        let mut session = store.begin_edit().unwrap();
        session.begin_modify(now()).unwrap();
        project.write(bad);
        assert!(session.finish_modify(&entry(), now()).is_err());
        assert_eq!(project.text(), before);
    }
    let mut session = store.begin_edit().unwrap();
    session.begin_modify(now()).unwrap();
    project.write("half");
    session.undo_modify().unwrap();
    assert_eq!(project.text(), before);
    let mut session = store.begin_edit().unwrap();
    session.begin_modify(now()).unwrap();
    std::fs::remove_file(project.file("state.yaml")).unwrap();
    drop(session);
    assert_eq!(project.text(), before);
    assert_eq!(project.log().matches("action: edit").count(), 1);
}

/// Covers: AC-27, IV-16
#[test]
fn a_task_that_a_command_adds_is_checked_with_what_it_refers_to() {
    let project = Project::new("modify-add");
    for task in ["one", "two", "three"] {
        project.add_task(task);
    }
    let store = project.store();
    let modify = |change: &dyn Fn(String) -> String| {
        let mut session = store.begin_edit().unwrap();
        session.begin_modify(now()).unwrap();
        project.write(&change(project.text()));
        session.finish_modify(&entry(), now())
    };
    let add = |task: &str, fields: &str| {
        let text =
            format!("  - id: {task}\n    description: d\n    created: 2025-01-17T14:00:00Z\n{fields}agents:");
        modify(&|old| old.replacen("agents:", &text, 1))
    };
    add("four", "    status: DRAFT\n").unwrap();
    add("five", "    status: DRAFT\n    depends_on: [one, four]\n").unwrap();
    assert!(project.text().contains("depends_on: [one, four]"), "{}", project.text());
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.board.tasks.len(), 5);
    assert!(snapshot.board.tasks.values().all(|slot| slot.summary.revision.0 > 0), "{}", project.text());
    let before = project.text();
    for (task, fields) in [
        ("six", "    status: DRAFT\n    depends_on: [nowhere]\n"),
        ("six", "    status: DRAFT\n    superseded_by: [nowhere]\n"),
        ("six", "    status: CLAIMED\n    assigned_to: coder-1\n"),
        ("six", "    status: DRAFT\n    depends_on: [six]\n"),
        ("one", "    status: DRAFT\n"),
    ] {
        assert!(add(task, fields).is_err(), "{task} {fields}");
        assert_eq!(project.text(), before, "{task} {fields}");
    }
    let removed = modify(&|old| {
        let (start, end) = (old.find("  - id: four").unwrap(), old.find("  - id: five").unwrap());
        format!("{}{}", &old[..start], &old[end..])
    });
    assert!(removed.is_err(), "another one depends on it");
}

/// Covers: AC-27, IV-16
#[test]
fn an_edited_status_is_checked_with_what_the_task_depends_on() {
    let project = Project::new("statuses");
    for task in ["base", "next"] {
        project.add_task(task);
    }
    let store = project.store();
    let write = |path: &str, value: &str| {
        let session = store.begin_edit().unwrap();
        session.set(path, value, ValueSyntax::BySchema, &entry(), now())
    };
    let at = |task: &str, key: &str| format!(".tasks[] | select(.id == \"{task}\") | .{key}");
    let modify = |task: &str, status: &str| {
        let mut session = store.begin_edit().unwrap();
        session.begin_modify(now()).unwrap();
        let text = project.text();
        let from = text.find(&format!("  - id: {task}\n")).unwrap();
        let line = from + text[from..].find("    status:").unwrap();
        let end = line + text[line..].find('\n').unwrap();
        project.write(&format!("{}    status: {status}{}", &text[..line], &text[end..]));
        session.finish_modify(&entry(), now())
    };
    let reasons = |error: StoreError| error.to_string();
    write(&at("next", "depends_on"), "[base]").unwrap();
    // Its dependency is not merged.
    let both = [write(&at("next", "status"), "CLAIMED").map(drop), modify("next", "CLAIMED").map(drop)];
    for result in both {
        let text = reasons(result.unwrap_err());
        assert!(text.contains("CLAIMED, but its dependency base is"), "{text}");
    }
}

/// Covers: AC-27, IV-16
#[test]
fn edited_dependencies_are_checked_however_far_they_reach() {
    let project = Project::new("dependencies");
    let tasks = ["one", "two", "three", "four", "five", "six", "seven"];
    for task in tasks {
        project.add_task(task);
    }
    let store = project.store();
    let write = |task: &str, value: &str| {
        let path = format!(".tasks[] | select(.id == \"{task}\") | .depends_on");
        let session = store.begin_edit().unwrap();
        session.set(&path, value, ValueSyntax::BySchema, &entry(), now())
    };
    let modify = |task: &str, value: &str| {
        let mut session = store.begin_edit().unwrap();
        session.begin_modify(now()).unwrap();
        let text = project.text();
        let at = text.find(&format!("  - id: {task}\n")).unwrap();
        let line = at + text[at..].find("    depends_on:").unwrap();
        let end = line + text[line..].find('\n').unwrap();
        project.write(&format!("{}    depends_on: {value}{}", &text[..line], &text[end..]));
        session.finish_modify(&entry(), now())
    };
    for pair in tasks.windows(2) {
        write(pair[0], &format!("[{}]", pair[1])).unwrap();
    }
    let before = project.text();
    // A cycle of two, of three, and one that is longer than what is followed step by step.
    for (task, value) in [
        ("seven", "[six]"),
        ("seven", "[five]"),
        ("seven", "[one]"),
        ("seven", "[seven]"),
        ("seven", "[nowhere]"),
        ("one", "[two, two]"),
    ] {
        assert!(write(task, value).is_err(), "{task} {value}");
        assert!(modify(task, value).is_err(), "{task} {value}");
        assert_eq!(project.text(), before, "{task} {value}");
    }
    write("one", "[three, two]").unwrap();
    modify("two", "[seven]").unwrap();
    let board = store.snapshot().unwrap().board;
    let of = |task: &str| board.summary(&task.parse().unwrap()).unwrap().depends_on.len();
    assert_eq!((of("one"), of("two")), (2, 1));
}

/// Covers: CM-04
#[test]
fn the_edit_of_a_killed_command_is_undone_by_the_next_lock_holder() {
    let project = Project::new("modify-killed");
    project.add_task("one");
    let before = project.text();
    let store = project.store();
    let mut session = store.begin_edit().unwrap();
    session.begin_modify(now()).unwrap();
    project.write("half a file");
    // Never dropped, as in a killed process.
    let leaked = Box::leak(Box::new(session));
    let lock = std::fs::File::open(project.file("state.yaml.lock")).unwrap();
    assert!(matches!(
        store.clone().with_lock_timeout(Duration::from_millis(50)).recover(),
        Err(StoreError::Locked { .. })
    ));
    drop(lock);
    // The lock is still held, so the next lock holder works on a copy of the files.
    let copy = Project::empty("modify-killed-copy");
    for name in ["state.yaml", "state.yaml.lock", "state.yaml.prev", "log.yaml"] {
        std::fs::copy(project.file(name), copy.file(name)).unwrap();
    }
    assert_eq!(copy.store().recover().unwrap(), [Notice::ModifyUndone]);
    assert_eq!(copy.text(), before);
    let _ = leaked;
}

/// Covers: CM-04
#[test]
fn a_write_inside_a_command_under_the_lock_fails_at_once() {
    let project = Project::new("nested");
    let output = crate::locking::worker(&project, "note inner")
        .env(LOCK_HELD_ENV, project.root.join(".liza"))
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Nested"), "{text}");
    assert_eq!(project.store().snapshot().unwrap().board.revision.0, 1);
}

/// Covers: BB-09
#[test]
fn a_watch_sees_writes_and_stop_files() {
    let project = Project::new("watch");
    let store = project.store();
    let watch = store.watch().unwrap();
    let long = Duration::from_secs(20);
    project.run(note("x"));
    assert!(watch.wait(long));
    assert!(!watch.wait(Duration::from_millis(100)), "one write is reported once");
    std::fs::write(project.file("PAUSE"), "").unwrap();
    assert!(watch.wait(long));
    for _ in 0..3 {
        project.run(note("y"));
        assert!(watch.wait(long), "every replacement is seen");
    }
}
