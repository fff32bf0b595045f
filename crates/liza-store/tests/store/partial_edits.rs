//! An edit that is checked with only a part of the file: it is accepted and refused like one that is checked with all of it.

use std::path::Path;

use liza_core::model::{LogEntry, Status};
use liza_store::{Edited, StoreError, ValueSyntax};

use crate::support::*;

fn entry() -> LogEntry {
    LogEntry { action: "edit".to_owned(), detail: "manual".to_owned(), ..first_entry() }
}

fn set(project: &Project, path: &str, value: &str) -> Result<Edited, StoreError> {
    project.store().begin_edit().unwrap().set(path, value, ValueSyntax::BySchema, &entry(), now())
}

/// Covers: AC-27
#[test]
fn a_write_by_path_in_our_own_version_gives_the_same_as_in_an_edited_one() {
    for (path, value) in [
        (".tasks[] | select(.id == \"one\") | .priority", "1"),
        (".tasks[] | select(.id == \"one\") | .mine.deep", "017"),
        (".tasks[] | select(.id == \"one\") | .status", "DOING"),
        (".tasks[] | select(.id == \"none\") | .status", "DRAFT"),
        (".tasks[] | select(.id == \"one\") | .status", "CLAIMED"),
        (".tasks[] | select(.id == \"one\") | .status", "MERGED"),
        (".tasks[1].status", "ABANDONED"),
        (".tasks[1].priority", "1"),
        (".tasks[0].depends_on", "[two]"),
        (".tasks[0].depends_on[0]", "two"),
        (".tasks[7].priority", "1"),
        (".tasks[0].assigned_to", "coder-1"),
        (".tasks[0].assigned_to", "nobody"),
        (".tasks[0].superseded_by", "[two]"),
        (".tasks[0].superseded_by", "[two, gone]"),
        (".tasks[0].superseded_by", "gone"),
        (".tasks[0].id", "three"),
        (".tasks[0].id", "two"),
        (".tasks[0].lease_expires", "2025-01-17T15:00:00+02:00"),
        (".sprint.scope.planned", "[one, gone]"),
        (".archived.old", "MERGED"),
        (".config.lease_duration", "600"),
        (".config.lease_duration", "long"),
        (".agents.coder-1.heartbeat", "2025-01-17T15:00:00+02:00"),
        (".agents.coder-1.status", "WAITING"),
        (".goal.description", "yes: no # maybe"),
        (".human_notes[0].message", "new"),
    ] {
        let outcomes = [false, true].map(|edited| {
            let project = two_tasks(edited);
            let outcome =
                set(&project, path, value).map(|edited| edited.revision.0).map_err(|e| e.to_string());
            (outcome, project.text().replace("# mine\n", ""))
        });
        assert_eq!(outcomes[0], outcomes[1], "{path} {value}");
    }
}

