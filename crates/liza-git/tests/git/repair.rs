//! What a killed git or a killed Liza left is repaired, and no work is lost.

use std::fs;
use std::path::{Path, PathBuf};

use liza_git::{Branch, FolderState, GitError, Repo, WorktreeMode};

use crate::support::{TestRepo, integration, read, script, task, write};

/// How a task's worktree was made: by this version, or by the first one.
type Make = fn(&TestRepo, &str) -> PathBuf;

/// Both modes after a crash must give a worktree on its branch, at the base, with nothing rescued.
fn repairs_to_a_pristine_worktree(make: Make, break_it: impl Fn(&TestRepo, &Path)) {
    for mode in [WorktreeMode::Keep, WorktreeMode::Fresh] {
        let test = TestRepo::new();
        let tree = make(&test, "task-1");
        break_it(&test, &tree);
        let repaired = test.prepare_worktree("task-1", mode);
        assert!(repaired.rescued.is_none(), "{mode:?}: {repaired:?}");
        let state = test.repo.worktree_state(&task("task-1"), &test.base()).unwrap();
        assert!(state.on_task_branch && state.changes.is_empty(), "{mode:?}: {state:?}");
        assert_eq!(state.head, test.base());
        test.git_at(&tree, &["fsck", "--connectivity-only"]);
        assert_eq!(test.repo.worktrees().unwrap().len(), 1);
        let removed = test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
        assert!(removed.existed && removed.rescued.is_none());
    }
}

/// Removing must work from the broken state itself.
fn removes_without_a_trace(make: Make, break_it: impl Fn(&TestRepo, &Path)) {
    let test = TestRepo::new();
    let before = test.worktree_list();
    let tree = make(&test, "task-1");
    break_it(&test, &tree);
    let base = test.base();
    let removed = test.repo.remove_worktree(&task("task-1"), Some(&base), &integration()).unwrap();
    assert!(removed.existed && removed.rescued.is_none(), "{removed:?}");
    assert_eq!(test.worktree_list(), before);
    assert!(!tree.exists() && test.branches("task/*").is_empty());
    assert_eq!(test.git(&["for-each-ref", "refs/liza"]), "");
    assert!(!test.repo.remove_worktree(&task("task-1"), Some(&base), &integration()).unwrap().existed);
}

fn initializing(test: &TestRepo) {
    fs::write(test.root.join(".git/worktrees/task-1/locked"), "initializing").unwrap();
}

/// Covers: CL-04, IV-04, IS-11
#[test]
fn a_killed_worktree_add_of_the_first_version_is_repaired() {
    let states: [fn(&TestRepo, &Path); 5] = [
        |test, _| initializing(test),
        |test, tree| {
            initializing(test);
            fs::remove_file(tree.join("a")).unwrap();
            fs::remove_file(test.root.join(".git/worktrees/task-1/index")).unwrap();
        },
        |test, tree| {
            initializing(test);
            fs::remove_dir_all(tree).unwrap();
        },
        |test, tree| {
            initializing(test);
            fs::remove_dir_all(tree).unwrap();
            fs::create_dir(tree).unwrap();
        },
        |test, tree| {
            initializing(test);
            fs::remove_dir_all(tree).unwrap();
            test.git(&["update-ref", "-d", "refs/heads/task/task-1"]);
        },
    ];
    for state in states {
        repairs_to_a_pristine_worktree(TestRepo::linked_worktree, state);
        removes_without_a_trace(TestRepo::linked_worktree, state);
    }
}

/// Covers: CL-04, IV-04, IS-11
#[test]
fn a_folder_an_entry_or_a_branch_of_the_first_version_alone_is_repaired() {
    let states: [fn(&TestRepo, &Path); 5] = [
        |_, tree| fs::remove_dir_all(tree).unwrap(),
        |test, _| fs::remove_dir_all(test.root.join(".git/worktrees/task-1")).unwrap(),
        |test, tree| {
            fs::remove_dir_all(tree).unwrap();
            test.git(&["worktree", "prune"]);
        },
        |_, tree| fs::remove_file(tree.join(".git")).unwrap(),
        |test, tree| {
            fs::remove_dir_all(tree).unwrap();
            test.git(&["worktree", "prune"]);
            test.git(&["branch", "-D", "task/task-1"]);
            fs::create_dir(tree).unwrap();
        },
    ];
    for state in states {
        repairs_to_a_pristine_worktree(TestRepo::linked_worktree, state);
        removes_without_a_trace(TestRepo::linked_worktree, state);
    }
}

