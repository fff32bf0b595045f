//! A file as people write it: without a revision, with an invalid entry, with a section missing.

use liza_core::model::{LogEntry, Value};
use liza_core::protocol::manual_edit::ManualEdit;
use liza_store::{Edited, Notice, StoreError, ValueSyntax, infer_base, three_way_merge};

use crate::support::*;

fn entry() -> LogEntry {
    LogEntry { action: "edit".to_owned(), detail: "manual".to_owned(), ..first_entry() }
}

fn set(project: &Project, path: &str, value: &str) -> Result<Edited, StoreError> {
    project.store().begin_edit().unwrap().set(path, value, ValueSyntax::BySchema, &entry(), now())
}

const AGENT: &str = "  coder-1:
    role: coder
    status: IDLE
    lease_expires: 2025-01-17T14:05:00Z
  coder-2:
    role: coder
    status: IDLING
    lease_expires: 2025-01-17T14:05:00Z
";

/// A fresh blackboard with this text in the place of its agents.
fn with_agents(name: &str, agents: &str) -> Project {
    let project = Project::new(name);
    project.write(&project.text().replace("agents: {}\n", &format!("agents:\n{agents}")));
    assert!(project.text().contains(agents));
    project
}

/// Covers: AC-21
#[test]
fn a_blackboard_without_a_revision_is_adopted() {
    let project = Project::new("no-revision");
    project.add_task("one");
    let ours = project.text();
    let theirs = ours.replacen("\nrevision: 2\n", "\n", 1).replace("priority: 3", "priority: 1 # mine");
    assert!(!theirs.contains("\nrevision:"));
    project.write(&theirs);
    let outcome = project.submit(note("x")).unwrap();
    let [Notice::Adopted { kept: Some(kept), current: 2 }] = &outcome.notices[..] else {
        panic!("{:?}", outcome.notices)
    };
    assert_eq!(std::fs::read_to_string(kept).unwrap(), ours);
    assert_eq!(outcome.revision.0, 3);
    assert!(project.text().contains("priority: 1 # mine"), "{}", project.text());
    assert!(project.text().contains("revision: 3\n"), "{}", project.text());
    assert!(!project.names().iter().any(|name| name.contains("stale")), "{:?}", project.names());
    // A part of a blackboard is not one.
    project.write("version: 1\n");
    let notices = project.store().recover().unwrap();
    assert!(matches!(&notices[..], [Notice::StaleSave { based_on: None, .. }]), "{notices:?}");
}

/// Covers: AC-21
#[test]
fn a_file_without_a_revision_can_be_merged() {
    let ours = "revision: 9\ntasks:\n  - id: one\n    status: CLAIMED\n    priority: 3\n    revision: 8\nconfig:\n  max: 1\n";
    let yours = "tasks:\n  - id: one\n    status: DRAFT\n    priority: 1\n    mine: x\n  - id: two\n    status: DRAFT\nconfig:\n  max: 2\n";
    let base = infer_base(yours, ours).expect("a file without a revision has a base too");
    let text = three_way_merge(&base, yours, ours).unwrap();
    for kept in ["revision: 9", "status: CLAIMED", "priority: 1", "mine: x", "- id: two", "max: 2"] {
        assert!(text.contains(kept), "{kept} in\n{text}");
    }
}

/// Covers: AC-22
#[test]
fn an_invalid_agent_affects_that_agent_only() {
    let project = with_agents("one-agent", AGENT);
    let state = project.store().snapshot().unwrap();
    assert_eq!(state.board.agents().unwrap().len(), 1);
    let found: Vec<String> =
        project.store().validate(now()).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    for part in ["agents.coder-2", "status", "IDLING", "line "] {
        assert!(found[0].contains(part), "{part} in {found:?}");
    }
    project.run(heartbeat("coder-1"));
    project.run(register("planner-1"));
    project.add_task("one");
    assert!(project.text().contains("    status: IDLING\n"), "{}", project.text());
    // Registering again repairs the entry.
    project.run(register("coder-2"));
    assert!(project.store().validate(now()).unwrap().is_empty(), "{}", project.text());
}

/// Covers: AC-22
#[test]
fn an_incremental_read_reports_an_invalid_agent() {
    let project = Project::new("one-agent-read");
    project.run(register("coder-1"));
    let mut reader = project.store().incremental_reader();
    drop(reader.read().unwrap());
    project.write(&project.text().replacen("status: STARTING", "status: IDLING", 1));
    project.run(note("x"));
    let state = reader.read().unwrap();
    assert_eq!(state.journal.faults.len(), 1, "{:?}", state.journal.faults);
}

