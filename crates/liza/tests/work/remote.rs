//! Work through a git remote: real bare repositories with hooks that refuse, move and hang.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use liza_core::model::AgentId;

use crate::fixture::*;
use crate::support::TestProject;

/// A project whose work moves through a bare repository next to it.
pub(crate) fn shared() -> TestProject {
    join(shared_without_team())
}

fn shared_without_team() -> TestProject {
    let project = TestProject::bare();
    add_bare(&project);
    project.liza(&["init", "Retry everything", "--remote", "origin"]).ok();
    project
}

pub(crate) fn add_bare(project: &TestProject) {
    let bare = bare(project);
    project.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    project.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
}

pub(crate) fn bare(project: &TestProject) -> PathBuf {
    project.home().join("remote.git")
}

/// Runs git in the bare repository; returns what it printed.
#[track_caller]
pub(crate) fn on_remote(project: &TestProject, arguments: &[&str]) -> String {
    project.git_at(&bare(project), arguments)
}

/// The references of the remote below a folder, without it.
pub(crate) fn refs(project: &TestProject, folder: &str) -> Vec<String> {
    let text = on_remote(project, &["for-each-ref", "--format=%(refname)", folder]);
    text.lines().map(|name| name.strip_prefix(folder).unwrap().trim_matches('/').to_owned()).collect()
}

pub(crate) fn remote_head(project: &TestProject) -> String {
    on_remote(project, &["rev-parse", "refs/heads/integration"])
}

/// Installs a hook in the bare repository.
pub(crate) fn hook(project: &TestProject, name: &str, text: &str) {
    script(&bare(project).join("hooks").join(name), text);
}

pub(crate) fn remove_hook(project: &TestProject, name: &str) {
    fs::remove_file(bare(project).join("hooks").join(name)).unwrap();
}

/// A merge of a task's commit into the head of the remote, as another machine publishes it; not on any branch yet.
pub(crate) fn merge_of(project: &TestProject, task: &str, commit: &str) -> String {
    stated_merge(project, &remote_head(project), task, commit).new.to_string()
}

#[track_caller]
fn set(project: &TestProject, key: &str, value: &str) {
    project.liza(&["lock", "write", key, value]).ok();
}

/// What waits for the human.
pub(crate) fn needs(project: &TestProject) -> String {
    project.liza(&["status", "--json"]).result()["needs_you"].to_string()
}

fn sessions_charged(project: &TestProject) -> String {
    let state = project.snapshot();
    format!("{:?}", state.board.sprint.ready().unwrap().sessions)
}

