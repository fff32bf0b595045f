//! A task's worktree has a repository of its own: what an agent does there reaches the project only as checked commits.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use liza_git::{GitError, ObjectLimits, Repo, WorktreeMode};
use liza_ids::{Generation, Sha};

use crate::support::{TestRepo, git_in, integration, read, script, task, write};

fn take(test: &TestRepo) -> Result<Option<Sha>, GitError> {
    test.repo.take_work(&task("task-1"), Generation(7))
}

/// What must not change in the project: references, configuration, hooks, and every object that a reference needs.
fn fingerprint(test: &TestRepo) -> String {
    let hooks = fs::read_dir(test.root.join(".git/hooks")).map_or(0, Iterator::count);
    let parts = [
        test.git(&["for-each-ref"]),
        read(&test.root.join(".git/config")),
        hooks.to_string(),
        test.git(&["fsck", "--connectivity-only"]),
    ];
    parts.join("\n")
}

/// Covers: IS-04
#[test]
fn nothing_that_git_does_in_a_worktree_changes_the_project() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let before = fingerprint(&test);
    let commands: [&[&str]; 9] = [
        &["commit", "-q", "--allow-empty", "-m", "own"],
        &["update-ref", "refs/heads/integration", "HEAD"],
        &["update-ref", "-d", "refs/heads/integration"],
        &["tag", "integration", "HEAD"],
        &["replace", "--graft", "HEAD"],
        &["config", "core.fsmonitor", "evil"],
        &["config", "remote.evil.url", "file:///"],
        &["pack-refs", "--all"],
        &["gc", "--quiet", "--prune=now"],
    ];
    for words in commands {
        test.git_at(&tree, words);
        assert_eq!(fingerprint(&test), before, "{words:?}");
    }
    fs::remove_dir_all(tree.join(".git/objects")).unwrap();
    assert_eq!(fingerprint(&test), before);
}

/// Covers: IS-04
#[test]
fn work_that_unpacks_to_too_much_or_too_many_is_refused_and_leaves_nothing() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("zeros"), &"0".repeat(1 << 20));
    test.git_at(&tree, &["add", "-A"]);
    test.git_at(&tree, &["commit", "-qm", "a mebibyte that takes a kibibyte"]);
    let taken = |bytes, count| {
        let git = test.program().with_object_limits(ObjectLimits { bytes, count });
        Repo::open(&git, &test.root).unwrap().take_work(&task("task-1"), Generation(7))
    };
    for (bytes, count) in [(1 << 20, 9), (2 << 20, 2)] {
        let error = taken(bytes, count).unwrap_err().to_string();
        assert!(error.contains("too large or too many (3 objects, 1 MiB"), "{error}");
        let left = fs::read_dir(test.root.join(".git")).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("liza-take-")));
    }
    let error = taken(100, 9).unwrap_err().to_string();
    assert!(error.contains("its new objects are larger than 0 MiB"), "{error}");
    assert!(taken(2 << 20, 3).unwrap().is_some());
}

/// Covers: IS-04
#[test]
fn what_a_worktree_borrows_survives_a_clean_up_of_the_project() {
    let test = TestRepo::new();
    let old = test.advance("x", "1\n");
    let tree = test.worktree("task-1");
    test.git(&["update-ref", "refs/heads/integration", "main"]);
    test.git(&["reflog", "expire", "--all", "--expire=now"]);
    test.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(test.git_at(&tree, &["rev-parse", "HEAD"]), old.as_str());
    assert_eq!(test.git_at(&tree, &["status", "--porcelain"]), "");
    let head = test.commit(&tree, "y", "2\n");
    assert_eq!(test.sha("task/task-1"), head);
    // Also the head of the integration branch that a session sees.
    let seen = test.advance("z", "3\n");
    test.prepare_worktree("task-1", WorktreeMode::Keep);
    test.git(&["update-ref", "refs/heads/integration", "main"]);
    test.git(&["reflog", "expire", "--all", "--expire=now"]);
    test.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(test.git_at(&tree, &["log", "-1", "--format=%H", "liza/integration"]), seen.as_str());
}

