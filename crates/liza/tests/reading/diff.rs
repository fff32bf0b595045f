//! `liza diff`: what a task, or the whole goal, changes.

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
