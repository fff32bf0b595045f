//! What a session leaves in its worktree starts nothing for the person who enters it afterwards, and holds no command of git up.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::{TestRepo, git_in, integration, read, script, task, write};

/// Covers: RO-03
#[test]
fn git_starts_nothing_in_the_repositories_inside_a_worktree_after_a_session() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let (mark, evil) = (test.home.path().join("mark"), test.home.path().join("evil"));
    script(&evil, &format!("echo ran >>'{}'", mark.display()));
    let plant = |folder: &Path| {
        fs::create_dir_all(folder).unwrap();
        test.git_at(folder, &["init", "-q"]);
        test.git_at(folder, &["remote", "add", "origin", "/elsewhere"]);
        write(&folder.join("file"), "text\n");
        test.git_at(folder, &["add", "file"]);
        test.git_at(folder, &["commit", "-qm", "inside"]);
        test.git_at(folder, &["config", "core.fsmonitor", evil.to_str().unwrap()]);
    };
    plant(&tree.join("sub"));
    test.git_at(&tree, &["-c", "advice.addEmbeddedRepo=false", "add", "sub"]);
    plant(&tree.join("src/deep"));
    plant(&test.home.path().join("elsewhere"));
    write(&tree.join("led/file"), "text\n");
    write(
        &tree.join("led/.git"),
        &format!("gitdir: {}\n", test.home.path().join("elsewhere/.git").display()),
    );
    write(&tree.join("linked/file"), "text\n");
    symlink(test.home.path().join("elsewhere/.git"), tree.join("linked/.git")).unwrap();
    let places = ["", "sub", "src/deep", "led", "linked"];
    let runs = |place: &str| {
        let _ = fs::remove_file(&mark);
        write(&tree.join(place).join("file"), "changed\n");
        git_in(test.home.path(), &tree.join(place), &["status"]);
        mark.exists()
    };
    assert_eq!(places.map(runs), [true; 5], "each would run");
    test.repo.restore_settings(&task("task-1")).unwrap();
    assert_eq!(places.map(runs), [false; 5]);
    for place in ["sub", "src/deep"] {
        let folder = tree.join(place);
        assert_eq!(test.git_at(&folder, &["log", "--format=%s"]), "inside");
        assert_eq!(test.git_at(&folder, &["remote", "get-url", "origin"]), "/elsewhere");
    }
}

/// Covers: RO-03
#[test]
fn git_starts_nothing_of_a_session_whatever_is_in_the_place_of_the_worktrees_repository_or_leads_to_another()
{
    type Plant = fn(&TestRepo, &Path, &dyn Fn(&Path));
    let plants: [(&str, &str, Plant); 6] = [
        ("no repository at the top", "sub", |_, tree, plant| {
            fs::remove_dir_all(tree.join(".git")).unwrap();
            plant(&tree.join("sub"));
        }),
        ("the link of another worktree of the person", "sub", |test, tree, plant| {
            let other = test.home.path().join("other");
            test.git(&["worktree", "add", "-q", other.to_str().unwrap()]);
            fs::remove_dir_all(tree.join(".git")).unwrap();
            fs::copy(other.join(".git"), tree.join(".git")).unwrap();
            plant(&tree.join("sub"));
        }),
        ("a repository in the one of the worktree", "led", |_, tree, plant| {
            plant(&tree.join(".git/hidden"));
            write(&tree.join("led/file"), "text\n");
            write(&tree.join("led/.git"), "gitdir: ../.git/hidden/.git\n");
            fs::rename(tree.join(".git/hidden/file"), tree.join("led/file")).unwrap();
        }),
        ("folders in the place of files", "sub", |_, tree, plant| {
            plant(&tree.join("sub"));
            fs::create_dir_all(tree.join("sub/.git/config.worktree")).unwrap();
            fs::create_dir_all(tree.join("sub/.git/.liza-config")).unwrap();
        }),
        ("a link to the caches of its role", "away", |test, tree, plant| {
            let caches = test.repo.root().join(".liza/caches/coder");
            plant(&caches.join("there"));
            symlink(caches.join("there"), tree.join("away")).unwrap();
        }),
        ("a link to another worktree", "away", |test, tree, plant| {
            plant(&test.worktree("task-2").join("there"));
            symlink("../task-2/there", tree.join("away")).unwrap();
        }),
    ];
    for (name, place, prepare) in plants {
        let test = TestRepo::new();
        let tree = test.worktree("task-1");
        let (mark, evil) = (test.home.path().join("mark"), test.home.path().join("evil"));
        script(&evil, &format!("echo ran >>'{}'", mark.display()));
        prepare(&test, &tree, &|folder| {
            fs::create_dir_all(folder).unwrap();
            test.git_at(folder, &["init", "-q"]);
            write(&folder.join("file"), "text\n");
            test.git_at(folder, &["add", "file"]);
            test.git_at(folder, &["commit", "-qm", "inside"]);
            test.git_at(folder, &["config", "core.fsmonitor", evil.to_str().unwrap()]);
        });
        let runs = || {
            let _ = fs::remove_file(&mark);
            if tree.join(place).is_dir() {
                git_in(test.home.path(), &tree.join(place), &["status"]);
            }
            mark.exists()
        };
        assert!(runs(), "{name} would run");
        test.repo.restore_settings(&task("task-1")).unwrap();
        assert!(!runs(), "{name}");
    }
}

