//! Unusual repositories: the whole life of a task must work in each of them.

use std::fs;

use liza_git::{FileChange, Repo, WorktreeMode};

use crate::support::{TestRepo, git_in, integration, prepare_merge, read, script, task, write};

/// Creates a worktree, works, leaves uncommitted changes, merges after another task, removes it.
fn whole_life(test: &TestRepo, repo: &Repo) {
    let name = task("task-1");
    let base = repo.tip(&integration()).unwrap().unwrap();
    let created = repo.prepare_worktree(&name, &base, WorktreeMode::Fresh, &integration()).unwrap();
    assert!(repo.worktree_state(&name, &base).unwrap().changes.is_empty(), "{created:?}");
    let commit = test.commit(&created.path, "work", "work\n");
    write(&created.path.join("b"), "half done\n");
    let other = test.commit(
        &repo.prepare_worktree(&task("task-2"), &base, WorktreeMode::Keep, &integration()).unwrap().path,
        "o",
        "o\n",
    );
    for (name, commit) in [("task-2", &other), ("task-1", &commit)] {
        let merge = prepare_merge(repo, name, commit).unwrap();
        repo.move_branch(&integration(), &merge, &task(name)).unwrap();
    }
    let removed = repo.remove_worktree(&name, Some(&base), &integration()).unwrap();
    assert_eq!(
        test.git_at(repo.root(), &["show", &format!("{}:b", removed.rescued.unwrap().branch)]),
        "half done"
    );
    assert!(repo.remove_worktree(&task("task-2"), Some(&base), &integration()).unwrap().rescued.is_none());
    assert_eq!(test.git_at(repo.root(), &["status", "--porcelain"]), "");
    assert_eq!(
        repo.worktrees()
            .unwrap()
            .iter()
            .filter(|entry| entry.path.starts_with(repo.root().join(".worktrees")))
            .count(),
        0
    );
}

/// Covers: CL-04, RV-04
#[test]
fn a_path_with_spaces_and_non_ascii_letters() {
    let test = TestRepo::at("mein Prøjekt 项目");
    test.git(&["checkout", "-q", "integration"]);
    whole_life(&test, &test.repo);
}

/// Covers: CL-04, RV-04
#[test]
fn a_detached_head_and_worktree_settings() {
    let test = TestRepo::new();
    test.git(&["checkout", "-q", "--detach"]);
    test.git(&["config", "extensions.worktreeConfig", "true"]);
    test.git(&["config", "--worktree", "core.sparseCheckout", "false"]);
    whole_life(&test, &test.repo);
}

/// Covers: CL-04, RV-04
#[test]
fn a_shallow_clone() {
    let test = TestRepo::new();
    test.commit(&test.root, "a", "two\n");
    test.git(&["branch", "-f", "integration"]);
    let clone = test.home.path().canonicalize().unwrap().join("shallow");
    let url = format!("file://{}", test.root.display());
    test.git(&["clone", "-q", "--depth=1", "--branch=integration", &url, clone.to_str().unwrap()]);
    assert!(clone.join(".git/shallow").exists());
    let repo = test.open(&clone);
    repo.exclude(&["/.worktrees/"]).unwrap();
    whole_life(&test, &repo);
}

/// Covers: CL-04, RV-04
#[test]
fn a_linked_worktree_as_project_root() {
    let test = TestRepo::new();
    let linked = test.home.path().canonicalize().unwrap().join("linked");
    test.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "integration"]);
    whole_life(&test, &test.open(&linked));
    assert_eq!(test.git(&["status", "--porcelain"]), "");
}

