//! Creating, inspecting, restoring and removing a task's worktree.

use std::fs;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;

use liza_git::{FolderState, GitError, Rescue, WorktreeMode};
use liza_ids::{Generation, Sha};

use crate::support::{TestRepo, integration, read, task, write};

/// Covers: CL-04, IV-04
#[test]
fn a_worktree_is_created_once_from_the_base_on_its_branch() {
    let test = TestRepo::new();
    let created = test.prepare_worktree("task-1", WorktreeMode::Keep);
    assert!(created.created && created.rescued.is_none());
    assert_eq!(created.path, test.root.join(".worktrees/task-1"));
    let state = test.repo.worktree_state(&task("task-1"), &test.base()).unwrap();
    assert_eq!(state.head, test.base());
    assert!(state.on_task_branch && state.has_base && state.changes.is_empty());
    for mode in [WorktreeMode::Keep, WorktreeMode::Fresh] {
        let again = test.prepare_worktree("task-1", mode);
        assert!(!again.created && again.rescued.is_none(), "{mode:?}");
    }
    assert_eq!(test.git(&["status", "--porcelain"]), "", "the person's checkout does not change");
}

/// Covers: CL-06
#[test]
fn the_same_coder_finds_everything_unchanged() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let commit = test.commit(&tree, "c", "work\n");
    write(&tree.join("a"), "half done\n");
    write(&tree.join("cache.tmp"), "ignored\n");
    test.advance("x", "1");
    let again = test.prepare_worktree("task-1", WorktreeMode::Keep);
    assert!(!again.created && again.rescued.is_none());
    assert_eq!(test.repo.worktree_state(&task("task-1"), &commit).unwrap().head, commit);
    assert_eq!(read(&tree.join("a")), "half done\n");
    assert!(tree.join("cache.tmp").exists());
}

/// Covers: CL-06
#[test]
fn another_coder_starts_from_the_base_and_the_old_work_is_rescued() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let commit = test.commit(&tree, "c", "work\n");
    write(&tree.join("a"), "half done\n");
    let fresh = test.prepare_worktree("task-1", WorktreeMode::Fresh);
    let rescue = fresh.rescued.unwrap();
    assert_eq!(rescue.branch.as_str(), "rescue/task-1-1");
    assert_eq!(test.show("rescue/task-1-1", "a"), "half done");
    assert_eq!(test.sha("rescue/task-1-1^"), commit);
    let state = test.repo.worktree_state(&task("task-1"), &test.base()).unwrap();
    assert_eq!(state.head, test.base());
    assert!(state.changes.is_empty() && state.on_task_branch);
    assert_eq!(read(&tree.join("a")), "a\n");
}

/// Covers: CL-06
#[test]
fn ignored_files_of_the_last_coder_are_not_passed_on() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("cache.tmp"), "ignored\n");
    let fresh = test.prepare_worktree("task-1", WorktreeMode::Fresh);
    assert!(fresh.created && fresh.rescued.is_none());
    assert!(!tree.join("cache.tmp").exists());
}

/// Covers: LM-06, CM-07, RV-07
#[test]
fn removing_deletes_worktree_and_branch_and_can_be_repeated() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let remove = || test.repo.remove_worktree(&task("task-1"), Some(&test.base()), &integration()).unwrap();
    let removed = remove();
    assert!(removed.existed && removed.rescued.is_none());
    assert!(!tree.exists() && test.branches("task/*").is_empty() && test.branches("rescue/*").is_empty());
    assert_eq!(test.git(&["for-each-ref", "refs/liza"]), "");
    assert!(!remove().existed);
    assert_eq!(fs::read_dir(test.root.join(".worktrees")).unwrap().count(), 0);
}

/// Covers: LM-06, CL-11
#[test]
fn removing_saves_commits_and_files_first() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.commit(&tree, "c", "work\n");
    write(&tree.join("new file"), "untracked\n");
    let removed = test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
    let rescue = removed.rescued.unwrap();
    assert!(rescue.uncommitted);
    assert_eq!(test.show(rescue.branch.as_str(), "new file"), "untracked");
    assert_eq!(test.show(rescue.branch.as_str(), "c"), "work");
    assert!(!tree.exists());
}

