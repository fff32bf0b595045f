//! wt-merge: exactly the approved commit, tested, without changing a person's checkout.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::fixture::*;
use crate::support::TestProject;
use crate::support::process::{is_running, own_sleep};

/// Covers: RV-04, RV-07, SP-02, JU-05
#[test]
fn a_merge_moves_the_branch_records_it_and_cleans_up() {
    let project = team();
    let (base, head) = (tip(&project, "integration"), approved(&project, "one"));
    let result = merge(&project, "one").result();
    let merged = tip(&project, "integration");
    assert_eq!((&result["status"], &result["merge_commit"]), (&"MERGED".into(), &merged.as_str().into()));
    let parents = project.git(&["log", "-1", "--format=%P", "integration"]);
    assert_eq!(parents, format!("{base} {head}"), "a merge commit, although a fast-forward is possible");
    assert!(!project.tree("one").exists() && branches(&project, "task/*").is_empty());

    let head = approved(&project, "two");
    advance(&project, "other", "1");
    let old = advance(&project, "other", "2");
    let result = merge(&project, "two").result();
    assert_eq!(result["drift_commits"], 2);
    let merged = tip(&project, "integration");
    assert_eq!(result["merge_commit"], merged.as_str());
    assert_eq!(project.git(&["log", "-1", "--format=%P", "integration"]), format!("{old} {head}"));
    let message = project.git(&["log", "-1", "--format=%B", "integration"]);
    for line in ["Merge two: Do it", "Approved-by: code-reviewer-1", "Liza-Task: two", "Liza-Statement: "] {
        assert!(message.contains(line), "{message}");
    }
    let record = project.record("two");
    assert_eq!((record.merge_commit.unwrap().as_str(), record.worktree), (merged.as_str(), None));
    let state = project.snapshot();
    let sprint = state.board.sprint.ready().unwrap();
    assert_eq!(
        (sprint.id.as_str(), sprint.metrics.tasks_done),
        ("sprint-2", 1),
        "the first sprint had already ended"
    );
    merge(&project, "two").refused(1, "wrong_status");
    check_consistent(&project);
}

/// Covers: RV-04
#[test]
fn a_persons_checkout_and_dirty_files_are_not_disturbed() {
    let project = team();
    project.write("mine.txt", "a person's\n");
    project.write("specs/vision.md", "being edited\n");
    approved(&project, "one");
    let before = project.git(&["status", "--porcelain"]);
    merge(&project, "one").ok();
    assert_eq!(project.git(&["status", "--porcelain"]), before);
    assert_eq!(project.git(&["branch", "--show-current"]), "main");
    assert_eq!(project.read("specs/vision.md"), "being edited\n");

    project.git(&["stash", "-q"]);
    project.git(&["checkout", "-q", "integration"]);
    project.git(&["stash", "pop", "-q"]);
    approved(&project, "two");
    merge(&project, "two").ok();
    assert_eq!(project.read("two.txt"), "done\n", "a checkout of the branch is updated");
    assert_eq!(project.git(&["status", "--porcelain"]), before);

    approved_with(&project, "three", "specs/vision.md", "merged\n");
    let tip_before = tip(&project, "integration");
    let error = merge(&project, "three").refused(3, "checkout_refused");
    assert!(error["hint"].as_str().unwrap().contains("commit or stash"), "{error}");
    assert_eq!((tip(&project, "integration"), project.status("three")), (tip_before, "APPROVED"));
    assert_eq!(project.read("specs/vision.md"), "being edited\n");
    project.git(&["checkout", "-q", "specs/vision.md"]);
    merge(&project, "three").ok();
    check_consistent(&project);
}

/// Covers: RV-04, RV-10
#[test]
fn exactly_the_approved_commit_is_merged_whatever_is_in_the_worktree() {
    let project = team();
    let head = approved(&project, "one");
    let later = commit(&project, &project.tree("one"), "sneaked", "in\n");
    fs::write(project.tree("one").join("uncommitted"), "x\n").unwrap();
    let result = merge(&project, "one").result();
    assert_eq!(tip(&project, "integration^2"), head);
    assert_eq!(result["rescued"], "rescue/one-1", "unapproved work is kept, not merged");
    project.git(&["merge-base", "--is-ancestor", &later, "rescue/one-1"]);
    assert_eq!(show(&project, "rescue/one-1", "uncommitted"), "x");
    check_consistent(&project);
}

