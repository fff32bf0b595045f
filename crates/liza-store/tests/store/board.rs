//! Reading and writing whole blackboards.

use std::sync::Arc;

use liza_core::model::{Loaded, Refusal, State, Status, TaskBody};
use liza_core::protocol::{AbandonTask, Archive, Command, MarkBlocked, UnblockTask};
use liza_store::{Store, StoreError, read_state};

use crate::support::*;

/// Covers: BB-01, BB-02, BB-15
#[test]
fn a_new_blackboard_has_all_sections_and_reads_back() {
    let project = Project::new("fresh");
    assert_eq!(project.store().snapshot().unwrap(), fresh_state());
    let text = project.text();
    let sections = [
        "version",
        "revision",
        "goal",
        "tasks",
        "agents",
        "discovered",
        "handoff",
        "human_notes",
        "spec_changes",
        "anomalies",
        "sprint",
        "circuit_breaker",
        "config",
    ];
    for section in sections {
        assert!(text.contains(&format!("\n{section}:")) || text.starts_with(section), "{section} in\n{text}");
    }
    assert_eq!(
        project.log(),
        "- timestamp: 2025-01-17T14:00:00Z\n  agent: human\n  action: goal_created\n  detail: Make it so\n  revision: 1\n"
    );
    let again = Store::create(&project.root, &fresh_state(), &first_entry());
    assert!(matches!(again, Err(StoreError::Exists { .. })));
}

/// Covers: BB-03, BB-04
#[test]
fn the_example_of_the_schema_loads_and_survives_a_write() {
    let project = Project::with_text("example", EXAMPLE);
    let before = project.store().snapshot().unwrap();
    assert_eq!(before.board.tasks.len(), 10);
    assert!(before.board.tasks.values().all(|slot| slot.body.as_ref().unwrap().faults().is_empty()));
    assert_eq!(
        before.board.summary(&task("task-4")).unwrap().superseded_by,
        [task("task-4a"), task("task-4b")]
    );
    assert_eq!((before.journal.anomalies.len(), before.journal.faults.len()), (3, 0));
    assert_eq!(before.board.handoff.ready().unwrap()[&task("task-5")].context_used.as_deref(), Some("91%"));
    assert!(matches!(before.board.config, Loaded::Ready(_)));

    project.run(note("hello"));
    let text = project.text();
    let added: Vec<&str> = text.lines().filter(|line| !EXAMPLE.lines().any(|old| old == *line)).collect();
    assert_eq!(added, ["revision: 1", "    message: hello"], "{text}");
    assert_eq!(EXAMPLE.lines().filter(|line| !text.lines().any(|new| new == *line)).count(), 0);
    let mut after = project.store().snapshot().unwrap();
    assert_eq!(after.journal.human_notes.pop().unwrap().message, "hello");
    after.board.revision = before.board.revision;
    assert_eq!(after, before);
}

/// Covers: BB-03, IV-15
#[test]
fn the_example_of_the_schema_has_the_known_violations() {
    let project = Project::with_text("violations", EXAMPLE);
    let found = project.store().validate(time("2025-01-17T14:53:00Z")).unwrap();
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    let missing = |task: &str, spec: &str| {
        let file = spec.split('#').next().unwrap();
        format!("{task}: spec_ref {spec}: the project has no file {file}")
    };
    let expected = [
        missing("task-1", "specs/retry-logic.md"),
        missing("task-2", "specs/retry-logic.md"),
        missing("task-4a", "specs/retry-logic.md#auth"),
        missing("task-4b", "specs/retry-logic.md#validation"),
        missing("task-6", "specs/retry-logic.md#rate-limits"),
        missing("task-7", "specs/retry-logic.md"),
        "task-7: CLAIMED task has no lease_expires".to_owned(),
        "task-7: CLAIMED task's worktree .worktrees/task-7 does not exist".to_owned(),
        missing("task-5", "specs/api.md#list-endpoints"),
        missing("task-8", "specs/api.md#rate-limiting"),
        "discovered: converted_to_task of disc-2 names task-3a, which does not exist".to_owned(),
    ];
    assert_eq!(lines, expected);
}

/// Covers: BB-11
#[test]
fn every_write_has_the_next_revision_and_a_stale_one_is_refused() {
    let project = Project::new("revision");
    assert_eq!(project.add_task("one"), 2);
    assert_eq!(project.run(register("coder-1")), 3);
    assert_eq!(project.run(heartbeat("coder-1")), 4);
    let state = project.store().snapshot().unwrap();
    assert_eq!(state.board.revision.0, 4);
    assert_eq!(state.board.summary(&task("one")).unwrap().revision.0, 2);
    let abandon = Command::from(AbandonTask { task: task("one"), reason: "no more".to_owned() });
    let mut request = human(abandon);
    request.if_revision = Some(liza_core::model::Revision(1));
    let refused = submit(&project.store(), request.clone());
    assert!(
        matches!(refused, Err(StoreError::Refused(refusal)) if matches!(*refusal, Refusal::StaleRevision { .. }))
    );
    request.if_revision = Some(liza_core::model::Revision(2));
    assert_eq!(submit(&project.store(), request).unwrap().revision.0, 5);
}

