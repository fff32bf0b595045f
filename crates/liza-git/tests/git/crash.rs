//! A crash at every step: before and after each git command, the next run finishes the work.
//!
//! A program in place of git counts the commands; the chosen one and all after it fail, carried out or not.

use std::fs;
use std::os::fd::AsRawFd as _;

use liza_git::{Git, MergeError, Repo, WorktreeMode};
use liza_ids::{Generation, Sha};

use crate::support::{TestRepo, integration, prepare_merge, read, script, task, write};

/// Whether the command at which git dies is still carried out.
#[derive(Debug, Clone, Copy)]
enum Crash {
    Before,
    After,
}

/// A git that dies at the given command, and the open file in which it counts.
fn dying(test: &TestRepo, number: u32, crash: Crash) -> (Git, fs::File) {
    let program = test.home.path().join("dying-git");
    let count = test.home.path().join("count");
    let open = fs::File::options().append(true).create(true).open(&count).unwrap();
    open.set_len(0).unwrap();
    // Git can read and write no file of its own choice among agents' files, but write to one that is open.
    rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
    let counter = open.as_raw_fd();
    let last = match crash {
        Crash::Before => "",
        Crash::After => "[ $n = $limit ] && git \"$@\" >/dev/null 2>&1",
    };
    let count = count.display();
    script(
        &program,
        &format!(
            "limit={number}; printf x >&{counter}; n=$(stat -c %s '{count}')\n[ $n -lt $limit ] && exec git \"$@\"\n{last}\nexit 137"
        ),
    );
    (test.program().with_program(program), open)
}

/// Runs `begin` with a git that dies at each command in turn, then `finish` with one that works, until none dies. Death
/// before a command leaves what death after the one before it leaves, and differs only in what we are told: every third is
/// enough.
fn at_every_command(
    set_up: impl Fn() -> TestRepo,
    begin: impl Fn(&TestRepo, &Repo) -> bool,
    finish: impl Fn(&TestRepo),
) {
    at_commands(3, set_up, begin, finish);
}

/// The same, with death before every `step`-th command: for files that are written between two commands.
fn at_commands(
    step: usize,
    set_up: impl Fn() -> TestRepo,
    begin: impl Fn(&TestRepo, &Repo) -> bool,
    finish: impl Fn(&TestRepo),
) {
    for crash in [Crash::Before, Crash::After] {
        let mut survived = false;
        let step = match crash {
            Crash::Before => step,
            Crash::After => 1,
        };
        // The first command opens the repository.
        for number in (2..100).step_by(step) {
            let test = set_up();
            let (git, _counter) = dying(&test, number, crash);
            let repo = Repo::open(&git, &test.root).unwrap();
            let done = begin(&test, &repo);
            finish(&test);
            let commands = read(&test.home.path().join("count")).len();
            survived = commands < number as usize;
            if survived {
                assert!(done);
                break;
            }
        }
        assert!(survived, "{crash:?}");
    }
}

/// A task with a commit and uncommitted files.
fn with_work() -> TestRepo {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.commit(&tree, "c", "committed\n");
    write(&tree.join("a"), "changed\n");
    write(&tree.join("new"), "untracked\n");
    test
}

/// All work of `with_work` is on exactly one rescue branch.
fn work_is_rescued(test: &TestRepo) {
    assert_eq!(test.branches("rescue/*"), ["rescue/task-1-1"]);
    for (file, text) in [("c", "committed"), ("a", "changed"), ("new", "untracked")] {
        assert_eq!(test.show("rescue/task-1-1", file), text);
    }
}

fn nothing_is_left(test: &TestRepo) {
    test.repo.remove_leftovers();
    let folder = fs::read_dir(test.root.join(".worktrees")).unwrap();
    let names: Vec<_> = folder.flatten().map(|entry| entry.file_name()).collect();
    let others: Vec<_> = names.iter().filter(|name| *name != "task-1" && !is_ours(name)).collect();
    assert!(others.is_empty(), "{names:?}");
}

/// Trash of this process is not removed, since it is still alive.
fn is_ours(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with(&format!(".trash-{}-", std::process::id()))
}

/// Covers: CL-04, IV-04
#[test]
fn a_new_worktree() {
    at_every_command(
        TestRepo::new,
        |test, repo| {
            repo.prepare_worktree(&task("task-1"), &test.base(), WorktreeMode::Keep, &integration()).is_ok()
        },
        |test| {
            test.prepare_worktree("task-1", WorktreeMode::Keep);
            let state = test.repo.worktree_state(&task("task-1"), &test.base()).unwrap();
            assert!(state.on_task_branch && state.changes.is_empty() && state.head == test.base());
            assert!(test.branches("rescue/*").is_empty());
            nothing_is_left(test);
        },
    );
}

