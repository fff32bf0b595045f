//! A task that a person has set to APPROVED: the screens ask for a verdict, and a verdict or a block leads out of it.

use crate::fixture::*;
use crate::support::TestProject;

/// Sets a field of a task by hand.
fn set(project: &TestProject, task: &str, field: &str, value: &str) {
    let ids = project.snapshot().board.tasks.keys().map(ToString::to_string).collect::<Vec<_>>();
    let at = ids.iter().position(|id| id == task).unwrap();
    project.liza(&["lock", "write", &format!(".tasks[{at}].{field}"), value]).ok();
}

/// A task with work that a person has set to APPROVED, with the commit that was submitted; no one has approved it.
fn approved_by_hand(project: &TestProject, task: &str) -> String {
    let commit = submitted(project, task);
    set(project, task, "status", "APPROVED");
    commit
}

/// Covers: AX-03
#[test]
fn a_status_without_an_approval_is_shown_until_a_person_has_judged_it() {
    let project = team();
    submitted(&project, "one");
    // With an editor.
    let edited = project.read(".liza/state.yaml").replace("status: READY_FOR_REVIEW", "status: APPROVED");
    project.write(".liza/state.yaml", &edited);
    project.liza(&["note", "seen"]).ok();
    let status = project.liza(&["status"]).ok().to_owned();
    for words in ["NO APPROVAL", "liza submit-verdict one APPROVED", "no approval of its commit is recorded"]
    {
        assert!(status.contains(words), "{words}: {status}");
    }
    assert!(!status.contains("merges it"), "{status}");
    let invalid = project.liza(&["validate"]);
    assert_ne!(invalid.code, 0, "{invalid:?}");
    assert!(format!("{invalid:?}").contains("submit-verdict one"), "{invalid:?}");
    let checked = project.liza(&["doctor"]);
    assert!(format!("{checked:?}").contains("submit-verdict one"), "{checked:?}");
    // Accepting the edit is no approval.
    let edit = project.liza(&["status", "--json"]).result()["needs_you"].to_string();
    let edit = edit.split("liza dismiss ").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    project.liza(&["dismiss", &edit]).ok();
    assert!(project.liza(&["status"]).ok().contains("NO APPROVAL"));
    merge(&project, "one").refused(1, "no_approval");
    project.liza(&["submit-verdict", "one", "APPROVED"]).ok();
    assert!(!project.liza(&["status"]).ok().contains("NO APPROVAL"));
    project.liza(&["validate"]).ok();
    merge(&project, "one").ok();
}

/// Covers: AX-03
#[test]
fn a_task_that_is_merged_by_its_status_alone_is_no_merged_task() {
    let project = team();
    submitted(&project, "two");
    project.liza(&["submit-verdict", "two", "APPROVED"]).ok();
    merge(&project, "two").ok();
    let commit = approved_by_hand(&project, "one");
    let edited = project.read(".liza/state.yaml").replace("status: APPROVED", "status: MERGED");
    project.write(".liza/state.yaml", &edited.replace("worktree: .worktrees/one", "worktree: null"));
    let status = project.liza(&["status"]).ok().to_owned();
    for words in ["NO APPROVAL", "→ liza submit-verdict one REJECTED"] {
        assert!(status.contains(words), "{words}: {status}");
    }
    assert!(status.contains("0 of 1 merged"), "{status}");
    for verb in ["validate", "doctor"] {
        let found = project.liza(&[verb]);
        assert!(format!("{found:?}").contains("submit-verdict one"), "{found:?}");
    }
    let verified = project.liza(&["verify"]);
    let is_total = |line: &str| line.contains(" commit") && line.contains(" CONTRADICTED");
    assert!(verified.stdout.lines().any(is_total), "{verified:#?}");
    project.liza(&["submit-verdict", "one", "APPROVED", "--commit", &commit]).ok();
    merge(&project, "one").ok();
    assert!(!project.liza(&["status"]).ok().contains("NO APPROVAL"));
    project.liza(&["validate"]).ok();
}

/// Covers: AX-03
#[test]
fn a_person_judges_a_task_that_names_no_commit() {
    let project = team();
    let commit = approved_by_hand(&project, "one");
    for task in ["two", "three"] {
        approved_by_hand(&project, task);
    }
    // No coder has had it.
    project.add_task("four");
    set(&project, "four", "status", "APPROVED");
    for task in ["one", "two", "three"] {
        set(&project, task, "review_commit", "null");
    }
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(status.contains("liza submit-verdict four REJECTED"), "{status}");
    assert!(!status.contains("BROKEN RECORD"), "{status}");

    let refused = project.liza(&["submit-verdict", "one", "APPROVED", "--json"]).refused(1, "missing");
    assert!(refused.to_string().contains("--commit SHA"), "{refused}");
    let nowhere = "7".repeat(40);
    project
        .liza(&["submit-verdict", "one", "APPROVED", "--commit", &nowhere, "--json"])
        .refused(1, "unknown_commit");
    project.liza(&["submit-verdict", "one", "APPROVED", "--commit", &commit[..12]]).ok();
    assert_eq!(project.record("one").review_commit.unwrap().as_str(), commit);
    merge(&project, "one").ok();
    project.liza(&["submit-verdict", "two", "REJECTED", "not yet"]).ok();
    assert_eq!(
        (project.status("two"), project.record("two").rejection_reason.unwrap()),
        ("REJECTED", "not yet".into())
    );
    project.liza(&["mark-blocked", "three", "--reason", "think again"]).ok();
    assert_eq!(project.status("three"), "BLOCKED");
    project
        .liza(&["submit-verdict", "four", "APPROVED", "--commit", &commit, "--json"])
        .refused(1, "missing");
    project.liza(&["submit-verdict", "four", "REJECTED", "no one has done it"]).ok();
    assert_eq!(project.status("four"), "UNCLAIMED");
    project.liza(&["validate"]).ok();
}

/// Covers: AX-03
#[test]
fn a_verdict_is_about_the_commit_that_was_submitted() {
    let project = team();
    submitted(&project, "one");
    let other = tip(&project, "integration");
    project
        .liza(&["submit-verdict", "one", "APPROVED", "--commit", &other, "--json"])
        .refused(1, "not_approved_commit");
}

/// Covers: AX-25
#[test]
fn an_answer_without_a_team_names_the_command_that_starts_one() {
    let project = TestProject::new();
    project.add_task("one");
    project.liza(&["mark-blocked", "one", "--reason", "which colour?"]).ok();
    let answered = project.liza(&["answer", "one", "red"]).ok().to_owned();
    assert!(answered.contains("no team is running. To continue one: liza run"), "{answered}");
}