/// Covers: RV-04, RV-10
#[test]
fn only_an_approved_task_is_merged() {
    let project = team();
    let before = tip(&project, "integration");
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "x", "x\n");
    merge(&project, "one").refused(1, "wrong_status");
    submit(&project, "one", "coder-1", &head).ok();
    merge(&project, "one").refused(1, "wrong_status");
    judge(&project, "one", &["REJECTED", "no"]);
    merge(&project, "one").refused(1, "wrong_status");
    project.liza_as("coder-1", &["wt-merge", "one", "--json"]).refused(1, "wrong_role");
    assert_eq!(tip(&project, "integration"), before);
}

/// Covers: RV-05
#[test]
fn a_conflict_leaves_the_branch_and_names_the_files() {
    let project = team();
    approved_with(&project, "one", "shared.txt", "of one\n");
    let before = advance(&project, "shared.txt", "of another agent\n");
    let error = merge(&project, "one").refused(3, "conflict");
    assert!(error["message"].as_str().unwrap().contains("shared.txt"), "{error}");
    assert_eq!((tip(&project, "integration"), project.status("one")), (before, "INTEGRATION_FAILED"));
    assert!(project.tree("one").exists(), "the worktree is kept for the fix");
    let record = project.record("one");
    let event = record.history.unwrap().pop().unwrap();
    assert_eq!(event.event, "integration_failed");
    assert!(format!("{:?}", event.more).contains("shared.txt"), "{event:?}");
    assert!(project.log().contains("conflict in shared.txt"), "{}", project.log());
    check_consistent(&project);
}

/// Covers: RV-05
#[test]
fn work_without_a_common_history_is_an_integration_failure() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let folder = project.tree("one");
    project.git_at(&folder, &["checkout", "-q", "--orphan", "alone"]);
    project.git_at(&folder, &["commit", "-qm", "alone"]);
    project.git_at(&folder, &["branch", "-f", "task/one", "alone"]);
    project.git_at(&folder, &["checkout", "-q", "task/one"]);
    let head = project.git_at(&folder, &["rev-parse", "HEAD"]);
    submit(&project, "one", "coder-1", &head).ok();
    judge(&project, "one", &["APPROVED"]);
    merge(&project, "one").refused(3, "unrelated");
    assert_eq!(project.status("one"), "INTEGRATION_FAILED");
}

/// Commits an integration test on the integration branch.
fn with_test(project: &TestProject, text: &str) -> String {
    advance(project, "scripts/integration-test.sh", &format!("#!/bin/sh\n{text}\n"))
}

/// Covers: RO-01, RV-06, JU-08
#[cfg(target_os = "linux")]
#[test]
fn the_test_of_a_merge_reads_nothing_that_the_test_of_another_merge_left() {
    let caches = "\"$CARGO_HOME\" \"$npm_config_cache\" \"$PIP_CACHE_DIR\" \"$GOCACHE\" \"$GOMODCACHE\" \"$XDG_CACHE_HOME\"";
    let test = format!(
        "for cache in {caches}; do\nif test -e \"$cache/planted\"; then echo \"met $cache\"; exit 1; fi\n\
         mkdir -p \"$cache\" && touch \"$cache/planted\" || exit 2\ndone"
    );
    for limit in [None, Some("100")] {
        let project = team();
        if let Some(limit) = limit {
            project.liza(&["config", "sandbox_max_abi", limit]).ok();
        }
        with_test(&project, &test);
        for task in ["one", "two"] {
            approved(&project, task);
            merge(&project, task).ok();
        }
        let left = project.root.join(".liza/caches/checks");
        assert_eq!(fs::read_dir(left).unwrap().count(), 0, "they go with the task: {limit:?}");
    }
}

