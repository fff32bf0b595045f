//! Making, looking at, restoring and removing a task's worktree.

use std::fs;
use std::sync::Barrier;
use std::thread;

use liza::git::{Folder, GitError, Mode};

use crate::support::{TestRepo, integration, read, task, write};

/// Covers: CL-04, IV-04
#[test]
fn a_worktree_is_made_from_the_base_on_its_branch_and_only_once() {
    let test = TestRepo::new();
    let made = test.ensure("task-1", Mode::Keep);
    assert!(made.made && made.rescued.is_none());
    assert_eq!(made.path, test.root.join(".worktrees/task-1"));
    let facts = test.repo.facts(&task("task-1"), &test.base()).unwrap();
    assert_eq!(facts.head, test.base());
    assert!(facts.on_task_branch && facts.has_base && facts.changes.is_empty());
    for mode in [Mode::Keep, Mode::Fresh] {
        let again = test.ensure("task-1", mode);
        assert!(!again.made && again.rescued.is_none(), "{mode:?}");
    }
    assert_eq!(test.git(&["status", "--porcelain"]), "", "the human's checkout sees nothing of it");
}

/// Covers: CL-06
#[test]
fn the_same_coder_finds_everything_as_it_was() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let commit = test.commit(&tree, "c", "work\n");
    write(&tree.join("a"), "half done\n");
    write(&tree.join("cache.tmp"), "ignored\n");
    test.advance("x", "1");
    let again = test.ensure("task-1", Mode::Keep);
    assert!(!again.made && again.rescued.is_none());
    assert_eq!(test.repo.facts(&task("task-1"), &commit).unwrap().head, commit);
    assert_eq!(read(&tree.join("a")), "half done\n");
    assert!(tree.join("cache.tmp").exists());
}

/// Covers: CL-06
#[test]
fn another_coder_begins_anew_and_the_old_work_is_rescued() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let commit = test.commit(&tree, "c", "work\n");
    write(&tree.join("a"), "half done\n");
    let fresh = test.ensure("task-1", Mode::Fresh);
    let rescue = fresh.rescued.unwrap();
    assert_eq!(rescue.branch.as_str(), "rescue/task-1-1");
    assert_eq!(test.show("rescue/task-1-1", "a"), "half done");
    assert_eq!(test.sha("rescue/task-1-1^"), commit);
    let facts = test.repo.facts(&task("task-1"), &test.base()).unwrap();
    assert_eq!(facts.head, test.base());
    assert!(facts.changes.is_empty() && facts.on_task_branch);
    assert_eq!(read(&tree.join("a")), "a\n");
}

/// Covers: CL-06
#[test]
fn what_the_last_coder_left_ignored_is_not_handed_on() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("cache.tmp"), "ignored\n");
    let fresh = test.ensure("task-1", Mode::Fresh);
    assert!(fresh.made && fresh.rescued.is_none());
    assert!(!tree.join("cache.tmp").exists());
}

/// Covers: LM-06, CM-07, RV-07
#[test]
fn removing_takes_tree_and_branch_and_can_be_repeated() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let before = test.worktree_list();
    let remove = || test.repo.remove(&task("task-1"), Some(&test.base()), &integration()).unwrap();
    let removed = remove();
    assert!(removed.found && removed.rescued.is_none());
    assert!(!tree.exists() && test.branches("task/*").is_empty() && test.branches("rescue/*").is_empty());
    assert_ne!(test.worktree_list(), before);
    assert!(!remove().found);
    assert_eq!(fs::read_dir(test.root.join(".worktrees")).unwrap().count(), 0);
}

/// Covers: LM-06, CL-11
#[test]
fn removing_saves_commits_and_files_first() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.commit(&tree, "c", "work\n");
    write(&tree.join("new file"), "untracked\n");
    let removed = test.repo.remove(&task("task-1"), None, &integration()).unwrap();
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
    let merge = test.ready("task-1", &commit);
    assert_eq!(
        test.repo.move_branch(&integration(), &merge, &task("task-1")).unwrap(),
        liza::git::Moved::Done
    );
    let removed = test.repo.remove(&task("task-1"), Some(&base), &integration()).unwrap();
    assert_eq!((removed.found, removed.rescued), (true, None));
    assert!(test.branches("rescue/*").is_empty());
}

/// Covers: CM-07
#[test]
fn a_branch_that_a_person_looks_at_stays() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.git_at(&tree, &["checkout", "-q", "--detach"]);
    test.git(&["checkout", "-q", "task/task-1"]);
    let error =
        test.repo.ensure(&task("task-1"), &test.advance("x", "1"), Mode::Fresh, &integration()).unwrap_err();
    assert!(matches!(error, GitError::BranchInUse { .. }), "{error}");
    assert!(tree.exists());
    let removed = test.repo.remove(&task("task-1"), None, &integration()).unwrap();
    assert_eq!(removed.branch_in_use, Some(test.root.clone()));
    assert_eq!(test.git(&["status", "--porcelain"]), "");
    assert_eq!(test.branches("task/*"), ["task/task-1"]);
}

