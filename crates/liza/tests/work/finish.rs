//! `liza finish`: the result goes to the main branch or to a pull request. `liza remove` takes Liza out again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use liza_core::model::{AgentId, Role};
use liza_team::engine::LivenessLock;

use crate::fixture::*;
use crate::support::TestProject;
use crate::support::process::Running;

/// A goal with one merged task, reached.
fn reached() -> TestProject {
    let project = team();
    approved(&project, "one");
    merge(&project, "one").ok();
    project.liza(&["goal", "complete"]).ok();
    project
}

/// Covers: UI-05
#[test]
fn a_new_goal_says_that_the_last_result_is_not_taken() {
    let project = reached();
    let said = project.liza(&["goal", "new", "Next"]).ok().to_owned();
    assert!(said.contains("The result of goal-1 is not taken yet: liza finish --unfinished"), "{said}");
    project.liza(&["finish", "--unfinished", "--merge"]).ok();
    project.liza(&["goal", "complete"]).ok();
    let said = project.liza(&["goal", "new", "And next"]).ok().to_owned();
    assert!(!said.contains("not taken"), "{said}");
}

/// Covers: UI-05
#[test]
fn a_reached_goal_is_merged_into_the_main_branch_and_its_checkout() {
    let project = reached();
    project.write("notes.txt", "not committed\n");
    assert!(!project.root.join("one.txt").exists());
    let text = project.liza(&["finish", "--merge"]).ok().to_owned();
    assert!(text.starts_with("merged the result of goal-1 into main: "), "{text}");
    assert_eq!(tip(&project, "main"), tip(&project, "integration"));
    assert!(project.root.join("one.txt").exists(), "the checkout follows");
    assert_eq!(project.read("notes.txt"), "not committed\n");
    assert_eq!(project.git(&["status", "--short"]), "?? notes.txt");
    assert!(project.log().contains("goal_finished"), "{}", project.log());
    let again = project.liza(&["finish", "--merge"]).ok().to_owned();
    assert!(again.contains("already contains the result of goal-1"), "{again}");
}

/// Covers: UI-05
#[test]
fn work_on_the_main_branch_gives_a_merge_commit() {
    let project = reached();
    project.write("mine.txt", "by hand\n");
    project.git(&["add", "mine.txt"]);
    project.git(&["commit", "-qm", "by hand"]);
    project.liza(&["finish", "--merge"]).ok();
    let subject = project.git(&["log", "-1", "--format=%s", "main"]);
    assert!(subject.starts_with("Merge goal-1: "), "{subject}");
    assert!(project.root.join("one.txt").exists() && project.root.join("mine.txt").exists());
}

/// Covers: UI-05
#[test]
fn needs_script_the_question_and_the_result_say_how_much_is_taken() {
    let project = reached();
    project.write("mine.txt", "by hand\n");
    project.git(&["add", "mine.txt"]);
    project.git(&["commit", "-qm", "by hand"]);
    let commits = project.git(&["rev-list", "--count", "main..integration"]);
    let said = project.liza_at_terminal("finish", "y\n");
    let some = if commits == "1" { "1 commit".to_owned() } else { format!("{commits} commits") };
    assert!(said.contains(&format!("Merge {some} of integration into main? [y/N]")), "{said}");
    assert!(said.contains(&format!("merged the result of goal-1 into main: {some}, now at")), "{said}");
}

/// Covers: UI-05
#[test]
fn a_conflict_or_a_file_in_the_way_changes_nothing() {
    let project = reached();
    project.write("one.txt", "mine\n");
    let error = project.liza(&["finish", "--merge", "--json"]).refused(3, "not_merged");
    assert!(error["message"].as_str().unwrap().contains("one.txt"), "{error}");
    assert_eq!(project.read("one.txt"), "mine\n");
    project.git(&["add", "one.txt"]);
    project.git(&["commit", "-qm", "mine"]);
    let before = tip(&project, "main");
    let error = project.liza(&["finish", "--merge", "--json"]).refused(3, "not_merged");
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("git switch integration && git merge main; then liza accept-integration"),
        "{error}"
    );
    assert_eq!(tip(&project, "main"), before);
    assert_eq!(project.git(&["status", "--short"]), "");
}

