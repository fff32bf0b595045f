//! recover: everything that a crash can leave is repaired once, and nothing is lost.

use std::fs;
use std::process::{Child, Command as Process, Stdio};

use liza_core::model::{Actor, Seconds};
use liza_core::protocol::ReserveTask;
use liza_team::project::now;

use crate::fixture::*;
use crate::support::TestProject;
use crate::support::process::{is_running, own_sleep, send_signal, wait_for};

fn nothing() -> Vec<String> {
    Vec::new()
}

/// Reserves a task as a claim that is then killed.
fn reserve(project: &TestProject, task: &str, coder: &str) {
    let (task, coder) = (task.parse().unwrap(), coder.parse().unwrap());
    let head = tip(project, "integration").parse().unwrap();
    project.execute_at(Actor::Human, now() - Seconds(10), ReserveTask { task, coder, head });
}

/// Covers: CL-04, RV-08
#[test]
fn without_a_problem_nothing_is_done() {
    let project = team();
    claimed(&project, "one", "coder-1");
    fs::write(project.tree("one").join("half"), "x").unwrap();
    let before = (project.state(), project.git(&["show-ref"]));
    assert_eq!(project.liza(&["recover"]).ok().trim(), "nothing to repair");
    assert_eq!((project.state(), project.git(&["show-ref"])), before);
}

/// Covers: CL-04
#[test]
fn a_reservation_whose_claim_was_killed_is_removed_with_its_worktree() {
    let project = team();
    for task in ["one", "two"] {
        project.add_task(task);
    }
    reserve(&project, "one", "coder-1");
    project.git(&["worktree", "add", "-q", "-b", "task/one", ".worktrees/one", "integration"]);
    reserve(&project, "two", "coder-2");
    let text = project.liza(&["recover"]).ok().to_owned();
    assert!(text.contains("one: reserved by coder-1") && text.contains("removed"), "{text}");
    assert_eq!(project.record("one").reservation, None);
    assert!(!project.tree("one").exists() && branches(&project, "task/*").is_empty());
    assert!(project.log().contains("action: recovered"), "{}", project.log());
    check_consistent(&project);
    claim(&project, "one", "coder-2").ok();
}

/// Covers: CL-04
#[test]
fn a_reservation_whose_claim_is_running_is_left_alone() {
    let project = team();
    project.add_task("one");
    let path = git_wrapper(&project, "case \"$*\" in *'worktree add'*) sleep 2;; esac");
    let mut program = project.program();
    program.args(["claim-task", "one", "coder-1"]).env("PATH", &path).stdout(Stdio::null());
    let mut claiming = program.spawn().unwrap();
    while project.record("one").reservation.is_none() {
        assert!(claiming.try_wait().unwrap().is_none());
    }
    assert_eq!(recover(&project), nothing());
    assert!(claiming.wait().unwrap().success());
    assert_eq!(project.status("one"), "CLAIMED");
    check_consistent(&project);
}

/// Covers: IV-04
#[test]
fn a_missing_worktree_is_restored_on_its_branch() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "x", "x\n");
    project.liza(&["heartbeat", "coder-1"]).ok();
    fs::remove_dir_all(project.tree("one")).unwrap();
    assert_eq!(recover(&project), ["missing_worktree one"]);
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), head);
    assert_eq!(project.git_at(&project.tree("one"), &["branch", "--show-current"]), "task/one");
    check_consistent(&project);
}

/// Covers: IV-04, RV-02
#[test]
fn a_worktree_without_its_branch_is_restored_from_the_submission() {
    let project = team();
    let head = submitted(&project, "one");
    fs::remove_dir_all(project.tree("one")).unwrap();
    project.git(&["branch", "-qD", "task/one"]);
    assert_eq!(recover(&project), ["missing_worktree one"]);
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), head);
    judge(&project, "one", &["APPROVED"]);
    check_consistent(&project);
}