/// Covers: CL-04, IV-04, IS-04
#[test]
fn a_damaged_worktree_is_made_again() {
    let states: [fn(&TestRepo, &Path); 10] = [
        |_, tree| fs::remove_dir_all(tree).unwrap(),
        |_, tree| fs::remove_dir_all(tree.join(".git")).unwrap(),
        |test, tree| {
            fs::remove_dir_all(tree).unwrap();
            test.git(&["branch", "-D", "task/task-1"]);
        },
        |_, tree| {
            fs::remove_dir_all(tree).unwrap();
            fs::create_dir(tree).unwrap();
        },
        |_, tree| fs::remove_file(tree.join(".git/HEAD")).unwrap(),
        |_, tree| fs::write(tree.join(".git/HEAD"), "ref: refs/heads/none\n").unwrap(),
        |_, tree| fs::write(tree.join(".git/index"), "nonsense").unwrap(),
        |_, tree| fs::remove_file(tree.join(".git/objects/info/alternates")).unwrap(),
        |_, tree| fs::remove_file(tree.join(".git/config")).unwrap(),
        |test, _| fs::remove_dir_all(test.root.join(".git/liza")).unwrap(),
    ];
    for state in states {
        repairs_to_a_pristine_worktree(TestRepo::worktree, state);
        removes_without_a_trace(TestRepo::worktree, state);
    }
}

/// Covers: CL-06
#[test]
fn commits_on_a_branch_without_worktree_are_kept_or_rescued() {
    for mode in [WorktreeMode::Keep, WorktreeMode::Fresh] {
        let test = TestRepo::new();
        let tree = test.worktree("task-1");
        let commit = test.commit(&tree, "c", "work\n");
        fs::remove_dir_all(&tree).unwrap();
        let repaired = test.prepare_worktree("task-1", mode);
        match mode {
            WorktreeMode::Keep => {
                assert_eq!(repaired.rescued, None);
                assert_eq!(read(&tree.join("c")), "work\n");
            }
            WorktreeMode::Fresh => {
                assert_eq!(repaired.rescued.unwrap().commit, commit);
                assert_eq!(test.sha("rescue/task-1-1"), commit);
                assert!(!tree.join("c").exists());
            }
        }
    }
}

/// Covers: CL-06
#[test]
fn files_in_a_folder_without_a_repository_are_rescued() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.commit(&tree, "c", "work\n");
    write(&tree.join("a"), "half done\n");
    write(&tree.join("new"), "untracked\n");
    fs::remove_dir_all(tree.join(".git")).unwrap();
    let rescue = test.prepare_worktree("task-1", WorktreeMode::Keep).rescued.unwrap();
    assert_eq!(test.show(rescue.branch.as_str(), "a"), "half done");
    assert_eq!(test.show(rescue.branch.as_str(), "new"), "untracked");
    assert_eq!(read(&tree.join("c")), "work\n", "the branch itself is kept");
}

/// Covers: IV-04
#[test]
fn a_project_that_was_moved_keeps_its_worktrees() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("a"), "half done\n");
    let moved = test.root.with_file_name("moved here");
    fs::rename(&test.root, &moved).unwrap();
    let repo = test.open(&moved);
    let base = repo.tip(&integration()).unwrap().unwrap();
    let kept = repo.prepare_worktree(&task("task-1"), &base, WorktreeMode::Keep, &integration()).unwrap();
    assert!(!kept.created && kept.rescued.is_none());
    assert_eq!(repo.worktree_state(&task("task-1"), &base).unwrap().changes.len(), 1);
}

/// Covers: CM-07
#[test]
fn a_folder_that_liza_did_not_create_is_not_touched() {
    let test = TestRepo::new();
    let place = test.root.join(".worktrees/task-1");
    test.git(&["clone", "-q", ".", place.to_str().unwrap()]);
    for result in [
        test.repo
            .prepare_worktree(&task("task-1"), &test.base(), WorktreeMode::Fresh, &integration())
            .map(drop),
        test.repo.remove_worktree(&task("task-1"), None, &integration()).map(drop),
    ] {
        assert!(matches!(result, Err(GitError::ForeignFolder { .. })), "{result:?}");
    }
    assert!(place.join("a").exists());
    fs::remove_dir_all(&place).unwrap();
    write(&place.join("notes"), "a person's\n");
    let removed = test.repo.remove_worktree(&task("task-1"), None, &integration());
    assert!(matches!(removed, Err(GitError::ForeignFolder { .. })), "{removed:?}");
    let created = test.prepare_worktree("task-1", WorktreeMode::Keep);
    assert_eq!(test.show(created.rescued.unwrap().branch.as_str(), "notes"), "a person's");
}

