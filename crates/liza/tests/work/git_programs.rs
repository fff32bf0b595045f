//! Programs that the project's own git configuration names: used once the human has accepted them, held when they change.

use std::fs;

use crate::fixture::*;
use crate::support::TestProject;

/// A project with lines that both an approved task and the integration branch have changed, and a merge driver for them.
fn with_a_merge_driver(driver: &str) -> TestProject {
    let project = TestProject::new();
    advance(&project, ".gitattributes", "*.txt merge=own\n");
    advance(&project, "shared.txt", "old\n");
    let project = join(project);
    approved_with(&project, "one", "shared.txt", "task\n");
    advance(&project, "shared.txt", "branch\n");
    project.git(&["config", "merge.own.driver", driver]);
    project
}

fn needs_you(project: &TestProject) -> String {
    project.liza(&["status", "--json"]).json()["result"]["needs_you"].to_string()
}

/// Covers: IS-08
#[test]
fn a_changed_program_is_an_alarm_and_holds_merges_until_the_human_accepts_it() {
    let project = with_a_merge_driver("cp %B %A");
    let error = merge(&project, "one").refused(1, "git_programs_changed");
    assert!(error["message"].as_str().unwrap().contains("merge.own.driver"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("liza config --trust"), "{error}");
    assert_eq!(project.status("one"), "APPROVED");
    let needs = needs_you(&project);
    assert!(needs.contains("GIT PROGRAMS CHANGED") && needs.contains("liza config --trust"), "{needs}");

    let said = project.liza(&["config", "--trust"]).ok().to_owned();
    assert!(said.contains("accepted from .git/config: merge.own.driver"), "{said}");
    assert!(!needs_you(&project).contains("GIT PROGRAMS CHANGED"));
    merge(&project, "one").ok();
    assert_eq!(show(&project, "integration", "shared.txt"), "task");
    project.liza(&["config", "--trust", "--json"]).refused(1, "no_team_file");

    // To take an accepted program away changes what is merged too.
    approved(&project, "two");
    project.git(&["config", "--unset", "merge.own.driver"]);
    merge(&project, "two").refused(1, "git_programs_changed");
    project.liza(&["config", "--trust"]).ok();
    merge(&project, "two").ok();
}

/// Covers: IS-08
#[test]
fn a_program_of_the_project_itself_does_not_run_even_if_it_was_accepted() {
    let project = with_a_merge_driver("sh tools/merge %A %B");
    project.write("tools/merge", "cp \"$2\" \"$1\"; touch \"$HOME/ran\"\n");
    project.liza(&["config", "--trust"]).ok();
    merge(&project, "one").refused(3, "conflict");
    assert!(!project.home().join("ran").exists());
}

/// Covers: IS-08, IS-14
#[test]
fn a_filter_from_before_init_is_accepted_and_used() {
    let project = TestProject::bare();
    project.git(&["config", "filter.rot.clean", "tr a-z b-za"]);
    project.git(&["config", "filter.rot.smudge", "tr b-za a-z"]);
    project.git(&["config", "filter.rot.required", "true"]);
    project.write(".gitattributes", "*.txt filter=rot\n");
    project.write("text.txt", "hello\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "filtered"]);
    let init = project.liza(&["init", "Goal"]);
    assert!(init.stderr.contains("accepted from .git/config: filter.rot.clean"), "{init:?}");
    let project = join(project);
    approved(&project, "one");
    assert_eq!(fs::read_to_string(project.tree("one").join("text.txt")).unwrap(), "hello\n");
    merge(&project, "one").ok();
    assert_eq!(show(&project, "integration", "one.txt"), "epof", "in the form that the filter stores");

    project.git(&["config", "filter.rot.smudge", "cat"]);
    project.add_task("two");
    let error = claim(&project, "two", "coder-1").refused(3, "git");
    assert!(error["message"].as_str().unwrap().contains("filter.rot.smudge"), "{error}");
}

/// Covers: IS-08, RV-04
#[test]
fn signing_that_is_switched_off_behind_your_back_holds_merges() {
    let project = team();
    approved(&project, "one");
    project.git(&["config", "commit.gpgsign", "false"]);
    let error = merge(&project, "one").refused(1, "git_programs_changed");
    assert!(error["message"].as_str().unwrap().contains("commit.gpgsign"), "{error}");
    project.git(&["config", "--unset", "commit.gpgsign"]);
    merge(&project, "one").ok();
}