/// Covers: CL-06
#[test]
fn a_fresh_worktree_for_another_coder() {
    at_every_command(
        with_work,
        |test, repo| {
            repo.prepare_worktree(&task("task-1"), &test.base(), WorktreeMode::Fresh, &integration()).is_ok()
        },
        |test| {
            test.prepare_worktree("task-1", WorktreeMode::Fresh);
            let state = test.repo.worktree_state(&task("task-1"), &test.base()).unwrap();
            assert!(state.on_task_branch && state.changes.is_empty() && state.head == test.base());
            work_is_rescued(test);
            nothing_is_left(test);
        },
    );
}

/// Covers: LM-06, CM-07
#[test]
fn a_removal() {
    at_every_command(
        with_work,
        |_, repo| repo.remove_worktree(&task("task-1"), None, &integration()).is_ok(),
        |test| {
            test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
            assert!(!test.root.join(".worktrees/task-1").exists() && test.branches("task/*").is_empty());
            assert_eq!(test.repo.worktrees().unwrap().len(), 1);
            work_is_rescued(test);
            nothing_is_left(test);
        },
    );
}

/// Covers: IS-11
#[test]
fn a_fresh_worktree_in_place_of_a_linked_one() {
    at_every_command(
        || {
            let test = TestRepo::new();
            let tree = test.linked_worktree("task-1");
            test.commit(&tree, "c", "committed\n");
            write(&tree.join("a"), "staged\n");
            test.git_at(&tree, &["add", "a"]);
            write(&tree.join("b"), "changed\n");
            write(&tree.join("new"), "untracked\n");
            write(&tree.join("x.tmp"), "ignored\n");
            test
        },
        |test, repo| {
            repo.prepare_worktree(&task("task-1"), &test.base(), WorktreeMode::Keep, &integration()).is_ok()
        },
        |test| {
            let tree = test.root.join(".worktrees/task-1");
            let made = test.prepare_worktree("task-1", WorktreeMode::Keep);
            assert!(tree.join(".git").is_dir(), "{made:?}");
            assert_eq!(test.git_at(&tree, &["log", "-1", "--format=%s"]), "change c");
            assert_eq!(test.git_at(&tree, &["branch", "--show-current"]), "task/task-1");
            assert_eq!(test.git_at(&tree, &["status", "--porcelain", "--ignored"]), "");
            assert_eq!(test.repo.worktrees().unwrap().len(), 1);
            assert_eq!(test.branches("rescue/*"), ["rescue/task-1-1"]);
            for (file, text) in [("c", "committed"), ("a", "staged"), ("b", "changed"), ("new", "untracked")]
            {
                assert_eq!(test.show("rescue/task-1-1", file), text);
            }
            nothing_is_left(test);
        },
    );
}

/// Covers: IS-04
#[test]
fn taking_the_work_of_a_session() {
    at_every_command(
        || {
            let test = TestRepo::new();
            let tree = test.worktree("task-1");
            test.commit(&tree, "c", "one\n");
            test.git_at(&tree, &["commit", "-q", "--amend", "-m", "two"]);
            test
        },
        |_, repo| repo.take_work(&task("task-1"), Generation(7)).is_ok(),
        |test| {
            let head = test.repo.take_work(&task("task-1"), Generation(7)).unwrap().unwrap();
            assert_eq!(test.sha("task/task-1"), head);
            let old = test.git(&["for-each-ref", "--format=%(contents:subject)", "refs/liza/unreferenced"]);
            assert_eq!(old, "change c", "what was amended is kept");
            test.git(&["fsck", "--connectivity-only"]);
        },
    );
}

/// Covers: AT-05
#[test]
fn a_checkout_for_a_review() {
    at_every_command(
        with_work,
        |test, repo| repo.create_review(&task("task-1"), &test.sha("task/task-1"), &integration()).is_ok(),
        |test| {
            let commit = test.sha("task/task-1");
            assert_eq!(test.repo.create_review(&task("task-1"), &commit, &integration()).unwrap(), None);
            let state = test.repo.review_state(&task("task-1"), &commit).unwrap().unwrap();
            assert_eq!((state.head, state.changes.len()), (commit, 0));
        },
    );
}

/// Covers: RV-08, RV-10
#[test]
fn a_merge_into_a_branch_that_a_person_has_checked_out() {
    let commit_of = |test: &TestRepo| -> Sha { test.sha("task/task-1") };
    at_every_command(
        || {
            let test = TestRepo::new();
            let tree = test.worktree("task-1");
            test.commit(&tree, "a", "theirs\n");
            test.advance("d", "ours\n");
            test.git(&["checkout", "-q", "integration"]);
            write(&test.root.join("b"), "a person's\n");
            test
        },
        |test, repo| {
            let prepared = prepare_merge(repo, "task-1", &commit_of(test));
            prepared.is_ok_and(|merge| repo.move_branch(&integration(), &merge, &task("task-1")).is_ok())
        },
        |test| {
            test.repo.repair_checkouts().unwrap();
            let commit = commit_of(test);
            if !test.repo.is_ancestor(&commit, &test.base()).unwrap() {
                let merge = test.pending_merge("task-1", &commit);
                test.move_branch(&merge, "task-1").unwrap();
            }
            let merges = test.git(&["rev-list", "--count", "--merges", "integration"]);
            assert_eq!(merges, "1", "once, and only once");
            assert_eq!(test.git(&["status", "--porcelain"]), "M b");
            assert_eq!(read(&test.root.join("a")), "theirs\n");
        },
    );
}

