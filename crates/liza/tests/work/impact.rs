//! Work of high impact: two approvals of one commit, by different code reviewers.

use liza_core::model::Impact;

use crate::fixture::*;

/// Covers: JU-09
#[test]
fn work_of_high_impact_is_merged_after_two_approvals() {
    let project = team();
    project.liza(&["add-task", "--id", "draft", "--desc", "d", "--draft", "--impact", "high"]).ok();
    assert_eq!(project.record("draft").impact, Some(Impact::High));
    project.add_task("one");
    project.liza(&["edit-task", "one", "--impact", "high"]).ok();
    let lower = ["edit-task", "one", "--impact", "normal", "--json"];
    project.register("planner-1");
    project.liza_as("planner-1", &lower).refused(1, "not_permitted");
    project.liza(&["edit-task", "one", "--impact", "medium", "--json"]).refused(1, "usage");
    claim(&project, "one", "coder-1").ok();
    let head = commit(&project, &project.tree("one"), "one.txt", "done\n");
    submit(&project, "one", "coder-1", &head).ok();

    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    let first = project.liza_as("code-reviewer-1", &["submit-verdict", "one", "APPROVED", "ran it"]);
    assert!(first.ok().contains("one is READY_FOR_REVIEW: its impact is high"), "{}", first.ok());
    merge(&project, "one").refused(1, "wrong_status");
    let shown = project.liza(&["show", "one"]).ok().to_owned();
    let words = "high impact, 1 of 2 approvals (code-reviewer-1): the plan says so";
    assert!(shown.contains(words), "{shown}");
    let record = project.liza(&["show", "one", "--json"]).result()["record"].clone();
    assert_eq!(
        (&record["impact"], &record["approvals"][0]["commit"]),
        (&"high".into(), &head.as_str().into())
    );

    project.liza(&["claim-review", "one", "code-reviewer-2"]).ok();
    let second = project.liza_as("code-reviewer-2", &["submit-verdict", "one", "APPROVED", "ran it too"]);
    assert!(second.ok().contains("one is APPROVED"), "{}", second.ok());
    merge(&project, "one").ok();
    assert_eq!(project.status("one"), "MERGED");
}

/// Covers: JU-09
#[test]
fn facts_raise_what_the_human_has_lowered() {
    let project = team();
    project.liza(&["config", "high_impact", "[\"src/pay/**\"]"]).ok();
    submitted_with(&project, "plain", "src/other.txt", "x\n");
    project.liza(&["claim-review", "plain", "code-reviewer-1"]).ok();
    verdict(&project, "plain", &["APPROVED"]).ok();
    assert_eq!(project.status("plain"), "APPROVED");

    project.add_task("pay");
    project.liza(&["edit-task", "pay", "--impact", "normal"]).ok();
    claim(&project, "pay", "coder-1").ok();
    let head = commit(&project, &project.tree("pay"), "src/pay/a.txt", "x\n");
    submit(&project, "pay", "coder-1", &head).ok();
    project.liza(&["claim-review", "pay", "code-reviewer-1"]).ok();
    verdict(&project, "pay", &["APPROVED"]).ok();
    assert_eq!(project.status("pay"), "READY_FOR_REVIEW");
    let shown = project.liza(&["show", "pay"]).ok().to_owned();
    assert!(shown.contains("1 of 2 approvals (code-reviewer-1): of high impact by the settings"), "{shown}");
    project.liza(&["submit-verdict", "pay", "APPROVED"]).ok();
    assert_eq!(project.status("pay"), "APPROVED", "the human's word suffices");
    merge(&project, "pay").ok();
}
