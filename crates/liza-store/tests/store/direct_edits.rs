//! Edits of state.yaml past the store: logged with their places, and an alarm where only commands should write.

use liza_core::model::{DirectEdit, DirectEditId, LogEntry, Revision};
use liza_core::protocol::{Command, DismissEdit};
use liza_store::{LogRecord, Notice};

use crate::support::*;

const CLAIMED: &str = "    status: CLAIMED
    priority: 3
    assigned_to: coder-1
    worktree: .worktrees/one
    base_commit: 1111111111111111111111111111111111111111
    lease_expires: 2025-01-17T14:30:00Z
    iteration: 1
";

fn board() -> Project {
    let project = Project::new("direct");
    project.add_task("one");
    project.run(register("coder-1"));
    project
}

/// Edits the file as an editor does.
fn edit(project: &Project, from: &str, to: &str) {
    let text = project.text();
    assert!(text.contains(from), "{from:?} is not in\n{text}");
    project.write(&text.replacen(from, to, 1));
}

/// The entries of the log about direct edits.
fn logged(project: &Project) -> Vec<LogRecord> {
    let entries = project.store().log_reader().read_new().unwrap();
    entries.into_iter().filter(|entry| entry.agent == "edited by hand").collect()
}

fn details(project: &Project) -> Vec<String> {
    logged(project).into_iter().map(|entry| entry.detail).collect()
}

fn alarms(project: &Project) -> Vec<DirectEdit> {
    project.store().snapshot().unwrap().board.direct_edits.ready().cloned().unwrap_or_default()
}

fn alarming_places(project: &Project) -> Vec<String> {
    alarms(project).into_iter().flat_map(|edit| edit.places).collect()
}

fn entry() -> LogEntry {
    LogEntry { action: "edit".to_owned(), detail: "manual".to_owned(), ..first_entry() }
}

/// Covers: AT-04
#[test]
fn an_edit_is_logged_once_with_its_places_at_the_next_write() {
    // A heartbeat logs nothing of its own.
    for command in [note("x"), heartbeat("coder-1")] {
        let project = board();
        edit(&project, "priority: 3", "priority: 1");
        edit(&project, "lock_timeout: 11", "lock_timeout: 20");
        let before = project.log();
        project.run(command);
        let [found] = &logged(&project)[..] else { panic!("{}", project.log()) };
        assert_eq!(found.detail, "config.lock_timeout, tasks.one.priority");
        assert_eq!((found.action.as_str(), found.revision), ("edit", Some(4)));
        assert!(project.log().starts_with(&before));
        assert_eq!(alarms(&project), []);
        project.run(note("y"));
        assert_eq!(logged(&project).len(), 1);
    }
}

/// Covers: AT-04
#[test]
fn another_form_of_the_same_values_is_no_edit() {
    let project = board();
    edit(&project, "priority: 3", "priority: 3 # as agreed");
    edit(&project, "scope: src/", "scope: \"src/\"");
    project.run(note("x"));
    assert_eq!(details(&project), [""; 0]);
    assert!(project.text().contains("# as agreed"));
}

/// Covers: AT-04
#[test]
fn an_edit_of_what_only_commands_write_is_an_alarm() {
    let cases = [
        ("status: UNCLAIMED", "status: DRAFT", "tasks.one.status"),
        (
            "priority: 3",
            "review_commit: 1111111111111111111111111111111111111111\n    priority: 3",
            "tasks.one.review_commit",
        ),
        ("priority: 3", "approved_by: code-reviewer-1\n    priority: 3", "tasks.one.approved_by"),
        ("generation: 3", "generation: 7", "agents.coder-1.generation"),
        (
            "lock_timeout: 11",
            "providers:\n    evil: {command: [sh]}\n  lock_timeout: 11",
            "config.providers.evil",
        ),
        ("lock_timeout: 11", "lock_timeout: 11\n  integration_branch: main", "config.integration_branch"),
    ];
    for (from, to, place) in cases {
        let project = board();
        edit(&project, from, to);
        project.run(note("x"));
        assert_eq!(alarming_places(&project), [place]);
        assert!(details(&project)[0].contains(place), "{:?}", details(&project));
        let id = DirectEditId(Revision(4));
        assert_eq!(alarms(&project)[0].id, id);
        project.run(Command::from(DismissEdit { edit: id }));
        assert_eq!(alarms(&project), []);
        assert!(project.submit(Command::from(DismissEdit { edit: id })).is_err());
    }
}

/// Covers: AT-04
#[test]
fn a_removed_task_and_a_planted_one_are_alarms() {
    let project = board();
    let text = project.text();
    let (head, rest) = text.split_once("  - id: one\n").unwrap();
    let (body, tail) = rest.split_once("agents:").unwrap();
    project.write(&format!(
        "{head}  - id: two\n{}agents:{tail}",
        body.replace("    status: UNCLAIMED\n    priority: 3\n", CLAIMED)
    ));
    project.run(note("x"));
    assert_eq!(alarming_places(&project), ["tasks.one.status", "tasks.two.status"]);
    assert_eq!(details(&project), ["tasks.one, tasks.two"]);
}

/// The program reads the first of two tasks with one ID.
///
/// Covers: AT-04
#[test]
fn a_copy_of_a_task_does_not_hide_an_edit_of_it() {
    let project = board();
    let text = project.text();
    let start = text.find("  - id: one\n").unwrap();
    let end = text.find("agents:").unwrap();
    let task = &text[start..end];
    let edited = task.replace("status: UNCLAIMED", "status: ABANDONED");
    project.write(&text.replace(task, &format!("{edited}{task}")));
    project.run(note("x"));
    assert_eq!(alarming_places(&project)[0], "tasks.one.status");
}