/// Covers: AC-23
#[test]
fn a_known_violation_that_moves_blocks_nothing() {
    let project = with_agents("moved", AGENT);
    project.add_task("one");
    project.write(&project.text().replace("priority: 3", "priority: high"));
    assert_eq!(project.store().validate(now()).unwrap().len(), 2);
    // A line above both of them.
    set(&project, ".goal.comment", "one more line").unwrap();
    let mut session_text = project.text();
    session_text.insert_str(0, "# another line\n");
    project.store().begin_edit().unwrap().replace(&session_text, &entry(), now()).unwrap();
    assert_eq!(project.store().validate(now()).unwrap().len(), 2);
    // A second one of the same kind is new.
    let more = project.text().replace("    status: IDLE\n", "    status: IDLING\n");
    let error = project.store().begin_edit().unwrap().replace(&more, &entry(), now()).unwrap_err();
    assert!(matches!(error, StoreError::Violates(ref found) if found.len() == 1), "{error:?}");
}

/// Covers: AC-24
#[test]
fn a_write_by_path_repairs_a_field_with_its_own_type() {
    let project = with_agents("repair", AGENT);
    project.add_task("one");
    let text = project.text().replace("priority: 3", "priority: high");
    let text = text.replace("lock_timeout: 11", "lock_timeout: long");
    let text = text.replace("max_coder_iterations: 11", "max_coder_iterations: ten");
    project.write(&text);
    set(&project, ".tasks[0].priority", "2").unwrap();
    assert!(project.text().contains("    priority: 2\n"), "{}", project.text());
    // Two invalid keys of one section, one after the other.
    for (key, value) in [("lock_timeout", "600"), ("max_coder_iterations", "7")] {
        set(&project, &format!(".config.{key}"), value).unwrap();
        assert!(project.text().contains(&format!("  {key}: {value}\n")), "{}", project.text());
    }
    set(&project, ".agents.coder-2.status", "IDLE").unwrap();
    assert!(project.store().validate(now()).unwrap().is_empty(), "{:?}", project.store().validate(now()));
}

/// Covers: AC-24
#[test]
fn a_write_by_path_creates_parents_and_writes_times_in_one_form() {
    let project = with_agents("parents", &AGENT.replace("IDLING", "IDLE"));
    project.add_task("one");
    set(&project, ".config.own.deep.key", "x").unwrap();
    assert!(project.text().contains("  own:\n    deep:\n      key: x\n"), "{}", project.text());
    set(&project, ".tasks[0].labels.first", "x").unwrap();
    assert!(project.text().contains("    labels:\n      first: x\n"), "{}", project.text());
    set(&project, ".agents.coder-1.heartbeat", "2025-01-17T15:00:00+02:00").unwrap();
    assert!(project.text().contains("    heartbeat: 2025-01-17T13:00:00Z\n"), "{}", project.text());
    set(&project, ".tasks[0].description", "2025-01-17T15:00:00Z").unwrap();
    assert!(project.text().contains("    description: \"2025-01-17T15:00:00Z\"\n"), "{}", project.text());
    assert!(matches!(set(&project, ".confg.own", "x"), Err(StoreError::Path(_))));
}

/// Covers: AC-24
#[test]
fn an_agent_may_write_the_same_in_another_form() {
    let project = with_agents("form", &AGENT.replace("IDLING", "IDLE"));
    project.add_task("one");
    let actor = liza_core::model::Actor::Operator(agent("coder-1"));
    let stop_files = liza_core::model::StopFiles::default();
    let edit = ManualEdit { actor, now: now(), stop_files, if_revision: None, verb: "lock modify" };
    let text = project.text();
    let other =
        text.replace("lease_expires: 2025-01-17T14:05:00Z", "lease_expires: \"2025-01-17T14:05:00Z\"");
    let other = other.replace("    status: IDLE\n", "    current_task: null\n    status: 'IDLE'\n");
    assert_ne!(text, other);
    let store = project.store();
    store.begin_edit().unwrap().restricted_to(edit.clone()).replace(&other, &entry(), now()).unwrap();
    let changed = project.text().replace("'IDLE'", "WAITING");
    let refused = store.begin_edit().unwrap().restricted_to(edit).replace(&changed, &entry(), now());
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
}

/// Covers: AC-25
#[test]
fn a_blackboard_without_a_sprint_gets_one() {
    let project = Project::new("no-sprint");
    let text = project.text();
    let start = text.find("\nsprint:\n").unwrap() + 1;
    let end = start + text[start..].find("\ncircuit_breaker").unwrap() + 1;
    project.write(&format!("{}{}", &text[..start], &text[end..]));
    assert!(!project.text().contains("sprint:"));
    assert!(project.store().validate(now()).unwrap().is_empty(), "{:?}", project.store().validate(now()));
    project.add_task("one");
    assert_eq!(
        project.store().read_path(".sprint.id").unwrap(),
        [Value::from("sprint-1")],
        "{}",
        project.text()
    );
    assert!(project.store().validate(now()).unwrap().is_empty());
}