/// Covers: IS-04
#[test]
fn a_worktree_whose_objects_are_gone_is_made_again_from_what_was_taken() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let taken = test.commit(&tree, "c", "taken\n");
    write(&tree.join("d"), "committed, then destroyed\n");
    test.git_at(&tree, &["add", "d"]);
    test.git_at(&tree, &["commit", "-qm", "lost"]);
    write(&tree.join("e"), "not committed\n");
    fs::remove_dir_all(tree.join(".git/objects")).unwrap();
    assert!(take(&test).is_err());
    let made = test.prepare_worktree("task-1", WorktreeMode::Keep);
    let saved = made.rescued.unwrap();
    assert!(made.created && made.was_damaged);
    assert_eq!(test.git_at(&tree, &["rev-parse", "HEAD"]), taken.as_str());
    for (file, text) in [("d", "committed, then destroyed"), ("e", "not committed")] {
        assert_eq!(test.show(saved.branch.as_str(), file), text, "its files are saved");
    }
}

/// Covers: IS-08
#[test]
fn only_the_commits_of_the_branch_arrive() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let before = test.git(&["for-each-ref", "refs/tags", "refs/heads/integration", "refs/remotes"]);
    test.git_at(&tree, &["tag", "integration"]);
    test.git_at(&tree, &["branch", "other"]);
    test.git_at(&tree, &["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let head = test.commit(&tree, "c", "work\n");
    assert_eq!(take(&test).unwrap(), Some(head.clone()));
    assert_eq!(test.git(&["for-each-ref", "refs/tags", "refs/heads/integration", "refs/remotes"]), before);
    assert_eq!(test.sha("refs/liza/work/task-1/7"), head);
    assert_eq!(test.sha("task/task-1"), head);
    assert!(!test.root.join(".git/FETCH_HEAD").exists());
}

/// Covers: IS-08
#[test]
fn an_amended_commit_is_taken_and_the_old_one_kept() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let old = test.commit(&tree, "c", "one\n");
    test.git_at(&tree, &["commit", "-q", "--amend", "-m", "better"]);
    let new = take(&test).unwrap().unwrap();
    assert_ne!(old, new);
    assert_eq!(test.sha("refs/liza/work/task-1/7"), new);
    assert_eq!(test.sha("task/task-1"), new);
    assert_eq!(test.sha(&format!("refs/liza/unreferenced/task-1/{old}")), old);
}

/// Covers: IS-04
#[test]
fn the_same_work_can_be_taken_several_times_at_once() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    for round in 0..5 {
        write(&tree.join("c"), &format!("{round}\n"));
        test.git_at(&tree, &["add", "c"]);
        test.git_at(&tree, &["commit", "-qm", "work"]);
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    take(&test).unwrap();
                });
            }
        });
        assert_eq!(test.sha("task/task-1").as_str(), test.git_at(&tree, &["rev-parse", "HEAD"]));
    }
}

/// Another repository with a secret; its blob's name.
fn secret(test: &TestRepo) -> (PathBuf, String) {
    let other = test.home.path().join("secret");
    git_in(test.home.path(), test.home.path(), &["init", "-q", "secret"]);
    test.commit(&other, "key", "the secret\n");
    let blob = test.git_at(&other, &["rev-parse", "HEAD:key"]);
    (other, blob)
}

/// Covers: IS-08
#[test]
fn a_planted_alternate_brings_no_files_of_another_repository() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let (other, blob) = secret(&test);
    let lines =
        format!("{}\n{}\n", test.root.join(".git/objects").display(), other.join(".git/objects").display());
    fs::write(tree.join(".git/objects/info/alternates"), lines).unwrap();
    test.git_at(&tree, &["update-index", "--add", "--cacheinfo", &format!("100644,{blob},stolen")]);
    test.git_at(&tree, &["commit", "-qm", "steal"]);
    let error = take(&test).unwrap_err().to_string();
    assert!(error.contains("taking an agent's commits"), "{error}");
    assert!(!git_in(test.home.path(), &test.root, &["cat-file", "-e", &blob]).0);
    assert_eq!(test.sha("task/task-1"), test.base());
}

