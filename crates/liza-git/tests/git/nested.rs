//! Repositories inside a worktree are the agent's: nothing that they name runs, nothing outside of the worktree is read for
//! them, and what is only in them is saved.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use liza_git::GitError;

use crate::support::{TestRepo, integration, read, script, task, write};

/// A worktree with a program that notes that it ran.
struct Hostile {
    test: TestRepo,
    tree: PathBuf,
}

impl Hostile {
    fn new() -> Self {
        let test = TestRepo::new();
        let tree = test.worktree("task-1");
        let program = test.home.path().join("evil");
        script(
            &program,
            &format!("#!/bin/sh\necho ran >> '{}'\ncat\n", program.with_extension("ran").display()),
        );
        Self { test, tree }
    }

    /// Makes a repository with one commit.
    fn repository(&self, path: &str) -> PathBuf {
        let folder = self.tree.join(path);
        self.test.git_at(&self.tree, &["init", "-q", folder.to_str().unwrap()]);
        self.test.commit(&folder, "file", "text\n");
        folder
    }

    /// Makes a repository run the program whenever git looks at its files.
    fn poison(&self, folder: &Path) {
        let program = self.test.home.path().join("evil");
        let program = program.to_str().unwrap();
        fs::create_dir_all(folder.join(".git/info")).unwrap();
        write(&folder.join(".git/info/attributes"), "* filter=evil\n");
        for key in ["filter.evil.clean", "filter.evil.process", "core.fsmonitor"] {
            self.test.git_at(folder, &["config", key, program]);
        }
        // Git has to read the file again.
        write(&folder.join("file"), "TEXT\n");
    }

    /// Commits everything in the worktree, with the repositories in it as submodules.
    fn commit_all(&self, submodules: &[&str]) {
        let list: String = submodules
            .iter()
            .map(|name| format!("[submodule \"{name}\"]\n\tpath = {name}\n\turl = ./{name}\n"))
            .collect();
        if !list.is_empty() {
            write(&self.tree.join(".gitmodules"), &list);
        }
        self.test.git_at(&self.tree, &["-c", "advice.addEmbeddedRepo=false", "add", "-A"]);
        self.test.git_at(&self.tree, &["commit", "-qm", "work"]);
    }

    fn forget_runs(&self) {
        let _ = fs::remove_file(self.test.home.path().join("evil.ran"));
    }

    #[track_caller]
    fn check_nothing_ran(&self) {
        assert!(
            !self.test.home.path().join("evil.ran").exists(),
            "an agent's program ran outside of its session"
        );
    }

    /// Everything that Liza does with a worktree before it deletes it.
    fn look_and_remove(&self) -> Vec<String> {
        let _ = self.test.repo.worktree_state(&task("task-1"), &self.test.base());
        let removed = self.test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
        assert!(!self.tree.exists());
        let rescued = removed.rescued.unwrap();
        rescued.nested.iter().map(|branch| branch.as_str().to_owned()).collect()
    }
}

/// Covers: IS-08, AT-01
#[test]
fn no_program_of_a_submodule_runs_however_deep_it_is() {
    for named in [&["lib"][..], &[]] {
        let hostile = Hostile::new();
        let lib = hostile.repository("lib");
        let deep = hostile.repository("lib/deep");
        hostile.test.git_at(&lib, &["-c", "advice.addEmbeddedRepo=false", "add", "-A"]);
        hostile.test.git_at(&lib, &["commit", "-qm", "deep"]);
        hostile.commit_all(named);
        hostile.poison(&deep);
        hostile.poison(&lib);
        hostile.test.git_at(&lib, &["status"]);
        assert!(hostile.test.home.path().join("evil.ran").exists(), "git itself runs it");
        hostile.forget_runs();
        if !named.is_empty() {
            let state = hostile.test.repo.worktree_state(&task("task-1"), &hostile.test.base()).unwrap();
            assert_eq!(state.changes.len(), 1, "the change is seen: {:?}", state.changes);
        }
        let saved = hostile.look_and_remove();
        hostile.check_nothing_ran();
        assert_eq!(saved.len(), 2, "{saved:?}");
        for branch in saved {
            assert_eq!(hostile.test.show(&branch, "file"), "TEXT");
        }
    }
}

