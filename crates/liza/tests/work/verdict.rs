//! claim-review and submit-verdict: binding, on the exact commit, by the holder of the review.

use std::fs;

use crate::fixture::*;
use crate::support::TestProject;

/// Covers: RV-02, CL-09
#[test]
fn an_approval_names_its_reviewer_and_ends_the_review() {
    let project = team();
    let head = under_review(&project, "one");
    let review = project.record("one");
    assert_eq!(review.reviewing_by.unwrap().to_string(), "code-reviewer-1");
    assert!(review.review_lease_expires.unwrap() > liza_team::project::now());
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
    assert_eq!(tip(&project, "integration^2"), head);
}

/// Covers: AX-05, RV-02
#[test]
fn commits_after_the_submission_change_nothing() {
    let project = team();
    let submitted = submitted(&project, "one");
    let later = commit(&project, &project.tree("one"), "after", "x\n");
    project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]).ok();
    let folder = project.root.join(".worktrees/.review-one");
    assert_eq!(project.git_at(&folder, &["rev-parse", "HEAD"]), submitted);
    verdict(&project, "one", &["APPROVED"]).ok();
    merge(&project, "one").ok();
    assert_eq!((project.status("one"), project.record("one").review_cycles_total), ("MERGED", Some(0)));
    assert_eq!(tip(&project, "integration^2"), submitted);
    project.git(&["merge-base", "--is-ancestor", &later, "rescue/one-1"]);
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

/// Covers: JU-06
#[test]
fn an_approval_is_of_the_change_that_was_read() {
    let project = team();
    under_review(&project, "one");
    let head = |project: &TestProject| project.record("one").review_head.map(|head| head.to_string());
    assert_eq!(head(&project), Some(tip(&project, "integration")));

    // The branch moves, and the merge would conflict.
    advance(&project, "one.txt", "of another agent\n");
    let error = verdict(&project, "one", &["APPROVED"]).refused(1, "change_moved");
    assert!(error["message"].as_str().unwrap().contains("one.txt (conflicts)"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("liza diff one"), "{error}");
    assert_eq!(
        (project.status("one"), head(&project)),
        ("READY_FOR_REVIEW", Some(tip(&project, "integration")))
    );
    assert!(project.log().contains("change_moved"), "{}", project.log());

    // It moves back; that is another change again. Then the merge decides.
    advance(&project, "one.txt", "once more\n");
    verdict(&project, "one", &["APPROVED"]).refused(1, "change_moved");
    advance(&project, "one.txt", "and again\n");
    verdict(&project, "one", &["APPROVED"]).ok();
    merge(&project, "one").refused(3, "conflict");
    assert_eq!(project.status("one"), "INTEGRATION_FAILED");
}

/// Covers: JU-06
#[test]
fn a_harmless_move_of_the_branch_does_not_disturb_a_verdict_and_a_rejection_always_counts() {
    let project = team();
    under_review(&project, "one");
    advance(&project, "other.txt", "of another agent\n");
    verdict(&project, "one", &["APPROVED"]).ok();
    merge(&project, "one").ok();

    under_review(&project, "two");
    advance(&project, "two.txt", "of another agent\n");
    verdict(&project, "two", &["REJECTED", "two.txt conflicts"]).ok();
    assert_eq!(project.status("two"), "REJECTED");

    under_review(&project, "three");
    advance(&project, "three.txt", "of another agent\n");
    project.liza(&["submit-verdict", "three", "APPROVED"]).ok();
    assert_eq!(project.status("three"), "APPROVED", "the human's word counts");
}

/// Covers: JU-06
#[test]
fn a_merge_that_takes_back_the_work_of_others_is_shown_wherever_the_work_is_judged() {
    let project = team();
    claimed(&project, "one", "coder-1");
    commit(&project, &project.tree("one"), "one.txt", "done\n");
    advance(&project, "fix.txt", "the fix of another agent\n");
    let tree = project.tree("one");
    project.git_at(&tree, &["fetch", "-q", project.root.to_str().unwrap(), "integration"]);
    project.git_at(&tree, &["merge", "-q", "-s", "ours", "-m", "merge", "FETCH_HEAD"]);
    let head = project.git_at(&tree, &["rev-parse", "HEAD"]);
    submit(&project, "one", "coder-1", &head).ok();
    let taken = format!("merge {}: fix.txt", &head[..8]);
    let diff = project.liza(&["diff", "one"]).ok().to_owned();
    assert!(diff.contains(&format!("TAKES BACK what the integration branch has: {taken}")), "{diff}");
    assert!(diff.contains("-the fix of another agent"), "{diff}");
    assert!(project.liza(&["show", "one"]).ok().contains(&taken));
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(status.contains("TAKES BACK") && status.contains("liza diff one"), "{status}");

    // Work without such a merge says nothing.
    judge(&project, "one", &["REJECTED", "fix.txt is gone"]);
    claim(&project, "one", "coder-1").ok();
    project.git_at(&tree, &["reset", "-q", "--hard", "HEAD~1"]);
    project.git_at(&tree, &["merge", "-q", "-m", "merge", "integration"]);
    let head = commit(&project, &tree, "fix.txt", "the fix, written otherwise\n");
    submit(&project, "one", "coder-1", &head).ok();
    assert_eq!(project.record("one").takes_back, None);
}

/// Covers: LM-02
#[test]
fn the_rejection_that_reaches_the_limit_says_that_the_planner_decides() {
    let project = team();
    project.set_config("max_review_cycles", "2");
    for (n, said) in [(1, "REJECTED: it goes back to its coder"), (2, "BLOCKED, its rejections are used up")]
    {
        if n == 1 {
            submitted(&project, "one");
        } else {
            project.liza(&["claim-task", "one", "coder-1"]).ok();
            let head = commit(&project, &project.tree("one"), "one.txt", "again\n");
            submit(&project, "one", "coder-1", &head).ok();
        }
        project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
        let words = ["submit-verdict", "one", "REJECTED", "one.txt:1. Prior Feedback Status: STILL PRESENT"];
        let run = project.liza_as("code-reviewer-1", &words);
        assert!(run.stdout.contains(said), "{run:#?}");
    }
    assert_eq!(project.status("one"), "BLOCKED");
}