/// Covers: AC-27
#[test]
fn a_command_under_the_lock_in_our_own_version_gives_the_same_as_in_an_edited_one() {
    let changes: [(&str, &str); 17] = [
        (
            "tasks:\n",
            "tasks:\n  - id: new\n    description: d\n    status: DRAFT\n    created: 2025-01-17T14:00:00Z\n",
        ),
        (
            "agents:\n",
            "  - id: last\n    description: d\n    status: DRAFT\n    created: 2025-01-17T14:00:00Z\nagents:\n",
        ),
        ("agents:\n", "  - id: one\n    description: d\n    status: DRAFT\nagents:\n"),
        ("priority: 3", "priority: 1 # urgent"),
        ("lock_timeout: 11", "lock_timeout: 12"),
        ("status: UNCLAIMED", "status: DOING"),
        ("status: UNCLAIMED", "status: CLAIMED\n    assigned_to: coder-1"),
        ("status: UNCLAIMED", "status: MERGED"),
        ("status: UNCLAIMED", "status: UNCLAIMED\n    assigned_to: coder-1"),
        ("status: UNCLAIMED", "status: UNCLAIMED\n    superseded_by: [two]"),
        ("status: UNCLAIMED", "status: UNCLAIMED\n    superseded_by: [two, gone]"),
        ("id: two", "id: one"),
        ("id: two", "id: three"),
        ("message: x", "message: 'y: z'"),
        ("depends_on: []", "depends_on: [nothing]"),
        ("tasks:\n", "tasks:\n  - {id: new, description: d, status: DRAFT, created: 2025-01-17T14:00:00Z}\n"),
        ("goal-1\n  description", "goal-1\n  extra: &a x\n  other: *a\n  description"),
    ];
    for (from, to) in changes {
        let [own, edited] = modified_both_ways(|text| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        assert_eq!(own, edited, "{from} → {to}");
    }
    // A task is removed: the first, the last, all of them.
    for (from, until) in
        [("  - id: one", "  - id: two"), ("  - id: two", "agents:"), ("  - id: one", "agents:")]
    {
        let [own, edited] = modified_both_ways(|text| {
            let (from, until) = (text.find(from).unwrap(), text.find(until).unwrap());
            let text = format!("{}{}", &text[..from], &text[until..]);
            text.replace("planned: [one, two]", "planned: []")
        });
        assert_eq!(own, edited, "{from} … {until}");
        assert_eq!(own.0, Some(6), "{from} … {until}");
    }
}

/// A folder with two tasks, an agent and a note, in a version of ours or in one that a person has edited.
fn two_tasks(edited: bool) -> Project {
    let project = Project::new("same");
    project.add_task("one");
    project.add_task("two");
    project.run(register("coder-1"));
    project.run(note("x"));
    if edited {
        project.write(&format!("{}# mine\n", project.text()));
    }
    project
}

/// The revision, whether it was refused, and the text after a command under the lock: in our own version and in an edited one.
fn modified_both_ways(change: impl Fn(&str) -> String) -> [(Option<u64>, bool, String); 2] {
    [false, true].map(|edited| {
        let project = two_tasks(edited);
        let store = project.store();
        let mut session = store.begin_edit().unwrap();
        session.begin_modify(now()).unwrap();
        project.write(&change(&project.text()));
        let outcome = session.finish_modify(&entry(), now());
        let revision = outcome.as_ref().ok().map(|edited| edited.revision.0);
        (revision, outcome.is_err(), project.text().replace("# mine\n", ""))
    })
}

/// What every task has.
const COMMON: &str = "    description: d
    priority: 3
    spec_ref: specs/x.md
    done_when: it works
    scope: all of it
    created: 2025-01-17T14:00:00Z
    revision: 1
";

/// Tasks with every relation that a rule looks at, some of them broken before.
const RELATED: &str = "tasks:
  - id: base
    status: MERGED
  - id: mine
    status: CLAIMED
    assigned_to: coder-1
    worktree: .worktrees/mine
    depends_on: [base, old]
  - id: next
    status: UNCLAIMED
    depends_on: [mine]
  - id: last
    status: DRAFT
    depends_on: [next]
    remark: after next and before free
  - id: stray
    status: CLAIMED
    assigned_to: coder-2
    depends_on: [next, missing]
  - id: replaced
    status: SUPERSEDED
    superseded_by: [free, lost]
  - id: free
    status: DRAFT
  - id: free-2
    status: DRAFT
";

/// A folder with these tasks in a version of ours.
fn related_tasks() -> Project {
    let project = Project::new("related");
    for agent in ["coder-1", "coder-2"] {
        project.run(register(agent));
    }
    let tasks = RELATED.replace("    status:", &format!("{COMMON}    status:"));
    let text = project.text().replacen("tasks: []\n", &tasks, 1);
    let text = text.replacen("planned: []", "planned: [next, never]", 1);
    let text = format!("{}archived:\n  old: MERGED\n  older: ABANDONED\n", text);
    assert!(text.contains("superseded_by: [free, lost]") && text.contains("[next, never]"), "{text}");
    project.write(&text);
    project.run(note("x"));
    project
}

/// A copy of a project; with a line of a person, so that the whole file is read.
fn copied(project: &Project, edited: bool) -> Project {
    let copy = Project::empty("related-copy");
    for file in std::fs::read_dir(project.root.join(".liza")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.root.join(".liza").join(file.file_name())).unwrap();
    }
    if edited {
        copy.write(&format!("{}# mine\n", copy.text()));
    }
    copy
}

/// The outcome of an edit in both ways.
fn outcomes(
    project: &Project,
    edit: impl Fn(&Project) -> Result<Edited, StoreError>,
) -> [(String, String); 2] {
    [false, true].map(|edited| {
        let copy = copied(project, edited);
        let outcome = match edit(&copy) {
            Ok(edited) => format!("revision {}", edited.revision),
            Err(error) => error.to_string().replace(&*path(&copy.root), ""),
        };
        let text = copy.text().replace("# mine\n", "");
        std::fs::remove_dir_all(&copy.root).unwrap();
        (outcome, text)
    })
}

fn path(root: &Path) -> String {
    root.display().to_string()
}

