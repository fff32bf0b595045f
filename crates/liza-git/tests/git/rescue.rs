//! Rescue: no work in a worktree is lost, and nothing in it changes.

use std::path::Path;

use liza_git::{Branch, Repo, Rescue, WorktreeMode};

use crate::support::{TestRepo, git_in, integration, script, task, write};

fn rescue(test: &TestRepo) -> Option<Rescue> {
    test.repo.rescue(&task("task-1"), None, &integration()).unwrap()
}

/// The state of a worktree, index and references included, as git shows it.
fn snapshot(test: &TestRepo, tree: &Path) -> String {
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
fn every_kind_of_uncommitted_work_is_saved_and_the_worktree_does_not_change() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("a"), "staged\n");
    test.git_at(&tree, &["add", "a"]);
    write(&tree.join("a"), "then changed\n");
    std::fs::remove_file(tree.join("b")).unwrap();
    write(&tree.join("sub/nëw fil€"), "untracked\n");
    write(&tree.join("x.tmp"), "ignored\n");
    let before = snapshot(&test, &tree);
    let saved = rescue(&test).unwrap();
    assert_eq!(snapshot(&test, &tree), before);
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
fn the_same_work_is_saved_once_and_new_work_again() {
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
    // The rescue branch of a task whose ID starts like this one's is not counted.
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
    assert!(!git_in(test.home.path(), &tree, &["merge", other.as_str()]).0);
    write(&tree.join("new"), "untracked\n");
    let before = snapshot(&test, &tree);
    let saved = rescue(&test).unwrap();
    assert_eq!(snapshot(&test, &tree), before);
    let name = saved.branch.as_str();
    assert!(test.show(name, "a").contains("<<<<<<<"));
    assert_eq!(test.show(name, "new"), "untracked");
    assert_eq!(test.sha(&format!("{name}^2")), other);
}

/// Covers: CL-06
#[test]
fn a_stopped_rebase_is_saved_with_the_rebased_commits() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.commit(&tree, "c", "one\n");
    let tip = test.commit(&tree, "a", "theirs\n");
    let other = test.advance("a", "ours\n");
    assert!(!git_in(test.home.path(), &tree, &["rebase", other.as_str()]).0);
    let before = snapshot(&test, &tree);
    let saved = rescue(&test).unwrap();
    assert_eq!(snapshot(&test, &tree), before);
    let parents = test.git(&["log", "-1", "--format=%P", saved.branch.as_str()]);
    assert!(parents.contains(tip.as_str()), "{parents}");
    let fresh = test.prepare_worktree("task-1", WorktreeMode::Fresh);
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
    let saved = test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap().rescued.unwrap();
    let parents = test.git(&["log", "-1", "--format=%P", saved.branch.as_str()]);
    assert_eq!(parents, format!("{detached} {on_branch}"));
    assert_eq!(test.show(saved.branch.as_str(), "d"), "detached");
}

/// Covers: CL-06
#[test]
fn work_is_saved_without_a_git_identity() {
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
    // Readable, but it cannot be written as a tree: a conflict without a merge.
    let blob = test.git(&["rev-parse", "HEAD:a"]);
    let entries = format!("100644 {blob} 1\ta\n100644 {blob} 2\ta\n");
    let command = test.program().command("making a conflict", &tree).args(["update-index", "--index-info"]);
    command.stdin(entries).read().unwrap();
    write(&tree.join("a"), "resolved\n");
    assert_eq!(test.show(rescue(&test).unwrap().branch.as_str(), "a"), "resolved");
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
    let saved = test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap().rescued.unwrap();
    let names: Vec<&str> = saved.nested.iter().map(Branch::as_str).collect();
    assert_eq!(names, ["rescue/task-1-in-cloned-1", "rescue/task-1-in-empty-1"]);
    assert_eq!(test.sha("rescue/task-1-in-cloned-1"), commit);
    assert_eq!(test.show("rescue/task-1-in-empty-1", "y"), "not even committed");
}

/// Covers: CL-06
#[test]
fn a_number_that_another_process_takes_is_skipped() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("a"), "half done\n");
    let program = test.home.path().join("git-with-a-rival");
    let other = "git update-ref refs/heads/rescue/task-1-1 integration";
    script(&program, &format!("case \"$*\" in *'liza: rescue'*) {other};; esac\nexec git \"$@\""));
    let repo = Repo::open(&test.program().with_program(program), &test.root).unwrap();
    let saved = repo.rescue(&task("task-1"), None, &integration()).unwrap().unwrap();
    assert_eq!(saved.branch.as_str(), "rescue/task-1-2");
    assert_eq!(test.sha("rescue/task-1-1"), test.base());
}

/// Covers: AT-11
#[test]
fn files_that_became_folders_or_links_are_saved_as_they_are() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    for (path, text) in [("file", "f"), ("folder/x", "x"), ("linked/deep/x", "x")] {
        write(&tree.join(path), text);
    }
    test.git_at(&tree, &["add", "-A"]);
    test.git_at(&tree, &["commit", "-qm", "start"]);
    std::fs::remove_file(tree.join("file")).unwrap();
    write(&tree.join("file/inside"), "now a folder");
    std::fs::remove_dir_all(tree.join("folder")).unwrap();
    write(&tree.join("folder"), "now a file");
    std::fs::remove_dir_all(tree.join("linked")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), tree.join("linked")).unwrap();
    let saved = rescue(&test).unwrap();
    let shown = |path: &str| test.show(saved.branch.as_str(), path);
    assert_eq!(shown("file/inside"), "now a folder");
    assert_eq!(shown("folder"), "now a file");
    assert_eq!(shown("linked"), outside.path().to_str().unwrap());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}
