//! What is merged is what was approved, whatever an agent planted in the repository.

use std::fs;

use crate::fixture::*;
use crate::support::TestProject;

/// Runs git as somebody for whom neither replacements nor grafts exist.
#[track_caller]
fn plain_git(project: &TestProject, words: &[&str]) -> String {
    let mut command = project.command("git");
    command.args(words).env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_GRAFT_FILE", "/dev/null");
    project.run(&mut command).ok().trim().to_owned()
}

/// Covers: AT-01
#[test]
fn a_replaced_commit_is_merged_as_it_was_approved() {
    let project = team();
    let head = approved(&project, "one");
    advance(&project, "other", "x");
    project.write("evil.txt", "evil\n");
    project.git(&["add", "-A"]);
    let tree = project.git(&["write-tree"]);
    let evil = project.git(&["commit-tree", &tree, "-p", &format!("{head}~1"), "-m", "evil"]);
    project.git(&["replace", &head, &evil]);
    let warned = project.liza(&["doctor", "--json"]).json()["result"]["checks"].to_string();
    assert!(warned.contains("refs/replace"), "{warned}");
    merge(&project, "one").ok();
    let files = plain_git(&project, &["ls-tree", "--name-only", "integration"]);
    assert_eq!(files, "one.txt\nother\nspecs");
    let merged = plain_git(&project, &["log", "-1", "--format=%P", "integration"]);
    assert!(merged.ends_with(&head), "{merged}");
}

/// Covers: AT-01
#[test]
fn a_graft_does_not_pass_work_off_as_merged() {
    let project = team();
    let head = approved(&project, "one");
    let old = advance(&project, "other", "x");
    project.write(".git/info/grafts", &format!("{old} {head}\n"));
    merge(&project, "one").ok();
    assert_eq!(plain_git(&project, &["ls-tree", "--name-only", "integration"]), "one.txt\nother\nspecs");
}

/// Covers: AT-01
#[test]
fn a_planted_merge_driver_adds_nothing() {
    let project = TestProject::new();
    let lines = (1..=20).map(|line| format!("{line}\n")).collect::<String>();
    advance(&project, "shared.txt", &lines);
    let project = join(project);
    approved_with(&project, "one", "shared.txt", &lines.replace("20\n", "twenty\n"));
    advance(&project, "shared.txt", &lines.replace("1\n2\n", "one\n2\n"));
    project.git(&["config", "merge.evil.driver", "echo evil >>%A"]);
    project.write(".git/info/attributes", "* merge=evil\n");
    merge(&project, "one").refused(1, "git_programs_changed");
    // Even if a person accepts it without a look: the attributes that choose it are those of the branch.
    project.liza(&["config", "--trust"]).ok();
    merge(&project, "one").ok();
    let merged = lines.replace("20\n", "twenty\n").replace("1\n2\n", "one\n2\n");
    assert_eq!(show(&project, "integration", "shared.txt"), merged.trim());
}

/// Covers: AT-01
#[test]
fn attributes_of_the_integration_branch_count_in_a_merge() {
    let project = TestProject::new();
    advance(&project, ".gitattributes", "*.log merge=union\n");
    advance(&project, "a.log", "start\n");
    let project = join(project);
    approved_with(&project, "one", "a.log", "start\none\n");
    advance(&project, "a.log", "start\nother\n");
    merge(&project, "one").ok();
    assert_eq!(show(&project, "integration", "a.log"), "start\nother\none");
}

/// A program that leaves a mark if liza's git runs it.
fn marker(project: &TestProject, name: &str) -> String {
    let path = project.home().join(name);
    let mark = project.home().join("mark");
    script(&path, &format!("[ -n \"$LIZA_GIT_OWNER\" ] && echo {name} >>'{}'\ncat\nexit 0", mark.display()));
    path.to_str().unwrap().to_owned()
}

/// Covers: AT-01
#[test]
fn planted_hooks_and_monitors_do_not_run() {
    let project = team();
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        let program = marker(&project, hook);
        let planted = project.root.join(".git/hooks").join(hook);
        fs::create_dir_all(planted.parent().unwrap()).unwrap();
        fs::copy(program, planted).unwrap();
    }
    project.git(&["config", "core.fsmonitor", &marker(&project, "fsmonitor")]);
    project.git(&["checkout", "-q", "integration"]);
    advance(&project, "scripts/integration-test.sh", "#!/bin/sh\nexit 0\n");
    project.git(&["reset", "-q", "--hard"]);
    approved(&project, "one");
    merge(&project, "one").ok();
    approved(&project, "two");
    project.git(&["config", "core.hooksPath", project.root.join(".git/hooks").to_str().unwrap()]);
    merge(&project, "two").ok();
    check_consistent(&project);
    let mark = fs::read_to_string(project.home().join("mark")).unwrap_or_default();
    assert_eq!(mark, "");
}