/// Covers: IS-08
#[test]
fn links_to_another_repository_bring_nothing() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let (other, blob) = secret(&test);
    let folder = blob.get(..2).unwrap();
    symlink(other.join(".git/objects").join(folder), tree.join(".git/objects").join(folder)).unwrap();
    test.git_at(&tree, &["update-index", "--add", "--cacheinfo", &format!("100644,{blob},stolen")]);
    test.git_at(&tree, &["commit", "-qm", "steal"]);
    assert!(take(&test).is_err());
    assert!(!git_in(test.home.path(), &test.root, &["cat-file", "-e", &blob]).0);
}

fn append(path: &Path, text: &str) {
    write(path, &format!("{}{text}", read(path)));
}

/// Covers: RO-03
#[test]
fn git_starts_nothing_for_a_person_who_enters_a_worktree_after_a_session() {
    type Plant = fn(&Path, &str);
    let plants: [(&str, Plant); 9] = [
        ("a monitor", |git, evil| append(&git.join("config"), &format!("[core]\n\tfsmonitor = {evil}\n"))),
        ("settings of the worktree", |git, evil| {
            append(&git.join("config"), "[extensions]\n\tworktreeConfig = true\n");
            write(&git.join("config.worktree"), &format!("[core]\n\tfsmonitor = {evil}\n"));
        }),
        ("a filter", |git, evil| {
            append(&git.join("config"), &format!("[filter \"evil\"]\n\tclean = {evil}\n"));
            write(&git.join("info/attributes"), "* filter=evil\n");
        }),
        ("a hook", |git, evil| {
            let hooks = git.join("planted");
            fs::create_dir(&hooks).unwrap();
            fs::copy(evil, hooks.join("post-index-change")).unwrap();
            append(&git.join("config"), &format!("[core]\n\thooksPath = {}\n", hooks.display()));
        }),
        ("settings elsewhere", |git, evil| {
            let elsewhere = git.with_file_name("elsewhere");
            for name in ["objects/info", "refs"] {
                fs::create_dir_all(elsewhere.join(name)).unwrap();
            }
            fs::copy(git.join("objects/info/alternates"), elsewhere.join("objects/info/alternates")).unwrap();
            fs::copy(git.join("config"), elsewhere.join("config")).unwrap();
            append(&elsewhere.join("config"), &format!("[core]\n\tfsmonitor = {evil}\n"));
            write(&git.join("commondir"), "../elsewhere\n");
        }),
        ("another repository", |git, evil| {
            let moved = git.with_file_name("moved");
            fs::rename(git, &moved).unwrap();
            append(&moved.join("config"), &format!("[core]\n\tfsmonitor = {evil}\n"));
            write(git, "gitdir: moved\n");
        }),
        ("a folder in the place of a file that is removed", |git, evil| {
            append(&git.join("config"), &format!("[core]\n\tfsmonitor = {evil}\n"));
            fs::create_dir(git.join("config.worktree")).unwrap();
        }),
        ("a folder in the place of a file that is written", |git, evil| {
            append(&git.join("config"), &format!("[core]\n\tfsmonitor = {evil}\n"));
            fs::create_dir(git.join(".liza-config")).unwrap();
        }),
        ("a repository beside its own, which is unusable", |git, evil| {
            let tree = git.parent().unwrap();
            for name in ["objects", "refs"] {
                fs::create_dir(tree.join(name)).unwrap();
            }
            fs::rename(git.join("HEAD"), tree.join("HEAD")).unwrap();
            let settings = [("bare", "false"), ("worktree", tree.to_str().unwrap()), ("fsmonitor", evil)];
            let lines = settings.map(|(name, value)| format!("\t{name} = {value}\n")).concat();
            write(&tree.join("config"), &format!("[core]\n\trepositoryformatversion = 0\n{lines}"));
        }),
    ];
    for (name, plant) in plants {
        let test = TestRepo::new();
        let tree = test.worktree("task-1");
        let (mark, evil) = (test.home.path().join("mark"), test.home.path().join("evil"));
        script(&evil, &format!("echo ran >>'{}'; cat", mark.display()));
        plant(&tree.join(".git"), evil.to_str().unwrap());
        let enter = || {
            write(&tree.join("a"), "changed once more\n");
            git_in(test.home.path(), &tree, &["status"]);
        };
        enter();
        assert!(mark.exists(), "{name} would run");
        fs::remove_file(&mark).unwrap();
        test.repo.restore_settings(&task("task-1")).unwrap();
        enter();
        assert!(!mark.exists(), "{name}");
    }
}