/// Covers: CL-04
#[test]
fn a_half_created_worktree_is_removed_or_completed() {
    let project = team();
    claimed(&project, "one", "coder-1");
    project.add_task("two");
    // As the original system made them, and left them when it was killed.
    fs::remove_dir_all(project.tree("one")).unwrap();
    project.git(&["worktree", "add", "-q", ".worktrees/one", "task/one"]);
    project.git(&["worktree", "add", "-q", "-b", "task/two", ".worktrees/two", "integration"]);
    for task in ["one", "two"] {
        let entry = project.root.join(".git/worktrees").join(task);
        fs::write(entry.join("locked"), "initializing").unwrap();
        fs::remove_file(project.tree(task).join("specs/vision.md")).unwrap();
    }
    let list = project.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(list.matches("locked initializing").count(), 2, "{list}");
    let mut repaired = recover(&project);
    repaired.sort();
    assert_eq!(repaired, ["missing_worktree one", "unneeded_worktree two"]);
    assert!(project.tree("one").join("specs/vision.md").exists());
    assert!(!project.tree("two").exists());
    check_consistent(&project);
    claim(&project, "two", "coder-2").ok();
}

/// Covers: RV-07, LM-06
#[test]
fn worktrees_that_no_task_needs_are_removed_after_their_work_is_saved() {
    let project = team();
    // Terminal tasks whose removal was killed, an unclaimed task, and an unknown one.
    for task in ["abandoned", "merged"] {
        project.add_task(task);
    }
    project.liza(&["abandon-task", "abandoned", "--reason", "x"]).ok();
    claim(&project, "merged", "coder-1").ok();
    let head = commit(&project, &project.tree("merged"), "m", "m\n");
    submit(&project, "merged", "coder-1", &head).ok();
    judge(&project, "merged", &["APPROVED"]);
    merge(&project, "merged").ok();
    project.add_task("unclaimed");
    for task in ["abandoned", "merged", "unclaimed", "unknown"] {
        let (branch, path) = (format!("task/{task}"), format!(".worktrees/{task}"));
        project.git(&["worktree", "add", "-q", "-b", &branch, &path, "integration"]);
        fs::write(project.tree(task).join("new"), format!("{task}\n")).unwrap();
    }
    project.git(&["branch", "task/only-a-branch", "integration"]);
    let mut repaired = recover(&project);
    repaired.sort();
    let expected = ["abandoned", "merged", "only-a-branch", "unclaimed", "unknown"];
    assert_eq!(repaired, expected.map(|task| format!("unneeded_worktree {task}")));
    for task in ["abandoned", "merged", "unclaimed", "unknown"] {
        assert!(!project.tree(task).exists());
        assert_eq!(show(&project, &format!("rescue/{task}-1"), "new"), task);
    }
    assert_eq!(branches(&project, "task/*"), nothing());
    check_consistent(&project);
}

/// Covers: RV-08
#[test]
fn locks_and_leftovers_of_ended_processes_are_removed() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let dead = dead_process();
    let locks = [
        ".worktrees/one/.git/index.lock".to_owned(),
        ".worktrees/one/.git/refs/heads/task/one.lock".to_owned(),
        ".git/refs/heads/integration.lock".to_owned(),
        ".git/refs/heads/task/one.lock".to_owned(),
        ".git/index.lock".to_owned(),
        ".git/packed-refs.lock".to_owned(),
    ];
    for lock in &locks {
        project.write(lock, "");
    }
    let stage = format!(".worktrees/.integration-test-{dead}-0");
    project.write(&format!("{stage}/x"), "x");
    project.write(&format!(".worktrees/.trash-{dead}-0/x"), "x");
    project.write(".liza/locks/unknown.lock", "");
    let repaired = recover(&project);
    for lock in &locks {
        assert!(repaired.contains(&format!("git_lock {lock}")), "{lock}: {repaired:?}");
        assert!(!project.root.join(lock).exists());
    }
    assert!(repaired.contains(&format!("leftover {stage}")), "{repaired:?}");
    assert!(!project.root.join(&stage).exists());
    assert!(!project.root.join(".liza/locks/unknown.lock").exists());
    check_consistent(&project);
}

fn dead_process() -> u32 {
    let mut child: Child = Process::new("true").spawn().unwrap();
    let id = child.id();
    child.wait().unwrap();
    id
}

