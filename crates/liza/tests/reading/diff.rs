//! `liza diff`: what a task, or the whole goal, changes.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::support::TestProject;

/// A project with a task that is claimed, with one commit in its worktree.
fn with_work() -> TestProject {
    let project = TestProject::new();
    project.add_task("t1");
    project.liza(&["register", "coder-1"]).ok();
    project.liza(&["register", "code-reviewer-1"]).ok();
    project.liza(&["claim-task", "t1", "coder-1"]).ok();
    project.write(".worktrees/t1/new.txt", "one\ntwo\n");
    let tree = project.root.join(".worktrees/t1");
    project.git_at(&tree, &["add", "."]);
    project.git_at(&tree, &["commit", "-qm", "work"]);
    project
}

/// Covers: UI-04
#[test]
fn a_task_and_the_goal_show_what_they_change() {
    let project = with_work();
    let task = project.liza(&["diff", "t1"]).ok().to_owned();
    assert!(task.contains("new.txt | 2 ++") && task.contains("\n+one\n+two"), "{task}");
    let stat = project.liza(&["diff", "t1", "--stat"]).ok().to_owned();
    assert!(stat.contains("new.txt | 2 ++") && !stat.contains("+one"), "{stat}");
    assert_eq!(project.liza(&["diff"]).ok(), "no changes\n");

    project.liza_as("coder-1", &["pre-check", "t1", "--intent", "i", "--validation", "v"]).ok();
    project.liza_as("coder-1", &["submit-for-review", "t1", "HEAD"]).ok();
    project.liza(&["claim-review", "t1", "code-reviewer-1"]).ok();
    project.liza_as("code-reviewer-1", &["submit-verdict", "t1", "APPROVED", "read it"]).ok();
    project.liza(&["wt-merge", "t1"]).ok();
    let merged = project.liza(&["diff", "t1", "--json"]).result();
    assert!(merged["patch"].as_str().unwrap().contains("+two"), "{merged}");
    let goal = project.liza(&["diff", "--json"]).result();
    assert_eq!(goal["patch"], merged["patch"]);
    assert_eq!(goal["to"], project.git(&["rev-parse", "integration"]).as_str());
}

/// Covers: UI-04
#[test]
fn a_task_without_commits_is_refused_and_programs_of_the_repository_do_not_run() {
    let project = with_work();
    project.add_task("t2");
    project.liza(&["diff", "t2", "--json"]).refused(1, "no_commits");
    project.liza(&["diff", "t3", "--json"]).refused(1, "unknown_task");
    let ran = project.home().join("ran");
    let program = format!("touch {}", ran.display());
    project.git(&["config", "diff.external", &program]);
    project.git(&["config", "diff.x.textconv", &program]);
    project.write(".git/info/attributes", "*.txt diff=x\n");
    assert!(project.liza(&["diff", "t1"]).ok().contains("+one"));
    assert!(!ran.exists());
}

/// Covers: UI-04
#[test]
fn needs_script_a_terminal_gets_the_pager_of_the_person_and_none_of_the_repository() {
    let project = with_work();
    project.git(&["config", "core.pager", "sed s/^/theirs:/"]);
    let shown = |arguments: &str, pager: &str| {
        let mut terminal = project.command("script");
        terminal.args(["-qec", &format!("{} diff t1 {arguments}", env!("CARGO_BIN_EXE_liza")), "/dev/null"]);
        project
            .run(terminal.env("TERM", "xterm").env("PAGER", pager).stdin(std::process::Stdio::null()))
            .stdout
    };
    let paged = shown("--color never", "sed s/^/paged:/");
    assert!(paged.contains("paged:+one") && !paged.contains("theirs:"), "{paged}");
    assert!(!shown("--color never --no-pager", "sed s/^/paged:/").contains("paged:"));
    assert!(shown("--color never", "no-such-pager").contains("+one"), "a missing pager hides nothing");
    let piped = project.run(project.program().args(["diff", "t1"]).env("PAGER", "sed s/^/paged:/"));
    assert!(!piped.ok().contains("paged:"));
}

impl TestProject {
    /// Commits everything in the worktree of t1.
    fn commit_work(&self) -> PathBuf {
        let tree = self.root.join(".worktrees/t1");
        self.git_at(&tree, &["add", "-A"]);
        self.git_at(&tree, &["commit", "-q", "--allow-empty", "-m", "work"]);
        tree
    }

    fn submit_work(&self) {
        self.liza_as("coder-1", &["pre-check", "t1", "--intent", "i", "--validation", "v"]).ok();
        self.liza_as("coder-1", &["submit-for-review", "t1", "HEAD"]).ok();
    }

    /// Another task's work on the integration branch.
    fn advance(&self, file: &str, text: &str) {
        self.git(&["checkout", "-q", "integration"]);
        self.write(file, text);
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", "a fix"]);
        self.git(&["checkout", "-q", "-"]);
        self.liza(&["accept-integration"]).ok();
    }
}

/// Covers: JU-06
#[test]
fn submitted_work_is_shown_as_its_merge_would_change_the_integration_branch() {
    let project = with_work();
    project.advance("fix.txt", "the fix of another task\n");
    let tree = project.root.join(".worktrees/t1");
    project.git_at(&tree, &["fetch", "-q", project.root.to_str().unwrap(), "integration"]);
    project.git_at(&tree, &["merge", "-q", "-s", "ours", "-m", "merge", "FETCH_HEAD"]);
    project.submit_work();
    let shown = project.liza(&["diff", "t1"]).ok().to_owned();
    assert!(shown.contains("-the fix of another task") && shown.contains("+one"), "{shown}");

    let one = project.liza(&["diff", "t1", "--", "fix.txt"]).ok().to_owned();
    assert!(one.contains("-the fix of another task") && !one.contains("+one"), "{one}");
    let stat = project.liza(&["diff", "t1", "--stat", "--", "fix.txt"]).ok().to_owned();
    assert!(
        stat.contains("fix.txt | 1 -") && !stat.contains("-the fix") && !stat.contains("new.txt"),
        "{stat}"
    );
    let none = project.liza(&["diff", "t1", "--", "fix*"]).ok().to_owned();
    assert!(none.ends_with("\nno changes\n"), "a path is no pattern: {none}");
}

