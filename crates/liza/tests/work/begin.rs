//! init in a repository that has branches already, and in places with odd names.

use std::fs;

use crate::fixture::*;
use crate::support::TestProject;

/// Covers: AC-34
#[test]
fn an_existing_branch_is_adopted_only_after_its_distance_was_stated() {
    let project = TestProject::bare();
    project.git(&["branch", "integration"]);
    for file in ["a", "b"] {
        advance(&project, file, "x\n");
    }
    commit(&project, &project.root.clone(), "c", "x\n");
    let before = tip(&project, "integration");
    let error = project.liza(&["init", "Retry", "--json"]).refused(1, "branch_exists");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("2 commits ahead of") && message.contains("1 commit behind"), "{message}");
    assert!(error["hint"].as_str().unwrap().contains("--adopt"), "{error}");
    assert!(!project.root.join(".liza").exists());
    let text = project.liza(&["init", "Retry", "--adopt"]).ok().to_owned();
    assert!(text.contains("2 commits ahead of") && text.contains("1 commit behind"), "{text}");
    assert_eq!(tip(&project, "integration"), before);

    let same = TestProject::bare();
    same.git(&["branch", "integration"]);
    same.liza(&["init", "Retry"]).ok();
}

/// Covers: AC-34
#[test]
fn old_task_branches_are_saved_not_reused() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "old.txt", "old\n");
    fs::write(project.tree("one").join("half.txt"), "half\n").unwrap();
    project.git(&["branch", "task/two", "integration"]);
    fs::remove_dir_all(project.root.join(".liza")).unwrap();
    let text = project.liza(&["init", "Again"]).ok().to_owned();
    assert!(text.contains("task/one") && text.contains("rescue/one-1"), "{text}");
    assert!(text.contains("task/two"), "{text}");
    assert!(branches(&project, "task/*").is_empty() && !project.tree("one").exists());
    project.git(&["merge-base", "--is-ancestor", &head, "rescue/one-1"]);
    assert_eq!(show(&project, "rescue/one-1", "half.txt"), "half");
    let project = join(project);
    claimed(&project, "one", "coder-1");
    assert_eq!(tip(&project, "task/one"), tip(&project, "integration"));
    assert!(!project.tree("one").join("old.txt").exists());
    check_consistent(&project);
}

/// Covers: AT-14
#[test]
fn a_folder_with_a_line_break_in_its_name_is_refused_clearly() {
    let project = TestProject::at("two\nlines");
    for words in [&["init", "Retry", "--json"][..], &["init", "--json"]] {
        let error = project.liza(words).refused(1, "no_repository");
        assert!(error["message"].as_str().unwrap().contains("line break"), "{error}");
    }
    let doctor = project.liza(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("line break"), "{doctor:?}");
}

/// Covers: AT-14
#[test]
fn a_branch_called_task_or_rescue_is_named() {
    for name in ["task", "rescue", "task/x", "rescue/x"] {
        let project = TestProject::bare();
        let error = project.liza(&["init", "Retry", "--branch", name, "--json"]).refused(1, "bad_branch");
        assert!(error["message"].as_str().unwrap().contains(name), "{error}");
    }
    for name in ["task", "rescue"] {
        let project = TestProject::bare();
        project.git(&["branch", name]);
        let error = project.liza(&["init", "Retry", "--json"]).refused(1, "bad_branch");
        let fix = format!("git branch -m {name} ");
        assert!(error["hint"].as_str().unwrap().contains(&fix), "{error}");
        project.git(&["branch", "-D", "-q", name]);
        project.liza(&["init", "Retry"]).ok();

        let project = join(project);
        claimed(&project, "one", "coder-1");
        project.add_task("two");
        project.liza(&["release-claim", "one", "--force"]).ok();
        project.liza(&["recover"]).ok();
        project.git(&["branch", name]);
        let error = match name {
            "task" => claim(&project, "two", "coder-2").refused(3, "git"),
            _ => {
                claim(&project, "two", "coder-2").ok();
                commit(&project, &project.tree("two"), "x", "x\n");
                project.liza(&["mark-blocked", "two", "--reason", "x"]).ok();
                project.liza(&["abandon-task", "two", "--reason", "x"]).ok();
                let left = project.liza(&["recover", "--json"]).result()["left"].clone();
                serde_json::json!({"message": left.to_string()})
            }
        };
        assert!(error["message"].as_str().unwrap().contains(&fix), "{error}");
        let doctor = project.liza(&["doctor", "--json"]);
        assert!(doctor.stdout.contains(&fix), "{doctor:?}");
        project.git(&["branch", "-m", name, "renamed"]);
        if name == "task" {
            claim(&project, "two", "coder-2").ok();
        }
        recover(&project);
        check_consistent(&project);
    }
}
