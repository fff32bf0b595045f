//! Input that is wrong: each gets a clear sentence, nothing is lost, and no work is blamed for what is not its fault.

use crate::fixture::*;
use crate::support::TestProject;
use crate::support::process::{end, is_running, own_sleep};
use crate::validation::{is_red, review, validated_by, validating};

/// Submitted work that this command of its own validates.
fn shown_by(project: &TestProject, task: &str, command: &str) {
    project.add_task(task);
    project.liza(&["edit-task", task, "--validate", command]).ok();
    claim(project, task, "coder-1").ok();
    let head = commit(project, &project.tree(task), &format!("{task}.txt"), "done\n");
    submit(project, task, "coder-1", &head).ok();
}

/// Covers: JU-03
#[test]
fn a_command_that_ruins_its_copy_fails_no_other_command() {
    let project = validated_by(&["rm -rf ./* .git"]);
    shown_by(&project, "one", "test -f one.txt");
    review(&project, "one").ok();
    let validated = project.record("one").validated.unwrap();
    assert_eq!(
        (validated.result.to_string().as_str(), validated.flaky),
        ("green", vec!["test -f one.txt".into()])
    );
    verdict(&project, "one", &["APPROVED"]).ok();
    merge(&project, "one").ok();
    assert_eq!(show(&project, "integration", "one.txt"), "done");
    check_consistent(&project);
}

/// Covers: JU-01, JU-03
#[test]
fn a_command_that_changes_what_judges_it_has_not_passed() {
    let project = team();
    // In a room it cannot even be written.
    project.set_config("sandbox_max_abi", "100");
    advance(&project, "scripts/check.sh", "exit 0\n");
    shown_by(&project, "one", "sh scripts/check.sh && echo '# more' >> scripts/check.sh");
    is_red(&project, "one", "does not count, since it changed protected files");
    assert_eq!(show(&project, "integration", "scripts/check.sh"), "exit 0");
}

/// Covers: JU-03
#[test]
fn what_a_command_that_passes_has_left_is_ended() {
    let left = own_sleep(40);
    let project = validated_by(&[&format!("(setsid {left} > /dev/null 2>&1 &); true")]);
    submitted(&project, "one");
    review(&project, "one").ok();
    assert!(!is_running(&left));
}

/// Covers: JU-03
#[test]
fn other_merges_do_not_disturb_a_validation() {
    let (project, sleep, mut claiming) = validating(41);
    advance(&project, "other.txt", "x\n");
    end(&sleep);
    assert_eq!(claiming.wait(), 0, "{}", claiming.output());
    let record = project.record("one");
    assert_eq!(
        (record.review_phase, record.validated.unwrap().result.to_string()),
        (None, "green".to_owned())
    );
    check_consistent(&project);
}

/// Covers: JU-09
#[test]
fn an_impact_that_a_person_has_misspelled_is_named_and_everything_else_stays() {
    let project = team();
    submitted(&project, "one");
    let text = project.state();
    project.write(".liza/state.yaml", &text.replacen("- id: one\n", "- id: one\n    impact: medium\n", 1));
    let words = "\"medium\" is not valid; expected one of normal, high";
    assert!(project.liza(&["validate"]).stdout.contains(&format!("INVALID: one: {words}")));
    let status = project.liza(&["status"]).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["BROKEN RECORD", words, "liza edit one"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let error = project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]).refused(4, "broken_task");
    assert!(error["message"].as_str().unwrap().contains(words), "{error}");
    // Its work is there, and other tasks go on.
    approved(&project, "two");
    let text = project.state();
    assert!(text.contains("impact: medium"), "{text}");
    project.write(".liza/state.yaml", &text.replace("impact: medium", "impact: high"));
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    assert!(project.tree("one").join("one.txt").exists());
}
