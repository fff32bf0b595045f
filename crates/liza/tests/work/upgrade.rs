//! A project of the original system goes on: its linked worktrees are replaced, and nothing is lost.

use std::fs;

use crate::fixture::*;
use crate::support::TestProject;

/// Makes a task's worktree what the original system would have made: a linked one, with the same files, index and branch.
fn as_original(project: &TestProject, task: &str) {
    let tree = project.tree(task);
    let (kept, branch) = (project.home().join(format!("kept-{task}")), format!("task/{task}"));
    project.liza(&["recover"]).ok();
    fs::rename(&tree, &kept).unwrap();
    project.git(&["worktree", "add", "-q", "--no-checkout", tree.to_str().unwrap(), &branch]);
    fs::copy(kept.join(".git/index"), project.root.join(format!(".git/worktrees/{task}/index"))).unwrap();
    fs::remove_dir_all(kept.join(".git")).unwrap();
    for entry in fs::read_dir(&kept).unwrap().flatten() {
        fs::rename(entry.path(), tree.join(entry.file_name())).unwrap();
    }
    let _ = fs::remove_file(project.root.join(".git/liza/index").join(task));
}

/// Gives the blackboard the version that the original system writes.
fn set_original_version(project: &TestProject) {
    let old = project.state().replacen("version: 2", "version: 1", 1);
    project.write(".liza/state.yaml", &old);
}

/// A board with a task in every state, as the original system left it.
fn original() -> TestProject {
    let project = team();
    project.add_task("unclaimed");
    rejected(&project, "rejected");
    approved(&project, "approved");
    submitted(&project, "submitted");
    under_review(&project, "reviewed");
    claimed(&project, "claimed", "coder-1");
    commit(&project, &project.tree("claimed"), "c.txt", "committed\n");
    for task in ["claimed", "submitted", "reviewed", "rejected", "approved"] {
        as_original(&project, task);
        let _ = fs::remove_dir_all(project.root.join(format!(".worktrees/.review-{task}")));
    }
    let tree = project.tree("claimed");
    fs::write(tree.join("staged.txt"), "staged\n").unwrap();
    project.git_at(&tree, &["add", "staged.txt"]);
    fs::write(tree.join("untracked.txt"), "untracked\n").unwrap();
    fs::write(tree.join("specs/vision.md"), "changed\n").unwrap();
    set_original_version(&project);
    project
}

/// Covers: IS-11
#[test]
fn a_project_of_the_original_system_goes_on_in_every_state() {
    let project = original();
    assert!(project.root.join(".worktrees/claimed/.git").is_file());
    // The running review is finished as it is.
    verdict(&project, "reviewed", &["APPROVED"]).ok();
    merge(&project, "reviewed").ok();
    assert!(project.state().starts_with("version: 1\n"), "nothing has needed a new worktree yet");
    // The coder's next session.
    claim(&project, "claimed", "coder-1").ok();
    assert!(project.state().starts_with("version: 2\n"), "an older program refuses to write now");
    let tree = project.tree("claimed");
    assert!(tree.join(".git").is_dir());
    assert_eq!(project.git_at(&tree, &["log", "-1", "--format=%s"]), "change c.txt");
    assert_eq!(project.git_at(&tree, &["status", "--porcelain"]), "");
    let saved = [("staged.txt", "staged"), ("untracked.txt", "untracked"), ("specs/vision.md", "changed")];
    for (file, text) in saved {
        assert_eq!(show(&project, "rescue/claimed-1", file), text);
    }
    let head = commit(&project, &tree, "more.txt", "more\n");
    submit(&project, "claimed", "coder-1", &head).ok();
    judge(&project, "claimed", &["APPROVED"]);
    merge(&project, "claimed").ok();
    // The others.
    judge(&project, "submitted", &["APPROVED"]);
    merge(&project, "submitted").ok();
    merge(&project, "approved").ok();
    claim(&project, "rejected", "coder-1").ok();
    let head = commit(&project, &project.tree("rejected"), "fixed.txt", "fixed\n");
    submit(&project, "rejected", "coder-1", &head).ok();
    judge(&project, "rejected", &["APPROVED"]);
    merge(&project, "rejected").ok();
    claim(&project, "unclaimed", "coder-1").ok();
    assert_eq!(
        project.git(&["worktree", "list"]).lines().count(),
        1,
        "git knows no linked worktree any more"
    );
    check_consistent(&project);
}

/// Covers: IS-11
#[test]
fn recover_and_removal_accept_linked_worktrees() {
    let project = original();
    project.liza(&["recover"]).ok();
    check_consistent(&project);
    project.liza(&["release-claim", "claimed", "--force"]).ok();
    assert_eq!(show(&project, "rescue/claimed-1", "untracked.txt"), "untracked");
    assert!(!project.tree("claimed").exists());
    check_consistent(&project);
}