/// Covers: RV-06
#[test]
fn the_integration_test_sees_the_merged_result_before_the_branch_moves() {
    let project = team();
    with_test(&project, "ls; git rev-parse integration; test -f one.txt");
    approved(&project, "one");
    let before = advance(&project, "other", "x");
    merge(&project, "one").ok();
    let log = project.read(".liza/integration-tests/one-1.log");
    for line in ["one.txt", "other", &before] {
        assert!(log.lines().any(|seen| seen == line), "{line}: {log}");
    }
    let left: Vec<_> = fs::read_dir(project.root.join(".worktrees")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    check_consistent(&project);
}

/// Covers: IS-03, RV-06
#[test]
#[cfg(target_os = "linux")]
fn the_integration_test_is_confined_like_a_session() {
    let project = team();
    let tries = r#"root=$(cd ../.. && pwd)
for path in "$root/planted" "$root/.liza/planted" "$root/.git/planted" "$HOME/planted"; do
  (echo x > "$path") 2> /dev/null && echo "wrote $path"
done
cat "$root/.liza/state.yaml" > /dev/null 2>&1 && echo "read the blackboard"
echo "agent ${SSH_AUTH_SOCK-none}"
echo x > own && echo x > "$TMPDIR/own" && echo "wrote its own""#;
    with_test(&project, tries);
    approved(&project, "one");
    let mut program = project.program();
    program.args(["wt-merge", "one"]).env("SSH_AUTH_SOCK", "/somewhere");
    project.run(&mut program).ok();
    assert_eq!(project.read(".liza/integration-tests/one-1.log"), "agent none\nwrote its own\n");
}

/// Covers: IS-05
#[test]
#[cfg(target_os = "linux")]
fn an_integration_test_does_not_run_below_the_required_level() {
    let project = team();
    with_test(&project, "echo it runs");
    approved(&project, "one");
    for (key, value) in [("sandbox", "require"), ("sandbox_max_abi", "5")] {
        project.liza(&["lock", "write", &format!("config.{key}"), value]).ok();
    }
    merge(&project, "one").refused(3, "integration_test_broken");
    let log = project.read(".liza/integration-tests/one-1.log");
    assert!(log.contains("the confinement would be unenforced") && !log.contains("it runs"), "{log}");
}

/// Covers: RV-06
#[test]
fn a_failed_test_keeps_the_branch_and_its_output() {
    let project = team();
    approved(&project, "one");
    let before = with_test(&project, "test -f one.txt || exit 0; echo it is broken; exit 7");
    let error = merge(&project, "one").refused(3, "integration_test");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("exit status 7") && message.contains(".liza/integration-tests/one-1.log"),
        "{error}"
    );
    assert_eq!(project.read(".liza/integration-tests/one-1.log"), "it is broken\n");
    assert_eq!((tip(&project, "integration"), project.status("one")), (before, "INTEGRATION_FAILED"));
    let event = project.record("one").history.unwrap().pop().unwrap();
    assert!(format!("{:?}", event.more).contains("one-1.log"), "{event:?}");
    check_consistent(&project);
}