/// Covers: AC-27, IV-16
#[test]
fn every_relation_between_tasks_is_checked_like_in_the_whole_file() {
    let project = related_tasks();
    let tasks = ["base", "mine", "next", "last", "stray", "replaced", "free", "free-2"];
    let mut edits: Vec<(String, String)> = Vec::new();
    for task in tasks {
        let mut add = |key: &str, value: &str| {
            edits.push((format!(".tasks[] | select(.id == \"{task}\") | .{key}"), value.to_owned()));
        };
        for id in
            ["fresh", "free", "free-2", "missing", "lost", "never", "old", "\"quoted\"", "Not An ID", "7"]
        {
            add("id", id);
        }
        for status in [Status::Draft, Status::Claimed, Status::Merged] {
            add("status", status.name());
        }
        for coder in ["coder-1", "coder-3"] {
            add("assigned_to", coder);
        }
        for dependencies in ["[]", "[last]", "[base, free]", "[old]", "[missing]"] {
            add("depends_on", dependencies);
        }
        for replacement in ["[last]", "[nowhere]"] {
            add("superseded_by", replacement);
        }
    }
    for (path, value) in [
        (".agents.coder-1.current_task", "free"),
        (".agents.coder-1.current_task", "nowhere"),
        (".agents.coder-1.current_task", "old"),
        (".sprint.scope.planned", "[free, last]"),
        (".sprint.scope.planned", "[nowhere]"),
        (".archived.old", "ABANDONED"),
        (".archived.missing", "MERGED"),
        (".archived.free", "MERGED"),
        (".config.remote", "origin"),
        (".handoff.free.summary", "half done"),
        (".handoff.nowhere.summary", "half done"),
    ] {
        edits.push((path.to_owned(), value.to_owned()));
    }
    let mut accepted = 0;
    for (path, value) in edits {
        let [own, whole] = outcomes(&project, |copy| set(copy, &path, &value));
        assert_eq!(own, whole, "{path} {value}");
        accepted += usize::from(own.0.starts_with("revision"));
    }
    assert!(accepted > 30, "{accepted} accepted");
}

/// Covers: AC-27, IV-16
#[test]
fn tasks_that_a_command_moves_renames_and_removes_are_checked_like_in_the_whole_file() {
    let project = related_tasks();
    let entry_of = |text: &str, task: &str| {
        let start = text.find(&format!("  - id: {task}\n")).unwrap();
        let rest = &text[start + 1..];
        let end = ["\n  - id: ", "\nagents:"].iter().filter_map(|mark| rest.find(mark)).min().unwrap();
        text[start..start + 1 + end + 1].to_owned()
    };
    let new = "  - id: fresh\n    status: DRAFT\n    description: d\n    created: 2025-01-17T14:00:00Z\n";
    type Change<'c> = Box<dyn Fn(&str) -> String + 'c>;
    let mut changes: Vec<(String, Change<'_>)> = Vec::new();
    for task in ["base", "mine", "next", "last", "stray", "replaced", "free", "free-2"] {
        let removed = move |text: &str| text.replacen(&entry_of(text, task), "", 1);
        let last = move |text: &str| {
            removed(text).replacen("\nagents:\n", &format!("\n{}agents:\n", entry_of(text, task)), 1)
        };
        changes.push((format!("{task} is removed"), Box::new(removed)));
        changes.push((format!("{task} is last"), Box::new(last)));
        changes.push((
            format!("{task} is last, another one new and a third changed"),
            Box::new(move |text| {
                let text = last(text).replacen("tasks:\n", &format!("tasks:\n{new}"), 1);
                text.replacen("  - id: free-2\n", "  - id: free-2\n    priority: 1\n", 1)
            }),
        ));
        for id in ["fresh", "free", "missing", "never"] {
            let rename =
                move |text: &str| text.replacen(&format!("  - id: {task}\n"), &format!("  - id: {id}\n"), 1);
            changes.push((format!("{task} becomes {id}"), Box::new(rename)));
        }
        changes.push((
            format!("{task} becomes fresh, everywhere"),
            Box::new(move |text| {
                let words = text.split_inclusive([' ', '\n', ',', ']']);
                let rename = |word: &str| match word.strip_prefix(task) {
                    Some(rest) if rest.len() == 1 => format!("fresh{rest}"),
                    Some(_) | None => match word.strip_prefix('[').and_then(|word| word.strip_prefix(task)) {
                        Some(rest) if rest.len() == 1 => format!("[fresh{rest}"),
                        Some(_) | None => word.to_owned(),
                    },
                };
                words.map(rename).collect()
            }),
        ));
    }
    let planned = |text: &str| text.replacen("planned: [next", "planned: [fresh, next", 1);
    changes.push(("planned, but not there".to_owned(), Box::new(planned)));
    changes.push((
        "new and planned".to_owned(),
        Box::new(move |text| planned(text).replacen("tasks:\n", &format!("tasks:\n{new}"), 1)),
    ));
    let mut accepted = 0;
    for (name, change) in changes {
        let [own, whole] = outcomes(&project, |copy| {
            let store = copy.store();
            let mut session = store.begin_edit().unwrap();
            session.begin_modify(now()).unwrap();
            copy.write(&change(&copy.text()));
            session.finish_modify(&entry(), now())
        });
        assert_eq!(own, whole, "{name}");
        accepted += usize::from(own.0.starts_with("revision"));
    }
    assert!(accepted > 20, "{accepted} accepted");
}
