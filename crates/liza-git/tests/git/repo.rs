//! Questions about a repository.

use std::fs;

use liza_git::{Branch, FileChange, GitError, Repo, UntrackedFiles, WorktreeLock, WorktreeMode};

use crate::support::{TestRepo, branch, git_in, integration, read, task, write};

/// Covers: CM-06
#[test]
fn the_project_is_found_from_every_folder_in_it() {
    let test = TestRepo::at("my próject");
    let tree = test.worktree("task-1");
    for folder in [test.root.join("sub/deep"), tree.join("sub"), test.root.clone(), tree] {
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(test.open(&folder).root(), test.root, "{}", folder.display());
    }
}

/// Covers: CM-06
#[test]
fn a_linked_worktree_can_be_a_project_of_its_own() {
    let test = TestRepo::new();
    // Named like a task's worktree, but not inside a project.
    let linked = test.home.path().canonicalize().unwrap().join(".worktrees/other");
    test.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let repo = test.open(&linked);
    assert_eq!(repo.root(), linked);
    let created =
        repo.prepare_worktree(&task("task-1"), &test.base(), WorktreeMode::Keep, &integration()).unwrap();
    assert_eq!(created.path, linked.join(".worktrees/task-1"));
    assert_eq!(test.open(&created.path).root(), linked);
    assert!(repo.exclude(&["/.worktrees/"]).is_ok());
    assert!(repo.status(&linked, UntrackedFiles::Show).unwrap().changes.is_empty());
}

/// Covers: CM-06
#[test]
fn a_folder_that_is_no_project_is_reported_clearly() {
    let test = TestRepo::new();
    let home = test.home.path();
    let outside = home.join("outside");
    fs::create_dir(&outside).unwrap();
    assert!(matches!(Repo::open(&test.program(), &outside), Err(GitError::NotARepository { .. })));
    git_in(home, home, &["init", "-q", "--bare", "bare"]);
    assert!(matches!(Repo::open(&test.program(), &home.join("bare")), Err(GitError::NoCheckout { .. })));
    git_in(home, home, &["init", "-q", "empty"]);
    let empty = Repo::open(&test.program(), &home.join("empty")).unwrap();
    let error = empty.head().unwrap_err();
    assert!(matches!(error, GitError::NoCommits { .. }));
    assert!(error.to_string().ends_with("empty has no commit yet"), "{error}");
}

#[test]
fn head_is_read_on_a_branch_and_detached() {
    let test = TestRepo::new();
    assert_eq!(test.repo.head().unwrap().branch.as_deref(), Some("main"));
    test.git(&["checkout", "-q", "--detach"]);
    let head = test.repo.head().unwrap();
    assert_eq!((head.branch, head.commit), (None, test.sha("main")));
}

#[test]
fn short_hashes_become_full_and_wrong_ones_are_refused() {
    let test = TestRepo::new();
    let full = test.sha("HEAD");
    let short = full.as_str()[..9].parse().unwrap();
    assert_eq!(test.repo.resolve(&short).unwrap(), full);
    let unknown = test.repo.resolve(&"1234567".parse().unwrap()).unwrap_err();
    assert!(matches!(unknown, GitError::UnknownCommit { .. }), "{unknown}");
    test.git(&["branch", "abcdef1"]);
    let misnamed = test.repo.resolve(&"abcdef1".parse().unwrap()).unwrap_err();
    assert!(matches!(misnamed, GitError::UnknownCommit { .. }), "{misnamed}");
}

/// Covers: RV-07
#[test]
fn drift_is_the_number_of_commits_since_the_base() {
    let test = TestRepo::new();
    let base = test.base();
    test.advance("x", "1");
    let tip = test.advance("x", "2");
    assert_eq!(test.repo.count_commits(&base, &tip).unwrap(), 2);
    assert!(test.repo.is_ancestor(&base, &tip).unwrap());
    assert!(!test.repo.is_ancestor(&tip, &base).unwrap());
}

#[test]
fn a_branch_is_created_once() {
    let test = TestRepo::new();
    let first = test.base();
    assert!(test.repo.create_branch(&branch("new"), &first).unwrap());
    let second = test.advance("x", "1");
    assert!(!test.repo.create_branch(&branch("new"), &second).unwrap());
    assert_eq!(test.repo.tip(&branch("new")).unwrap(), Some(first));
    assert_eq!(test.repo.tip(&branch("none")).unwrap(), None);
}

#[test]
fn patterns_are_added_once_and_never_to_an_unfinished_line() {
    let test = TestRepo::new();
    let file = test.root.join(".git/info/exclude");
    fs::write(&file, "mine").unwrap();
    assert!(test.repo.exclude(&["/.liza/", "/.worktrees/"]).unwrap());
    assert!(!test.repo.exclude(&["/.liza/", "/.worktrees/"]).unwrap());
    assert_eq!(read(&file), "mine\n/.liza/\n/.worktrees/\n");
    fs::remove_dir_all(test.root.join(".git/info")).unwrap();
    assert!(test.repo.exclude(&["/.liza/"]).unwrap());
}

/// Covers: RV-01
#[test]
fn every_kind_of_uncommitted_change_is_seen() {
    let test = TestRepo::new();
    write(&test.root.join("a"), "staged\n");
    test.git(&["add", "a"]);
    write(&test.root.join("b"), "unstaged\n");
    write(&test.root.join("nëw fil€"), "untracked\n");
    write(&test.root.join("x.tmp"), "ignored\n");
    let tracked = |path: &str, staged, unstaged| FileChange::Tracked {
        path: path.into(),
        staged,
        unstaged,
        submodule: false,
    };
    let untracked = FileChange::Untracked { path: "nëw fil€".into() };
    let ignored = FileChange::Ignored { path: "x.tmp".into() };
    let expected = [tracked("a", true, false), tracked("b", false, true), untracked, ignored];
    let changes = |how| test.repo.status(&test.root, how).unwrap().changes;
    assert_eq!(changes(UntrackedFiles::ShowIgnored), expected);
    assert_eq!(changes(UntrackedFiles::Show), expected[..3]);
    assert_eq!(changes(UntrackedFiles::Skip), expected[..2]);
}

#[test]
fn worktrees_are_listed_with_their_locks() {
    let test = TestRepo::at("my próject");
    let tree = test.linked_worktree("task-1");
    let other = test.linked_worktree("task-2");
    fs::write(test.root.join(".git/worktrees/task-1/locked"), "initializing").unwrap();
    test.git(&["worktree", "lock", "--reason", "on a stick", other.to_str().unwrap()]);
    let entries = test.repo.worktrees().unwrap();
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[1].path, tree);
    assert_eq!(entries[1].lock, Some(WorktreeLock::Initializing));
    assert_eq!(entries[2].lock, Some(WorktreeLock::Other("on a stick".into())));
    assert_eq!(entries[2].branch.as_deref(), Some("refs/heads/task/task-2"));
    assert_eq!(test.repo.checkouts_of(&Branch::of(&task("task-2"))).unwrap(), std::slice::from_ref(&other));
    test.git(&["worktree", "unlock", other.to_str().unwrap()]);
    fs::remove_dir_all(other).unwrap();
    assert!(test.repo.worktrees().unwrap()[2].prunable.is_some());
    assert!(test.repo.checkouts_of(&Branch::of(&task("task-2"))).unwrap().is_empty());
}