/// Covers: RO-03
#[test]
fn no_repository_in_a_worktree_keeps_its_files_outside_of_it() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let outside = test.home.path().join("yours");
    fs::create_dir(&outside).unwrap();
    for name in ["away", "own"] {
        fs::create_dir(tree.join(name)).unwrap();
        test.git_at(&tree.join(name), &["init", "-q"]);
    }
    test.git_at(&tree.join("away"), &["config", "core.worktree", outside.to_str().unwrap()]);
    test.git_at(&tree.join("own"), &["config", "core.worktree", "../../src"]);
    fs::create_dir(tree.join("src")).unwrap();
    test.repo.restore_settings(&task("task-1")).unwrap();
    let set = |name: &str| read(&tree.join(name).join(".git/config")).contains("worktree");
    assert_eq!(["away", "own"].map(set), [false, true]);
}

/// Lets a person do what `git status` invites to in a folder with an unfinished rebase.
fn goes_on(test: &TestRepo, folder: &Path) {
    git_in(test.home.path(), folder, &["-c", "core.editor=true", "rebase", "--continue"]);
}

/// Covers: RO-03
#[test]
fn an_unfinished_rebase_of_a_session_runs_nothing_for_the_person_and_its_commits_are_kept() {
    for place in ["", "sub"] {
        let test = TestRepo::new();
        let tree = test.worktree("task-1");
        let (mark, folder) = (test.home.path().join("mark"), tree.join(place));
        if !place.is_empty() {
            fs::create_dir(&folder).unwrap();
            test.git_at(&folder, &["init", "-q"]);
            test.git_at(&folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
        }
        write(&folder.join("work"), "one\n");
        test.git_at(&folder, &["add", "work"]);
        test.git_at(&folder, &["commit", "-qm", "work"]);
        let work = test.git_at(&folder, &["rev-parse", "HEAD"]);
        let plant = || {
            write(&folder.join("work"), "not committed\n");
            let step = format!("echo ran >>'{}'; false", mark.display());
            let rebase = ["rebase", "--autostash", "-f", "-x", &step, "HEAD~1"];
            git_in(test.home.path(), &folder, &rebase);
            let _ = fs::remove_file(&mark);
            read(&folder.join(".git/rebase-merge/autostash")).trim().to_owned()
        };
        plant();
        write(
            &folder.join(".git/rebase-merge/git-rebase-todo"),
            &format!("exec echo ran >>'{}'\n", mark.display()),
        );
        goes_on(&test, &folder);
        assert!(mark.exists(), "{place:?} would run it");
        git_in(test.home.path(), &folder, &["rebase", "--abort"]);
        let stash = plant();
        write(
            &folder.join(".git/rebase-merge/git-rebase-todo"),
            &format!("exec echo ran >>'{}'\n", mark.display()),
        );
        test.repo.restore_settings(&task("task-1")).unwrap();
        goes_on(&test, &folder);
        assert!(!mark.exists(), "{place:?}");
        let kept = test.git_at(&folder, &["log", "--all", "--format=%H"]);
        assert!(kept.contains(&work) && kept.contains(&stash), "{place:?}: {kept}");
        assert_eq!(test.git_at(&folder, &["show", &format!("{stash}:work")]), "not committed");
        if place.is_empty() {
            let removed = test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
            let saved = test.git(&["log", "--format=%H", removed.rescued.unwrap().branch.as_str()]);
            assert!(saved.contains(&work) && saved.contains(&stash), "{saved}");
        }
    }
}

/// Covers: RO-03
#[test]
fn a_worktrees_repository_keeps_only_what_honest_work_needs() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let git = tree.join(".git");
    let folders =
        ["rebase-apply", "sequencer", "hooks", "worktrees/x", "remotes", "branches", "rr-cache", "unknown"];
    for name in folders {
        fs::create_dir_all(git.join(name)).unwrap();
        write(&git.join(name).join("file"), "x\n");
    }
    for name in ["BISECT_START", "config.worktree", "commondir-x", "REBASE_HEAD"] {
        write(&git.join(name), "x\n");
    }
    symlink("/etc", git.join("logs-x")).unwrap();
    let head = test.git_at(&tree, &["rev-parse", "HEAD"]);
    write(&git.join("MERGE_HEAD"), &format!("{head}\n"));
    write(&git.join("MERGE_MSG"), "a merge\n");
    write(&git.join("modules/lib/file"), "x\n");
    write(&git.join("lfs/objects/x"), "x\n");
    test.repo.restore_settings(&task("task-1")).unwrap();
    let mut names: Vec<String> =
        fs::read_dir(&git).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "logs" && name != "ORIG_HEAD");
    names.sort();
    let kept = [
        "HEAD",
        "MERGE_HEAD",
        "MERGE_MSG",
        "config",
        "index",
        "info",
        "lfs",
        "modules",
        "objects",
        "packed-refs",
        "refs",
    ];
    assert_eq!(names, kept);
    git_in(test.home.path(), &tree, &["status"]);
}