/// Covers: MM-07
#[test]
fn a_task_is_pushed_reviewed_and_merged_through_the_remote() {
    let project = shared();
    let start = tip(&project, "integration");
    assert_eq!(remote_head(&project), start, "init creates the branch on the remote");
    let head = submitted(&project, "one");
    let coder: AgentId = "coder-1".parse().unwrap();
    let generation = project.snapshot().board.agents.ready().unwrap()[&coder].generation;
    let name = format!("one/{}", generation.unwrap());
    assert_eq!(refs(&project, "refs/liza/task").join(" "), name);
    assert_eq!(on_remote(&project, &["rev-parse", &format!("refs/liza/task/{name}")]), head);

    judge(&project, "one", &["APPROVED"]);
    let result = merge(&project, "one").result();
    let merged = remote_head(&project);
    assert_eq!(result["merge_commit"], merged.as_str());
    assert_eq!(tip(&project, "integration"), merged, "the branch here follows");
    assert_eq!(project.git(&["log", "-1", "--format=%P", "integration"]), format!("{start} {head}"));
    assert!(project.git(&["log", "-1", "--format=%B", "integration"]).contains("Liza-Task: one"));
    assert_eq!(refs(&project, "refs/liza/merged"), ["one"], "the record came with the merge");
    assert_eq!(refs(&project, "refs/liza/task"), Vec::<String>::new(), "the task is over");
    assert!(!project.tree("one").exists());
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn a_submission_that_the_remote_refuses_is_not_recorded() {
    let project = shared();
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "a.txt", "1");
    hook(
        &project,
        "pre-receive",
        "echo 'quota exceeded: sk-ant-api03-abcdefghijklmnopqrstuvwxyz' >&2; exit 1",
    );
    let error = submit(&project, "one", "coder-1", &head).refused(3, "remote_refused");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("quota exceeded") && message.contains("hook declined"), "{message}");
    assert!(!message.contains("sk-ant-api03-abc"), "{message}");
    assert_eq!(project.status("one"), "CLAIMED");
    assert!(needs(&project).contains("REMOTE PROBLEM"), "{}", needs(&project));
    remove_hook(&project, "pre-receive");
    submit(&project, "one", "coder-1", &head).ok();
    assert!(!needs(&project).contains("REMOTE PROBLEM"), "it works again");
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn a_branch_that_demands_pull_requests_refuses_a_merge_with_the_remotes_words() {
    let project = shared();
    approved(&project, "one");
    let protect = "while read old new ref; do test $ref != refs/heads/integration || {
        echo 'Changes must be made through a pull request.' >&2; exit 1; }; done";
    hook(&project, "pre-receive", protect);
    let error = merge(&project, "one").refused(3, "remote_refused");
    assert!(error["message"].as_str().unwrap().contains("through a pull request"), "{error}");
    assert_eq!((project.status("one"), remote_head(&project)), ("APPROVED", tip(&project, "integration")));
    assert!(needs(&project).contains("pull request"));
    let doctor = project.liza(&["doctor"]);
    assert!(doctor.stdout.contains("origin refuses pushes to the integration branch"), "{}", doctor.stdout);
    assert_eq!(remote_head(&project), tip(&project, "integration"), "the probe has changed nothing");
    remove_hook(&project, "pre-receive");
    merge(&project, "one").ok();
    let doctor = project.liza(&["doctor"]);
    assert!(doctor.stdout.contains("origin takes pushes"), "{}", doctor.stdout);
    assert_eq!(remote_head(&project), tip(&project, "integration"), "the probe has changed nothing");
    assert_eq!(refs(&project, "refs/liza/probe"), Vec::<String>::new());
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn init_refuses_a_remote_that_cannot_be_used() {
    let project = TestProject::bare();
    let init = ["init", "Retry", "--remote", "origin", "--json"];
    project.liza(&init).refused(1, "no_remote");
    project.git(&["remote", "add", "origin", "/nowhere/at/all.git"]);
    project.liza(&init).refused(3, "remote_unreachable");
    project.git(&["remote", "remove", "origin"]);
    add_bare(&project);
    let protect = "test $1 != refs/heads/integration || { echo 'a pull request is needed' >&2; exit 1; }";
    hook(&project, "update", protect);
    let error = project.liza(&init).refused(3, "remote_refused");
    assert!(error["message"].as_str().unwrap().contains("a pull request is needed"), "{error}");
    assert!(!project.root.join(".liza").exists() && branches(&project, "integration").is_empty());
    // The same with a branch that exists already, without changing it.
    remove_hook(&project, "update");
    project.git(&["push", "-q", "origin", "HEAD:refs/heads/integration"]);
    hook(&project, "update", protect);
    let error = project.liza(&init).refused(3, "remote_refused");
    assert!(error["message"].as_str().unwrap().contains("a pull request is needed"), "{error}");
    assert_eq!(remote_head(&project), project.git(&["rev-parse", "HEAD"]));
    remove_hook(&project, "update");
    project.liza(&init).ok();
    assert_eq!(tip(&project, "integration"), remote_head(&project));
}

