//! Actions without a browser: what they run, and what happens when two people act at once.

use crate::fixture::Web;
use crate::support::TestProject;

/// Covers: UI-02
#[test]
fn two_people_get_the_refusals_that_two_commands_would() {
    let project = TestProject::new();
    project.register("coder-1");
    submitted(&project, "t1");
    let mut web = Web::start(&project);
    let (one, other) = (web.visitor(), web.visitor());
    let seen = project.record("t1").revision.unwrap().to_string();
    let verdict =
        [("action", "reject"), ("task", "t1"), ("seen", seen.as_str()), ("text", "no test for a timeout")];
    let first = one.act(&verdict);
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(project.status("t1"), "REJECTED");
    let second = other.act(&verdict);
    assert_eq!(second.status, 409, "{second:?}");
    assert!(second.body.contains("READY_FOR_REVIEW") || second.body.contains("revision"), "{second:?}");
    assert_eq!(project.record("t1").review_cycles_total, Some(1));
    assert!(project.log().contains("agent: human"), "{}", project.log());
}

/// Covers: UI-02
#[test]
fn a_verdict_is_about_what_the_person_has_seen() {
    let project = TestProject::new();
    project.register("coder-1");
    submitted(&project, "t1");
    let seen = project.record("t1").revision.unwrap().to_string();
    project.register("code-reviewer-1");
    project.liza_as("code-reviewer-1", &["claim-review", "t1", "code-reviewer-1"]).ok();
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    let stale = visitor.act(&[("action", "approve"), ("task", "t1"), ("seen", &seen)]);
    assert_eq!(stale.status, 409, "{stale:?}");
    assert_eq!(project.status("t1"), "READY_FOR_REVIEW");
    let seen = project.record("t1").revision.unwrap().to_string();
    let fresh = visitor.act(&[("action", "reject"), ("task", "t1"), ("seen", &seen), ("text", "no test")]);
    assert_eq!(fresh.status, 200, "{fresh:?}");
    assert_eq!(project.status("t1"), "REJECTED");
}

/// Covers: UI-02
#[test]
fn a_form_names_an_action_and_never_a_command() {
    let project = TestProject::new();
    project.add_task("t1");
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    for fields in [
        &[("action", "remove")][..],
        &[("action", "suggested"), ("text", "x")],
        &[("need", "liza remove")],
        &[("need", "")],
        &[("action", "answer"), ("task", "none"), ("text", "x")],
        &[("action", "answer"), ("task", "../x"), ("text", "x")],
        &[("action", "answer"), ("task", "t1"), ("text", "  ")],
        &[("action", "approve"), ("task", "t1")],
        &[("task", "t1")],
    ] {
        let answer = visitor.act(fields);
        assert_eq!(answer.status, 409, "{fields:?}: {answer:?}");
    }
    // What a person types is never an option.
    for text in ["--json", "-C /", "- a list"] {
        let noted = visitor.act(&[("action", "note-all"), ("text", text)]);
        assert_eq!(noted.status, 200, "{noted:?}");
    }
    let notes = project.snapshot().journal.human_notes;
    let notes: Vec<&str> = notes.iter().map(|note| note.message.trim()).collect();
    assert_eq!(notes, ["--json", "-C /", "- a list"]);
    // Without a script the answer is a whole page.
    let answer = visitor.act(&[("action", "pause")]);
    assert!(
        answer.body.contains("<!DOCTYPE html>") && answer.body.contains("Back to the board"),
        "{answer:?}"
    );
    assert!(project.root.join(".liza/PAUSE").exists());
}

/// A task whose work waits for a review; coder-1 is registered.
pub(crate) fn submitted(project: &TestProject, task: &str) {
    project.add_task(task);
    project.liza_as("coder-1", &["claim-task", task, "coder-1"]).ok();
    let tree = project.tree(task);
    std::fs::write(tree.join("work.txt"), "first line\nsecond line\n").unwrap();
    project.git_at(&tree, &["add", "."]);
    project.git_at(&tree, &["commit", "-qm", "work"]);
    let commit = project.git_at(&tree, &["rev-parse", "HEAD"]);
    project
        .liza_as("coder-1", &["pre-check", task, "--intent", "do it", "--validation", "cat work.txt"])
        .ok();
    project.liza_as("coder-1", &["submit-for-review", task, &commit]).ok();
}