/// Covers: AC-25
#[test]
fn what_no_command_can_write_is_not_valid() {
    let project = Project::new("version");
    for version in ["version: 3", "version: one"] {
        let text = project.text();
        project.write(&text.replace("version: 1", version));
        assert!(project.submit(note("x")).is_err());
        let error = project.store().writable_snapshot().unwrap_err();
        assert!(error.to_string().contains("version"), "{error}");
        assert!(liza_store::read_state(&project.file("state.yaml")).is_err());
        project.write(&text);
    }
    assert!(project.store().writable_snapshot().is_ok());
}

/// Covers: AC-28, AT-09, AX-37
#[test]
fn a_lost_file_is_explained_and_restored() {
    let project = Project::new("lost");
    project.add_task("one");
    project.run(register("coder-1"));
    project.run(heartbeat("coder-1"));
    let ours = project.text();
    let store = project.store();
    let damages: [&dyn Fn(); 3] =
        [&|| std::fs::remove_file(project.file("state.yaml")).unwrap(), &|| project.write(""), &|| {
            project.write(&ours[..ours.len() / 2])
        }];
    for (n, damage) in damages.iter().enumerate() {
        damage();
        if n < 2 {
            let error = store.snapshot().unwrap_err().to_string();
            assert!(error.contains("liza recover"), "{n}: {error}");
        }
        let restored = liza_store::Store::restore_lost(&project.root).unwrap();
        assert_eq!(restored, Some(Notice::Restored { revision: 4 }), "{n}");
        assert_eq!(project.text(), ours, "{n}");
        assert_eq!(liza_store::Store::restore_lost(&project.root).unwrap(), None);
    }
    assert_eq!(project.run(note("x")), 5);
    // Without the records of our writes, the version before the last one is what is left.
    std::fs::remove_file(project.file("state.yaml.lock")).unwrap();
    std::fs::remove_file(project.file("state.yaml")).unwrap();
    let error = liza_store::Store::open(&project.root).unwrap_err().to_string();
    assert!(error.contains("liza recover"), "{error}");
    let restored = liza_store::Store::restore_lost(&project.root).unwrap();
    assert_eq!(restored, Some(Notice::Restored { revision: 4 }));
    // A person's edit is not touched.
    let edited = project.text().replace("priority: 3", "priority: [");
    project.write(&edited);
    assert_eq!(liza_store::Store::restore_lost(&project.root).unwrap(), None);
    assert_eq!(project.text(), edited);
}

/// Covers: AX-37
#[test]
fn the_previous_version_outlives_the_folder_of_the_blackboard() {
    use std::os::unix::fs::MetadataExt as _;
    let project = Project::new("cleaned");
    std::fs::create_dir(project.root.join(".git")).unwrap();
    project.add_task("one");
    for revision in 3..6 {
        let before = project.text();
        assert_eq!(project.run(note("x")), revision);
        let kept = project.root.join(".git/liza/state.yaml");
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), before, "one write old");
        let inode = |path| std::fs::metadata(path).unwrap().ino();
        assert_eq!(inode(kept), inode(project.file("state.yaml.prev")), "it costs no write");
        let names = std::fs::read_dir(project.root.join(".git/liza")).unwrap().count();
        assert_eq!(names, 1, "nothing else is left there");
    }
    let kept = std::fs::read_to_string(project.file("state.yaml.prev")).unwrap();
    std::fs::remove_dir_all(project.root.join(".liza")).unwrap();
    let error = liza_store::Store::open(&project.root).unwrap_err().to_string();
    assert!(error.contains("liza recover"), "{error}");
    let restored = liza_store::Store::restore_lost(&project.root).unwrap();
    assert_eq!(restored, Some(Notice::Restored { revision: 4 }));
    assert_eq!(project.text(), kept);
    assert_eq!(project.run(note("x")), 5);
}

/// Covers: AC-28
#[test]
fn damaged_entries_of_the_log_are_reported() {
    let project = Project::new("damaged-log");
    project.run(note("first"));
    project.run(note("second"));
    assert_eq!(project.store().log_faults().unwrap(), [""; 0]);
    let log = project.log().replacen("detail: first", "detail: \"first", 1);
    std::fs::write(project.file("log.yaml"), log).unwrap();
    let faults = project.store().log_faults().unwrap();
    assert_eq!(faults.len(), 1, "{faults:?}");
    let line = project.log().lines().position(|line| line.contains("\"first")).unwrap();
    let number: usize = faults[0].split(':').nth(1).unwrap().parse().unwrap();
    assert!(number <= line + 1 && number + 6 > line, "{faults:?}, line {line}");
}

