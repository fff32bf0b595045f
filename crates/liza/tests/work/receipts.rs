//! Receipts of real merges and reviews: made by Liza only, exchanged with the branch, needed for what is found on it.

use std::fs;

use liza_git::RECEIPTS;
use liza_receipts::{Predicate, Purpose, Statement};

use crate::fixture::*;
use crate::remote::{on_remote, remote_head, shared};
use crate::support::TestProject;

/// The statements of a project, in the order of their names.
fn statements(project: &TestProject) -> Vec<Statement> {
    let receipts = repository(project).list_receipts().unwrap();
    receipts.values().map(|text| Statement::decode(text).unwrap()).collect()
}

/// Covers: JU-04, JU-05
#[test]
fn a_merge_names_its_statement_and_that_the_review() {
    let project = team();
    project.git(&["config", "--global", "user.name", "Ada Lovelace"]);
    let head = tip(&project, "integration");
    let commit = approved(&project, "one");
    merge(&project, "one").ok();
    let statements = statements(&project);
    let [review, merged] = ["review", "merge"].map(|purpose| {
        let found = statements.iter().find(|statement| statement.purpose.to_string() == purpose);
        found.unwrap_or_else(|| panic!("{statements:#?}"))
    });
    assert_eq!(statements.len(), 2);
    let Predicate::Review(review) = &review.predicate else { panic!("{review:?}") };
    assert_eq!(
        (review.agent.to_string().as_str(), review.commit.as_str()),
        ("code-reviewer-1", commit.as_str())
    );
    assert_eq!(review.head.as_str(), head);
    let Predicate::Merge(merge) = &merged.predicate else { panic!("{merged:?}") };
    assert_eq!((merge.head.as_str(), merge.commit.as_str()), (head.as_str(), commit.as_str()));
    assert_eq!(merge.tree.as_str(), tip(&project, "integration^{tree}"));
    assert_eq!(merge.evidence.len(), 1);
    let trailer = ["log", "-1", "--format=%(trailers:key=Liza-Statement,valueonly)", "integration"];
    let named = project.git(&trailer).trim().parse().unwrap();
    assert_eq!(repository(&project).read_receipts(&[named]).unwrap().len(), 1);
    // References go public: neither the host nor the person is in them.
    let host = fs::read_to_string("/etc/hostname").unwrap_or_default();
    for text in repository(&project).list_receipts().unwrap().values() {
        let text = String::from_utf8_lossy(text).into_owned();
        assert!(!text.contains("Ada") && (host.trim().is_empty() || !text.contains(host.trim())), "{text}");
    }
}

/// Covers: JU-04
#[test]
fn the_human_and_a_rejection_make_no_review_statement() {
    let project = team();
    submitted(&project, "one");
    project.liza(&["submit-verdict", "one", "APPROVED"]).ok();
    rejected(&project, "two");
    under_review(&project, "three");
    fs::write(project.root.join(".worktrees/.review-three/three.txt"), "changed\n").unwrap();
    verdict(&project, "three", &["APPROVED"]).refused(1, "review_touched");
    assert_eq!(statements(&project), []);
    merge(&project, "one").ok();
    let [statement] = &statements(&project)[..] else { panic!("one statement") };
    let Predicate::Merge(merge) = &statement.predicate else { panic!("{statement:?}") };
    assert_eq!((merge.approved_by.unwrap().to_string().as_str(), merge.evidence.len()), ("human", 0));
}