/// Covers: RV-08, RV-04
#[test]
fn an_outdated_checkout_is_updated() {
    let project = team();
    let head = approved(&project, "one");
    project.git(&["checkout", "-q", "integration"]);
    project.write("mine", "untracked\n");
    // The process dies after the branch moved.
    let dies = "case \"$*\" in *'read-tree -m -u -n'*) ;; *'read-tree -m -u'*) kill -9 $PPID; exit 1;; esac";
    let path = git_wrapper(&project, dies);
    let mut program = project.program();
    assert_eq!(project.run(program.args(["wt-merge", "one"]).env("PATH", &path)).code, -1);
    assert_eq!(tip(&project, "integration^2"), head);
    assert!(!project.root.join("one.txt").exists());
    let mut repaired = recover(&project);
    repaired.sort();
    assert_eq!(repaired, [format!("checkout {}", project.root.display()), "merge one".to_owned()]);
    assert_eq!(project.read("one.txt"), "done\n");
    assert_eq!(project.git(&["status", "--porcelain"]), "?? mine");
    check_consistent(&project);
}

/// Covers: RV-06
#[test]
fn an_integration_test_that_outlived_its_merge_is_killed() {
    let project = team();
    let sleep = own_sleep(2222);
    let test = format!("#!/bin/sh\necho begun\n{sleep} & {sleep}\n");
    advance(&project, "scripts/integration-test.sh", &test);
    approved(&project, "one");
    // Without a room: in one, all of it ends with its keeper.
    project.liza(&["lock", "write", "config.sandbox_max_abi", "100"]).ok();
    let mut program = project.program();
    let mut merging = program.args(["wt-merge", "one"]).stderr(Stdio::null()).spawn().unwrap();
    let log = project.root.join(".liza/integration-tests/one-1.log");
    while fs::read_to_string(&log).unwrap_or_default() != "begun\n" {
        assert!(merging.try_wait().unwrap().is_none());
    }
    // Its keeper would end it as soon as the merge has died.
    let id = merging.id().to_string();
    let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children: String = children.collect();
    let is_keeper = |id: &&str| {
        fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("--keep"))
    };
    if let Some(keeper) = children.split_whitespace().find(is_keeper) {
        assert!(send_signal("STOP", &id) && send_signal("KILL", keeper));
    }
    merging.kill().unwrap();
    merging.wait().unwrap();
    let repaired = recover(&project);
    assert!(repaired.contains(&"process integration test".to_owned()), "{repaired:?}");
    assert!(!is_running(&sleep));
    assert_eq!(project.status("one"), "APPROVED");
    check_consistent(&project);
}

/// Covers: RV-06
#[cfg(target_os = "linux")]
#[test]
fn an_integration_test_ends_with_its_merge() {
    let project = team();
    // A process group with a stopped member gets a hangup when its parent ends.
    let sleep = own_sleep(2223);
    let test =
        format!("#!/bin/sh\n(setsid env -i {sleep} &)\n{sleep} &\nkill -STOP $!\necho begun\n{sleep}\n");
    advance(&project, "scripts/integration-test.sh", &test);
    approved(&project, "one");
    let mut program = project.program();
    let mut merging = program.args(["wt-merge", "one"]).stderr(Stdio::null()).spawn().unwrap();
    let log = project.root.join(".liza/integration-tests/one-1.log");
    while fs::read_to_string(&log).unwrap_or_default() != "begun\n" {
        assert!(merging.try_wait().unwrap().is_none());
    }
    merging.kill().unwrap();
    merging.wait().unwrap();
    wait_for("the test to end", || (!is_running(&sleep)).then_some(()));
}

/// Covers: CL-10, AG-12
#[test]
fn a_coders_supervisor_recovers_but_records_no_merges() {
    let project = team();
    let head = approved(&project, "one");
    move_branch_only(&project, "one", &head);
    let repaired = |agent: &str| project.liza_as(agent, &["recover", "--json"]).result()["repaired"].clone();
    assert_eq!(repaired("coder-1"), serde_json::json!([]));
    assert_eq!(project.status("one"), "APPROVED");
    assert_eq!(repaired("code-reviewer-1")[0]["kind"], "merge");
    assert_eq!(project.status("one"), "MERGED");
}

