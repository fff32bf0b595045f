//! Merging without a checkout, and its effect on existing checkouts.

use std::fs;
use std::path::PathBuf;

use liza_git::{
    GitError, InterruptedUpdate, MergeError, MergeKind, MergeMessage, MergePreview, Repo, UpdateOutcome,
};
use liza_ids::{Digest, Sha};

use crate::support::{TestRepo, integration, read, script, task, write};

/// A commit of one file in the worktree of `task-1`.
fn work(test: &TestRepo, file: &str, text: &str) -> Sha {
    let tree = test.worktree("task-1");
    test.commit(&tree, file, text)
}

fn merge_commit(test: &TestRepo, commit: &Sha) -> Result<(), MergeError> {
    let merge = test.pending_merge("task-1", commit);
    test.move_branch(&merge, "task-1")
}

/// Covers: RV-04, RV-05
#[test]
fn a_preview_predicts_the_result_of_a_merge_and_changes_nothing() {
    let test = TestRepo::new();
    let base = test.base();
    let commit = work(&test, "ä b/c", "theirs\n");
    assert_eq!(test.repo.preview_merge(&base, &commit).unwrap(), MergePreview::FastForward);
    assert_eq!(test.repo.preview_merge(&commit, &base).unwrap(), MergePreview::AlreadyMerged);
    let clean = test.advance("d", "ours\n");
    assert!(matches!(test.repo.preview_merge(&clean, &commit).unwrap(), MergePreview::Clean { .. }));
    let conflict = test.advance("ä b/c", "ours\n");
    let files = vec![PathBuf::from("ä b/c")];
    assert_eq!(test.repo.preview_merge(&conflict, &commit).unwrap(), MergePreview::Conflict { files });
    let unrelated = test.git(&["commit-tree", "-m", "x", "HEAD^{tree}"]).parse().unwrap();
    assert_eq!(test.repo.preview_merge(&conflict, &unrelated).unwrap(), MergePreview::Unrelated);
    assert_eq!(test.base(), conflict);
}

/// Covers: RV-04, RV-10, JU-05
#[test]
fn exactly_that_commit_is_merged_and_always_by_a_merge_commit() {
    let test = TestRepo::new();
    let (base, commit) = (test.base(), work(&test, "c", "work\n"));
    test.commit(&test.root.join(".worktrees/task-1"), "late", "not approved\n");
    let short = commit.as_str()[..8].parse().unwrap();
    let draft = test.repo.draft_merge(&base, &short).unwrap();
    assert_eq!((&draft.commit, &draft.trial.new, draft.is_forward), (&commit, &commit, true));
    merge_commit(&test, &commit).unwrap();
    let parents = |revision: &str| test.git(&["log", "-1", "--format=%P", revision]);
    assert_eq!(parents("integration"), format!("{base} {commit}"));
    assert!(test.repo.is_merge_of(&test.base(), &base, &commit).unwrap());
    assert!(!test.repo.is_merge_of(&commit, &base, &commit).unwrap(), "a fast-forward is no merge of ours");
    // Once more, since the commit is in already: the files stay.
    let first = test.base();
    merge_commit(&test, &commit).unwrap();
    assert_eq!(parents("integration"), format!("{first} {commit}"));
    assert_eq!(test.git(&["diff", "--stat", first.as_str(), "integration"]), "");
    assert!(test.repo.is_merge_of(&test.base(), &first, &commit).unwrap());
    assert_eq!(test.repo.draft_branch_merge(&integration(), &commit).unwrap(), None);
}