/// Covers: IS-08
#[test]
fn nothing_that_was_planted_in_a_worktrees_repository_runs_or_blocks() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let mark = test.home.path().join("mark");
    let evil = test.home.path().join("evil");
    script(&evil, &format!("echo \"$0 $*\" >>'{}'; cat", mark.display()));
    let evil = evil.to_str().unwrap();
    let head = test.commit(&tree, "c", "work\n");
    for key in [
        "core.fsmonitor",
        "uploadpack.packObjectsHook",
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.external",
    ] {
        test.git_at(&tree, &["config", key, evil]);
    }
    for (key, value) in [
        ("remote.evil.promisor", "true"),
        ("remote.evil.url", &format!("ext::{evil}")),
        ("extensions.partialClone", "evil"),
        ("core.hooksPath", test.home.path().to_str().unwrap()),
        ("protocol.ext.allow", "always"),
    ] {
        test.git_at(&tree, &["config", key, value]);
    }
    write(&tree.join(".git/info/attributes"), "* filter=evil\n");
    write(&tree.join("a"), "changed\n");
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        script(&test.home.path().join(hook), &format!("echo {hook} >>'{}'", mark.display()));
    }
    let _ = fs::remove_file(&mark);
    let all = |test: &TestRepo| {
        take(test).unwrap();
        let state = test.repo.worktree_state(&task("task-1"), &test.base()).unwrap();
        assert_eq!((state.head, state.changes.len()), (head.clone(), 1));
        test.repo.rescue(&task("task-1"), None, &integration()).unwrap().unwrap();
    };
    all(&test);
    fs::remove_file(tree.join(".git/config")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(tree.join(".git/config")).status().unwrap().success());
    all(&test);
    test.prepare_worktree("task-1", WorktreeMode::Keep);
    assert!(!read(&tree.join(".git/config")).contains("evil"), "the next session gets a clean configuration");
    test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
    assert!(!mark.exists(), "{}", read(&mark));
}

/// Covers: IS-08
#[test]
fn a_promisor_that_was_planted_in_a_nested_repository_runs_nothing() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    git_in(test.home.path(), &tree, &["init", "-q", "vendor"]);
    let inner = tree.join("vendor");
    fs::create_dir(inner.join("folder")).unwrap();
    test.commit(&inner, "folder/v", "one\n");
    write(&inner.join("w"), "not committed\n");
    let (mark, evil) = (test.home.path().join("mark"), test.home.path().join("evil"));
    script(&evil, &format!("echo \"$0 $*\" >>'{}'; exit 1", mark.display()));
    for (key, value) in [
        ("remote.evil.url", test.root.to_str().unwrap()),
        ("remote.evil.uploadpack", evil.to_str().unwrap()),
        ("remote.evil.promisor", "true"),
        ("extensions.partialClone", "evil"),
        ("core.repositoryFormatVersion", "1"),
    ] {
        test.git_at(&inner, &["config", key, value]);
    }
    // Git needs this object when it saves the files, not before.
    let missing = test.git_at(&inner, &["rev-parse", "HEAD:folder"]);
    let (folder, file) = missing.split_at(2);
    fs::remove_file(inner.join(".git/objects").join(folder).join(file)).unwrap();
    assert!(
        !git_in(test.home.path(), &inner, &["ls-tree", &missing]).0 && mark.exists(),
        "git itself runs it"
    );
    fs::remove_file(&mark).unwrap();
    let removed = test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
    assert!(!mark.exists(), "{}", read(&mark));
    let saved = &removed.rescued.unwrap().nested;
    assert_eq!(saved.len(), 1);
    for (file, text) in [("w", "not committed"), ("folder/v", "one")] {
        assert_eq!(test.show(saved[0].as_str(), file), text, "the files of a damaged repository are saved");
    }
}