/// Covers: CL-04, RV-04
#[test]
fn clean_and_smudge_filters() {
    let test = TestRepo::new();
    test.git(&["config", "--global", "filter.shout.clean", "tr A-Z a-z"]);
    test.git(&["config", "--global", "filter.shout.smudge", "tr a-z A-Z"]);
    write(&test.root.join(".gitattributes"), "a filter=shout\nb filter=shout\n");
    test.git(&["add", "."]);
    test.git(&["commit", "-qm", "filter"]);
    test.git(&["branch", "-f", "integration"]);
    test.git(&["checkout", "-q", "integration"]);
    let tree = test.worktree("task-3");
    assert_eq!(read(&tree.join("a")), "A\n");
    let commit = test.commit(&tree, "a", "LOUD\n");
    let merge = test.pending_merge("task-3", &commit);
    test.move_branch(&merge, "task-3").unwrap();
    assert_eq!((read(&test.root.join("a")), test.show("HEAD", "a")), ("LOUD\n".into(), "loud".into()));
    test.repo.remove_worktree(&task("task-3"), None, &integration()).unwrap();
    whole_life(&test, &test.repo);
}

/// Covers: CL-04, RV-04, AT-01
#[test]
fn hooks_run_for_people_and_not_for_liza() {
    let test = TestRepo::new();
    let hooks = test.home.path().join("my hooks");
    for hook in ["post-checkout", "post-merge", "post-commit"] {
        script(&hooks.join(hook), "echo $0 $* >>\"$HOME/ran\"; exit 1");
    }
    test.git(&["config", "core.hooksPath", hooks.to_str().unwrap()]);
    whole_life(&test, &test.repo);
    let ran = read(&test.home.path().join("ran"));
    assert!(ran.contains("post-commit") && !ran.contains("post-checkout"), "{ran}");
}

/// A repository with a submodule at `lib`.
fn with_submodule() -> TestRepo {
    let test = TestRepo::new();
    git_in(test.home.path(), test.home.path(), &["init", "-q", "library"]);
    let library = test.home.path().canonicalize().unwrap().join("library");
    test.commit(&library, "l", "library\n");
    let add =
        ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library.to_str().unwrap(), "lib"];
    test.git(&add);
    test.git(&["commit", "-qm", "submodule"]);
    test.git(&["branch", "-f", "integration"]);
    test.git(&["checkout", "-q", "integration"]);
    test
}

/// Covers: CL-04, RV-04
#[test]
fn a_repository_with_submodules() {
    let test = with_submodule();
    whole_life(&test, &test.repo);
}