/// Covers: RO-03
#[test]
fn settings_of_git_in_a_worktree_whose_session_was_killed_are_restored() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let tree = project.tree("one");
    let evil = project.root.join("evil");
    project.git_at(&tree, &["config", "core.fsmonitor", evil.to_str().unwrap()]);
    let pipe = tree.join("specs/.gitignore");
    assert!(Process::new("mkfifo").arg(&pipe).status().unwrap().success());
    let is_set = || fs::read_to_string(tree.join(".git/config")).unwrap().contains("evil");
    assert_eq!(recover(&project), nothing());
    assert!(is_set(), "its coder still holds it");
    expire(&project, "coder-1");
    assert_eq!(recover(&project), nothing());
    assert!(!is_set() && !pipe.exists());
}

/// Covers: CL-04
#[test]
fn folders_not_created_by_liza_are_reported_and_kept() {
    let project = team();
    project.write(".worktrees/mystery/.git/HEAD", "ref: refs/heads/main\n");
    let result = project.liza(&["recover", "--json"]).result();
    assert_eq!(result["left"][0]["subject"], "mystery");
    assert!(project.root.join(".worktrees/mystery/.git/HEAD").exists());
}

/// Covers: RV-07
#[test]
fn a_worktree_with_a_running_session_is_not_removed() {
    let project = team();
    claimed(&project, "one", "coder-1");
    // The claim was released while its session still runs.
    let text = project.state();
    let mut lines: Vec<String> = Vec::new();
    let mut in_task = false;
    for line in text.lines() {
        in_task = if line.contains("id: one") { true } else { in_task && !line.starts_with("agents:") };
        let owned = ["worktree:", "assigned_to:", "lease_expires:", "base_commit:"];
        if in_task && owned.iter().any(|key| line.trim_start().starts_with(key)) {
            continue;
        }
        lines.push(if in_task { line.replace("CLAIMED", "UNCLAIMED") } else { line.to_owned() });
    }
    project.write(".liza/state.yaml", &format!("{}\n", lines.join("\n")));
    assert_eq!(project.status("one"), "UNCLAIMED");
    assert_eq!(recover(&project), nothing());
    assert!(project.tree("one").exists());
    expire(&project, "coder-1");
    assert_eq!(recover(&project), ["unneeded_worktree one"]);
    assert!(!project.tree("one").exists());
}

/// Covers: AX-37
#[test]
fn a_deleted_integration_branch_is_an_alarm_with_its_command() {
    let project = team();
    approved(&project, "one");
    merge(&project, "one").ok();
    let head = tip(&project, "integration");
    project.git(&["branch", "-qD", "integration"]);
    let command = format!("git branch integration {head}");
    for words in [["status"], ["validate"]] {
        let page = project.liza(&words).stdout;
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(&command), "{page}");
    }
    assert!(project.liza(&["status"]).stdout.contains("INVALID STATE"));
    project.git(&["branch", "integration", &head]);
    assert!(!project.liza(&["status"]).stdout.contains("INVALID STATE"));
    check_consistent(&project);
}

/// Covers: AX-37
#[test]
fn after_git_clean_the_previous_version_is_restored() {
    let project = team();
    claimed(&project, "one", "coder-1");
    project.liza(&["note", "the last write"]).ok();
    project.git(&["clean", "-ffdxq"]);
    assert!(!project.root.join(".liza").exists());
    let error = project.liza(&["status", "--json"]).refused(4, "lost");
    assert_eq!(error["hint"], "liza recover");
    let said = project.liza(&["recover"]).ok().to_owned();
    assert!(said.contains("state.yaml") && said.contains("restored"), "{said}");
    assert_eq!(project.status("one"), "CLAIMED");
    assert!(project.tree("one").exists());
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
    // What is removed is not restored.
    for agent in ["coder-1", "coder-2", "code-reviewer-1", "code-reviewer-2"] {
        project.liza(&["deregister", agent]);
    }
    project.liza(&["remove", "--yes"]).ok();
    assert!(!project.root.join(".git/liza").exists());
    project.liza(&["status", "--json"]).refused(1, "no_project");
}