/// Covers: RV-07
#[test]
fn merged_work_needs_no_rescue() {
    let test = TestRepo::new();
    let (tree, base) = (test.worktree("task-1"), test.base());
    let commit = test.commit(&tree, "c", "work\n");
    let merge = test.pending_merge("task-1", &commit);
    test.move_branch(&merge, "task-1").unwrap();
    let removed = test.repo.remove_worktree(&task("task-1"), Some(&base), &integration()).unwrap();
    assert_eq!((removed.existed, removed.rescued), (true, None));
    assert!(test.branches("rescue/*").is_empty());
}

/// Covers: CM-07
#[test]
fn a_branch_that_a_person_has_checked_out_stays() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.git_at(&tree, &["checkout", "-q", "--detach"]);
    test.git(&["checkout", "-q", "task/task-1"]);
    let error = test
        .repo
        .prepare_worktree(&task("task-1"), &test.advance("x", "1"), WorktreeMode::Fresh, &integration())
        .unwrap_err();
    assert!(matches!(error, GitError::BranchInUse { .. }), "{error}");
    assert!(tree.exists());
    let removed = test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
    assert_eq!(removed.branch_in_use, Some(test.root.clone()));
    assert_eq!(test.git(&["status", "--porcelain"]), "");
    assert_eq!(test.branches("task/*"), ["task/task-1"]);
}

/// Covers: RV-01, RV-02
#[test]
fn the_state_has_what_a_submission_and_a_verdict_need() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let base = test.base();
    let commit = test.commit(&tree, "c", "work\n");
    write(&tree.join("left by a test"), "x");
    let state = test.repo.worktree_state(&task("task-1"), &base).unwrap();
    assert_eq!((state.head.clone(), state.has_base), (commit, true));
    assert_eq!((state.changes.len(), state.tracked_changes().count()), (1, 0));
    write(&tree.join("a"), "changed\n");
    let state = test.repo.worktree_state(&task("task-1"), &test.advance("x", "1")).unwrap();
    assert_eq!((state.has_base, state.tracked_changes().count()), (false, 1));
    test.git_at(&tree, &["checkout", "-q", "--detach"]);
    assert!(!test.repo.worktree_state(&task("task-1"), &base).unwrap().on_task_branch);
}

/// A task with a submitted commit, and the folder of its review.
fn under_review(test: &TestRepo) -> (Sha, PathBuf) {
    let tree = test.worktree("task-1");
    let submitted = test.commit(&tree, "c", "work\n");
    test.repo.take_work(&task("task-1"), Generation(7)).unwrap();
    assert_eq!(review(test, &submitted), None);
    (submitted, test.repo.review_path(&task("task-1")))
}

fn review(test: &TestRepo, commit: &Sha) -> Option<Rescue> {
    test.repo.create_review(&task("task-1"), commit, &integration()).unwrap()
}

/// Covers: RV-02, AT-05
#[test]
fn changes_by_a_reviewer_are_saved_and_undone() {
    let test = TestRepo::new();
    let (submitted, tree) = under_review(&test);
    write(&tree.join("test output"), "untracked\n");
    assert_eq!(review(&test, &submitted), None, "untracked output of a test does not count");
    test.commit(&tree, "sneaked", "in\n");
    write(&tree.join("c"), "changed\n");
    let rescue = review(&test, &submitted).unwrap();
    assert_eq!(test.show(rescue.branch.as_str(), "sneaked"), "in");
    assert_eq!(test.show(rescue.branch.as_str(), "c"), "changed");
    let state = test.repo.review_state(&task("task-1"), &submitted).unwrap().unwrap();
    assert_eq!((state.head.clone(), state.changes.len()), (submitted.clone(), 0));
    assert_eq!(read(&tree.join("c")), "work\n");
    assert_eq!(review(&test, &submitted), None);
}

/// Covers: RV-02
#[test]
fn an_untracked_file_beside_a_commit_of_the_reviewer_is_saved() {
    let test = TestRepo::new();
    let (submitted, tree) = under_review(&test);
    test.git_at(&tree, &["rm", "-q", "c"]);
    test.git_at(&tree, &["commit", "-qm", "removed"]);
    write(&tree.join("c"), "a reviewer's notes\n");
    let rescue = review(&test, &submitted).unwrap();
    assert_eq!(read(&tree.join("c")), "work\n");
    assert_eq!(test.show(rescue.branch.as_str(), "c"), "a reviewer's notes");
}

