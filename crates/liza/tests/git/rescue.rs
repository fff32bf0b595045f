//! Rescue: nothing that a worktree holds is lost, and nothing in it changes.

use std::path::Path;

use liza::git::{Mode, Repo, Rescue};

use crate::support::{TestRepo, git_in, integration, script, task, write};

fn rescue(test: &TestRepo) -> Option<Rescue> {
    test.repo.rescue(&task("task-1"), None, &integration()).unwrap()
}

/// The state of a worktree, index and references included, as git shows it.
fn picture(test: &TestRepo, tree: &Path) -> String {
    let commands: [&[&str]; 4] = [
        &["status", "--porcelain=v2", "--branch"],
        &["ls-files", "--stage"],
        &["stash", "list"],
        &["rev-parse", "HEAD"],
    ];
    commands.map(|arguments| test.git_at(tree, arguments)).join("\n")
}

/// Covers: CL-06, LM-06
#[test]
fn an_empty_worktree_needs_no_rescue() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("build.tmp"), "ignored\n");
    assert_eq!(rescue(&test), None);
    test.advance("x", "1");
    assert_eq!(rescue(&test), None);
    assert!(test.branches("rescue/*").is_empty());
}

/// Covers: CL-06
#[test]
fn every_kind_of_uncommitted_work_is_saved_without_disturbing_it() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("a"), "staged\n");
    test.git_at(&tree, &["add", "a"]);
    write(&tree.join("a"), "then changed\n");
    std::fs::remove_file(tree.join("b")).unwrap();
    write(&tree.join("sub/nëw fil€"), "untracked\n");
    write(&tree.join("x.tmp"), "ignored\n");
    let before = picture(&test, &tree);
    let saved = rescue(&test).unwrap();
    assert_eq!(picture(&test, &tree), before);
    assert!(saved.uncommitted);
    let name = saved.branch.as_str();
    assert_eq!(test.show(name, "a"), "then changed");
    assert_eq!(test.show(name, "sub/nëw fil€"), "untracked");
    let files = test.git(&["-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", name]);
    assert_eq!(files, ".gitignore\na\nsub/nëw fil€");
    assert_eq!(test.show(&format!("{name}^2"), "a"), "staged", "the staged version is the second parent");
    assert_eq!(test.sha(&format!("{name}^1")), test.base());
}

/// Covers: CL-06
#[test]
fn the_same_work_is_saved_once_and_more_work_again() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("a"), "one\n");
    assert_eq!(rescue(&test).unwrap(), rescue(&test).unwrap());
    write(&tree.join("a"), "two\n");
    assert_eq!(rescue(&test).unwrap().branch.as_str(), "rescue/task-1-2");
    let commit = test.commit(&tree, "c", "three\n");
    let third = rescue(&test).unwrap();
    assert_eq!((third.commit, third.uncommitted), (commit, false));
    assert_eq!(rescue(&test), None, "what is on a rescue branch is kept");
    // A task whose name begins like another's rescue branches does not count with them.
    test.git(&["branch", "rescue/task-1-7-1", "rescue/task-1-1"]);
    write(&tree.join("a"), "four\n");
    assert_eq!(rescue(&test).unwrap().branch.as_str(), "rescue/task-1-4");
}

/// Covers: CL-06
#[test]
fn a_merge_with_conflicts_is_saved_with_both_sides() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.commit(&tree, "a", "theirs\n");
    let other = test.commit(&test.root, "a", "ours\n");
    assert!(!git_in(test.home.path(), &tree, &["merge", "main"]).0);
    write(&tree.join("new"), "untracked\n");
    let before = picture(&test, &tree);
    let saved = rescue(&test).unwrap();
    assert_eq!(picture(&test, &tree), before);
    let name = saved.branch.as_str();
    assert!(test.show(name, "a").contains("<<<<<<<"));
    assert_eq!(test.show(name, "new"), "untracked");
    assert_eq!(test.sha(&format!("{name}^2")), other);
}