/// Covers: AX-08, AT-04
#[test]
fn the_edits_that_the_documents_prescribe_are_logged_without_an_alarm() {
    let project = board();
    edit(&project, "status: UNCLAIMED", "status: BLOCKED\n    blocked_reason: \"human override\"");
    project.run(note("x"));
    assert_eq!(details(&project), ["tasks.one.blocked_reason, tasks.one.status"]);
    let new = "  - id: two\n    description: More\n    status: UNCLAIMED\n    priority: 1\n    spec_ref: specs/x.md\n    \
               done_when: It works\n    scope: src/\nagents:";
    edit(&project, "agents:", new);
    project.run(note("y"));
    assert_eq!(details(&project)[1..], ["tasks.two"]);
    assert_eq!(alarms(&project), []);
    let state = project.store().snapshot().unwrap();
    let two = state.board.body(&task("two")).unwrap().record();
    assert_eq!((two.created, two.revision.is_some()), (Some(now()), true), "its age counts from now on");
    // Any other reason is not a human override.
    edit(&project, "human override", "whatever");
    edit(&project, "status: UNCLAIMED", "status: BLOCKED\n    blocked_reason: whatever");
    project.run(note("z"));
    assert_eq!(alarming_places(&project), ["tasks.two.status"]);
}

/// Covers: AT-04
#[test]
fn an_alarm_cannot_be_removed_by_another_edit() {
    let project = board();
    edit(&project, "status: UNCLAIMED", "status: DRAFT");
    project.run(note("x"));
    let text = project.text();
    let from = text.find("direct_edits:").unwrap();
    let end = text[from..].find("\n\n").map_or(text.len(), |end| from + end);
    let until = text[from..end].match_indices('\n').map(|(at, _)| from + at + 1);
    let until = until.into_iter().find(|at| !text[*at..].starts_with([' ', '-'])).unwrap_or(end);
    project.write(&format!("{}{}", &text[..from], &text[until..]));
    project.run(note("y"));
    assert_eq!(alarming_places(&project), ["direct_edits"]);
}

/// Covers: AT-04
#[test]
fn an_edit_that_cannot_be_compared_is_an_alarm() {
    for missing in ["state.yaml.lock", "state.yaml.prev"] {
        let project = board();
        edit(&project, "priority: 3", "priority: 1");
        std::fs::remove_file(project.file(missing)).unwrap();
        project.run(note("x"));
        let [DirectEdit { places, .. }] = &alarms(&project)[..] else { panic!("{missing}") };
        assert!(places.is_empty());
        assert!(details(&project)[0].contains("what differs is not known"), "{missing}");
    }
    // A file that no store ever wrote is not an edited one.
    let project = Project::with_text("first", EXAMPLE);
    project.run(note("x"));
    assert_eq!((alarms(&project), details(&project).len()), (Vec::new(), 0));
}

/// Covers: AT-04
#[test]
fn an_edit_after_a_large_write_is_compared_too() {
    let project = board();
    project.run(note(&"long ".repeat(10_000)));
    edit(&project, "priority: 3", "priority: 1");
    project.run(note("x"));
    assert_eq!(details(&project), ["tasks.one.priority"]);
}

/// `lock write`, `lock modify` and `edit` are commands with an author; an edit before them is not theirs.
///
/// Covers: AT-04
#[test]
fn an_edit_before_a_change_of_the_text_is_logged_apart_from_it() {
    let project = board();
    let store = project.store();
    edit(&project, "status: UNCLAIMED", "status: DRAFT");
    let session = store.begin_edit().unwrap();
    drop(
        session
            .set(".config.lock_timeout", "20", liza_store::ValueSyntax::BySchema, &entry(), now())
            .unwrap(),
    );
    assert_eq!(details(&project), ["tasks.one.status"]);
    assert_eq!(alarming_places(&project), ["tasks.one.status"]);

    edit(&project, "priority: 3", "priority: 1");
    let mut session = store.begin_edit().unwrap();
    session.begin_modify(now()).unwrap();
    project.write(&project.text().replace("lock_timeout: 20", "lock_timeout: 30"));
    drop(session.finish_modify(&entry(), now()).unwrap());
    assert_eq!(details(&project), ["tasks.one.status", "tasks.one.priority"]);
    assert_eq!(project.log().matches("detail: manual").count(), 2);
    assert_eq!(alarms(&project).len(), 1);
}

/// Covers: AT-04
#[test]
fn an_edit_before_a_killed_command_under_the_lock_is_logged() {
    let project = board();
    let store = project.store();
    edit(&project, "status: UNCLAIMED", "status: DRAFT");
    let mut session = store.begin_edit().unwrap();
    session.begin_modify(now()).unwrap();
    project.write("half a file");
    // Never dropped, as in a killed process.
    let leaked = Box::leak(Box::new(session));
    let copy = Project::empty("direct-killed");
    for name in ["state.yaml", "state.yaml.lock", "state.yaml.prev", "log.yaml"] {
        std::fs::copy(project.file(name), copy.file(name)).unwrap();
    }
    assert_eq!(copy.submit(note("x")).unwrap().notices, [Notice::ModifyUndone]);
    assert_eq!(alarming_places(&copy), ["tasks.one.status"]);
    assert_eq!(details(&copy), ["tasks.one.status"]);
    let _ = leaked;
}
