//! submit-for-review: exactly the commit of a clean worktree, by its coder.

use std::fs;

use crate::fixture::*;
use crate::support::TestProject;

/// Covers: RV-01
#[test]
fn a_clean_commit_is_submitted_and_recorded_with_its_full_hash() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "x", "x\n");
    fs::write(project.tree("one").join("specs/.gitignore"), "").unwrap();
    fs::remove_file(project.tree("one").join("specs/.gitignore")).unwrap();
    let result = submit(&project, "one", "coder-1", &head[..8]).result();
    assert_eq!((result["commit"].as_str().unwrap(), &result["status"]), (&*head, &"READY_FOR_REVIEW".into()));
    let record = project.record("one");
    assert_eq!(record.review_commit.unwrap().as_str(), head);
    assert_eq!(record.lease_expires, None, "the coder's lease applies to CLAIMED only");
    assert!(history(&project, "one").ends_with(&["ready_for_review".to_owned()]));
}

/// Covers: RV-01
#[test]
fn a_worktree_that_is_not_clean_is_refused() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let folder = project.tree("one");
    let head = commit(&project, &folder, ".gitignore", "*.tmp\n");
    let dirty = |project: &TestProject, what: &str| {
        let error = submit(project, "one", "coder-1", &head).refused(1, "dirty_worktree");
        assert!(error["message"].as_str().unwrap().contains(what), "{error}");
    };
    fs::write(folder.join("new"), "untracked\n").unwrap();
    dirty(&project, "new");
    project.git_at(&folder, &["add", "new"]);
    dirty(&project, "new");
    project.git_at(&folder, &["rm", "-qf", "new"]);
    fs::write(folder.join("specs/vision.md"), "changed\n").unwrap();
    dirty(&project, "specs/vision.md");
    project.git_at(&folder, &["checkout", "-q", "specs/vision.md"]);
    fs::write(folder.join("left.tmp"), "ignored\n").unwrap();
    submit(&project, "one", "coder-1", &head).ok();
}

/// Covers: RV-01
#[test]
fn only_a_new_head_of_the_tasks_branch_is_accepted() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let folder = project.tree("one");
    let base = tip(&project, "integration");
    submit(&project, "one", "coder-1", &base).refused(1, "nothing_to_review");
    let first = commit(&project, &folder, "x", "1\n");
    let second = commit(&project, &folder, "x", "2\n");
    submit(&project, "one", "coder-1", &first).refused(1, "head_moved");
    submit(&project, "one", "coder-1", "1234567890").refused(1, "unknown_commit");
    submit(&project, "one", "coder-1", "HEAD~1").refused(1, "usage");
    project.git_at(&folder, &["checkout", "-q", "--detach"]);
    submit(&project, "one", "coder-1", &second).refused(1, "wrong_branch");
    project.git_at(&folder, &["checkout", "-q", "task/one"]);
    assert_eq!(project.status("one"), "CLAIMED");
    submit(&project, "one", "coder-1", &second).ok();
}

/// Covers: RV-01, AG-12
#[test]
fn only_its_coder_submits() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "x", "x\n");
    submit(&project, "one", "coder-2", &head).refused(1, "not_your_task");
    submit(&project, "one", "code-reviewer-1", &head).refused(1, "not_permitted");
    project.liza(&["submit-for-review", "one", &head, "--json"]).refused(1, "not_permitted");
    submit(&project, "nothing", "coder-1", &head).refused(1, "unknown_task");
    project.add_task("two");
    submit(&project, "two", "coder-1", &head).refused(1, "wrong_status");
    assert_eq!(project.status("one"), "CLAIMED");
}

/// Covers: RV-01, IV-04
#[test]
fn without_a_worktree_the_submission_is_refused_and_the_hint_names_recover() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "x", "x\n");
    project.liza(&["heartbeat", "coder-1"]).ok();
    fs::remove_dir_all(project.tree("one")).unwrap();
    let error = submit(&project, "one", "coder-1", &head).refused(4, "worktree_missing");
    assert_eq!(error["hint"], "liza recover");
    assert_eq!(recover(&project), ["missing_worktree one"]);
    submit(&project, "one", "coder-1", &head).ok();
}

/// Covers: RV-11
#[test]
fn an_integration_fix_must_contain_the_integration_head() {
    let project = team();
    conflicted(&project, "one");
    claim(&project, "one", "coder-1").ok();
    let folder = project.tree("one");
    let without = commit(&project, &folder, "more", "x\n");
    let error = submit(&project, "one", "coder-1", &without).refused(1, "base_not_merged");
    assert!(error["hint"].as_str().unwrap().starts_with("git merge "), "{error}");
    let mut merge = project.command("git");
    merge.args(["merge", "-q", "integration"]).current_dir(&folder);
    assert_eq!(project.run(&mut merge).code, 1, "it conflicts");
    let fixed = commit(&project, &folder, "shared.txt", "of both\n");
    submit(&project, "one", "coder-1", &fixed).ok();
    judge(&project, "one", &["APPROVED"]);
    project.liza(&["wt-merge", "one"]).ok();
    assert_eq!(tip(&project, "integration^2"), fixed);
    check_consistent(&project);
}