/// Covers: CL-06
#[test]
fn a_rebase_that_stopped_is_saved_with_what_it_was_rebasing() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.commit(&tree, "c", "one\n");
    let tip = test.commit(&tree, "a", "theirs\n");
    test.advance("a", "ours\n");
    assert!(!git_in(test.home.path(), &tree, &["rebase", "integration"]).0);
    let before = picture(&test, &tree);
    let saved = rescue(&test).unwrap();
    assert_eq!(picture(&test, &tree), before);
    let parents = test.git(&["log", "-1", "--format=%P", saved.branch.as_str()]);
    assert!(parents.contains(tip.as_str()), "{parents}");
    let fresh = test.ensure("task-1", Mode::Fresh);
    assert_eq!(fresh.rescued.unwrap().branch, saved.branch);
}

/// Covers: CL-06
#[test]
fn commits_on_a_detached_head_and_on_the_branch_are_both_saved() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let on_branch = test.commit(&tree, "c", "branch\n");
    test.git_at(&tree, &["checkout", "-q", "--detach", "HEAD^"]);
    let detached = test.commit(&tree, "d", "detached\n");
    let saved = test.repo.remove(&task("task-1"), None, &integration()).unwrap().rescued.unwrap();
    let parents = test.git(&["log", "-1", "--format=%P", saved.branch.as_str()]);
    assert_eq!(parents, format!("{detached} {on_branch}"));
    assert_eq!(test.show(saved.branch.as_str(), "d"), "detached");
}

/// Covers: CL-06
#[test]
fn work_is_saved_though_nobody_said_who_commits() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    std::fs::write(
        test.home.path().join("gitconfig"),
        "[commit]\ngpgsign = true\n[user]\nuseConfigOnly = true\n",
    )
    .unwrap();
    write(&tree.join("a"), "half done\n");
    let saved = rescue(&test).unwrap();
    assert_eq!(test.git(&["log", "-1", "--format=%an", saved.branch.as_str()]), "Liza");
}

/// Covers: CL-06
#[test]
fn a_damaged_index_does_not_prevent_saving_files() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    // Fit for git to look at, unfit to be written as a tree: a conflict that nobody began.
    let blob = test.git(&["rev-parse", "HEAD:a"]);
    let entries = format!("100644 {blob} 1\ta\n100644 {blob} 2\ta\n");
    let call = test.program().call("making a conflict", &tree).args(["update-index", "--index-info"]);
    call.stdin(entries).ok().unwrap();
    write(&tree.join("a"), "resolved by hand\n");
    assert_eq!(test.show(rescue(&test).unwrap().branch.as_str(), "a"), "resolved by hand");
}

/// Covers: CL-06
#[test]
fn repositories_inside_a_worktree_are_saved_too() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let inner = tree.join("cloned");
    git_in(test.home.path(), &tree, &["init", "-q", "cloned"]);
    let commit = test.commit(&inner, "x", "inner work\n");
    git_in(test.home.path(), &tree, &["init", "-q", "empty"]);
    write(&tree.join("empty/y"), "not even committed\n");
    assert_eq!(rescue(&test), rescue(&test), "once");
    let saved = test.repo.remove(&task("task-1"), None, &integration()).unwrap().rescued.unwrap();
    let names: Vec<&str> = saved.nested.iter().map(liza::git::Branch::as_str).collect();
    assert_eq!(names, ["rescue/task-1-in-cloned-1", "rescue/task-1-in-empty-1"]);
    assert_eq!(test.sha("rescue/task-1-in-cloned-1"), commit);
    assert_eq!(test.show("rescue/task-1-in-empty-1", "y"), "not even committed");
}

/// Covers: CL-06
#[test]
fn a_number_that_somebody_else_takes_meanwhile_is_left_to_them() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("a"), "half done\n");
    let program = test.home.path().join("git-beside-another");
    let other = "git update-ref refs/heads/rescue/task-1-1 integration";
    script(&program, &format!("case \"$*\" in *'liza: rescue'*) {other};; esac\nexec git \"$@\""));
    let repo = Repo::open(&test.program().with_program(program), &test.root).unwrap();
    let saved = repo.rescue(&task("task-1"), None, &integration()).unwrap().unwrap();
    assert_eq!(saved.branch.as_str(), "rescue/task-1-2");
    assert_eq!(test.sha("rescue/task-1-1"), test.base());
}