/// The project's own settings name its files, as husky does, and the work has files of these names.
///
/// Covers: RO-03
#[test]
fn what_the_projects_settings_name_is_never_looked_for_among_the_works_files() {
    let test = TestRepo::new();
    let mark = test.home.path().join("mark");
    let noted = format!("echo ran >>'{}'; cat", mark.display());
    for (key, value) in [
        ("core.hooksPath", ".husky/_"),
        ("filter.own.clean", "scripts/own.sh"),
        ("filter.plain.clean", "cat"),
        ("diff.own.textconv", "./scripts/own.sh"),
        ("diff.own.command", "scripts/own.sh"),
        ("diff.own.xfuncname", "^x"),
    ] {
        test.git(&["config", key, value]);
    }
    let tree = test.worktree("task-1");
    for name in [".husky/_/post-index-change", ".husky/_/pre-commit", "scripts/own.sh"] {
        fs::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
        script(&tree.join(name), &noted);
    }
    write(&tree.join(".gitattributes"), "* filter=own diff=own\n");
    test.repo.restore_settings(&task("task-1")).unwrap();
    for words in [&["add", "-A"][..], &["status"], &["commit", "-qm", "x"], &["diff", "HEAD~"], &["show"]] {
        write(&tree.join("a"), &format!("{words:?}\n"));
        git_in(test.home.path(), &tree, words);
        assert!(!mark.exists(), "{words:?}");
    }
    let hooks = test.git_at(&tree, &["config", "core.hooksPath"]);
    assert_eq!(Path::new(&hooks), test.root.join(".husky/_"));
    assert_eq!(test.git_at(&tree, &["config", "filter.plain.clean"]), "cat");
    assert_eq!(test.git_at(&tree, &["config", "diff.own.xfuncname"]), "^x");
}

/// Covers: RO-03
#[test]
fn a_git_file_is_read_as_git_reads_it() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    for (number, end) in [" ", "\t", "\x0c", " \n"].into_iter().enumerate() {
        let folder = tree.join(format!("n{number}"));
        fs::create_dir_all(folder.join("a")).unwrap();
        let name = format!("a{}", end.trim_end_matches('\n'));
        symlink(test.root.join(".git"), folder.join(&name)).unwrap();
        write(&folder.join(".git"), &format!("gitdir: a{end}"));
        let used = test.git_at(&folder, &["rev-parse", "--absolute-git-dir"]);
        assert_eq!(Path::new(&used), test.root.join(".git").canonicalize().unwrap(), "{name:?}");
    }
    test.repo.restore_settings(&task("task-1")).unwrap();
    assert_eq!([0, 1, 2, 3].map(|number| tree.join(format!("n{number}/.git")).exists()), [false; 4]);
}

/// Git waits at a pipe, and follows links out of the worktree.
///
/// Covers: RO-03
#[test]
fn a_repository_has_only_files_and_folders_after_a_session() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    test.git_at(&tree, &["init", "-q", "nest"]);
    let mut left = Vec::new();
    for git in [".git", "nest/.git"] {
        for name in ["objects/pack/pack-1.idx", "logs/x", "refs/heads/x", "info/x"] {
            let place = tree.join(git).join(name);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
            left.push(place);
        }
        let link = tree.join(git).join("objects/info/away");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink("/etc", &link).unwrap();
        left.push(link);
    }
    for (name, target) in [("through", "/proc/self/cwd/../t2/evil"), ("open", "/dev/fd/3")] {
        symlink(target, tree.join(name)).unwrap();
        left.push(tree.join(name));
    }
    symlink("a", tree.join("plain")).unwrap();
    test.repo.restore_settings(&task("task-1")).unwrap();
    left.retain(|place| place.symlink_metadata().is_ok());
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
    assert!(tree.join("plain").is_symlink());
    git_in(test.home.path(), &tree, &["status"]);
}

/// Covers: RO-03
#[test]
fn a_repository_shows_its_own_commits_after_a_session_and_no_replacements() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    let first = test.git_at(&tree, &["rev-parse", "HEAD"]);
    let second = test.commit(&tree, "b", "true\n");
    write(&tree.join("c"), "false\n");
    test.git_at(&tree, &["add", "-A"]);
    test.git_at(&tree, &["commit", "-qm", "false"]);
    let third = test.git_at(&tree, &["rev-parse", "HEAD"]);
    test.git_at(&tree, &["replace", second.as_str(), &third]);
    write(&tree.join(".git/info/grafts"), &format!("{third}\n"));
    let shown = || {
        (
            test.git_at(&tree, &["log", "-1", "--format=%s", second.as_str()]),
            test.git_at(&tree, &["log", "--format=%H", &third]),
        )
    };
    let replaced = shown();
    test.repo.restore_settings(&task("task-1")).unwrap();
    let (title, commits) = shown();
    assert_ne!(title, replaced.0);
    assert_eq!((title.contains("false"), commits), (false, [third, second.to_string(), first].join("\n")));
}