/// Covers: AT-14
#[test]
fn a_time_at_the_end_of_all_years_is_no_panic() {
    for time in ["9999-12-31T23:59:59Z", "9999-12-30T22:00:00Z", "9999-12-28T00:00:00Z"] {
        let project =
            with_agents("year", &AGENT.replace("IDLING", "IDLE").replace("2025-01-17T14:05:00Z", time));
        let _ = project.store().validate(now()).unwrap();
        project.run(register("planner-1"));
        let _ = project.submit(heartbeat("coder-1"));
        assert!(project.store().snapshot().is_ok(), "{time}");
    }
}

/// Covers: AC-29
#[test]
fn an_archived_task_keeps_its_comments() {
    let project = Project::new("archive");
    project.add_task("one");
    project.add_task("two");
    project.run(liza_core::protocol::Command::from(liza_core::protocol::AbandonTask {
        task: task("one"),
        reason: "enough".to_owned(),
    }));
    let text =
        project.text().replacen("priority: 3", "priority: 3 # not urgent\n    # a thought\n    mine: x", 1);
    project.write(&text.replace("planned: [one, two]", "planned: [two]"));
    project
        .run(liza_core::protocol::Command::from(liza_core::protocol::Archive { tasks: vec![task("one")] }));
    let archived = std::fs::read_to_string(project.file("archive/one.yaml")).unwrap();
    for kept in
        ["id: one\n", "priority: 3 # not urgent\n", "# a thought\n", "mine: x\n", "status: ABANDONED\n"]
    {
        assert!(archived.contains(kept), "{kept:?} in\n{archived}");
    }
    assert!(project.text().contains("id: two"), "{}", project.text());
}

/// Covers: AC-32
#[test]
fn names_that_lead_nowhere_are_reported_in_the_words_of_the_file() {
    let project = with_agents("names", &AGENT.replace("IDLING", "IDLE\n    current_task: gone"));
    project.add_task("one");
    let text = project.text().replacen("priority: 3", "priority: 3\n    supersedes: 1.5", 1);
    let text =
        text.replace("handoff: {}\n", "handoff:\n  nowhere: {agent: coder-1, summary: s, next_action: n}\n");
    project.write(&text);
    let found: Vec<String> =
        project.store().validate(now()).unwrap().iter().map(ToString::to_string).collect();
    let all = found.join("\n");
    for part in [
        "coder-2: current_task names gone",
        "handoff: nowhere does not exist",
        "a task ID or a list of task IDs",
    ] {
        assert!(all.contains(part), "{part:?} in\n{all}");
    }
    for rust in ["untagged", "variant", "Text(", "enum", "struct", "floating point"] {
        assert!(!all.contains(rust), "{rust:?} in\n{all}");
    }
}

/// Covers: AC-32
#[test]
fn a_task_id_that_is_used_twice_is_reported_in_an_edited_version_and_in_our_own() {
    let project = Project::new("twice");
    project.add_task("one");
    project.add_task("two");
    project.write(&project.text().replacen("- id: two", "- id: one", 1));
    let reported = || -> Vec<String> {
        project.store().validate(now()).unwrap().iter().map(ToString::to_string).collect()
    };
    let twice = "tasks: the task ID one is used twice; the second task is ignored until it has another ID";
    assert!(reported().iter().any(|found| found == twice), "{:?}", reported());
    project.run(note("x"));
    assert!(reported().iter().any(|found| found == twice), "{:?}", reported());
}

/// Covers: AC-29
#[test]
fn a_replacement_that_the_running_sprint_counts_is_not_archived() {
    use liza_core::protocol::{AbandonTask, Archive, Command};
    let project = Project::new("replacement");
    for id in ["one", "two"] {
        project.add_task(id);
        project.run(Command::from(AbandonTask { task: task(id), reason: "enough".to_owned() }));
    }
    let text =
        project.text().replacen("status: ABANDONED", "status: SUPERSEDED\n    superseded_by: [two]", 1);
    project.write(&text.replace("planned: [one, two]", "planned: [one]"));
    let refused =
        project.submit(Command::from(Archive { tasks: vec![task("two")] })).unwrap_err().to_string();
    assert!(refused.contains("two") && refused.contains("current sprint"), "{refused}");
    assert!(!project.file("archive/two.yaml").exists());
}