/// Covers: CL-06, RV-01
#[test]
fn work_in_a_submodule_is_seen_and_saved() {
    let test = with_submodule();
    let tree = test.worktree("task-1");
    test.git_at(&tree, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"]);
    let remove = || test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
    assert_eq!(
        test.repo.rescue(&task("task-1"), None, &integration()).unwrap(),
        None,
        "all of it is published"
    );
    write(&tree.join("lib/l"), "changed\n");
    let state = test.repo.worktree_state(&task("task-1"), &test.base()).unwrap();
    let change = FileChange::Tracked { path: "lib".into(), staged: false, unstaged: true, submodule: true };
    assert_eq!(state.changes, [change]);
    let inner = test.commit(&tree.join("lib"), "l", "committed inside\n");
    test.git_at(&tree, &["commit", "-qam", "use it"]);
    let saved = remove().rescued.unwrap();
    assert_eq!(saved.nested.len(), 1);
    assert_eq!(
        test.sha(saved.nested[0].as_str()),
        inner,
        "git deletes a submodule's repository with the worktree"
    );
    assert!(!tree.exists());
}

/// Covers: IS-11
#[test]
fn work_in_a_submodule_of_a_linked_worktree_is_saved() {
    let test = with_submodule();
    let tree = test.linked_worktree("task-1");
    test.git_at(&tree, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"]);
    let inner = test.commit(&tree.join("lib"), "l", "committed inside\n");
    test.git_at(&tree, &["commit", "-qam", "use it"]);
    let made = test.prepare_worktree("task-1", WorktreeMode::Keep);
    let saved = made.rescued.unwrap();
    assert_eq!(test.sha(saved.nested[0].as_str()), inner, "its repository was in the linked git folder");
    assert_eq!(test.git_at(&tree, &["rev-parse", "HEAD:lib"]), inner.as_str());
    assert!(tree.join(".git").is_dir() && !test.root.join(".git/worktrees/task-1").exists());
}

/// Covers: CM-06
#[test]
fn a_submodule_as_project_root() {
    let test = with_submodule();
    let root = test.root.join("lib");
    let repo = test.open(&root);
    assert_eq!(repo.root(), root);
    write(&root.join("b"), "b\n");
    test.git_at(&root, &["add", "b"]);
    test.git_at(&root, &["commit", "-qm", "b"]);
    test.git_at(&root, &["branch", "integration"]);
    repo.exclude(&["/.worktrees/"]).unwrap();
    whole_life(&test, &repo);
}

/// Covers: CL-04
#[test]
fn ids_and_paths_are_never_options_or_shell_words() {
    let test = TestRepo::at("-$(touch pwned); x");
    whole_life(&test, &test.repo);
    assert!(!fs::exists(test.root.join("pwned")).unwrap() && !fs::exists("pwned").unwrap());
}

/// Covers: CL-04, RV-04, IS-04
#[test]
fn hashes_of_256_bits() {
    let test = TestRepo::new();
    let root = test.home.path().canonicalize().unwrap().join("sha256");
    test.git(&["init", "-q", "--object-format=sha256", root.to_str().unwrap()]);
    test.commit(&root, "b", "b\n");
    test.git_at(&root, &["branch", "integration"]);
    let repo = test.open(&root);
    repo.exclude(&["/.worktrees/"]).unwrap();
    whole_life(&test, &repo);
}

/// A clone without the content of files, which git fetches when it needs them.
fn partial_clone(test: &TestRepo) -> std::path::PathBuf {
    for name in ["one", "two", "b"] {
        test.commit(&test.root, &format!("folder-{name}/file"), name);
    }
    test.git(&["branch", "-f", "integration"]);
    test.git(&["config", "uploadpack.allowFilter", "true"]);
    test.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let clone = test.home.path().canonicalize().unwrap().join("partial");
    let url = format!("file://{}", test.root.display());
    let place = clone.to_str().unwrap();
    test.git(&["clone", "-q", "--filter=blob:none", "--no-checkout", "--branch=integration", &url, place]);
    clone
}

/// Covers: CL-04, RV-04, IS-04
#[test]
fn a_partial_clone() {
    let test = TestRepo::new();
    let clone = partial_clone(&test);
    test.git_at(&clone, &["checkout", "-q", "integration"]);
    let repo = test.open(&clone);
    repo.exclude(&["/.worktrees/"]).unwrap();
    whole_life(&test, &repo);
}

/// Covers: CL-04, RV-04, IS-04
#[test]
fn a_sparse_checkout_of_a_partial_clone() {
    let test = TestRepo::new();
    let clone = partial_clone(&test);
    test.git_at(&clone, &["sparse-checkout", "set", "folder-one"]);
    test.git_at(&clone, &["checkout", "-q", "integration"]);
    let repo = test.open(&clone);
    repo.exclude(&["/.worktrees/"]).unwrap();
    let base = repo.tip(&integration()).unwrap().unwrap();
    let tree =
        repo.prepare_worktree(&task("task-3"), &base, WorktreeMode::Keep, &integration()).unwrap().path;
    assert!(tree.join("folder-one/file").exists() && !tree.join("folder-two").exists(), "as in the project");
    assert_eq!(test.git_at(&tree, &["status", "--porcelain"]), "");
    let commit = test.commit(&tree, "folder-one/new", "work\n");
    let state = repo.worktree_state(&task("task-3"), &base).unwrap();
    assert_eq!((state.head, state.changes), (commit.clone(), vec![]));
    repo.create_review(&task("task-3"), &commit, &integration()).unwrap();
    assert!(repo.review_path(&task("task-3")).join("folder-two/file").exists(), "a review sees all of it");
    repo.remove_worktree(&task("task-3"), None, &integration()).unwrap();
    whole_life(&test, &repo);
}