/// Covers: IS-08
#[test]
fn a_git_file_in_the_place_of_the_repository_is_refused() {
    let hostile = Hostile::new();
    hostile.test.commit(&hostile.tree, "work", "work\n");
    let elsewhere = hostile.tree.join("elsewhere");
    fs::rename(hostile.tree.join(".git"), &elsewhere).unwrap();
    write(&hostile.tree.join(".git"), &format!("gitdir: {}\n", elsewhere.display()));
    hostile.test.git_at(&hostile.tree, &["config", "core.worktree", hostile.tree.to_str().unwrap()]);
    hostile.test.git_at(
        &hostile.tree,
        &["config", "core.fsmonitor", hostile.test.home.path().join("evil").to_str().unwrap()],
    );
    let state = hostile.test.repo.worktree_state(&task("task-1"), &hostile.test.base());
    assert!(matches!(state, Err(GitError::DamagedWorktree { .. })), "{state:?}");
    let _ = hostile.test.repo.remove_worktree(&task("task-1"), None, &integration());
    hostile.check_nothing_ran();
}

/// Covers: IS-08, IS-14
#[test]
fn a_rescue_takes_nothing_from_repositories_elsewhere() {
    let hostile = Hostile::new();
    let vault = hostile.test.home.path().canonicalize().unwrap().join("vault");
    hostile.test.git_at(&hostile.tree, &["init", "-q", vault.to_str().unwrap()]);
    hostile.test.commit(&vault, "committed", "secret\n");
    write(&vault.join("uncommitted"), "secret\n");
    let list = |folder: &Path| hostile.test.git_at(folder, &["count-objects", "-v"]);
    let before = list(&vault);
    for ignored in ["", "named/\nlinked/\nmoved/\nalternates/\n"] {
        write(&hostile.tree.join(".gitignore"), ignored);
    }
    fs::create_dir_all(hostile.tree.join("named")).unwrap();
    write(&hostile.tree.join("named/own"), "own\n");
    write(&hostile.tree.join("named/.git"), &format!("gitdir: {}\n", vault.join(".git").display()));
    fs::create_dir_all(hostile.tree.join("linked")).unwrap();
    write(&hostile.tree.join("linked/own"), "own\n");
    symlink(vault.join(".git"), hostile.tree.join("linked/.git")).unwrap();
    let moved = hostile.repository("moved");
    hostile.test.git_at(&moved, &["config", "core.worktree", vault.to_str().unwrap()]);
    let alternates = hostile.repository("alternates");
    write(&alternates.join(".git/objects/info/alternates"), vault.join(".git/objects").to_str().unwrap());
    let head = read(&vault.join(".git/HEAD")).trim().replace("ref: ", "");
    let secret = read(&vault.join(".git").join(head));
    write(&alternates.join(".git/refs/heads/stolen"), &secret);
    let saved = hostile.look_and_remove();
    // Git may not read what the other two lead to, so these are plain folders, which are ignored.
    assert_eq!(saved.len(), 2, "{saved:?}");
    for branch in &saved {
        let files = hostile.test.git(&["ls-tree", "-r", "--name-only", branch]);
        assert!(files == "own" || files == "file", "{branch}: {files}");
    }
    assert!(!hostile.test.git(&["cat-file", "--batch-check", "--batch-all-objects"]).contains(secret.trim()));
    assert_eq!(list(&vault), before, "nothing is written there");
}

/// Covers: AT-11
#[test]
fn repositories_inside_of_others_and_in_ignored_folders_are_saved() {
    let hostile = Hostile::new();
    write(&hostile.tree.join(".gitignore"), "vendor/\n");
    hostile.commit_all(&[]);
    hostile.repository("nest");
    hostile.repository("nest/deep");
    hostile.repository("vendor/lib");
    let saved = hostile.look_and_remove();
    let mut names: Vec<&str> = saved.iter().map(|name| name.trim_start_matches("rescue/")).collect();
    names.sort_unstable();
    assert_eq!(names, ["task-1-in-nest-1", "task-1-in-nest-deep-1", "task-1-in-vendor-lib-1"]);
    for branch in &saved {
        assert_eq!(hostile.test.show(branch, "file"), "text");
    }
}