/// Covers: RV-01, RV-02
#[test]
fn facts_tell_a_submission_and_a_verdict_what_they_need() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let base = test.base();
    let commit = test.commit(&tree, "c", "work\n");
    write(&tree.join("left by a test"), "x");
    let facts = test.repo.facts(&task("task-1"), &base).unwrap();
    assert_eq!((facts.head.clone(), facts.has_base), (commit, true));
    assert_eq!((facts.changes.len(), facts.tracked_changes().count()), (1, 0));
    write(&tree.join("a"), "changed\n");
    let facts = test.repo.facts(&task("task-1"), &test.advance("x", "1")).unwrap();
    assert_eq!((facts.has_base, facts.tracked_changes().count()), (false, 1));
    test.git_at(&tree, &["checkout", "-q", "--detach"]);
    assert!(!test.repo.facts(&task("task-1"), &base).unwrap().on_task_branch);
}

/// Covers: RV-02
#[test]
fn what_a_reviewer_wrote_is_saved_and_put_back() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let submitted = test.commit(&tree, "c", "work\n");
    let restore = || test.repo.restore(&task("task-1"), &submitted).unwrap();
    write(&tree.join("test output"), "untracked\n");
    assert!(!restore().changed, "what a test left does not count");
    test.commit(&tree, "sneaked", "in\n");
    write(&tree.join("c"), "changed\n");
    write(&tree.join("again"), "untracked\n");
    let restored = restore();
    let rescue = restored.rescued.unwrap();
    assert_eq!(test.show(rescue.branch.as_str(), "sneaked"), "in");
    assert_eq!(test.show(rescue.branch.as_str(), "c"), "changed");
    let facts = test.repo.facts(&task("task-1"), &submitted).unwrap();
    assert_eq!((facts.head.clone(), facts.on_task_branch), (submitted.clone(), true));
    assert_eq!(facts.tracked_changes().count(), 0);
    assert_eq!(read(&tree.join("again")), "untracked\n");
    assert!(!restore().changed);
}

/// Covers: RV-02
#[test]
fn an_untracked_file_that_has_to_make_room_is_saved() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let submitted = test.commit(&tree, "c", "work\n");
    test.git_at(&tree, &["rm", "-q", "c"]);
    test.git_at(&tree, &["commit", "-qm", "removed"]);
    write(&tree.join("c"), "a reviewer's notes\n");
    let rescue = test.repo.restore(&task("task-1"), &submitted).unwrap().rescued.unwrap();
    assert_eq!(read(&tree.join("c")), "work\n");
    assert_eq!(test.show(rescue.branch.as_str(), "c"), "a reviewer's notes");
}

/// Covers: LM-06
#[test]
fn a_base_or_a_branch_that_git_does_not_know_keeps_nothing() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let commit = test.commit(&tree, "c", "work\n");
    let unknown = "0123456789012345678901234567890123456789".parse().unwrap();
    let removed = test.repo.remove(&task("task-1"), Some(&unknown), &crate::support::branch("none")).unwrap();
    assert_eq!(removed.rescued.unwrap().commit, commit);
}

/// Covers: RV-02
#[test]
fn restoring_ends_a_rebase_and_a_detached_head() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let submitted = test.commit(&tree, "a", "theirs\n");
    test.advance("a", "ours\n");
    let (done, _) = crate::support::git_in(test.home.path(), &tree, &["rebase", "integration"]);
    assert!(!done, "it must stop at the conflict");
    let restored = test.repo.restore(&task("task-1"), &submitted).unwrap();
    assert!(restored.rescued.unwrap().uncommitted);
    let facts = test.repo.facts(&task("task-1"), &submitted).unwrap();
    assert_eq!((facts.head, facts.on_task_branch, facts.changes.len()), (submitted, true, 0));
    assert_eq!(
        test.git_at(&tree, &["status"]),
        "On branch task/task-1\nnothing to commit, working tree clean"
    );
}

/// Covers: CL-05
#[test]
fn many_worktrees_can_be_made_at_once() {
    let test = TestRepo::new();
    let base = test.base();
    let start = Barrier::new(20);
    thread::scope(|scope| {
        for number in 0..20 {
            let (test, base, start) = (&test, &base, &start);
            scope.spawn(move || {
                start.wait();
                let made =
                    test.repo.ensure(&task(&format!("task-{number}")), base, Mode::Keep, &integration());
                assert!(made.unwrap().made);
            });
        }
    });
    assert_eq!(test.repo.worktrees().unwrap().len(), 21);
    thread::scope(|scope| {
        for number in 0..20 {
            let test = &test;
            scope.spawn(move || {
                let removed =
                    test.repo.remove(&task(&format!("task-{number}")), None, &integration()).unwrap();
                assert!(removed.found && removed.rescued.is_none());
            });
        }
    });
    assert_eq!(test.repo.worktrees().unwrap().len(), 1);
    assert_eq!(test.repo.find(&task("task-3")).unwrap().folder, Folder::Absent);
}