/// Covers: BB-01
#[test]
fn archived_tasks_move_to_files_of_their_own() {
    let project = Project::new("archive");
    for id in ["one", "two", "three"] {
        project.add_task(id);
    }
    let text = project
        .text()
        .replace("    description: \"Do two", "    mine: kept # yes\n    description: \"Do two");
    project.write(&text.replace("planned: [one, two, three]", "planned: []"));
    project.run(Command::from(AbandonTask { task: task("two"), reason: "no: more".to_owned() }));
    project.run(Command::from(Archive { tasks: vec![task("two")] }));
    let state = project.store().snapshot().unwrap();
    assert_eq!(state.board.archived.get(&task("two")), Some(&Status::Abandoned));
    assert_eq!(state.board.tasks.keys().map(ToString::to_string).collect::<Vec<_>>(), ["one", "three"]);
    let kept = std::fs::read_to_string(project.file("archive/two.yaml")).unwrap();
    for line in ["id: two", "mine: kept", "status: ABANDONED", "no: more"] {
        assert!(kept.contains(line), "{line} in\n{kept}");
    }
    for id in ["one", "three"] {
        project.run(Command::from(AbandonTask { task: task(id), reason: "enough".to_owned() }));
    }
    project.run(Command::from(Archive { tasks: vec![task("one"), task("three")] }));
    assert!(project.text().contains("\ntasks: []\n"), "{}", project.text());
    project.add_task("four");
    assert_eq!(project.store().snapshot().unwrap().board.tasks.len(), 1);
}

/// Covers: BB-09
#[test]
fn an_incremental_read_parses_only_what_has_changed() {
    let project = Project::new("incremental");
    for id in ["one", "two", "three"] {
        project.add_task(id);
    }
    let mut reader = project.store().incremental_reader();
    let body = |state: &State, id: &str| -> Arc<TaskBody> {
        state.board.tasks[&task(id)].body.clone().expect("a read has all bodies")
    };
    let first = reader.read().unwrap();
    assert!(Arc::ptr_eq(&first, &reader.read().unwrap()), "nothing has changed");
    project.run(Command::from(AbandonTask { task: task("two"), reason: "enough".to_owned() }));
    let second = reader.read().unwrap();
    assert_eq!(*second, project.store().snapshot().unwrap());
    assert!(Arc::ptr_eq(&body(&first, "one"), &body(&second, "one")), "read again");
    assert_eq!(second.board.status(&task("two")), Some(Status::Abandoned));
    assert_eq!(first.board.status(&task("two")), Some(Status::Unclaimed), "a state does not change later");
    // Added and removed tasks do not affect the others either.
    project.add_task("four");
    let third = reader.read().unwrap();
    assert!(Arc::ptr_eq(&body(&first, "three"), &body(&third, "three")), "read again");
    project.write(&project.text().replace("planned: [one, two, three, four]", "planned: []"));
    project.run(Command::from(Archive { tasks: vec![task("two")] }));
    let fourth = reader.read().unwrap();
    project.run(note("x"));
    project.run(Command::from(AbandonTask { task: task("one"), reason: "enough".to_owned() }));
    project.run(Command::from(Archive { tasks: vec![task("one")] }));
    let fifth = reader.read().unwrap();
    assert!(Arc::ptr_eq(&body(&fourth, "three"), &body(&fifth, "three")), "read again");
    assert_eq!((fifth.board.tasks.len(), fifth.journal.human_notes.len()), (2, 1));
}

/// Covers: BB-07, BB-09
#[test]
fn an_incremental_read_sees_an_edit_of_the_same_length_and_survives_an_invalid_one() {
    let project = Project::new("incremental-edit");
    project.add_task("one");
    let mut reader = project.store().incremental_reader();
    let first = reader.read().unwrap();
    let text = project.text();
    project.write(&text.replace("priority: 3", "priority: 1"));
    assert_eq!(reader.read().unwrap().board.summary(&task("one")).unwrap().priority, 1);
    project.write("garbage: [");
    assert!(matches!(reader.read(), Err(StoreError::Broken(_))));
    project.write(&text);
    assert_eq!(reader.read().unwrap(), first);
}

/// Covers: BB-07, BB-09
#[test]
fn an_incremental_read_reports_the_current_line_of_a_fault() {
    let project = Project::new("incremental-fault");
    for id in ["one", "two"] {
        project.add_task(id);
    }
    let mut reader = project.store().incremental_reader();
    drop(reader.read().unwrap());
    let (first, second) =
        project.text().split_once("- id: two").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    project.write(&format!("{first}- id: two{}", second.replacen("priority: 3", "priority: high", 1)));
    for text in ["x", "y"] {
        // Each note and each event moves the lines below it.
        project.run(note(text));
        project.run(Command::from(MarkBlocked {
            task: task("one"),
            reason: text.to_owned(),
            questions: vec![text.to_owned()],
            attempted: Vec::new(),
        }));
        let parsed = read_state(&project.file("state.yaml")).unwrap();
        assert_eq!(parsed.board.body(&task("two")).unwrap().faults().len(), 1);
        assert_eq!(*reader.read().unwrap(), parsed, "{}", project.text());
        if text == "x" {
            project.run(Command::from(UnblockTask {
                task: task("one"),
                reset_cycles: false,
                same_coder: false,
                keep_worktree: false,
                assessment: None,
            }));
            assert_eq!(*reader.read().unwrap(), read_state(&project.file("state.yaml")).unwrap());
        }
    }
}

/// A program without a client must not take the file of an earlier blackboard instead.
///
/// Covers: MM-01
#[test]
fn a_blackboard_in_a_database_is_an_error_without_a_client() {
    let project = Project::new("no-client");
    let settings = "address: postgres://liza@db.example/team\nproject: shop\n";
    std::fs::write(project.file("store.yaml"), settings).unwrap();
    let address = "postgres://liza@db.example/team".parse().unwrap();
    let other = project.root.join("other");
    for opened in [
        Store::open(&project.root),
        Store::join_database(&other, &address, None),
        Store::create_in_database(&other, &address, "shop", &fresh_state(), &first_entry()),
    ] {
        let error = opened.unwrap_err();
        assert!(matches!(error, StoreError::NoDatabaseClient), "{error:?}");
        assert!(error.to_string().contains("without the feature `database`"), "{error}");
    }
    assert!(!other.exists());
}