/// Covers: RV-04
#[test]
fn a_merge_commit_names_task_commit_and_reviewer() {
    let test = TestRepo::new();
    let commit = work(&test, "c", "work\n");
    let head = test.advance("d", "ours\n");
    let merge = test.pending_merge("task-1", &commit);
    assert_eq!(test.base(), head, "not visible yet");
    test.move_branch(&merge, "task-1").unwrap();
    assert_eq!(test.base(), merge.new);
    assert_eq!(test.git(&["log", "-1", "--format=%P", "integration"]), format!("{head} {commit}"));
    assert_eq!(
        (test.show("integration", "c"), test.show("integration", "d")),
        ("work".into(), "ours".into())
    );
    let message = test.git(&["log", "-1", "--format=%B", "integration"]);
    let statement = Digest::of(b"a statement");
    let trailers = format!(
        "Approved-by: code-reviewer-1\nLiza-Task: task-1\nLiza-Commit: {commit}\nLiza-Statement: {statement}"
    );
    let steps = test.repo.steps_between(&head, &merge.new).unwrap();
    assert_eq!((steps.len(), steps[0].statement.as_ref()), (1, Some(&statement)));
    assert_eq!(message, format!("Merge task-1: Add retry\n\n{trailers}"));
    assert_eq!(
        test.git(&["log", "-1", "--format=%(trailers:key=Liza-Task,valueonly)", "integration"]),
        "task-1"
    );
    assert_eq!(test.git(&["log", "-1", "--format=%an %ce", "integration"]), "Test test@example.com");
}

/// Covers: RV-05
#[test]
fn a_conflict_names_the_files_and_does_not_move_the_branch() {
    let test = TestRepo::new();
    let commit = work(&test, "a", "theirs\n");
    let head = test.advance("a", "ours\n");
    let error = test.prepare_merge("task-1", &commit).unwrap_err();
    assert!(matches!(&error, MergeError::Conflict { files } if files == &[PathBuf::from("a")]), "{error}");
    assert_eq!(test.base(), head);
    assert!(test.root.join(".worktrees/task-1").exists());
}

/// Covers: RV-04
#[test]
fn a_merge_with_lines_of_neither_side_is_refused() {
    let test = TestRepo::new();
    let lines = |second: &str, last: &str| format!("1\n{second}\n3\n4\n5\n{last}\n");
    test.advance(".gitattributes", "c merge=own\n");
    test.advance("c", &lines("2", "6"));
    let commit = work(&test, "c", &lines("2", "theirs"));
    let head = test.advance("c", &lines("ours", "6"));
    // A person's own driver, set for all repositories: it may run, and its result is not trusted.
    let driver = |command: &str| {
        test.git(&["config", "--global", "merge.own.driver", command]);
        test.prepare_merge("task-1", &commit)
    };
    let merge = driver("git merge-file --quiet %A %O %B").unwrap();
    assert_eq!(test.show(merge.new.as_str(), "c"), lines("ours", "theirs").trim_end());
    let error = driver("git merge-file --quiet %A %O %B && echo of-neither >>%A").unwrap_err();
    let MergeError::Git(GitError::AlteredMerge { paths, .. }) = &error else { panic!("{error}") };
    assert_eq!(paths, &[PathBuf::from("c")]);
    assert_eq!(test.base(), head);
}

/// Covers: RV-08
#[test]
fn a_branch_that_moved_in_the_meantime_is_not_overwritten() {
    let test = TestRepo::new();
    let commit = work(&test, "c", "work\n");
    let merge = test.pending_merge("task-1", &commit);
    let other = test.advance("d", "ours\n");
    assert!(matches!(test.move_branch(&merge, "task-1"), Err(MergeError::BranchMoved)));
    assert_eq!(test.base(), other);
    merge_commit(&test, &commit).unwrap();
    assert!(test.repo.is_ancestor(&commit, &test.base()).unwrap());
    assert!(test.repo.is_ancestor(&other, &test.base()).unwrap());
}

/// Covers: RV-04
#[test]
fn a_checkout_of_another_branch_does_not_change() {
    let test = TestRepo::new();
    write(&test.root.join("a"), "a person's\n");
    test.git(&["add", "a"]);
    write(&test.root.join("c"), "a person's\n");
    let before = test.git(&["status", "--porcelain=v2", "--branch"]);
    let commit = work(&test, "c", "work\n");
    merge_commit(&test, &commit).unwrap();
    assert_eq!(test.git(&["status", "--porcelain=v2", "--branch"]), before);
    assert_eq!(read(&test.root.join("c")), "a person's\n");
}