/// Covers: LM-06
#[test]
fn with_an_unknown_base_or_branch_all_work_is_rescued() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let commit = test.commit(&tree, "c", "work\n");
    let unknown = "0123456789012345678901234567890123456789".parse().unwrap();
    let removed =
        test.repo.remove_worktree(&task("task-1"), Some(&unknown), &crate::support::branch("none")).unwrap();
    assert_eq!(removed.rescued.unwrap().commit, commit);
}

/// Covers: RV-02
#[test]
fn a_new_review_ends_a_rebase_of_the_last_one() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let submitted = test.commit(&tree, "a", "theirs\n");
    test.repo.take_work(&task("task-1"), Generation(7)).unwrap();
    test.advance("a", "ours\n");
    assert_eq!(review(&test, &submitted), None);
    let place = test.repo.review_path(&task("task-1"));
    let (done, _) = crate::support::git_in(test.home.path(), &place, &["rebase", "liza/integration"]);
    assert!(!done, "it must stop at the conflict");
    assert!(review(&test, &submitted).unwrap().uncommitted);
    let state = test.repo.review_state(&task("task-1"), &submitted).unwrap().unwrap();
    assert_eq!((state.head, state.changes.len()), (submitted, 0));
    let status = test.git_at(&place, &["status"]);
    assert_eq!(status, "Not currently on any branch.\nnothing to commit, working tree clean");
}

/// Covers: CL-05
#[test]
fn many_worktrees_can_be_created_at_once() {
    let test = TestRepo::new();
    let base = test.base();
    let start = Barrier::new(20);
    thread::scope(|scope| {
        for number in 0..20 {
            let (test, base, start) = (&test, &base, &start);
            scope.spawn(move || {
                start.wait();
                let created = test.repo.prepare_worktree(
                    &task(&format!("task-{number}")),
                    base,
                    WorktreeMode::Keep,
                    &integration(),
                );
                assert!(created.unwrap().created);
            });
        }
    });
    let folders = || fs::read_dir(test.root.join(".worktrees")).unwrap().count();
    assert_eq!(folders(), 20);
    thread::scope(|scope| {
        for number in 0..20 {
            let test = &test;
            scope.spawn(move || {
                let removed = test
                    .repo
                    .remove_worktree(&task(&format!("task-{number}")), None, &integration())
                    .unwrap();
                assert!(removed.existed && removed.rescued.is_none());
            });
        }
    });
    assert_eq!(folders(), 0);
    assert_eq!(test.git(&["for-each-ref", "refs/liza"]), "");
    assert_eq!(test.repo.task_artifacts(&task("task-3")).unwrap().folder, FolderState::Absent);
}

/// Covers: IS-03
#[test]
fn a_link_in_the_place_of_the_folder_of_worktrees_is_refused() {
    let test = TestRepo::new();
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), test.root.join(".worktrees")).unwrap();
    let prepared =
        test.repo.prepare_worktree(&task("task-1"), &test.base(), WorktreeMode::Keep, &integration());
    let error = prepared.unwrap_err().to_string();
    assert!(error.contains(".worktrees: it is a link; remove it"), "{error}");
    let error = test.repo.create_review(&task("task-1"), &test.base(), &integration()).unwrap_err();
    assert!(error.to_string().contains(".worktrees: it is a link"), "{error}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

/// Covers: IS-08
#[test]
fn giant_files_of_git_are_gone_before_the_next_session() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let commit = test.commit(&tree, "c", "work\n");
    for name in [".git/packed-refs", ".gitmodules", ".git/ORIG_HEAD"] {
        fs::File::create(tree.join(name)).unwrap().set_len(60 << 30).unwrap();
    }
    let again = test.prepare_worktree("task-1", WorktreeMode::Keep);
    assert!(!again.created);
    assert_eq!(test.repo.worktree_state(&task("task-1"), &commit).unwrap().head, commit);
    for name in [".git/packed-refs", ".gitmodules", ".git/ORIG_HEAD"] {
        let length = fs::metadata(tree.join(name)).map_or(0, |meta| meta.len());
        assert!(length < 1 << 20, "{name}: {length}");
    }
}
