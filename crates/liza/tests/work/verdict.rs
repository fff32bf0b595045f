//! claim-review and submit-verdict: binding, on the exact commit, by the holder of the review.

use std::fs;

use crate::fixture::*;

/// Covers: RV-02, CL-09
#[test]
fn an_approval_names_its_reviewer_and_ends_the_review() {
    let project = team();
    let head = under_review(&project, "one");
    let review = project.record("one");
    assert_eq!(review.reviewing_by.unwrap().to_string(), "code-reviewer-1");
    assert!(review.review_lease_expires.unwrap() > liza::project::now());
    assert_eq!(verdict(&project, "one", &["APPROVED"]).result()["status"], "APPROVED");
    let record = project.record("one");
    assert_eq!(record.approved_by.unwrap().to_string(), "code-reviewer-1");
    assert_eq!(record.review_commit.unwrap().as_str(), head);
    assert_eq!((record.reviewing_by, record.review_lease_expires), (None, None));
    verdict(&project, "one", &["REJECTED", "after all"]).refused(1, "wrong_status");
}

/// Covers: CL-09
#[test]
fn a_review_has_one_holder_until_its_lease_ends() {
    let project = team();
    under_review(&project, "one");
    let take = |reviewer: &str| project.liza(&["claim-review", "one", reviewer, "--json"]);
    take("code-reviewer-2").refused(1, "review_claimed");
    take("code-reviewer-1").ok();
    take("coder-2").refused(1, "wrong_role");
    expire(&project, "code-reviewer-1");
    verdict(&project, "one", &["APPROVED"]).refused(42, "lease_lost");
    take("code-reviewer-2").ok();
    verdict(&project, "one", &["APPROVED"]).refused(1, "not_your_review");
    assert_eq!(project.status("one"), "READY_FOR_REVIEW");
    let before = project.record("one").review_lease_expires.unwrap();
    project.liza(&["heartbeat", "code-reviewer-2", "--for", "3000"]).ok();
    assert!(project.record("one").review_lease_expires.unwrap() > before);
}

/// Covers: RV-02
#[test]
fn only_the_holder_of_the_review_submits_a_verdict_and_a_rejection_needs_a_reason() {
    let project = team();
    submitted(&project, "one");
    verdict(&project, "one", &["APPROVED"]).refused(1, "not_your_review");
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    project
        .liza_as("planner-1", &["submit-verdict", "one", "APPROVED", "--json"])
        .refused(1, "not_permitted");
    project.liza_as("coder-1", &["submit-verdict", "one", "APPROVED", "--json"]).refused(1, "not_permitted");
    verdict(&project, "one", &["REJECTED"]).refused(1, "missing");
    verdict(&project, "one", &["REJECTED", " "]).refused(1, "missing");
    verdict(&project, "one", &["MAYBE"]).refused(1, "usage");
    verdict(&project, "one", &["REJECTED", "x", "--reason-file", "y"]).refused(1, "usage");
    verdict(&project, "one", &["REJECTED", "--reason-file", "nowhere"]).refused(1, "io");
    assert_eq!(project.status("one"), "READY_FOR_REVIEW");
    project.write("review.md", "Two problems:\n- one\n- two\n");
    verdict(&project, "one", &["REJECTED", "--reason-file", "review.md"]).ok();
    assert_eq!(project.record("one").rejection_reason.unwrap(), "Two problems:\n- one\n- two");
}

/// Covers: RV-02
#[test]
fn a_reason_can_come_from_standard_input() {
    let project = team();
    for (task, words) in [("one", vec!["-"]), ("two", vec!["--reason-file", "-"])] {
        under_review(&project, task);
        let mut program = project.program();
        program.args(["submit-verdict", task, "REJECTED"]).args(words);
        let file = project.home().join("reason");
        fs::write(&file, "- too slow\n").unwrap();
        program.stdin(fs::File::open(&file).unwrap()).env("LIZA_AGENT_ID", "code-reviewer-1");
        project.run(&mut program).ok();
        assert_eq!(project.record(task).rejection_reason.unwrap(), "- too slow");
    }
}

/// Covers: RV-03
#[test]
fn a_second_rejection_has_the_prior_feedback_status() {
    let project = team();
    rejected(&project, "one");
    claim(&project, "one", "coder-1").ok();
    let head = commit(&project, &project.tree("one"), "more", "x\n");
    submit(&project, "one", "coder-1", &head).ok();
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    let error = verdict(&project, "one", &["REJECTED", "still wrong"]).refused(1, "prior_feedback_missing");
    assert!(error["hint"].as_str().unwrap().contains("STILL PRESENT"), "{error}");
    let reason = "still wrong\n\nPrior Feedback Status:\n- STILL PRESENT: a.rs:1";
    verdict(&project, "one", &["REJECTED", reason]).ok();
    let record = project.record("one");
    assert_eq!((record.review_cycles_current, record.review_cycles_total), (Some(2), Some(2)));
}

/// Covers: RV-02, RV-10
#[test]
fn a_review_that_changed_the_worktree_is_refused_and_the_worktree_restored() {
    let project = team();
    let head = under_review(&project, "one");
    let folder = project.root.join(".worktrees/.review-one");
    fs::write(folder.join("one.txt"), "improved by the reviewer\n").unwrap();
    fs::write(folder.join("test-output"), "a test run left it\n").unwrap();
    verdict(&project, "one", &["APPROVED"]).refused(1, "review_touched");
    assert_eq!(project.status("one"), "READY_FOR_REVIEW");
    assert_eq!(project.git_at(&folder, &["status", "--porcelain", "-uno"]), "");
    assert_eq!(fs::read_to_string(folder.join("one.txt")).unwrap(), "done\n");
    assert_eq!(show(&project, "rescue/one-1", "one.txt"), "improved by the reviewer");

    let theirs = commit(&project, &folder, "one.txt", "committed by the reviewer\n");
    verdict(&project, "one", &["APPROVED"]).refused(1, "head_moved");
    assert_eq!(project.git_at(&folder, &["rev-parse", "HEAD"]), head);
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), head);
    project.git(&["merge-base", "--is-ancestor", &theirs, "rescue/one-2"]);

    fs::write(folder.join("left-over"), "untracked\n").unwrap();
    verdict(&project, "one", &["APPROVED"]).ok();
    merge(&project, "one").ok();
    assert_eq!(tip(&project, "integration"), head);
}

/// Covers: RV-02, TS-01
#[test]
fn a_submission_whose_worktree_has_moved_returns_to_its_coder() {
    let project = team();
    submitted(&project, "one");
    let moved = commit(&project, &project.tree("one"), "after", "x\n");
    project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]).refused(1, "submission_void");
    let record = project.record("one");
    assert_eq!((record.status.unwrap().name(), record.reviewing_by), ("REJECTED", None));
    assert!(record.rejection_reason.unwrap().contains("head_moved"));
    claim(&project, "one", "coder-1").ok();
    submit(&project, "one", "coder-1", &moved).ok();
    check_consistent(&project);
}

/// Covers: AG-17
#[test]
fn under_pause_no_review_starts_but_a_finished_one_is_accepted() {
    let project = team();
    under_review(&project, "one");
    submitted(&project, "two");
    project.liza(&["pause"]).ok();
    project.liza(&["claim-review", "two", "code-reviewer-2", "--json"]).refused(42, "halted");
    verdict(&project, "one", &["APPROVED"]).ok();
    merge(&project, "one").refused(42, "halted");
    project.liza(&["resume"]).ok();
    merge(&project, "one").ok();
}