/// Covers: RV-04
#[test]
fn a_checkout_of_the_branch_is_updated_and_keeps_uncommitted_changes() {
    let test = TestRepo::new();
    test.git(&["checkout", "-q", "integration"]);
    let commit = work(&test, "c", "work\n");
    write(&test.root.join("a"), "unstaged\n");
    write(&test.root.join("b"), "staged\n");
    test.git(&["add", "b"]);
    write(&test.root.join("untracked"), "x");
    let before = test.git(&["status", "--porcelain"]);
    merge_commit(&test, &commit).unwrap();
    assert_eq!(test.sha("HEAD^2"), commit);
    assert_eq!(read(&test.root.join("c")), "work\n");
    assert_eq!(test.git(&["status", "--porcelain"]), before);
}

/// Covers: RV-04
#[test]
fn the_branch_does_not_move_if_a_checkout_cannot_be_updated() {
    let dirty: [fn(&TestRepo); 4] = [
        |test| write(&test.root.join("a"), "a person's\n"),
        |test| {
            write(&test.root.join("a"), "a person's\n");
            test.git(&["add", "a"]);
        },
        |test| write(&test.root.join("new"), "a person's\n"),
        |test| fs::write(test.root.join(".git/index.lock"), "").unwrap(),
    ];
    for make_dirty in dirty {
        let test = TestRepo::new();
        test.git(&["checkout", "-q", "integration"]);
        let base = test.base();
        let tree = test.worktree("task-1");
        write(&tree.join("new"), "theirs\n");
        let commit = test.commit(&tree, "a", "theirs\n");
        make_dirty(&test);
        let before = test.git(&["status", "--porcelain=v2", "--branch"]);
        let Err(MergeError::CheckoutRefused { path, message }) = merge_commit(&test, &commit) else {
            panic!("it moved")
        };
        assert_eq!(path, test.root);
        assert!(!message.is_empty());
        assert_eq!(test.base(), base);
        let log = test.git(&["reflog", "show", "--format=%gs", "integration", "--"]);
        assert!(!log.contains("liza"), "it was never moved, not even for a moment: {log}");
        assert_eq!(test.git(&["status", "--porcelain=v2", "--branch"]), before);
    }
}

/// Covers: RV-04
#[test]
fn a_checkout_that_changes_during_the_move_undoes_it() {
    let test = TestRepo::new();
    test.git(&["checkout", "-q", "integration"]);
    let (base, commit) = (test.base(), work(&test, "a", "theirs\n"));
    // The program in git's place simulates a person who saves the file at the moment when the branch moves.
    let program = test.home.path().join("git-with-a-person");
    let save = format!(
        "case \"$*\" in *update-ref*'liza: merge'*) printf mine >'{}';; esac",
        test.root.join("a").display()
    );
    script(&program, &format!("git \"$@\"; status=$?\n{save}\nexit $status"));
    let repo = Repo::open(&test.program().with_program(program), &test.root).unwrap();
    let merge = test.pending_merge("task-1", &commit);
    let moved = repo.move_branch(&integration(), &merge, &task("task-1"));
    assert!(matches!(moved, Err(MergeError::CheckoutRefused { .. })), "{moved:?}");
    assert_eq!(test.base(), base);
    assert_eq!(read(&test.root.join("a")), "mine");
    assert_eq!(test.git(&["status", "--porcelain"]), "M a");
}