/// Covers: UI-05
#[test]
fn an_unreached_goal_an_agent_and_a_silent_program_are_refused() {
    let project = team();
    let error = project.liza(&["finish", "--json"]).refused(1, "not_reached");
    assert_eq!(
        error["message"],
        "goal-1 is IN_PROGRESS: no task is planned yet, and there is nothing new to take"
    );
    assert!(error["hint"].as_str().unwrap().contains("liza run"), "{error}");
    let said = project.liza(&["finish", "--unfinished"]).ok().to_owned();
    assert!(
        said.starts_with("nothing to take: main already contains everything that is merged so far\n"),
        "{said}"
    );
    approved(&project, "one");
    merge(&project, "one").ok();
    let error = project.liza(&["finish", "--merge", "--json"]).refused(1, "not_reached");
    let message = "goal-1 is IN_PROGRESS: all tasks have ended, but the planner has not judged the goal yet";
    assert_eq!(error["message"], message);
    assert!(error["hint"].as_str().unwrap().contains("liza run"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("--unfinished"), "{error}");
    project.liza_as("coder-1", &["finish", "--merge", "--unfinished", "--json"]).refused(1, "not_permitted");
    project.liza(&["finish", "--unfinished", "--json"]).refused(1, "no_choice");
    let said = project.liza(&["finish", "--merge", "--unfinished"]).ok().to_owned();
    assert!(
        said.starts_with("merged what is finished so far into main: ") && said.contains("the goal goes on"),
        "{said}"
    );
    assert_eq!(tip(&project, "main"), tip(&project, "integration"));
}

/// Covers: UI-05, AC-13
#[test]
fn commits_that_no_review_passed_are_not_taken() {
    let project = reached();
    let tree = tip(&project, "integration^{tree}");
    let foreign = project.git(&["commit-tree", &tree, "-p", "integration", "-m", "unreviewed"]);
    project.git(&["update-ref", "refs/heads/integration", &foreign]);
    project.liza(&["finish", "--merge", "--json"]).refused(1, "foreign_commits");
}

/// A bare repository as the remote `origin`.
fn add_remote(project: &TestProject) -> std::path::PathBuf {
    let remote = project.home().join("remote.git");
    project.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
    project.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    remote
}

/// A program of that name which prints an address and keeps its arguments.
fn stand_in(project: &TestProject, name: &str, script: &str) -> String {
    let folder = project.home().join("forge");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let git = Path::new(&String::from_utf8(which("git")).unwrap()).parent().unwrap().display().to_string();
    format!("{}:{git}:/usr/bin:/bin", folder.display())
}

fn which(name: &str) -> Vec<u8> {
    let output =
        std::process::Command::new("sh").args(["-c", &format!("command -v {name}")]).output().unwrap();
    output.stdout.trim_ascii().to_vec()
}

fn finish_with(project: &TestProject, path: &str, words: &[&str]) -> crate::support::Run {
    project.run(project.program().env("PATH", path).arg("finish").args(words))
}

/// Covers: UI-05
#[test]
fn a_pull_request_is_opened_with_the_program_of_the_forge() {
    let project = reached();
    let remote = add_remote(&project);
    let script =
        format!("printf '%s\\n' \"$@\" > {}/words\necho https://forge.invalid/1", project.home().display());
    let path = stand_in(&project, "gh", &script);
    let result = finish_with(&project, &path, &["--pr", "--json"]).result();
    assert_eq!(result["address"], "https://forge.invalid/1");
    assert_eq!(result["branch"], "liza/goal-1");
    let pushed = project.git_at(&remote, &["rev-parse", "refs/heads/liza/goal-1"]);
    assert_eq!(pushed, tip(&project, "integration"));
    let words = fs::read_to_string(project.home().join("words")).unwrap();
    assert!(words.starts_with("pr\ncreate\n--base\nmain\n--head\nliza/goal-1\n--title\n"), "{words}");
    assert!(words.contains("**one**") && words.contains("approved by code-reviewer-1"), "{words}");
}

/// Covers: JU-04, JU-09
#[test]
fn a_pull_request_says_how_each_task_was_judged() {
    let project = team();
    project.liza(&["config", "validation", "[\"test -d specs\"]"]).ok();
    for task in ["one", "three"] {
        submitted(&project, task);
    }
    project.add_task("two");
    project.liza(&["edit-task", "two", "--impact", "high"]).ok();
    claim(&project, "two", "coder-1").ok();
    let head = commit(&project, &project.tree("two"), "two.txt", "done\n");
    submit(&project, "two", "coder-1", &head).ok();
    judge(&project, "one", &["APPROVED"]);
    judge(&project, "two", &["APPROVED"]);
    project.liza(&["submit-verdict", "three", "APPROVED"]).ok();
    for task in ["one", "two", "three"] {
        merge(&project, task).ok();
    }
    project.liza(&["goal", "complete"]).ok();
    add_remote(&project);
    let script =
        format!("printf '%s\\n' \"$@\" > {}/words\necho https://forge.invalid/1", project.home().display());
    finish_with(&project, &stand_in(&project, "gh", &script), &["--pr"]).ok();
    let words = fs::read_to_string(project.home().join("words")).unwrap();
    let row = |task: &str, approved_by: &str| {
        let record = project.record(task);
        let receipt = record.validated.and_then(|validated| validated.receipt);
        let validation = receipt.map(|receipt| format!("green: 1 command, receipt {}", &receipt[..12]));
        let validation = validation.unwrap_or_else(|| "none".to_owned());
        format!("| {task} | {} | {validation} | {approved_by} |\n", record.review_commit.unwrap().short())
    };
    let table = format!(
        "## How it was judged\n\n| Task | Commit | Validation | Approved by |\n|---|---|---|---|\n{}{}{}",
        row("one", "code-reviewer-1"),
        row("three", "human"),
        row("two", "code-reviewer-1, code-reviewer-2")
    );
    assert!(table.contains("| green: 1 command, receipt ") && table.contains(" | none | human |"), "{table}");
    assert!(words.contains(&table), "{table}: {words}");
}

/// Covers: UI-05
#[test]
fn without_a_remote_or_when_the_forge_refuses_the_reason_is_given() {
    let project = reached();
    let error = project.liza(&["finish", "--pr", "--json"]).refused(1, "no_remote");
    assert!(error["hint"].as_str().unwrap().contains("--merge"), "{error}");
    let remote = add_remote(&project);
    let path = stand_in(&project, "glab", "echo not logged in >&2; exit 1");
    let error =
        finish_with(&project, &path, &["--pr", "--head", "next", "--json"]).refused(1, "no_pull_request");
    // What was only pushed is not taken: the next try goes on.
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(!status.contains("you have its result") && status.contains("liza finish"), "{status}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("is pushed to origin as next") && message.contains("not logged in"),
        "{message}"
    );
    assert_eq!(project.git_at(&remote, &["rev-parse", "next"]), tip(&project, "integration"));
}

/// Covers: UI-07
#[test]
fn remove_leaves_a_running_supervisor_alone_even_if_the_blackboard_cannot_be_read() {
    let project = TestProject::new();
    let folder = project.root.join(".liza");
    let agent = AgentId::new(Role::Coder, 1);
    let supervisor = LivenessLock::take(&folder, agent, Duration::ZERO);
    project.write(".liza/state.yaml", "- no blackboard\n");
    let error = project.liza(&["remove", "--yes", "--json"]).refused(1, "already_running");
    assert_eq!(error["message"], "coder-1 is at work in this project");
    drop(supervisor);
    project.liza(&["remove", "--yes"]).ok();
    assert!(!folder.exists());
}

/// Covers: UI-07
#[test]
fn remove_takes_out_everything_and_saves_unmerged_work() {
    let project = reached();
    project.liza(&["goal", "new", "More"]).ok();
    claimed(&project, "two", "coder-1");
    let head = commit(&project, &project.tree("two"), "two.txt", "half\n");
    project.liza(&["setup", "--link"]).ok();
    project.write(".worktrees/MINE/notes.txt", "mine\n");
    project.liza(&["remove", "--yes", "--json"]).refused(1, "already_running");
    for agent in ["coder-1", "coder-2", "code-reviewer-1", "code-reviewer-2"] {
        project.liza(&["deregister", agent]).ok();
    }
    let listed = project.liza(&["remove", "--dry-run"]).ok().to_owned();
    assert!(
        listed.contains("would be removed:")
            && listed.contains("branch integration: the main branch does not have all of it"),
        "{listed}"
    );
    assert!(listed.contains("\n  specs/") && !listed.contains("scripts/"), "only what is there: {listed}");
    assert!(!listed.contains("rescue/ branches with"), "{listed}");
    let error = project.liza(&["remove", "--json"]).refused(1, "not_confirmed");
    assert!(error["message"].as_str().unwrap().contains("there is no terminal to ask at: it needs --yes"));
    assert!(project.root.join(".liza/state.yaml").exists());
    let result = project.liza(&["remove", "--yes", "--json"]).result();
    let rescue = result["rescued"][0].as_str().unwrap().to_owned();
    assert_eq!(tip(&project, &rescue), head);
    assert!(!project.root.join(".liza").exists());
    assert_eq!(project.read(".worktrees/MINE/notes.txt"), "mine\n", "what a person put there stays");
    std::fs::remove_dir_all(project.root.join(".worktrees")).unwrap();
    assert!(!project.root.join("CLAUDE.md").is_symlink());
    assert_eq!(project.git(&["for-each-ref", "refs/liza", "refs/heads/task"]), "");
    assert_eq!(project.git(&["status", "--short", "--ignored"]), "");
    assert_eq!(project.git(&["fsck", "--no-dangling"]), "");
    let exclude = project.read(".git/info/exclude");
    assert!(!exclude.contains("/.liza/") && !exclude.contains("CLAUDE"), "{exclude}");
    assert!(exclude.contains("/.worktrees/"), "something of the person's was there: {exclude}");
    project.liza(&["status", "--json"]).refused(1, "no_project");
    // What is left does not prevent a new start.
    project.liza(&["init", "Again", "--adopt"]).ok();
}

/// Covers: UI-07
#[test]
fn a_merged_integration_branch_is_removed_and_agents_may_not() {
    let project = reached();
    project.liza(&["finish", "--merge"]).ok();
    project.liza_as("coder-1", &["remove", "--yes", "--json"]).refused(1, "not_permitted");
    for agent in ["coder-1", "coder-2", "code-reviewer-1", "code-reviewer-2"] {
        project.liza(&["deregister", agent]).ok();
    }
    project.liza(&["remove", "--yes"]).ok();
    let exclude = project.read(".git/info/exclude");
    assert!(!exclude.contains("liza") && !exclude.contains("worktrees"), "{exclude}");
    assert_eq!(project.git(&["branch", "--format=%(refname:short)"]), "main");
}

/// Covers: UI-05, UI-03
#[test]
fn status_remembers_that_the_result_was_taken() {
    let project = reached();
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(status.contains("ahead of main") && status.contains("liza finish"), "{status}");
    assert_eq!(project.liza(&["status", "--json"]).result()["main_branch"]["behind"], 0);
    project.liza(&["finish", "--merge"]).ok();
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(status.contains("you have its result (merged into main)"), "{status}");
    assert!(!status.contains("liza finish"), "{status}");
    // Not only by finish.
    let project = reached();
    project.git(&["merge", "-q", "integration"]);
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(status.contains("you have its result. State the next one"), "{status}");
    let text = project.liza(&["finish"]).ok().to_owned();
    assert!(text.contains("already contains the result of goal-1"), "nothing is asked: {text}");
}

/// Covers: UI-05
#[test]
fn needs_script_a_person_who_says_no_has_made_no_mistake() {
    let project = reached();
    let mut finish = Running::liza_in_terminal(&project, &["finish"]);
    assert_eq!(finish.wait(), 0, "{}", finish.output());
    let said = finish.output();
    assert!(said.contains("nothing was taken; whenever you want it: liza finish"), "{said}");
    assert!(!said.contains("liza: ") && !said.contains("hint"), "{said}");
    assert_ne!(tip(&project, "main"), tip(&project, "integration"));
}

/// Covers: UI-05, UI-07
#[test]
fn folders_that_are_not_committed_are_named() {
    let project = reached();
    let said = project.liza(&["finish", "--merge"]).ok().to_owned();
    assert!(!said.contains("not committed"), "{said}");
    project.write("specs/next.md", "# Next\n");
    let said = project.liza(&["finish"]).ok().to_owned();
    let advice = "to keep it: git add specs && git commit; or delete it";
    assert!(said.contains(&format!("specs/ is not committed; {advice}")), "{said}");
    let listed = project.liza(&["remove", "--dry-run"]).ok().to_owned();
    assert!(listed.contains(&format!("  specs/, which is not committed; {advice}")), "{listed}");
}

/// Covers: UI-05
#[test]
fn without_a_remote_a_pull_request_is_not_offered() {
    let project = reached();
    let error = project.liza(&["finish", "--json"]).refused(1, "no_choice");
    assert_eq!(error["hint"], "liza finish --merge");
    project.git(&["remote", "add", "origin", "/nowhere"]);
    let error = project.liza(&["finish", "--json"]).refused(1, "no_choice");
    assert_eq!(error["hint"], "liza finish --merge, or liza finish --pr");
}

/// Covers: UI-07
#[test]
fn a_blackboard_that_cannot_be_read_can_be_removed() {
    let project = team();
    claimed(&project, "one", "coder-1");
    commit(&project, &project.tree("one"), "work.txt", "unmerged\n");
    project.write(".liza/state.yaml", "tasks: [\n");
    let listed = project.liza(&["remove", "--dry-run"]).ok().to_owned();
    assert!(listed.contains("branch integration: the blackboard cannot be read"), "{listed}");
    let result = project.liza(&["remove", "--yes", "--json"]).result();
    assert_eq!(result["rescued"].as_array().unwrap().len(), 1, "{result}");
    assert!(!project.root.join(".liza").exists());
    assert_eq!(branches(&project, "task/*"), Vec::<String>::new());
    assert_eq!(branches(&project, "integration").len(), 1);
}