/// Covers: RV-06
#[test]
fn a_test_over_its_time_limit_is_killed_with_its_children() {
    let project = team();
    project.set_config("integration_test_limit", "1");
    let sleep = own_sleep(1111);
    let before =
        with_test(&project, &format!("test -f one.txt || exit 0; {sleep} & setsid {sleep} & {sleep}"));
    approved(&project, "one");
    let began = Instant::now();
    let error = merge(&project, "one").refused(3, "integration_test");
    assert!(error["message"].as_str().unwrap().contains("longer than 1 s"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(tip(&project, "integration"), before);
    assert!(!is_running(&sleep));
    check_consistent(&project);
}

fn test_logs(project: &TestProject) -> usize {
    fs::read_dir(project.root.join(".liza/integration-tests")).unwrap().count()
}

/// Covers: RV-06, UI-03
#[test]
fn a_test_that_fails_without_the_task_asks_the_human_and_blames_no_one() {
    let project = team();
    let before = with_test(&project, "test ! -f repaired && { echo no compiler; exit 7; }; exit 0");
    approved(&project, "one");
    approved(&project, "two");
    let error = merge_as_team(&project, "one").refused(3, "integration_test_broken");
    assert!(error["message"].as_str().unwrap().contains("exit status 7"), "{error}");
    assert_eq!((tip(&project, "integration"), project.status("one")), (before, "APPROVED"));
    assert_eq!(test_logs(&project), 2, "the merged result and the branch itself");
    merge_as_team(&project, "one").refused(1, "merge_held");
    merge_as_team(&project, "two").refused(3, "integration_test_broken");
    assert_eq!(test_logs(&project), 3, "the result on the branch is remembered");
    let status = project.liza(&["status"]);
    let status = status.ok();
    for words in ["INTEGRATION TEST BROKEN", "no compiler", "liza resume", "one, two"] {
        assert!(status.contains(words), "{words}: {status}");
    }
    let used = project.snapshot().board.sprint.ready().unwrap().sessions.tasks.clone();

    assert!(used.values().all(|used| *used == 2), "one coding and one reviewing session: {used:?}");
    // A task that corrects the test is merged, and the others continue.
    approved_with(&project, "three", "repaired", "x\n");
    merge_as_team(&project, "three").ok();
    merge_as_team(&project, "one").ok();
    merge_as_team(&project, "two").ok();
    check_consistent(&project);
}

/// Commits a test on the main branch and brings it in.
fn sync_test(project: &TestProject, text: &str) {
    project.write("scripts/integration-test.sh", &format!("#!/bin/sh\n{text}\n"));
    project.git(&["add", "scripts"]);
    project.git(&["commit", "-qm", "the test"]);
    project.liza(&["sync"]).ok();
}

/// Covers: RV-06
#[test]
fn a_held_merge_continues_when_the_human_syncs_a_corrected_test() {
    let project = team();
    sync_test(&project, "exit 1");
    approved(&project, "one");
    approved(&project, "two");
    merge_as_team(&project, "one").refused(3, "integration_test_broken");
    sync_test(&project, "test ! -f two.txt");
    merge_as_team(&project, "one").ok();
    merge_as_team(&project, "two").refused(3, "integration_test");
    assert_eq!(project.status("two"), "INTEGRATION_FAILED", "this time it is the task");
}

/// Covers: RV-06
#[test]
fn a_held_merge_continues_when_the_human_says_so() {
    let project = team();
    project.liza(&["lock", "write", "config.sandbox", "off"]).ok();
    let compiler = project.home().join("compiler");
    sync_test(&project, &format!("test -f {}", compiler.display()));
    approved(&project, "one");
    merge_as_team(&project, "one").refused(3, "integration_test_broken");
    fs::write(&compiler, "").unwrap();
    merge_as_team(&project, "one").refused(1, "merge_held");
    project.liza(&["resume"]).ok();
    merge_as_team(&project, "one").ok();
}

/// Covers: RV-06
#[test]
fn a_task_that_changes_the_test_must_pass_its_own_version_and_is_not_blamed_for_a_broken_branch() {
    let project = team();
    with_test(&project, "exit 1");
    approved_with(&project, "one", "scripts/integration-test.sh", "exit 2\n");
    merge_as_team(&project, "one").refused(3, "integration_test_broken");
    with_test(&project, "test -f scripts/integration-test.sh");
    merge_as_team(&project, "one").refused(3, "conflict");
    approved_with(&project, "two", "scripts/integration-test.sh", "exit 2\n");
    merge_as_team(&project, "two").refused(3, "integration_test");
    assert_eq!(project.status("two"), "INTEGRATION_FAILED");
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Covers: RV-08, AG-17
#[test]
fn a_started_merge_is_finished_under_pause_and_others_wait_for_it() {
    let project = team();
    with_test(&project, "while [ ! -e ../../go ]; do sleep 0.05; done");
    // Without a room: in one, the test does not see a file of the project outside of its checkout.
    project.liza(&["lock", "write", "config.sandbox_max_abi", "100"]).ok();
    for task in ["one", "two"] {
        approved(&project, task);
    }
    let start = |task: &str| {
        let mut program = project.program();
        program.args(["wt-merge", task, "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        program.spawn().unwrap()
    };
    let log = |task: &str| project.root.join(format!(".liza/integration-tests/{task}-1.log")).exists();
    let first = start("one");
    wait_for("the first test", || log("one"));
    let mut second = start("two");
    let has_open = |process: u32| {
        let files = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        files.flat_map(|file| std::fs::read_link(file.path())).any(|file| file.ends_with(".liza/merge.lock"))
    };
    wait_for("the second at the lock", || has_open(second.id()));
    assert!(!log("two"), "two merges at once");
    assert!(second.try_wait().unwrap().is_none());
    project.liza(&["pause"]).ok();
    project.write("go", "");
    let output = first.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(project.status("one"), "MERGED");
    let output = second.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(42), "a merge that had not started does not start: {output:?}");
    project.liza(&["resume"]).ok();
    merge(&project, "two").ok();
    check_consistent(&project);
}

/// Covers: RV-08
#[test]
fn a_branch_that_moves_during_the_merge_is_foreign_until_it_is_accepted() {
    let project = team();
    approved(&project, "one");
    // Another commit precedes each move of the branch, as often as the file says.
    let count = project.home().join("moves");
    let real = "git() { /usr/bin/env -u LIZA_GIT_OWNER PATH=\"$REAL\" git \"$@\"; }";
    let overtake = format!(
        "case \"$*\" in *update-ref*'liza: merge'*)\n n=$(cat '{count}'); if [ $n -gt 0 ]; then\n \
         echo $((n-1)) >'{count}'; {real}\n \
         new=$(git commit-tree integration^{{tree}} -p integration -m other); \
         git update-ref refs/heads/integration $new; fi;; esac",
        count = count.display()
    );
    let path = git_wrapper(&project, &overtake);
    let merge_with = |moves: u32| {
        fs::write(&count, moves.to_string()).unwrap();
        let mut program = project.program();
        program.args(["wt-merge", "one", "--json"]).env("PATH", &path);
        program.env("REAL", std::env::var_os("PATH").unwrap());
        project.run(&mut program)
    };
    merge_with(1).refused(1, "foreign_commits");
    assert_eq!(project.status("one"), "APPROVED");
    project.liza(&["accept-integration"]).ok();
    merge_with(0).ok();
    assert_eq!(project.git(&["rev-list", "--count", "--grep=Liza-Task: one", "integration"]), "1");
    check_consistent(&project);
}

/// Covers: RV-08
#[test]
fn a_merge_that_is_only_in_git_is_recorded_once() {
    for by_recover in [false, true] {
        let project = team();
        let head = approved(&project, "one");
        advance(&project, "other", "x");
        let merged = move_branch_only(&project, "one", &head);
        assert_eq!((tip(&project, "integration"), project.status("one")), (merged.clone(), "APPROVED"));
        if by_recover {
            assert_eq!(recover(&project), ["merge one"]);
        } else {
            merge(&project, "one").ok();
        }
        let record = project.record("one");
        assert_eq!(record.merge_commit.unwrap().as_str(), merged);
        assert_eq!(history(&project, "one").iter().filter(|event| *event == "merged").count(), 1);
        assert_eq!(tip(&project, "integration"), merged, "{head} is not merged again");
        assert!(!project.tree("one").exists());
        check_consistent(&project);
    }
}

/// Covers: RV-09
#[test]
fn another_reviewer_merges_only_when_the_approver_is_gone() {
    let project = team();
    approved(&project, "one");
    let by_other = || project.liza_as("code-reviewer-2", &["wt-merge", "one", "--json"]);
    by_other().refused(1, "merge_belongs_to");
    assert_eq!(project.status("one"), "APPROVED");
    expire(&project, "code-reviewer-1");
    by_other().ok();
    assert!(project.log().contains("agent: code-reviewer-2\n  action: merged"), "{}", project.log());
}

/// Covers: RV-10
#[test]
fn a_merge_whose_approval_was_withdrawn_in_the_meantime_is_undone() {
    let project = team();
    approved(&project, "one");
    let before = tip(&project, "integration");
    // A person blocks the task while git moves the branch.
    let block = format!(
        "case \"$*\" in *update-ref*'liza: merge one'*) \
         env -u LIZA_AGENT_ID '{}' -C '{}' mark-blocked one --reason stop >/dev/null;; esac",
        env!("CARGO_BIN_EXE_liza"),
        project.root.display()
    );
    let path = git_wrapper(&project, &block);
    let mut program = project.program();
    program.args(["wt-merge", "one", "--json"]).env("PATH", &path);
    project.run(&mut program).refused(1, "wrong_status");
    assert_eq!(project.status("one"), "BLOCKED");
    assert_eq!(tip(&project, "integration"), before);
    check_consistent(&project);
}

/// Covers: AC-18
#[test]
fn broken_settings_are_an_error_and_nothing_lands_on_the_default_branch() {
    let project = team();
    let before = tip(&project, "integration");
    approved(&project, "one");
    project.set_config("integration_branch", "[release]");
    let error = merge(&project, "one").refused(4, "broken_section");
    assert!(error["message"].as_str().unwrap().contains("config"), "{error}");
    assert_eq!((tip(&project, "integration"), project.status("one")), (before, "APPROVED"));
}

/// Covers: AX-37, JU-05
#[test]
fn work_that_a_person_merged_is_accepted_and_tested_before_it_is_recorded() {
    for (test, status) in [("test -f one.txt", "MERGED"), ("! test -f one.txt", "APPROVED")] {
        let project = team();
        with_test(&project, test);
        let head = approved(&project, "one");
        project.git(&["update-ref", "refs/heads/integration", &head]);
        assert_eq!(recover(&project), Vec::<String>::new());
        assert_eq!(project.status("one"), "APPROVED", "it is not tested yet");
        merge(&project, "one").refused(1, "foreign_commits");
        project.liza(&["accept-integration"]).ok();
        let run = merge(&project, "one");
        match status {
            "MERGED" => {
                run.ok();
                let parents = project.git(&["log", "-1", "--format=%P", "integration"]);
                assert_eq!(parents, head, "one commit more, without changes");
            }
            // It fails on the branch that the human accepted, so no task is to blame.
            _ => drop(run.refused(3, "integration_test_broken")),
        }
        assert_eq!(project.status("one"), status);
        assert!(project.root.join(".liza/integration-tests/one-1.log").exists(), "the test ran");
    }
}