/// Covers: AT-01
#[test]
fn a_planted_filter_does_not_run_and_is_named() {
    let project = team();
    project.add_task("one");
    let program = marker(&project, "filter");
    for part in ["clean", "smudge", "process"] {
        project.git(&["config", &format!("filter.evil.{part}"), &program]);
    }
    project.write(".git/info/attributes", "* filter=evil\n");
    let error = claim(&project, "one", "coder-1").refused(3, "git");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("filter.evil.") && message.contains("liza config --trust"), "{message}");
    let doctor = project.liza(&["doctor", "--json"]).json()["result"]["checks"].to_string();
    assert!(doctor.contains("filter.evil.smudge"), "{doctor}");
    assert!(!project.home().join("mark").exists());
    project.git(&["config", "--remove-section", "filter.evil"]);
    claim(&project, "one", "coder-1").ok();
}

/// Covers: AT-01
#[test]
fn a_planted_key_is_quoted_in_the_command_that_removes_it() {
    let project = team();
    let key = "filter.$(touch mark)'; touch mark;'.clean";
    project.git(&["config", key, "cat"]);
    let checks = project.liza(&["doctor", "--json"]).json()["result"]["checks"].clone();
    let found = checks.as_array().unwrap().iter().find(|check| check["name"] == "configuration").unwrap();
    let (_, command) = found["fix"].as_str().unwrap().rsplit_once("if not: ").unwrap();
    project.run(project.command("sh").args(["-c", command]).current_dir(&project.root)).ok();
    assert!(!project.root.join("mark").exists(), "{command}");
    assert!(!project.read(".git/config").contains("touch"), "{command}");
}

/// Covers: AT-01
#[test]
fn a_planted_signing_program_does_not_run() {
    let project = team();
    approved(&project, "one");
    let before = advance(&project, "other", "x");
    project.git(&["config", "commit.gpgsign", "true"]);
    project.git(&["config", "user.signingkey", "nobody@example.com"]);
    project.git(&["config", "gpg.program", &marker(&project, "gpg")]);
    let error = merge(&project, "one").refused(1, "git_programs_changed");
    assert!(error["message"].as_str().unwrap().contains("gpg.program"), "{error}");
    assert!(!project.home().join("mark").exists());
    assert_eq!((tip(&project, "integration"), project.status("one")), (before, "APPROVED"));
}

/// Covers: AT-01
#[test]
fn a_merge_result_with_something_else_in_it_is_refused() {
    let project = team();
    approved(&project, "one");
    let before = advance(&project, "other", "x");
    project.git(&["checkout", "-q", "--detach", "integration"]);
    project.write("evil.txt", "evil\n");
    project.git(&["add", "evil.txt"]);
    let tree = project.git(&["write-tree"]);
    let path =
        git_wrapper(&project, &format!("case \"$*\" in *merge-tree*) printf '{tree}\\0'; exit 0;; esac"));
    let mut program = project.program();
    let run = project.run(program.args(["wt-merge", "one", "--json"]).env("PATH", &path));
    let error = run.refused(3, "git");
    assert!(error["message"].as_str().unwrap().contains("evil.txt"), "{error}");
    assert_eq!((tip(&project, "integration"), project.status("one")), (before, "APPROVED"));
    merge(&project, "one").ok();
}

/// Covers: AT-01
#[test]
fn renames_and_edits_on_both_sides_pass_the_check() {
    let project = TestProject::new();
    let lines = (1..=40).map(|line| format!("line {line}\n")).collect::<String>();
    for file in ["moved.txt", "folder/a.txt", "folder/b.txt"] {
        advance(&project, file, &format!("{file}\n{lines}"));
    }
    let project = join(project);
    project.git(&["config", "--global", "merge.directoryRenames", "true"]);
    claimed(&project, "one", "coder-1");
    let folder = project.tree("one");
    project.git_at(&folder, &["mv", "moved.txt", "renamed.txt"]);
    project.git_at(&folder, &["mv", "folder", "other"]);
    fs::write(folder.join("renamed.txt"), format!("moved.txt\n{}", lines.replace("line 40", "forty")))
        .unwrap();
    let head = commit(&project, &folder, "new.txt", "new\n");
    submit(&project, "one", "coder-1", &head).ok();
    judge(&project, "one", &["APPROVED"]);
    advance(&project, "moved.txt", &format!("moved.txt\n{}", lines.replace("line 1\n", "first\n")));
    merge(&project, "one").ok();
    let merged = show(&project, "integration", "renamed.txt");
    assert!(merged.contains("first") && merged.contains("forty"), "{merged}");

    // The work decides no path of the other side, whatever the person's settings say.
    claimed(&project, "two", "coder-1");
    let folder = project.tree("two");
    project.git_at(&folder, &["mv", "other", "third"]);
    project.git_at(&folder, &["commit", "-qm", "rename"]);
    let head = project.git_at(&folder, &["rev-parse", "HEAD"]);
    submit(&project, "two", "coder-1", &head).ok();
    judge(&project, "two", &["APPROVED"]);
    advance(&project, "other/c.txt", "c\n");
    merge(&project, "two").refused(3, "conflict");
}