/// Covers: IS-14
#[test]
fn a_worktree_does_not_show_remotes_credentials_or_includes() {
    let test = TestRepo::new();
    let included = test.home.path().join("included");
    write(
        &included,
        "[remote \"origin\"]\n\turl = https://user:token123@example.com/x\n[user]\n\tname = Included\n",
    );
    test.git(&["config", "include.path", included.to_str().unwrap()]);
    test.git(&["config", "http.extraHeader", "Authorization: token123"]);
    test.git(&["config", "credential.helper", "store"]);
    test.git(&["config", "core.autocrlf", "input"]);
    let tree = test.worktree("task-1");
    let config = read(&tree.join(".git/config"));
    assert!(!config.contains("token123") && !config.contains("credential"), "{config}");
    assert!(config.contains("Included") && config.contains("autocrlf"), "{config}");
}

fn kept(test: &TestRepo, folder: &str) -> Vec<String> {
    let refs = test.git(&["for-each-ref", "--format=%(refname)", &format!("refs/liza/{folder}")]);
    refs.lines().map(str::to_owned).collect()
}

/// Covers: AT-11, AT-05
#[test]
fn hidden_edits_are_seen_and_saved() {
    for hide in [&["--assume-unchanged"][..], &["--skip-worktree"], &[]] {
        let test = TestRepo::new();
        let tree = test.worktree("task-1");
        let before = fs::metadata(tree.join("a")).unwrap().modified().unwrap();
        // The same length and the same time as before.
        fs::write(tree.join("a"), "A\n").unwrap();
        fs::File::options().write(true).open(tree.join("a")).unwrap().set_modified(before).unwrap();
        if !hide.is_empty() {
            test.git_at(&tree, &[&["update-index"][..], hide, &["a"]].concat());
            assert_eq!(test.git_at(&tree, &["status", "--porcelain"]), "", "git itself does not see it");
        }
        let state = test.repo.worktree_state(&task("task-1"), &test.base()).unwrap();
        assert_eq!(state.tracked_changes().count(), 1, "{hide:?}");
        let saved =
            test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap().rescued.unwrap();
        assert_eq!(test.show(saved.branch.as_str(), "a"), "A");
    }
}

/// Covers: AT-11
#[test]
fn ignored_files_are_kept_and_large_ones_listed() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("settings.tmp"), "local\n");
    write(&tree.join("deep/more.tmp"), "too\n");
    fs::write(tree.join("big.tmp"), vec![b'x'; 300 << 10]).unwrap();
    assert!(test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap().rescued.is_none());
    let [name] = &kept(&test, "ignored")[..] else { panic!() };
    assert_eq!(test.show(name, "settings.tmp"), "local");
    assert_eq!(test.show(name, "deep/more.tmp"), "too");
    let message = test.git(&["log", "-1", "--format=%B", name]);
    assert!(message.contains("not readable):\n  big.tmp"), "{message}");
}

/// Covers: AT-11
#[test]
fn an_ignored_file_that_git_cannot_read_does_not_stop_a_removal() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.git(&["config", "--global", "filter.broken.clean", "false"]);
    test.git(&["config", "--global", "filter.broken.required", "true"]);
    write(&test.root.join(".git/info/attributes"), "bad.tmp filter=broken\n");
    write(&tree.join("bad.tmp"), "cannot be read\n");
    write(&tree.join("good.tmp"), "can be read\n");
    assert!(test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap().existed);
    let [name] = &kept(&test, "ignored")[..] else { panic!() };
    assert_eq!(test.show(name, "good.tmp"), "can be read");
    let message = test.git(&["log", "-1", "--format=%B", name]);
    assert!(message.contains("not readable):\n  bad.tmp"), "{message}");
}

/// Covers: AT-11
#[test]
fn commits_that_no_reference_names_are_kept() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("c"), "one\n");
    test.git_at(&tree, &["add", "c"]);
    test.git_at(&tree, &["commit", "-qm", "one"]);
    let left: Sha = test.git_at(&tree, &["rev-parse", "HEAD"]).parse().unwrap();
    test.git_at(&tree, &["reset", "-q", "--hard", "HEAD^"]);
    write(&tree.join("a"), "stashed\n");
    test.git_at(&tree, &["stash", "-q"]);
    let saved = test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap().rescued.unwrap();
    assert_eq!(test.show(&format!("refs/liza/unreferenced/task-1/{left}"), "c"), "one");
    let parents = test.git(&["log", "--format=%H %s", saved.branch.as_str()]);
    assert!(parents.contains("WIP on task/task-1"), "the stash is work: {parents}");
}