/// Covers: RV-08
#[test]
fn a_checkout_left_outdated_by_a_crash_is_updated() {
    let test = TestRepo::new();
    test.git(&["checkout", "-q", "integration"]);
    let commit = work(&test, "a", "theirs\n");
    let repair = || test.repo.repair_checkouts().unwrap();
    assert!(repair().is_empty());
    let merge = test.pending_merge("task-1", &commit);
    let (new, old) = (merge.new.as_str(), merge.old.as_str());
    // A person who moves the branch without the checkout may have done so on purpose, whatever the reflog says.
    for reason in ["manual", "liza: merge task-1"] {
        test.git(&["update-ref", "-m", reason, "refs/heads/integration", new, old]);
        assert!(repair().is_empty());
        test.git(&["update-ref", "-m", "manual", "refs/heads/integration", old, new]);
    }
    // The crash: the reference has moved, the checkout has not.
    test.git(&["update-ref", "-m", "liza: merge task-1", "refs/heads/integration", new, old]);
    fs::write(test.root.join(".git/liza-update"), format!("{old} {new}\n")).unwrap();
    write(&test.root.join("b"), "a person's\n");
    let (path, branch) = (test.root.clone(), "integration".to_owned());
    let outcome = UpdateOutcome::Completed { kept: Vec::new() };
    assert_eq!(repair(), [InterruptedUpdate { path, branch, outcome }]);
    assert_eq!(test.git(&["status", "--porcelain"]), "M b");
    assert_eq!(read(&test.root.join("a")), "theirs\n");
    assert!(repair().is_empty());
}

/// Covers: RV-04
#[test]
fn a_merge_commit_is_signed_if_commits_are() {
    let test = TestRepo::new();
    let commit = work(&test, "c", "work\n");
    test.advance("d", "ours\n");
    let signer = test.home.path().join("signer");
    let status = "[GNUPG:] SIG_CREATED D 1 8 00 0 0";
    let signature = "-----BEGIN PGP SIGNATURE-----\\n\\nsigned\\n-----END PGP SIGNATURE-----\\n";
    script(&signer, &format!("cat >/dev/null; echo '{status}' >&2; printf '%b' '{signature}'"));
    test.git(&["config", "--global", "gpg.program", signer.to_str().unwrap()]);
    test.git(&["config", "commit.gpgsign", "true"]);
    let merge = test.pending_merge("task-1", &commit);
    let raw = test.git(&["cat-file", "commit", merge.new.as_str()]);
    assert!(raw.contains("gpgsig -----BEGIN PGP SIGNATURE-----"), "{raw}");
    script(&signer, "echo no key >&2; exit 1");
    let error = test.prepare_merge("task-1", &commit).unwrap_err();
    assert!(matches!(error, MergeError::Git(GitError::Failed { .. })), "{error}");
}

/// Covers: RV-04
#[test]
fn a_missing_identity_is_reported_clearly() {
    let test = TestRepo::new();
    let commit = work(&test, "c", "work\n");
    test.advance("d", "ours\n");
    fs::write(test.home.path().join("gitconfig"), "").unwrap();
    let error = test.prepare_merge("task-1", &commit).unwrap_err();
    assert!(matches!(error, MergeError::Git(GitError::NoIdentity { .. })), "{error}");
    assert!(error.to_string().contains("user.email"), "{error}");
}

/// Covers: RV-10
#[test]
fn a_title_cannot_forge_a_trailer() {
    let test = TestRepo::new();
    let commit = work(&test, "c", "work\n");
    test.advance("d", "ours\n");
    let title = Some("x\n\nLiza-Task: task-9");
    let (name, statement) = (task("task-1"), Digest::of(b"x"));
    let approved_by = Some("y\nLiza-Task: task-9");
    let message = MergeMessage { kind: MergeKind::Task(&name), title, approved_by, statement: &statement };
    let draft = test.repo.draft_merge(&test.base(), &commit).unwrap();
    let merge = test.repo.commit_draft(&draft, &message).unwrap();
    assert!(!test.git(&["log", "-1", "--format=%B", merge.new.as_str()]).contains("task-9"));
}

/// Covers: AT-02
#[test]
fn a_commit_with_lizas_own_folders_is_found() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    for (file, found) in [
        ("src/liza/x", None),
        ("src/.Liza/x", Some("src/.Liza")),
        (".liza/x", Some(".liza")),
        (".Worktrees/x", Some(".Worktrees")),
    ] {
        write(&tree.join(file), "x");
        test.git_at(&tree, &["add", "-f", file]);
        let commit = test.commit(&tree, "c", file);
        assert_eq!(test.repo.reserved_path(&commit).unwrap().as_deref(), found);
        test.git_at(&tree, &["reset", "-q", "--hard", "HEAD~1"]);
    }
}
