//! Manual edits that read only a part of the file. Outside tests check that they are judged like others.

use std::fs;

use liza_core::model::{LogEntry, Timestamp};

use super::FileStore;
use crate::backend::{Backend as _, LoggedEdit};
use crate::codec::parse_state;
use crate::edit::EditRules;
use crate::edit::ValueSyntax;

const BOARD: &str = "\
version: 1
revision: 1
goal: {id: goal-1, description: d, status: IN_PROGRESS, created: 2025-01-17T14:00:00Z}
tasks:
  - {id: one, description: d, status: DRAFT, created: 2025-01-17T14:00:00Z}
  - {id: two, description: d, status: DRAFT, created: 2025-01-17T14:00:00Z, depends_on: [one]}
  - {id: three, description: d, status: DRAFT, created: 2025-01-17T14:00:00Z}
agents:
  coder-1: {role: coder, status: IDLE}
sprint: {id: sprint-1, number: 1, goal_ref: goal-1, scope: {planned: [one]}, status: IN_PROGRESS}
archived: {old: MERGED}
config: {}
";

fn now() -> Timestamp {
    "2025-01-17T14:00:00Z".parse().unwrap()
}

fn log() -> LogEntry {
    let text = || "x".to_owned();
    LogEntry { timestamp: now(), agent: text(), action: text(), task: None, detail: text() }
}

fn store(name: &str) -> FileStore {
    let root = std::env::temp_dir().join(format!("liza-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    let state = parse_state(&root, BOARD.as_bytes(), false).unwrap();
    FileStore::create(&root, &state, &log()).unwrap()
}

/// Covers: AC-27
#[test]
fn a_write_by_path_reads_only_a_part() {
    let store = store("part-write");
    let (rules, log) = (EditRules::default(), log());
    let logged = LoggedEdit { entry: &log, now: now() };
    for (path, value) in [
        (".tasks[2].id", "four"),
        (".tasks[] | select(.id == \"four\") | .id", "three"),
        (".tasks[2].status", "ABANDONED"),
        (".tasks[0].depends_on", "[three]"),
        (".tasks[0].superseded_by", "[two]"),
        (".agents.coder-1.current_task", "two"),
        (".sprint.scope.planned", "[two, three]"),
        (".archived.older", "ABANDONED"),
        (".config.lease_duration", "600"),
    ] {
        let mut edit = store.begin_edit().unwrap();
        let value = (value, ValueSyntax::BySchema);
        let edited = edit.set_in_part(&rules, &path.parse().unwrap(), value, logged).unwrap();
        assert!(edited.is_some(), "{path} {}", value.0);
    }
    let mut edit = store.begin_edit().unwrap();
    let remote = (".config.remote".parse().unwrap(), ("origin", ValueSyntax::BySchema));
    assert!(edit.set_in_part(&rules, &remote.0, remote.1, logged).unwrap().is_none());
    drop(edit);
    fs::remove_dir_all(store.root()).unwrap();
}

/// Covers: AC-27
#[test]
fn a_command_under_the_lock_reads_only_a_part() {
    let store = store("part-modify");
    let (rules, log) = (EditRules::default(), log());
    let logged = LoggedEdit { entry: &log, now: now() };
    let text = || fs::read_to_string(store.files().state()).unwrap();
    let entry = |task: &str| {
        let text = text();
        let start = text.find(&format!("  - id: {task}\n")).unwrap();
        let end = ["\n  - id", "\nagents:"].iter().filter_map(|mark| text[start..].find(mark)).min();
        text[start..start + end.unwrap() + 1].to_owned()
    };
    let (one, two, three) = (entry("one"), entry("two"), entry("three"));
    for (from, to) in [
        (&*three, ""),
        ("tasks:\n", &*format!("tasks:\n{three}")),
        ("id: three", "id: four"),
        ("id: four", "id: three"),
        // Another order.
        (&*format!("{one}{two}"), &*format!("{two}{one}")),
        ("planned: [one]", "planned: [two]"),
        ("old: MERGED", "old: ABANDONED"),
    ] {
        let mut edit = store.begin_edit().unwrap();
        edit.begin_modify(&rules, now()).unwrap();
        let new = text().replacen(from, to, 1);
        assert_ne!(new, text(), "{from} → {to}");
        fs::write(store.files().state(), &new).unwrap();
        let edited = edit.finish_in_part(&rules, &new, logged).unwrap();
        assert!(edited.is_some(), "{from} → {to}");
        edit.end_modify(true).unwrap();
    }
    fs::remove_dir_all(store.root()).unwrap();
}