/// Covers: AT-11
#[test]
fn an_ignored_repository_is_saved_as_one() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join(".gitignore"), "*.tmp\nvendor/\n");
    git_in(test.home.path(), &tree, &["init", "-q", "vendor"]);
    let inner = test.commit(&tree.join("vendor"), "v", "vendored\n");
    let saved = test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap().rescued.unwrap();
    assert_eq!(test.sha(saved.nested[0].as_str()), inner);
}

/// Covers: AT-11
#[test]
fn objects_of_git_lfs_are_taken_if_they_are_what_their_name_says() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let good = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let bad = "0000dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b98240";
    let place =
        |root: &Path, name: &str| root.join(".git/lfs/objects").join(&name[..2]).join(&name[2..4]).join(name);
    write(&place(&tree, good), "hello");
    write(&place(&tree, bad), "something else");
    test.commit(&tree, "pointer", "oid\n");
    assert_eq!(read(&place(&test.root, good)), "hello");
    assert!(!place(&test.root, bad).exists());
}

/// The files of a folder without `.git`, with their content.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten().filter(|entry| entry.file_name() != ".git") {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => found.push((
                    entry.path().strip_prefix(folder).unwrap().display().to_string(),
                    fs::read(entry.path()).unwrap(),
                )),
            }
        }
    }
    found.sort();
    found
}

/// Covers: AT-05
#[test]
fn a_review_sees_exactly_the_submitted_commit() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let commit = test.commit(&tree, "c", "work\n");
    // Everything with which a coder could make the reviewer's tests pass although the commit is wrong.
    write(&tree.join("helper.tmp"), "ignored\n");
    write(&tree.join("untracked"), "x\n");
    write(&tree.join("a"), "hidden edit\n");
    test.git_at(&tree, &["update-index", "--assume-unchanged", "a"]);
    write(&tree.join("b"), "hidden too\n");
    test.git_at(&tree, &["update-index", "--skip-worktree", "b"]);
    test.git_at(&tree, &["config", "filter.fix.smudge", "sed s/work/fixed/"]);
    write(&tree.join(".git/info/attributes"), "c filter=fix\n");
    write(&tree.join(".git/info/exclude"), "*\n");
    test.git_at(&tree, &["config", "core.sparseCheckout", "true"]);
    write(&tree.join(".git/info/sparse-checkout"), "c\n");
    write(&tree.join(".claude/settings.json"), "{}");
    test.repo.create_review(&task("task-1"), &commit, &integration()).unwrap();
    let clone = test.home.path().join("clone");
    test.git(&["clone", "-q", "--no-checkout", ".", clone.to_str().unwrap()]);
    test.git_at(&clone, &["checkout", "-q", commit.as_str()]);
    let place = test.repo.review_path(&task("task-1"));
    assert_eq!(files(&place), files(&clone));
    assert_eq!(test.git_at(&place, &["rev-parse", "HEAD"]), commit.as_str());
    assert_eq!(test.git_at(&place, &["status", "--porcelain"]), "");
    assert_eq!(test.git_at(&place, &["log", "--format=%s", "integration..HEAD"]), "change c");
}

/// Covers: IS-08
#[test]
fn a_change_in_the_moment_in_which_the_index_was_kept_is_seen() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    // Only the time of change counts then, as if both had happened in one tick of the clock.
    git_in(test.home.path(), &test.root, &["config", "--global", "core.trustctime", "false"]);
    let moment = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let set_time =
        |path: &Path| fs::File::options().write(true).open(path).unwrap().set_modified(moment).unwrap();
    let state = || test.repo.worktree_state(&task("task-1"), &test.base()).unwrap();
    set_time(&tree.join("a"));
    assert_eq!(state().changes.len(), 0);
    let kept = test.root.join(".git").join("liza/index").join("task-1");
    set_time(&kept);
    let before = read(&tree.join("a"));
    let other: String = before.chars().map(|c| if c == '\n' { c } else { 'x' }).collect();
    assert!(other != before && other.len() == before.len());
    fs::write(tree.join("a"), other).unwrap();
    set_time(&tree.join("a"));
    assert_eq!(state().changes.len(), 1);
}