/// Covers: CL-04
#[test]
#[cfg(target_os = "linux")]
fn locks_of_dead_processes_are_cleared_and_others_are_not() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let lock = tree.join(".git/index.lock");
    let branch = Branch::of(&task("task-1"));
    fs::write(&lock, "").unwrap();
    let holder = fs::File::open(&lock).unwrap();
    // Held by another process for as long as its input is open.
    let mut other =
        std::process::Command::new("cat").stdin(std::process::Stdio::piped()).stdout(holder).spawn().unwrap();
    assert!(test.repo.clear_stale_locks(Some(&tree), &[&branch]).unwrap().is_empty());
    drop(other.stdin.take());
    other.wait().unwrap();
    assert!(!test.prepare_worktree("task-1", WorktreeMode::Keep).created);
    assert!(!lock.exists());
    let of_branch = test.root.join(".git/refs/heads/task/task-1.lock");
    fs::write(&of_branch, "").unwrap();
    assert_eq!(test.repo.clear_stale_locks(None, &[&branch]).unwrap(), [of_branch]);
}

/// Covers: CL-04, AT-01
#[test]
fn a_hook_of_the_repository_does_not_run_in_a_new_worktree() {
    let test = TestRepo::new();
    script(&test.home.path().join("hooks/post-checkout"), "echo hook ran >>hook.tmp; exit 7");
    test.git(&["config", "core.hooksPath", test.home.path().join("hooks").to_str().unwrap()]);
    let created = test.prepare_worktree("task-1", WorktreeMode::Keep);
    assert!(created.created && !created.path.join("hook.tmp").exists());
    assert_eq!(test.repo.task_artifacts(&task("task-1")).unwrap().folder, FolderState::Healthy);
    write(&created.path.join("hook.tmp"), "an ignored file");
    assert!(test.prepare_worktree("task-1", WorktreeMode::Fresh).created, "created again");
}

/// Covers: CL-04
#[test]
fn a_failed_creation_does_not_hinder_the_next_attempt() {
    let test = TestRepo::new();
    test.git(&["config", "--global", "filter.broken.smudge", "false"]);
    test.git(&["config", "--global", "filter.broken.clean", "cat"]);
    test.git(&["config", "--global", "filter.broken.required", "true"]);
    write(&test.root.join(".gitattributes"), "a filter=broken\n");
    test.git(&["add", ".gitattributes"]);
    test.git(&["commit", "-qm", "filter"]);
    let base = test.sha("main");
    let prepare = || test.repo.prepare_worktree(&task("task-1"), &base, WorktreeMode::Keep, &integration());
    let error = prepare().unwrap_err();
    assert!(error.to_string().contains("smudge filter"), "{error}");
    test.git(&["config", "--global", "--unset", "filter.broken.required"]);
    assert!(prepare().unwrap().created);
    assert!(test.branches("rescue/*").is_empty());
}

/// Covers: LM-06
#[test]
fn an_interrupted_removal_is_finished() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.commit(&tree, "c", "work\n");
    write(&tree.join("a"), "half done\n");
    let first = test.repo.rescue(&task("task-1"), None, &integration()).unwrap().unwrap();
    // What is left when it is killed after the folder was moved away; no process can have this ID.
    fs::rename(&tree, test.root.join(".worktrees/.trash-4194305-0")).unwrap();
    let removed = test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
    assert_eq!(removed.rescued, None, "it is already on {}", first.branch);
    assert_eq!(test.branches("rescue/*"), ["rescue/task-1-1"]);
    assert_eq!(fs::read_dir(test.root.join(".worktrees")).unwrap().count(), 0);
}

/// Covers: CL-04
#[test]
fn a_creation_that_is_really_killed_is_repeated() {
    let test = TestRepo::new();
    // A git that is killed with its whole process group in the middle of its work, as a power failure would.
    let git = test.home.path().canonicalize().unwrap().join("killed-git");
    let middle = "git \"$@\" & while ! [ -e b ]; do :; done; kill -9 0";
    let writes =
        format!("case \"$*\" in *'read-tree -u'*) [ -e \"$HOME/killing\" ] && {{ {middle}; }};; esac");
    script(&git, &format!("{writes}\nexec git \"$@\""));
    let repo = Repo::open(&test.program().with_program(git), &test.root).unwrap();
    let base = test.sha("main");
    let prepare = |mode| repo.prepare_worktree(&task("task-1"), &base, mode, &integration());
    for mode in [WorktreeMode::Keep, WorktreeMode::Fresh] {
        write(&test.home.path().join("killing"), "");
        prepare(mode).unwrap_err();
        assert_eq!(test.repo.task_artifacts(&task("task-1")).unwrap().folder, FolderState::Absent);
        fs::remove_file(test.home.path().join("killing")).unwrap();
        let created = prepare(mode).unwrap();
        assert!(created.created && created.rescued.is_none(), "{created:?}");
        assert!(test.repo.worktree_state(&task("task-1"), &base).unwrap().changes.is_empty());
        test.repo.remove_worktree(&task("task-1"), Some(&base), &integration()).unwrap();
    }
}