/// Git fails in the middle of the files, so that the branch and the files go back; a crash may interrupt that, too.
///
/// Covers: AX-35, AX-37
#[test]
fn a_move_that_is_taken_back() {
    let filter =
        |test: &TestRepo, smudge: &str| test.git(&["config", "--global", "filter.broken.smudge", smudge]);
    at_commands(
        1,
        || {
            let test = TestRepo::new();
            test.git(&["config", "--global", "filter.broken.clean", "cat"]);
            test.git(&["config", "--global", "filter.broken.required", "true"]);
            filter(&test, "cat");
            let tree = test.worktree("task-1");
            write(&tree.join(".gitattributes"), "*.x filter=broken\n");
            write(&tree.join("a"), "theirs\n");
            test.commit(&tree, "c.x", "theirs\n");
            test.git(&["checkout", "-q", "integration"]);
            write(&test.root.join("b"), "a person's\n");
            filter(&test, "false");
            test
        },
        |test, repo| {
            let prepared = prepare_merge(repo, "task-1", &test.sha("task/task-1"));
            let moved = prepared.map(|merge| repo.move_branch(&integration(), &merge, &task("task-1")));
            let is_refused = matches!(moved, Ok(Err(MergeError::UpdateFailed(_))));
            if is_refused {
                assert_eq!(test.git(&["status", "--porcelain"]), "M b", "nothing is left to repair");
            }
            is_refused
        },
        |test| {
            filter(test, "cat");
            test.repo.repair_checkouts().unwrap();
            assert_eq!(test.git(&["status", "--porcelain"]), "M b");
            let is_merged = test.repo.is_ancestor(&test.sha("task/task-1"), &test.base()).unwrap();
            assert_eq!(read(&test.root.join("a")) == "theirs\n", is_merged);
            assert_eq!(test.root.join("c.x").exists(), is_merged);
            assert!(!test.root.join(".git/liza-update").exists());
        },
    );
}

/// Covers: AX-14
#[test]
fn a_file_that_is_too_big_for_a_checkout_leaves_no_part_of_itself() {
    let test = TestRepo::new();
    let big = |lines: usize| (0..lines).map(|line| format!("line {line}\n")).collect::<String>();
    test.advance("d", &big(50));
    let tree = test.worktree("task-1");
    for name in ["a", "d", "new/big"] {
        write(&tree.join(name), &big(100_000));
    }
    let commit = test.commit(&tree, "z", "theirs\n");
    test.git(&["checkout", "-q", "integration"]);
    write(&test.root.join("b"), "a person's\n");
    let (base, before) = (test.base(), read(&test.root.join("a")));
    let program = test.home.path().join("limited-git");
    let limit = "case \"$*\" in *'read-tree -m -u -n'*) ;; *'read-tree -m -u'*) ulimit -f 100;; esac";
    for later in ["", "case \"$*\" in *'checkout-index'*) exit 1;; esac"] {
        script(&program, &format!("{limit}\n{later}\nexec git \"$@\""));
        let repo = Repo::open(&test.program().with_program(program.clone()), &test.root).unwrap();
        let moved = repo.move_branch(&integration(), &test.pending_merge("task-1", &commit), &task("task-1"));
        let error = moved.unwrap_err();
        if later.is_empty() {
            assert!(matches!(&error, MergeError::UpdateFailed(_)), "{error:?}");
            assert!(error.to_string().contains("a signal ended git"), "{error}");
        } else {
            // Its files cannot be taken back either: the next command does it.
            assert!(matches!(&error, MergeError::Git(_)), "{error:?}");
            test.repo.repair_checkouts().unwrap();
        }
        assert_eq!((test.base(), read(&test.root.join("a"))), (base.clone(), before.clone()));
        assert_eq!(read(&test.root.join("d")), big(50));
        assert_eq!(
            test.git(&["status", "--porcelain"]),
            "M b",
            "no file is left that the person did not make"
        );
    }
    test.move_branch(&test.pending_merge("task-1", &commit), "task-1").unwrap();
    assert_eq!(test.git(&["status", "--porcelain"]), "M b");
    assert_eq!(read(&test.root.join("new/big")), big(100_000));
}