/// Covers: JU-06
#[test]
fn what_the_integration_branch_already_has_is_not_part_of_the_change() {
    let project = with_work();
    project.advance("new.txt", "one\ntwo\n");
    project.write(".worktrees/t1/more.txt", "more\n");
    project.commit_work();
    project.submit_work();
    let shown = project.liza(&["diff", "t1"]).ok().to_owned();
    assert!(shown.contains("+more") && !shown.contains("new.txt"), "{shown}");
}

/// Covers: JU-06
#[test]
fn work_that_conflicts_is_shown_by_itself_and_says_so() {
    let project = with_work();
    project.advance("new.txt", "of another task\n");
    project.submit_work();
    let shown = project.liza(&["diff", "t1"]).ok().to_owned();
    assert!(shown.contains("does not merge cleanly") && shown.contains("conflicts in new.txt"), "{shown}");
    assert!(shown.contains("+one\n+two"), "{shown}");
}

/// Covers: JU-06
#[test]
fn nothing_that_a_commit_or_a_setting_says_hides_a_line() {
    let project = with_work();
    let ran = project.home().join("ran");
    let program = format!("touch {}; true", ran.display());
    for key in ["diff.external", "diff.x.textconv", "diff.x.command", "diff.hex.textconv"] {
        project.git(&["config", key, &program]);
    }
    project.write("../gitattributes", "*.global -diff\n");
    project.git(&["config", "--global", "core.attributesFile", "~/gitattributes"]);
    project.write(".git/info/attributes", "*.info -diff\n");
    let attributes =
        "*.attr -diff\n*.bin binary\n*.conv diff=x\n*.enc working-tree-encoding=UTF-16\n* diff=hex\n";
    project.write(".worktrees/t1/.gitattributes", attributes);
    for name in ["a.attr", "b.bin", "c.conv", "e.global", "f.info"] {
        project.write(&format!(".worktrees/t1/{name}"), &format!("text of {name}\n"));
    }
    let utf16: Vec<u8> = "\u{feff}text of d.enc\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(project.root.join(".worktrees/t1/d.enc"), utf16).unwrap();
    std::fs::write(project.root.join(".worktrees/t1/g.raw"), b"text of g.raw\0\n").unwrap();
    // A terminal that obeyed would show a title, and one line as two.
    project.write(".worktrees/t1/h.sh", "echo \u{1b}]0;text of h.sh\u{7}\ntrue\r-gone\n");
    symlink("to-nowhere", project.root.join(".worktrees/t1/link")).unwrap();
    project.commit_work();
    project.submit_work();
    let shown = project.liza(&["diff", "t1"]).ok().to_owned();
    for name in ["a.attr", "b.bin", "c.conv", "d.enc", "e.global", "f.info", "g.raw", "h.sh"] {
        assert!(shown.contains(&format!("text of {name}")), "{name}: {shown}");
    }
    assert!(shown.contains("to-nowhere") && shown.contains("\\u{1b}]0;"), "{shown}");
    assert!(shown.contains("+true\\u{d}-gone"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\r', '\0']) && !shown.contains("Binary files"), "{shown}");
    assert!(!ran.exists(), "no program takes part");
}

/// Covers: JU-06
#[test]
fn a_submodule_that_is_to_be_ignored_is_shown() {
    let project = with_work();
    let tree = project.root.join(".worktrees/t1");
    project.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = all\n");
    project.write(".worktrees/t1/.gitmodules", &project.read(".gitmodules"));
    let commit = project.git(&["rev-parse", "HEAD"]);
    project.git_at(&tree, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub")]);
    project.git_at(&tree, &["add", ".gitmodules"]);
    project.git_at(&tree, &["commit", "-qm", "a submodule"]);
    let shown = project.liza(&["diff", "t1"]).ok().to_owned();
    assert!(shown.contains(&format!("+Subproject commit {commit}")), "{shown}");
}

/// Covers: JU-06
#[test]
fn a_patch_that_is_too_large_names_its_files_and_how_to_get_each() {
    let project = with_work();
    let line = "x".repeat(99);
    let text = |lines: usize| format!("{line}\n").repeat(lines);
    project.write(".worktrees/t1/large one.txt", &text(6_000));
    project.write(".worktrees/t1/larger.txt", &text(12_000));
    project.commit_work();
    project.submit_work();
    let shown = project.liza(&["diff", "t1"]).ok().to_owned();
    assert!(shown.len() < 4_000 && shown.contains("The patch is larger than 1 MiB"), "{}", shown.len());
    assert!(shown.contains("new.txt  ") || shown.contains("new.txt |"), "{shown}");
    for command in
        ["liza diff t1 -- 'large one.txt'", "liza diff t1 -- larger.txt", "liza diff t1 -- new.txt"]
    {
        assert!(shown.contains(command), "{command}: {shown}");
    }
    let one = project.liza(&["diff", "t1", "--", "larger.txt"]).ok().to_owned();
    assert!(one.len() > 1_200_000, "all of a large file: {}", one.len());
}