/// A commit on top of `parent` whose tree has that file, whatever git is told to ignore.
fn commit_with(project: &TestProject, parent: &str, file: &str) -> String {
    let folder = project.home().join("crafted");
    let path = folder.to_str().unwrap();
    project.git(&["worktree", "add", "-q", "-f", "--detach", path, parent]);
    fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
    fs::write(folder.join(file), "version: 1\n").unwrap();
    project.git_at(&folder, &["add", "-f", file]);
    project.git_at(&folder, &["commit", "-qm", "crafted"]);
    let commit = project.git_at(&folder, &["rev-parse", "HEAD"]);
    project.git(&["worktree", "remove", "--force", path]);
    commit
}

/// Covers: AT-02
#[test]
fn a_tree_with_lizas_own_folders_cannot_be_submitted() {
    let project = team();
    let files = [".liza/state.yaml", ".worktrees/x/y", ".LIZA/x", ".worktrees", "sub/.liza/state.yaml"];
    for (task, file) in ["one", "two", "three", "four", "five"].into_iter().zip(files) {
        claimed(&project, task, "coder-1");
        let head = commit_with(&project, &format!("task/{task}"), file);
        project.git_at(&project.tree(task), &["reset", "-q", "--hard", &head]);
        let error = submit(&project, task, "coder-1", &head).refused(1, "reserved_path");
        assert!(error["message"].as_str().unwrap().contains(file.split('/').next().unwrap()), "{error}");
        assert_eq!(project.status(task), "CLAIMED");
        project.liza(&["release-claim", task, "--force"]).ok();
    }
}

/// Covers: AT-02
#[test]
fn a_tree_with_lizas_own_folders_is_not_merged() {
    let project = team();
    approved(&project, "one");
    let bad = commit_with(&project, "integration", ".liza/state.yaml");
    project.git(&["update-ref", "refs/heads/integration", &bad]);
    project.liza(&["accept-integration"]).ok();
    let state = project.state();
    let error = merge(&project, "one").refused(1, "reserved_path");
    assert!(error["message"].as_str().unwrap().contains(".liza"), "{error}");
    assert_eq!((tip(&project, "integration"), project.state()), (bad, state));
}

/// Covers: AT-02
#[test]
fn a_blackboard_in_a_worktree_is_never_used_but_one_in_a_sub_folder_is() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let goal = |folder: &std::path::Path| {
        let mut program = project.program();
        let run = project.run(program.args(["get", "goal.description"]).current_dir(folder));
        run.ok().trim().to_owned()
    };
    let ours = goal(&project.root);
    let planted = project.state().replace("Retry everything", "Planted");
    for folder in [project.tree("one"), project.tree("one").join("deep/er")] {
        fs::create_dir_all(folder.join(".liza")).unwrap();
        fs::write(folder.join(".liza/state.yaml"), &planted).unwrap();
        assert_eq!(goal(&folder), ours);
    }
    project.write("sub/.liza/state.yaml", &planted);
    project.write("sub/below/x", "");
    assert!(goal(&project.root.join("sub/below")).contains("Planted"));
}

/// Covers: AX-12
#[test]
fn a_link_in_the_place_of_a_file_of_its_own_is_an_alarm_and_nothing_is_written_through_it() {
    let project = team();
    approved(&project, "one");
    let theirs = project.root.join("theirs");
    fs::create_dir(&theirs).unwrap();
    let untouched = || {
        let names: Vec<_> = fs::read_dir(&theirs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.is_empty() || (names == ["file"] && fs::read_to_string(theirs.join("file")).unwrap() == "mine")
    };
    fs::write(theirs.join("file"), "mine").unwrap();
    let commands: [(&str, &[&str]); 5] = [
        ("merge.lock", &["wt-merge", "one"]),
        ("locks", &["wt-create", "one"]),
        ("PAUSE", &["pause"]),
        ("run.stopping", &["stop"]),
        ("alerts.log", &["watch", "--once"]),
    ];
    for (name, command) in commands {
        let place = project.root.join(".liza").join(name);
        let _ = fs::remove_dir_all(&place);
        let target = if name == "locks" { theirs.clone() } else { theirs.join("file") };
        std::os::unix::fs::symlink(target, &place).unwrap();
        project.liza(command);
        assert!(untouched(), "{command:?} wrote through .liza/{name}");
        let status = project.liza(&["status"]).stdout;
        if place.is_symlink() {
            let expected = format!(".liza/{name}: it is a symbolic link");
            assert!(status.contains("INVALID STATE") && status.contains(&expected), "{name}: {status}");
            fs::remove_file(&place).unwrap();
        }
        // A new file that its writer creates must not appear at the end of a dangling link.
        fs::remove_file(theirs.join("file")).unwrap();
        let _ = fs::remove_file(&place);
        std::os::unix::fs::symlink(theirs.join("file"), &place).unwrap();
        project.liza(command);
        assert!(untouched(), "{command:?} created a file through .liza/{name}");
        fs::write(theirs.join("file"), "mine").unwrap();
        let _ = fs::remove_file(&place);
    }
}
