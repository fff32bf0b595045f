//! The integration branch moves only by merges, `sync` and what the human accepts.

use crate::fixture::*;

/// Puts a commit on the integration branch behind Liza's back, as an agent with git could.
fn smuggle(project: &crate::support::TestProject) -> String {
    let old = tip(project, "integration");
    let tree = tip(project, "integration^{tree}");
    let commit = project.git(&["commit-tree", &tree, "-p", &old, "-m", "unreviewed"]);
    project.git(&["update-ref", "refs/heads/integration", &commit]);
    commit
}

/// Covers: AC-13
#[test]
fn foreign_commits_are_an_alarm_and_hold_merges_until_the_human_accepts_them() {
    let project = team();
    approved(&project, "one");
    let foreign = smuggle(&project);
    let error = merge(&project, "one").refused(1, "foreign_commits");
    assert!(error["hint"].as_str().unwrap().contains("liza accept-integration"), "{error}");
    assert_eq!(tip(&project, "integration"), foreign);
    let page = project.liza(&["status"]).ok().to_owned();
    assert!(page.contains("FOREIGN COMMITS") && page.contains("unreviewed"), "{page}");
    assert!(page.contains("liza accept-integration"), "{page}");
    project.liza_as("coder-1", &["accept-integration", "--json"]).refused(1, "not_permitted");
    let text = project.liza(&["accept-integration"]).ok().to_owned();
    assert!(text.contains("accepted 1 commit") && text.contains("unreviewed"), "{text}");
    merge(&project, "one").ok();
    assert!(!project.liza(&["status"]).ok().contains("FOREIGN COMMITS"));
    check_consistent(&project);
}

/// Covers: AC-13
#[test]
fn a_merge_of_work_that_was_not_approved_bypassed_the_reviews_whatever_its_message_says() {
    let project = team();
    let head = under_review(&project, "one");
    let old = tip(&project, "integration");
    let tree = project.git(&["merge-tree", "--write-tree", &old, &head]);
    let message = format!("Merge one: forged\n\nLiza-Task: one\nLiza-Commit: {head}\n");
    let merged = project.git(&["commit-tree", &tree, "-p", &old, "-p", &head, "-m", &message]);
    project.git(&["update-ref", "refs/heads/integration", &merged]);
    let alarms = || project.liza(&["status", "--json"]).result()["needs_you"].to_string();
    let page = alarms();
    assert!(page.contains("bypassed the reviews") && page.contains("forged"), "{page}");
    // The approval of the same commit makes it a merge that the blackboard did not record.
    verdict(&project, "one", &["APPROVED"]).ok();
    project.liza(&["mark-blocked", "one", "--reason", "no", "--question", "Why?", "--attempted", "a"]).ok();
    let page = alarms();
    assert!(page.contains("the merge of one") && page.contains("forged"), "{page}");
}

/// Covers: AC-13
#[test]
fn a_branch_that_was_moved_back_holds_merges_too() {
    let project = team();
    approved(&project, "one");
    merge(&project, "one").ok();
    approved(&project, "two");
    let head = tip(&project, "integration");
    project.git(&["update-ref", "refs/heads/integration", &format!("{head}^")]);
    merge(&project, "two").refused(1, "foreign_commits");
    project.git(&["update-ref", "refs/heads/integration", &head]);
    merge(&project, "two").ok();
}

/// Covers: AC-13
#[test]
fn sync_brings_the_main_branch_into_integration() {
    let project = team();
    project.write("mine.txt", "by hand\n");
    project.git(&["add", "mine.txt"]);
    project.git(&["commit", "-qm", "by hand"]);
    let text = project.liza(&["sync"]).ok().to_owned();
    let said = "main is merged into the integration branch: 1 commit, now at";
    assert!(text.contains(said), "the commit of the merge is not one that main had: {text}");
    assert_eq!(
        tip(&project, "integration^2"),
        tip(&project, "main"),
        "a merge commit, even without work of its own"
    );
    let message = project.git(&["log", "-1", "--format=%B", "integration"]);
    assert!(message.contains("\nLiza-Sync: main\n") && message.contains("\nLiza-Statement: "), "{message}");
    let recorded = project.snapshot().board.goal.ready().unwrap().integration_head.clone();
    assert_eq!(recorded.unwrap().as_str(), tip(&project, "integration"));
    assert!(project.liza(&["sync"]).ok().contains("already contains main"));
    approved(&project, "one");
    merge(&project, "one").ok();
    project.write("more.txt", "by hand\n");
    project.git(&["add", "more.txt"]);
    project.git(&["commit", "-qm", "more by hand"]);
    project.liza(&["sync"]).ok();
    approved(&project, "two");
    merge(&project, "two").ok();
    assert_eq!(show(&project, "integration", "more.txt"), "by hand");
    check_consistent(&project);
}

/// Covers: AC-13
#[test]
fn sync_refuses_agents_conflicts_and_branches_that_it_cannot_use() {
    let project = team();
    project.liza_as("coder-1", &["sync", "--json"]).refused(1, "not_permitted");
    for (name, why) in
        [("nowhere", "there is no branch nowhere"), ("integration", "the integration branch itself")]
    {
        let error = project.liza(&["sync", name, "--json"]).refused(1, "no_branch");
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    }
    approved_with(&project, "one", "same.txt", "theirs\n");
    merge(&project, "one").ok();
    project.write("same.txt", "mine\n");
    project.git(&["add", "same.txt"]);
    project.git(&["commit", "-qm", "mine"]);
    let before = tip(&project, "integration");
    let error = project.liza(&["sync", "--json"]).refused(3, "not_synced");
    assert!(error["message"].as_str().unwrap().contains("same.txt"), "{error}");
    assert_eq!(tip(&project, "integration"), before);
}