/// Covers: JU-04, JU-05
#[test]
fn a_merge_on_the_branch_counts_only_with_its_own_statement() {
    let project = team();
    let other = approved(&project, "other");
    let commit = approved(&project, "one");
    let head = tip(&project, "integration");
    let other = stated_merge(&project, &head, "other", &other);
    let named = |merge: &str| project.git(&["log", "-1", "--format=%(trailers:key=Liza-Statement)", merge]);
    let tree = project.git(&["merge-tree", "--write-tree", &head, &commit]);
    let unknown = format!("Liza-Statement: {}", "0".repeat(64));
    for statement in ["", &unknown, named(other.new.as_str()).trim()] {
        let message = format!("Merge one\n\nLiza-Task: one\nLiza-Commit: {commit}\n{statement}\n");
        let forged = project.git(&["commit-tree", &tree, "-p", &head, "-p", &commit, "-m", &message]);
        project.git(&["update-ref", "refs/heads/integration", &forged]);
        assert_eq!(recover(&project), Vec::<String>::new(), "{message}");
        merge(&project, "one").refused(1, "foreign_commits");
        assert_eq!(project.status("one"), "APPROVED");
        let needs = project.liza(&["status", "--json"]).result()["needs_you"].to_string();
        assert!(needs.contains("FOREIGN COMMITS") || needs.contains("accept-integration"), "{needs}");
        project.git(&["update-ref", "refs/heads/integration", &head]);
    }
    let merged = move_branch_only(&project, "one", &commit);
    assert_eq!(recover(&project), ["merge one"]);
    assert_eq!(project.record("one").merge_commit.unwrap().as_str(), merged);
    check_consistent(&project);
}

/// Covers: JU-05
#[test]
fn sync_acceptance_and_finish_are_kinds_of_their_own() {
    let project = team();
    approved(&project, "one");
    merge(&project, "one").ok();
    advance(&project, "by-hand.txt", "x\n");
    project.write("main.txt", "x\n");
    project.git(&["add", "main.txt"]);
    project.git(&["commit", "-qm", "on main"]);
    project.liza(&["sync"]).ok();
    let purposes = || {
        let mut all: Vec<String> = statements(&project).iter().map(|one| one.purpose.to_string()).collect();
        all.sort();
        all
    };
    assert_eq!(purposes(), ["accept", "merge", "review", "sync"]);
    project.liza_as("coder-1", &["accept-integration", "--json"]).refused(1, "not_permitted");
    project.write("more.txt", "x\n");
    project.git(&["add", "more.txt"]);
    project.git(&["commit", "-qm", "more on main"]);
    project.liza(&["goal", "complete"]).ok();
    project.liza(&["finish", "--merge"]).ok();
    assert_eq!(purposes(), ["accept", "finish", "merge", "review", "sync"]);
    assert!(statements(&project).iter().any(|statement| statement.purpose == Purpose::Finish));
    assert_eq!(tip(&project, "refs/liza/finished/goal-1"), tip(&project, "integration"));
}

/// Before the first merge nothing on the branch needs a receipt; after it, another branch has nothing that speaks for it.
///
/// Covers: JU-05
#[test]
fn a_project_whose_first_work_is_approved_and_not_merged_verifies() {
    let project = team();
    approved(&project, "one");
    let result = project.liza(&["verify", "--json"]).result();
    assert_eq!(result["classes"], serde_json::json!({"BEFORE RECEIPTS": 1}), "{result}");
    merge(&project, "one").ok();
    project.write("main.txt", "x\n");
    project.git(&["add", "main.txt"]);
    project.git(&["commit", "-qm", "on main"]);
    let run = project.liza(&["verify", "main", "--json"]);
    assert_eq!((run.code, &run.json()["result"]["classes"]["FOREIGN"]), (4, &1.into()), "{run:?}");
}

/// Covers: JU-04
#[test]
fn receipts_go_with_the_branch_and_join_those_of_other_machines() {
    let project = shared();
    approved(&project, "one");
    let on_the_remote = || on_remote(&project, &["rev-parse", RECEIPTS]);
    assert_eq!(on_the_remote(), tip(&project, RECEIPTS), "a review is sent at once");
    merge(&project, "one").ok();
    assert_eq!(on_the_remote(), tip(&project, RECEIPTS));
    approved(&project, "two");
    // Another machine has added one.
    let theirs =
        on_remote(&project, &["commit-tree", &format!("{RECEIPTS}^{{tree}}"), "-p", RECEIPTS, "-m", "x"]);
    on_remote(&project, &["update-ref", RECEIPTS, &theirs]);
    merge(&project, "two").ok();
    assert_eq!(remote_head(&project), tip(&project, "integration"));
    assert_eq!(on_the_remote(), tip(&project, RECEIPTS));
    project.git(&["merge-base", "--is-ancestor", &theirs, RECEIPTS]);
    assert_eq!(statements(&project).len(), 4);
    check_consistent(&project);
}