/// Covers: MM-07, MM-11, MM-12
#[test]
fn a_merge_that_another_machine_was_faster_than_is_made_again_on_its_head() {
    let project = shared();
    approved(&project, "one");
    let other = approved(&project, "two");
    let theirs = merge_of(&project, "two", &other);
    project.git(&["push", "-q", "origin", &format!("{theirs}:refs/other/machine")]);
    // Their push arrives between the moment at which ours was accepted and the one at which the branch moves.
    let first = "test $1 = refs/heads/integration || exit 0; test -e moved && exit 0; touch moved
        git update-ref refs/heads/integration";
    hook(&project, "update", &format!("{first} {theirs}"));
    merge(&project, "one").ok();
    assert_eq!((project.status("one"), project.status("two")), ("MERGED", "MERGED"));
    assert_eq!(project.record("two").merge_commit.unwrap().as_str(), theirs, "found by its statement");
    for file in ["one.txt", "two.txt"] {
        assert_eq!(show(&project, "integration", file), "done", "no update is lost");
    }
    assert_eq!(remote_head(&project), tip(&project, "integration"));
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn a_push_without_an_answer_counts_if_its_commit_is_on_the_branch() {
    let project = shared();
    approved(&project, "one");
    set(&project, "config.remote_limit", "2");
    hook(&project, "post-receive", "sleep 30");
    merge(&project, "one").ok();
    assert_eq!((project.status("one"), remote_head(&project)), ("MERGED", tip(&project, "integration")));
    fs::remove_file(bare(&project).join("hooks/post-receive")).unwrap();
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn a_slow_remote_ends_at_the_time_limit() {
    let project = shared();
    approved(&project, "one");
    set(&project, "config.remote_limit", "1");
    hook(&project, "pre-receive", "sleep 30");
    let error = merge(&project, "one").refused(3, "remote_unreachable");
    assert!(error["message"].as_str().unwrap().contains("no answer within 1 s"), "{error}");
    assert_eq!(project.status("one"), "APPROVED");
    remove_hook(&project, "pre-receive");
    set(&project, "config.remote_limit", "60");
    merge(&project, "one").ok();
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn a_remote_that_is_gone_costs_no_claim_and_no_session() {
    let project = shared();
    project.add_task("one");
    let away = project.home().join("away.git");
    let charged = sessions_charged(&project);
    fs::rename(bare(&project), &away).unwrap();
    claim(&project, "one", "coder-1").refused(3, "remote_unreachable");
    assert_eq!((project.status("one"), project.record("one").reservation), ("UNCLAIMED", None));
    assert_eq!(sessions_charged(&project), charged);
    assert!(needs(&project).contains("cannot reach the remote origin"), "{}", needs(&project));
    fs::rename(&away, bare(&project)).unwrap();
    claim(&project, "one", "coder-1").ok();
    assert!(!needs(&project).contains("REMOTE"), "{}", needs(&project));
    // In the middle of the work: what was committed stays, and is submitted when the remote is back.
    let head = commit(&project, &project.tree("one"), "one.txt", "done\n");
    fs::rename(bare(&project), &away).unwrap();
    submit(&project, "one", "coder-1", &head).refused(3, "remote_unreachable");
    assert_eq!(project.status("one"), "CLAIMED");
    fs::rename(&away, bare(&project)).unwrap();
    submit(&project, "one", "coder-1", &head).ok();
    judge(&project, "one", &["APPROVED"]);
    fs::rename(bare(&project), &away).unwrap();
    merge(&project, "one").refused(3, "remote_unreachable");
    assert_eq!(project.status("one"), "APPROVED");
    fs::rename(&away, bare(&project)).unwrap();
    merge(&project, "one").ok();
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn a_branch_that_a_person_moved_back_on_the_remote_holds_merges() {
    let project = shared();
    let start = remote_head(&project);
    approved(&project, "one");
    merge(&project, "one").ok();
    let merged = remote_head(&project);
    approved(&project, "two");
    project.git(&["push", "-qf", "origin", &format!("{start}:refs/heads/integration")]);
    let error = merge(&project, "two").refused(3, "remote_rewound");
    let command = error["hint"].as_str().unwrap();
    assert!(needs(&project).contains("git push --force-with-lease"), "{}", needs(&project));
    assert_eq!((remote_head(&project), tip(&project, "integration")), (start, merged.clone()));
    let words: Vec<&str> = command.strip_prefix("git ").unwrap().split(' ').collect();
    project.git(&words);
    assert_eq!(remote_head(&project), merged);
    merge(&project, "two").ok();
    // Replaced by another history.
    project.git(&["commit", "-q", "--allow-empty", "-m", "other"]);
    project.git(&["push", "-qf", "origin", "HEAD:refs/heads/integration"]);
    approved_while_rewound(&project);
}

/// Nothing is claimed from a branch that lacks merged work.
fn approved_while_rewound(project: &TestProject) {
    project.add_task("three");
    claim(project, "three", "coder-2").refused(3, "remote_rewound");
    assert_eq!(project.status("three"), "UNCLAIMED");
}

/// Covers: MM-07
#[test]
fn commits_that_a_person_pushed_hold_merges_until_they_are_accepted() {
    let project = shared();
    approved(&project, "one");
    let elsewhere = project.home().join("clone");
    let (from, to) = (bare(&project), elsewhere.to_str().unwrap().to_owned());
    project.git(&["clone", "-q", "-b", "integration", from.to_str().unwrap(), &to]);
    let theirs = commit(&project, &elsewhere, "person.txt", "mine\n");
    project.git_at(&elsewhere, &["push", "-q", "origin", "integration"]);
    merge(&project, "one").refused(1, "foreign_commits");
    assert_eq!((project.status("one"), remote_head(&project)), ("APPROVED", theirs));
    project.liza(&["accept-integration"]).ok();
    merge(&project, "one").ok();
    assert_eq!(show(&project, "integration", "person.txt"), "mine");
    // Commits that are only here are pushed when they are accepted.
    let own = advance(&project, "local.txt", "here\n");
    assert_eq!(remote_head(&project), own);
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn a_persons_checkout_of_the_branch_is_updated_or_nothing_is_merged() {
    let project = shared();
    project.git(&["checkout", "-q", "integration"]);
    approved(&project, "one");
    project.write("one.txt", "a person's own\n");
    let before = remote_head(&project);
    merge(&project, "one").refused(3, "checkout_refused");
    assert_eq!((remote_head(&project), project.read("one.txt")), (before, "a person's own\n".to_owned()));
    fs::remove_file(project.root.join("one.txt")).unwrap();
    merge(&project, "one").ok();
    assert_eq!(project.read("one.txt"), "done\n");
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    check_consistent(&project);
}

/// Covers: MM-07, MM-12
#[test]
fn a_merge_that_was_published_and_not_recorded_is_found_by_its_statement() {
    let project = shared();
    let head = approved(&project, "one");
    let merged = merge_of(&project, "one", &head);
    project.git(&["push", "-q", "origin", &format!("{merged}:refs/heads/integration")]);
    assert_eq!(recover(&project), ["merge one"]);
    assert_eq!(project.status("one"), "MERGED");
    assert_eq!(project.record("one").merge_commit.unwrap().as_str(), merged);
    check_consistent(&project);
    // A merge with more in it than both sides is not ours, whatever its message says.
    let head = approved(&project, "two");
    let base = remote_head(&project);
    let folder = project.home().join("evil");
    project.git(&["worktree", "add", "-q", "--detach", folder.to_str().unwrap(), &head]);
    let evil = commit(&project, &folder, "evil.txt", "1");
    let tree = project.git(&["rev-parse", &format!("{evil}^{{tree}}")]);
    let message = format!("Merge two\n\nLiza-Task: two\nLiza-Commit: {head}\n");
    let evil = project.git(&["commit-tree", &tree, "-p", &base, "-p", &head, "-m", &message]);
    project.git(&["push", "-q", "origin", &format!("{evil}:refs/heads/integration")]);
    merge(&project, "two").refused(1, "foreign_commits");
    assert_eq!(project.status("two"), "APPROVED");
}

/// Covers: MM-12
#[test]
fn merges_that_the_blackboard_lost_are_recorded_when_the_branch_is_accepted() {
    let project = shared();
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "one.txt", "done\n");
    project.git(&["fetch", "-q", project.tree("one").to_str().unwrap(), "HEAD"]);
    // As after a failover to a copy that lacks the submission, the approval and the merge.
    let merged = merge_of(&project, "one", &head);
    project.git(&["push", "-q", "origin", &format!("{merged}:refs/heads/integration")]);
    project.liza(&["recover"]).ok();
    assert_eq!(
        project.status("one"),
        "CLAIMED",
        "without an approval only a person can say that it was ours"
    );
    let said = project.liza(&["accept-integration"]).ok().to_owned();
    assert!(said.contains("merges that the blackboard had lost are recorded: one"), "{said}");
    let record = project.record("one");
    assert_eq!((project.status("one"), record.merge_commit.unwrap().to_string()), ("MERGED", merged));
    assert!(!project.tree("one").exists());
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn references_of_a_task_that_is_over_go_and_unmerged_work_stays() {
    let project = shared();
    let head = submitted(&project, "one");
    // Another registration has sent the same commit.
    on_remote(&project, &["update-ref", "refs/liza/task/one/7", &head]);
    project.liza(&["mark-blocked", "one", "--reason", "no", "--question", "Why?", "--attempted", "a"]).ok();
    project.liza(&["abandon-task", "one", "--reason", "not needed"]).ok();
    assert_eq!(refs(&project, "refs/liza/task"), Vec::<String>::new());
    let kept = refs(&project, "refs/liza/rescue");
    assert!(kept.iter().any(|name| name == &format!("one/{head}")), "{kept:?}");
    // What could not be removed in time is removed by `recover`.
    submitted(&project, "two");
    judge(&project, "two", &["APPROVED"]);
    let merged = merge_of(&project, "two", &project.record("two").review_commit.unwrap().to_string());
    hook(&project, "update", "case $1 in refs/liza/task/*) exit 1;; esac");
    project.git(&["push", "-q", "origin", &format!("{merged}:refs/heads/integration")]);
    merge(&project, "two").ok();
    assert_eq!(refs(&project, "refs/liza/task").len(), 1);
    remove_hook(&project, "update");
    project.liza(&["recover"]).ok();
    assert_eq!(refs(&project, "refs/liza/task"), Vec::<String>::new());
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn submitted_work_that_vanished_from_the_remote_is_sent_again() {
    let project = shared();
    let head = submitted(&project, "one");
    let name = refs(&project, "refs/liza/task").remove(0);
    on_remote(&project, &["update-ref", "-d", &format!("refs/liza/task/{name}")]);
    assert_eq!(recover(&project), ["remote one"]);
    assert_eq!(on_remote(&project, &["rev-parse", &format!("refs/liza/task/{name}")]), head);
    check_consistent(&project);
}

/// Covers: MM-07
#[test]
fn nothing_but_the_named_references_comes_from_the_remote() {
    let project = shared();
    let blob = project.home().join("blob");
    fs::write(&blob, "x").unwrap();
    on_remote(&project, &["tag", "planted", "refs/heads/integration"]);
    on_remote(&project, &["update-ref", "refs/heads/other", "refs/heads/integration"]);
    let theirs = project.home().join("clone");
    let (from, to) = (bare(&project), theirs.to_str().unwrap().to_owned());
    project.git(&["clone", "-q", "-b", "integration", from.to_str().unwrap(), &to]);
    let pushed = commit(&project, &theirs, "a.txt", "1");
    project.git_at(&theirs, &["tag", "with-commit"]);
    project.git_at(&theirs, &["push", "-q", "--tags", "origin", "integration"]);
    project.liza(&["accept-integration"]).ok();
    assert_eq!(tip(&project, "integration"), pushed);
    assert_eq!(project.git(&["tag", "--list"]), "");
    assert_eq!(project.git(&["for-each-ref", "refs/remotes/origin/other"]), "");
    // A commit that git's own checks refuse is not taken.
    let broken = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <a> x\ncommitter a <a> x\n\nx\n";
    let mut hash = Command::new("git");
    hash.args(["hash-object", "-t", "commit", "-w", "--stdin", "--literally"]).current_dir(bare(&project));
    fs::write(&blob, broken).unwrap();
    hash.stdin(fs::File::open(&blob).unwrap());
    let object = String::from_utf8(hash.output().unwrap().stdout).unwrap().trim().to_owned();
    on_remote(&project, &["update-ref", "refs/heads/integration", &object]);
    project.add_task("one");
    claim(&project, "one", "coder-1").refused(3, "remote_unreachable");
}

/// Covers: MM-07
#[test]
fn rejected_work_is_continued_on_a_machine_that_has_only_the_remote() {
    let project = shared();
    let head = submitted(&project, "one");
    judge(&project, "one", &["REJECTED", "a.rs:1 is wrong"]);
    // An earlier attempt, whose registration has a higher number.
    let old = project.git(&["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "an earlier attempt"]);
    project.git(&["push", "-q", "origin", &format!("{old}:refs/liza/task/one/999999")]);
    // What another machine does not have.
    fs::remove_dir_all(project.tree("one")).unwrap();
    for name in project.git(&["for-each-ref", "--format=%(refname)", "refs/heads/task", "refs/liza"]).lines()
    {
        project.git(&["update-ref", "-d", name]);
    }
    claim(&project, "one", "coder-1").ok();
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), head);
    assert_eq!(project.git_at(&project.tree("one"), &["status", "--porcelain"]), "");
    let fixed = commit(&project, &project.tree("one"), "one.txt", "better\n");
    submit(&project, "one", "coder-1", &fixed).ok();
    judge(&project, "one", &["APPROVED"]);
    merge(&project, "one").ok();
    assert_eq!(show(&project, "integration", "one.txt"), "better");
    assert_eq!(refs(&project, "refs/liza/rescue"), [format!("one/{old}")], "the other attempt is kept");
    check_consistent(&project);
}