/// Covers: AT-11
#[test]
fn what_an_agent_puts_in_the_place_of_a_submodule_is_saved() {
    let hostile = Hostile::new();
    for name in ["file", "folder", "gone"] {
        hostile.repository(name);
    }
    hostile.commit_all(&["file", "folder", "gone"]);
    for name in ["file", "folder", "gone"] {
        fs::remove_dir_all(hostile.tree.join(name)).unwrap();
    }
    write(&hostile.tree.join("file"), "precious\n");
    fs::create_dir(hostile.tree.join("folder")).unwrap();
    write(&hostile.tree.join("folder/x"), "precious\n");
    let removed = hostile.test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
    let saved = removed.rescued.unwrap().branch;
    for path in ["file", "folder/x"] {
        assert_eq!(hostile.test.show(saved.as_str(), path), "precious");
    }
}

/// Covers: IS-08
#[test]
fn a_pipe_in_a_repository_holds_nothing_up() {
    let hostile = Hostile::new();
    let nest = hostile.repository("nest");
    for name in ["config", "packed-refs"] {
        let _ = fs::remove_file(nest.join(".git").join(name));
        let made = std::process::Command::new("mkfifo").arg(nest.join(".git").join(name)).status().unwrap();
        assert!(made.success());
    }
    assert_eq!(hostile.look_and_remove().len(), 1);
}

/// Covers: IS-08
#[test]
fn pipes_in_the_place_of_a_projects_settings_are_removed() {
    let hostile = Hostile::new();
    fs::create_dir(hostile.tree.join("sub")).unwrap();
    let pipes = [".gitignore", ".gitattributes", ".gitmodules", "sub/.gitignore", "sub/.gitattributes"];
    for name in pipes {
        let _ = fs::remove_file(hostile.tree.join(name));
        let made = std::process::Command::new("mkfifo").arg(hostile.tree.join(name)).status().unwrap();
        assert!(made.success());
    }
    hostile.test.repo.restore_settings(&task("task-1")).unwrap();
    assert_eq!(pipes.map(|name| hostile.tree.join(name).exists()), [false; 5]);
}

/// Covers: IS-08
#[test]
fn stale_locks_are_removed_only_in_the_worktree_itself() {
    let hostile = Hostile::new();
    let other = hostile.test.home.path().join("other");
    fs::create_dir_all(other.join("below")).unwrap();
    for name in ["Cargo.lock", "below/yarn.lock", "index.lock"] {
        write(&other.join(name), "precious\n");
    }
    let own = hostile.tree.join(".git/HEAD.lock");
    write(&own, "");
    let tasks = hostile.tree.join(".git/refs/heads/task");
    fs::rename(&tasks, hostile.tree.join(".git/refs/heads/was")).unwrap();
    symlink(&other, &tasks).unwrap();
    symlink(other.join("index.lock"), hostile.tree.join(".git/index.lock")).unwrap();
    let cleared = hostile.test.repo.clear_stale_locks(Some(&hostile.tree), &[]).unwrap();
    assert_eq!(cleared, [own]);
    for name in ["Cargo.lock", "below/yarn.lock", "index.lock"] {
        assert_eq!(read(&other.join(name)), "precious\n");
    }
}

/// Covers: RO-03
#[test]
fn folders_inside_each_other_cost_no_time_and_those_that_lie_too_deep_are_named() {
    let hostile = Hostile::new();
    let git = hostile.repository("nest");
    write(&git.join(".git/config"), "[core]\n\tfsmonitor = /evil\n");
    let mut folder =
        rustix::fs::open(&hostile.tree, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..5_000 {
        rustix::fs::mkdirat(&folder, "d", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        folder = rustix::fs::openat(&folder, "d", flags, rustix::fs::Mode::empty()).unwrap();
    }
    let began = std::time::Instant::now();
    let said = hostile.test.repo.restore_settings(&task("task-1")).unwrap_err().to_string();
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(said.contains("below 100 folders") && said.contains("/d/d/d"), "{said}");
    assert!(!read(&git.join(".git/config")).contains("evil"));
    hostile.test.repo.remove_worktree(&task("task-1"), None, &integration()).unwrap();
    assert!(!hostile.tree.exists());
}
