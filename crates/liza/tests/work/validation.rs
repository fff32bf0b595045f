//! Validation: Liza runs the commands on exactly the submitted commit, in a copy, before a session is paid for.

use std::fs;

use serde_json::Value;

use crate::fixture::*;
use crate::support::process::{Running, end, is_running, own_sleep, wait_for};
use crate::support::{Run, TestProject};

/// A team whose work must pass these commands.
pub(crate) fn validated_by(commands: &[&str]) -> TestProject {
    let project = team();
    set_commands(&project, commands);
    project
}

pub(crate) fn set_commands(project: &TestProject, commands: &[&str]) {
    project.liza(&["config", "validation", &serde_json::to_string(commands).unwrap()]).ok();
}

pub(crate) fn review(project: &TestProject, task: &str) -> Run {
    project.liza(&["claim-review", task, "code-reviewer-1", "--json"])
}

#[track_caller]
pub(crate) fn is_red(project: &TestProject, task: &str, words: &str) -> Value {
    let error = review(project, task).refused(1, "validation_failed");
    let reason = project.record(task).rejection_reason.unwrap();
    assert!(reason.starts_with("validation_failed: ") && reason.contains(words), "{reason}");
    assert_eq!((project.status(task), project.record(task).reviewing_by), ("REJECTED", None));
    assert_eq!(project.record(task).review_cycles_total.unwrap_or(0), 0, "nothing was reviewed");
    check_consistent(project);
    error
}

pub(crate) fn runs(project: &TestProject) -> usize {
    let logs = fs::read_dir(project.root.join(".liza/integration-tests"));
    logs.into_iter().flatten().flatten().count()
}

/// Covers: JU-02, JU-03, AX-20
#[test]
fn work_that_fails_its_commands_comes_back_without_a_review() {
    let project = validated_by(&["echo looking at $PWD/one.txt; test ! -f broken"]);
    let broken = submitted_with(&project, "one", "broken", "x\n");
    is_red(&project, "one", "looking at one.txt");
    let page = project.liza(&["show", "one"]).ok().to_owned();
    assert_eq!(page.matches("looking at one.txt").count(), 1, "{page}");
    claim(&project, "one", "coder-1").ok();
    submit(&project, "one", "coder-1", &broken).refused(1, "already_failed");
    let tree = project.tree("one");
    fs::remove_file(tree.join("broken")).unwrap();
    let repaired = commit(&project, &tree, "one.txt", "done\n");
    submit(&project, "one", "coder-1", &repaired).ok();
    let claimed = review(&project, "one").result();
    assert_eq!((claimed["commit"].as_str(), project.record("one").review_phase), (Some(&*repaired), None));
    verdict(&project, "one", &["APPROVED"]).ok();
    let before = runs(&project);
    merge(&project, "one").ok();
    assert_eq!(runs(&project), before, "the same files have passed the same commands");
    assert!(
        project.liza(&["show", "one"]).ok().contains("passed on"),
        "{}",
        project.liza(&["show", "one"]).stdout
    );
    assert!(
        !project
            .root
            .join(".worktrees")
            .read_dir()
            .unwrap()
            .any(|left| { left.unwrap().file_name().to_string_lossy().starts_with(".integration-test-") })
    );
}

/// Covers: JU-02, JU-03
#[test]
fn a_tasks_own_command_shows_its_work_and_is_never_compared_with_the_branch() {
    let project = team();
    project.add_task("one");
    project
        .liza(&["edit-task", "one", "--validate", "grep -q retries one.txt", "--validate", "test -f one.txt"])
        .ok();
    claim(&project, "one", "coder-1").ok();
    let head = commit(&project, &project.tree("one"), "one.txt", "done\n");
    submit(&project, "one", "coder-1", &head).ok();
    is_red(&project, "one", "grep -q retries one.txt");
    claim(&project, "one", "coder-1").ok();
    let head = commit(&project, &project.tree("one"), "one.txt", "it retries\n");
    submit(&project, "one", "coder-1", &head).ok();
    review(&project, "one").ok();
}

/// Covers: JU-03
#[test]
fn a_command_that_fails_without_the_work_too_blames_nobody() {
    let project = validated_by(&["exit 7"]);
    submitted(&project, "one");
    review(&project, "one").refused(1, "validation_held");
    assert_eq!((project.status("one"), project.record("one").reviewing_by), ("READY_FOR_REVIEW", None));
    let status = project.liza(&["status"]);
    for words in ["VALIDATION HELD", "liza retry-validation one", "`exit 7` failed with exit status 7"] {
        assert!(status.ok().contains(words), "{words}: {}", status.stdout);
    }
    assert!(
        status.stdout.contains("its validation fails, and its change is not blamed"),
        "{}",
        status.stdout
    );
    let doctor = project.liza(&["doctor"]).stdout;
    for words in
        ["validation          before every review: exit 7", "none; to test merges besides validation"]
    {
        assert!(doctor.contains(words), "{words}: {doctor}");
    }
    project.liza_as("code-reviewer-1", &["retry-validation", "one", "--json"]).refused(1, "not_permitted");
    set_commands(&project, &["test -f one.txt"]);
    assert!(!project.liza(&["status"]).ok().contains("VALIDATION HELD"), "other commands end it");
    review(&project, "one").ok();
    check_consistent(&project);
}

/// The branch has commits that nobody accepted, so its head is not the recorded one.
///
/// Covers: JU-03
#[test]
fn a_foreign_commit_on_the_branch_lets_no_held_validation_run_without_end() {
    let project = validated_by(&["exit 7"]);
    submitted(&project, "one");
    let foreign = project.git(&["commit-tree", "integration^{tree}", "-p", "integration", "-m", "by hand"]);
    project.git(&["update-ref", "refs/heads/integration", &foreign]);
    review(&project, "one").refused(1, "validation_held");
    assert!(project.liza(&["status"]).ok().contains("VALIDATION HELD"), "{}", project.state());
    // The human accepts what is there: another head.
    project.liza(&["accept-integration"]).ok();
    assert!(!project.liza(&["status"]).ok().contains("VALIDATION HELD"), "it is tried once more");
    review(&project, "one").refused(1, "validation_held");
}

/// Covers: JU-03
#[test]
fn a_limit_that_was_too_short_holds_the_review_until_it_is_raised() {
    let project = validated_by(&["sleep 1.5"]);
    project.liza(&["config", "validation_limit", "1"]).ok();
    submitted(&project, "one");
    let error = review(&project, "one").refused(1, "validation_held");
    assert!(error["message"].as_str().unwrap().contains("took longer than 1 s"), "{error}");
    assert!(project.liza(&["status"]).ok().contains("VALIDATION HELD"));
    project.liza(&["config", "max_review_cycles", "7"]).ok();
    assert!(project.liza(&["status"]).ok().contains("VALIDATION HELD"), "another setting is not the cause");
    project.liza(&["config", "validation_limit", "60"]).ok();
    assert!(!project.liza(&["status"]).ok().contains("VALIDATION HELD"));
    review(&project, "one").ok();
}

/// Covers: JU-03
#[test]
fn a_program_that_is_not_installed_blames_nobody_and_a_missing_file_of_the_work_does() {
    let project = validated_by(&["no-such-program-here --version"]);
    submitted(&project, "one");
    let error = review(&project, "one").refused(1, "validation_held");
    assert!(error["message"].as_str().unwrap().contains("no-such-program-here is not installed"), "{error}");
    set_commands(&project, &[]);
    project.liza(&["edit-task", "one", "--validate", "./check.sh"]).ok();
    is_red(&project, "one", "./check.sh");
}

/// Covers: JU-03
#[test]
fn a_command_has_two_tries_and_passing_at_the_second_is_recorded() {
    let flaky = "test -e \"$XDG_CACHE_HOME/mark\" || { mkdir -p \"$XDG_CACHE_HOME\"; touch \"$XDG_CACHE_HOME/mark\"; exit 1; }";
    let project = validated_by(&[flaky]);
    submitted(&project, "one");
    review(&project, "one").ok();
    let validated = project.record("one").validated.unwrap();
    assert_eq!(validated.flaky, [flaky]);
    assert_eq!(runs(&project), 2);
}

/// Covers: JU-01, JU-03
#[test]
fn work_cannot_change_the_script_that_validates_it() {
    let project = validated_by(&["sh scripts/check.sh"]);
    advance(&project, "scripts/check.sh", "test ! -f broken\n");
    claimed(&project, "one", "coder-1");
    let tree = project.tree("one");
    fs::write(tree.join("broken"), "x").unwrap();
    let head = commit(&project, &tree, "scripts/check.sh", "exit 0\n");
    submit(&project, "one", "coder-1", &head).ok();
    // Its own version passes, so the human is asked at the merge, with the failure of the old one.
    judge(&project, "one", &["APPROVED"]);
    merge(&project, "one").refused(1, "gate_changed");
    let change = project.record("one").gate_change.unwrap();
    assert!(change.old_failure.unwrap().what.contains("sh scripts/check.sh"));
    // Without a change of its own, the script of the branch decides, whatever the commit has.
    claimed(&project, "two", "coder-2");
    let tree = project.tree("two");
    let head = commit(&project, &tree, "broken", "x\n");
    submit(&project, "two", "coder-2", &head).ok();
    review(&project, "two").refused(1, "validation_failed");
}

/// Covers: JU-03
#[test]
fn a_command_that_misbehaves_ends_with_a_clear_sentence_and_leaves_nothing() {
    let left = own_sleep(30);
    let leaves = format!("(setsid {left} &) ; exit 5");
    let cases = [
        ("sleep 600", "took longer than 1 s"),
        ("kill -9 $PPID; exit 6", "failed with exit status 6"),
        ("rm -rf ./* .git; exit 4", "failed with exit status 4"),
        (&leaves, "failed with exit status 5"),
        ("kill -11 $$", "139"),
    ];
    let project = team();
    project.liza(&["config", "validation_limit", "1"]).ok();
    for (number, (command, words)) in cases.iter().enumerate() {
        let task = format!("t{number}");
        project.add_task(&task);
        project.liza(&["edit-task", &task, "--validate", command]).ok();
        claim(&project, &task, "coder-1").ok();
        let head = commit(&project, &project.tree(&task), &format!("{task}.txt"), "done\n");
        submit(&project, &task, "coder-1", &head).ok();
        is_red(&project, &task, words);
        assert!(!is_running(&left), "{command}");
        project.liza(&["abandon-task", &task, "--reason", "seen"]).ok();
    }
}

/// Covers: JU-03
#[test]
fn a_command_that_prints_without_end_fills_no_disk_and_its_last_lines_are_known() {
    let project = team();
    let endless = format!("yes {}", "x".repeat(1_000));
    for (task, limit, command, words) in [
        ("one", "1", endless.clone(), "took longer than 1 s"),
        (
            "two",
            "300",
            format!("{endless} | head -c 20M; echo; echo the last line; exit 9"),
            "\n  the last line",
        ),
    ] {
        project.liza(&["config", "validation_limit", limit]).ok();
        project.add_task(task);
        project.liza(&["edit-task", task, "--validate", &command]).ok();
        claim(&project, task, "coder-1").ok();
        let head = commit(&project, &project.tree(task), &format!("{task}.txt"), "done\n");
        submit(&project, task, "coder-1", &head).ok();
        is_red(&project, task, words);
        project.liza(&["abandon-task", task, "--reason", "seen"]).ok();
    }
    let logs = fs::read_dir(project.root.join(".liza/integration-tests")).unwrap().map(|log| log.unwrap());
    let sizes: Vec<u64> = logs.map(|log| log.metadata().unwrap().len()).collect();
    assert!(sizes.len() == 4 && sizes.iter().all(|size| *size < (8 << 20) + 200), "{sizes:?}");
    assert!(sizes.iter().any(|size| *size > 8 << 20), "{sizes:?}");
}

/// A *shows* command is never compared with the branch, so only its words tell what it misses.
///
/// Covers: JU-03
#[test]
fn a_command_that_needs_a_network_which_it_does_not_have_blames_no_task() {
    let project = team();
    project.liza(&["config", "roles.code-reviewer.network", "model-only"]).ok();
    let fetch = "git ls-remote https://liza.invalid/x";
    for (task, command, is_held) in
        [("one", fetch, true), ("two", "echo 'connect ECONNREFUSED 127.0.0.1:1'; exit 3", false)]
    {
        submitted(&project, task);
        project.liza(&["edit-task", task, "--validate", command]).ok();
        let code = if is_held { "validation_held" } else { "validation_failed" };
        let error = review(&project, task).refused(1, code);
        let message = error["message"].as_str().unwrap();
        assert_eq!(message.contains("roles.code-reviewer.network is model-only"), is_held, "{message}");
        assert_eq!(project.status(task), if is_held { "READY_FOR_REVIEW" } else { "REJECTED" });
    }
    assert!(project.liza(&["status"]).ok().contains("VALIDATION HELD"));
    // With a network, a host that does not exist is the command's own fault.
    project.liza(&["config", "roles.code-reviewer.network", "open"]).ok();
    review(&project, "one").refused(1, "validation_failed");
}

/// Covers: JU-03
#[test]
fn a_verdict_of_the_human_kills_the_run() {
    let sleep = own_sleep(31);
    let project = validated_by(&[&format!("touch /tmp/x 2>/dev/null; {sleep}")]);
    submitted(&project, "one");
    let mut claiming = Running::liza(&project, &["claim-review", "one", "code-reviewer-1", "--json"]);
    wait_for("the command", || is_running(&sleep).then_some(()));
    let state = project.liza(&["status", "--json"]).result();
    let agent = state["agents"].as_array().unwrap().iter().find(|agent| agent["id"] == "code-reviewer-1");
    assert_eq!(agent.unwrap()["next"]["what"], "validate", "{state}");
    let shown = project.liza(&["status"]);
    assert!(shown.ok().contains("VALIDATING"), "{}", shown.stdout);
    project.liza(&["submit-verdict", "one", "REJECTED", "not wanted"]).ok();
    assert_ne!(claiming.wait(), 0);
    assert!(!is_running(&sleep));
    let record = project.record("one");
    assert_eq!((project.status("one"), record.validated, record.reviewing_by), ("REJECTED", None, None));
    check_consistent(&project);
}

/// Covers: JU-01, JU-03
#[test]
fn a_gate_that_changes_while_the_commands_run_lets_no_session_begin() {
    let (project, sleep, mut claiming) = validating(33);
    advance(&project, "scripts/check.sh", "exit 0\n");
    end(&sleep);
    assert_ne!(claiming.wait(), 0);
    assert!(claiming.output().contains("validation_stale"), "{}", claiming.output());
    let record = project.record("one");
    assert_eq!(
        (record.reviewing_by, record.validated.unwrap().result.to_string()),
        (None, "green".to_owned())
    );
    let old = runs(&project);
    let again = Running::liza(&project, &["claim-review", "one", "code-reviewer-1", "--json"]);
    wait_for("the commands, under the new gate", || (runs(&project) > old).then_some(()));
    drop(again);
}

/// Covers: JU-03
#[test]
fn a_killed_claim_leaves_nothing_and_the_next_one_runs_again() {
    let (project, sleep, mut claiming) = validating(34);
    claiming.kill();
    wait_for("its end", || (!is_running(&sleep)).then_some(()));
    assert_eq!(project.record("one").validated, None);
    let mut again = claim_in_background(&project, &sleep);
    end(&sleep);
    assert_eq!(again.wait(), 0, "{}", again.output());
    assert_eq!(project.record("one").validated.unwrap().result.to_string(), "green");
    check_consistent(&project);
}

/// Covers: JU-03
#[test]
fn abort_kills_a_validation_and_frees_the_review() {
    let (project, sleep, mut claiming) = validating(35);
    project.liza(&["abort"]).ok();
    assert_ne!(claiming.wait(), 0);
    assert!(!is_running(&sleep));
    let record = project.record("one");
    assert_eq!((record.validated, record.reviewing_by, record.review_phase), (None, None, None));
    assert_eq!(project.status("one"), "READY_FOR_REVIEW");
    check_consistent(&project);
}

/// Covers: JU-03
#[test]
fn under_pause_and_checkpoint_a_validation_ends_and_no_session_begins() {
    for (number, stop) in [(36, "pause"), (37, "checkpoint")] {
        let (project, sleep, mut claiming) = validating(number);
        project.liza(&[stop]).ok();
        assert!(is_running(&sleep), "{stop}: it goes on to its end");
        end(&sleep);
        assert_ne!(claiming.wait(), 0, "{stop}");
        let record = project.record("one");
        assert_eq!(record.validated.unwrap().result.to_string(), "green", "{stop}: its result is kept");
        assert_eq!((record.reviewing_by, record.review_phase), (None, None), "{stop}: the review is free");
        project.liza(&["resume"]).ok();
        let before = runs(&project);
        review(&project, "one").ok();
        assert_eq!(
            (runs(&project), project.record("one").review_phase),
            (before, None),
            "{stop}: nothing runs again"
        );
        check_consistent(&project);
    }
}

/// A submitted task whose validation runs now: one command that lasts, and passes when it is ended.
pub(crate) fn validating(seconds: u32) -> (TestProject, String, Running) {
    let sleep = own_sleep(seconds);
    let project = validated_by(&[&format!("{sleep}; true")]);
    submitted(&project, "one");
    let claiming = claim_in_background(&project, &sleep);
    (project, sleep, claiming)
}

fn claim_in_background(project: &TestProject, sleep: &str) -> Running {
    let claiming = Running::liza(project, &["claim-review", "one", "code-reviewer-1", "--json"]);
    wait_for("the command", || is_running(sleep).then_some(()));
    claiming
}

/// Covers: JU-03
#[test]
fn a_merge_runs_the_commands_on_the_merged_files() {
    let project = validated_by(&["test ! -f one.txt || test ! -f two.txt"]);
    for task in ["one", "two"] {
        submitted(&project, task);
        review(&project, task).ok();
        verdict(&project, task, &["APPROVED"]).ok();
    }
    merge(&project, "one").ok();
    let error = merge(&project, "two").refused(3, "integration_test");
    assert!(error["message"].as_str().unwrap().contains("test ! -f one.txt"), "{error}");
    assert_eq!(project.status("two"), "INTEGRATION_FAILED");
    // The human's approval needs no validation, but the merge does.
    let project = validated_by(&["test ! -f broken"]);
    submitted_with(&project, "one", "broken", "x\n");
    project.liza(&["submit-verdict", "one", "APPROVED"]).ok();
    merge(&project, "one").refused(3, "integration_test");
}

/// Covers: JU-02
#[test]
fn a_check_without_a_command_runs_those_that_validate_the_work() {
    let project = validated_by(&["echo one", "test -f wanted.txt", "echo never"]);
    let run = project.liza(&["check"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "one\n"), "{run:?}");
    project.write("wanted.txt", "");
    assert_eq!(project.liza(&["check"]).ok(), "one\nnever\n");
    set_commands(&project, &[]);
    project.liza(&["check", "--json"]).refused(1, "nothing_to_do");
    // A session has those of its task.
    let mut coder = project.program();
    let run = project
        .run(coder.args(["check"]).env("LIZA_AGENT_ID", "coder-1").env("LIZA_VALIDATION", "echo a\nexit 4"));
    assert_eq!((run.code, run.stdout.as_str()), (4, "a\n"), "{run:?}");
}

/// Covers: JU-02
#[test]
fn a_check_of_one_word_with_spaces_is_a_line_for_the_shell() {
    let project = team();
    let check = |words: &[&str]| project.liza(&[&["check", "--"], words].concat());
    assert_eq!(check(&["echo one && echo two"]).ok(), "one\ntwo\n");
    assert_eq!(check(&["exit 7\n"]).code, 7);
    assert_eq!(check(&["echo", "one && echo two"]).ok(), "one && echo two\n");
    // A file of that name changes nothing.
    fs::create_dir(project.root.join("echo the")).unwrap();
    script(&project.root.join("echo the/line"), "echo of the work");
    assert_eq!(check(&["echo the/line"]).ok(), "the/line\n");
    let mut coder = project.program();
    let run = project.run(coder.args(["check", "--", "echo a; exit 4"]).env("LIZA_AGENT_ID", "coder-1"));
    assert_eq!((run.code, run.stdout.as_str()), (4, "a\n"), "{run:?}");
}

/// Covers: JU-04
#[test]
fn an_approval_without_the_statement_of_its_validation_is_refused() {
    let project = validated_by(&["test -f one.txt"]);
    submitted(&project, "one");
    review(&project, "one").ok();
    let receipt = project.record("one").validated.unwrap().receipt.unwrap();
    let kept = project.git(&["rev-parse", "refs/liza/receipts"]);
    let stated = project.git(&["show", &format!("refs/liza/receipts:{}/{receipt}.json", &receipt[..2])]);
    for words in ["\"exit\":0", "test -f one.txt", "\"origin\":\"project\""] {
        assert!(stated.contains(words), "{words}: {stated}");
    }
    let host = project.git(&["config", "user.email"]);
    assert!(!stated.contains(&host) && !stated.contains(project.root.to_str().unwrap()), "{stated}");
    // Deleted, or another chain in its place.
    project.git(&["update-ref", "-d", "refs/liza/receipts"]);
    verdict(&project, "one", &["APPROVED"]).refused(1, "no_receipt");
    project.git(&["update-ref", "refs/liza/receipts", &tip(&project, "integration")]);
    verdict(&project, "one", &["APPROVED"]).refused(1, "no_receipt");
    project.git(&["update-ref", "refs/liza/receipts", &kept]);
    verdict(&project, "one", &["APPROVED"]).ok();
    merge(&project, "one").ok();
    let verified = project.liza(&["verify", "--json"]).result();
    assert!(verified.to_string().contains("CONSISTENT"), "{verified}");
}

/// Covers: JU-05
#[test]
fn the_human_merges_without_validation_and_verify_says_so() {
    let project = validated_by(&["test ! -f broken"]);
    for task in ["one", "two"] {
        submitted_with(&project, task, "broken", task);
        project.liza(&["submit-verdict", task, "APPROVED"]).ok();
    }
    let words = ["wt-merge", "one", "--without-validation", "--json"];
    project.liza_as("code-reviewer-1", &words).refused(1, "not_permitted");
    project.liza(&words).ok();
    let newest = |project: &TestProject| project.liza(&["verify", "--json"]).result()["commits"][0].clone();
    assert_eq!(newest(&project)["class"], "OVERRIDDEN");
    // The gate judges even then.
    project.add_task("three");
    claim(&project, "three", "coder-1").ok();
    let work = commit(&project, &project.tree("three"), "three.txt", "done\n");
    submit(&project, "three", "coder-1", &work).ok();
    project.liza(&["submit-verdict", "three", "APPROVED"]).ok();
    advance(&project, "scripts/integration-test.sh", "#!/bin/sh\ntest ! -f three.txt\n");
    project.liza(&["wt-merge", "three", "--without-validation", "--json"]).refused(3, "integration_test");
    // The same word with the approval: a code reviewer's supervisor merges it so.
    advance(&project, "scripts/integration-test.sh", "#!/bin/sh\ntest ! -f five.txt\n");
    let approve = |task| ["submit-verdict", task, "APPROVED", "--without-validation", "--json"];
    submitted(&project, "six");
    project.liza_as("code-reviewer-1", &approve("six")).refused(1, "not_permitted");
    project
        .liza(&["submit-verdict", "six", "REJECTED", "no", "--without-validation", "--json"])
        .refused(1, "usage");
    project.liza(&approve("six")).ok();
    assert!(project.log().contains("without validation"), "{}", project.log());
    project.liza_as("code-reviewer-1", &["wt-merge", "six", "--json"]).ok();
    assert_eq!(newest(&project)["class"], "OVERRIDDEN");
    submitted(&project, "five");
    project.liza(&approve("five")).ok();
    merge(&project, "five").refused(3, "integration_test");
    // Without a command there is nothing to leave out.
    set_commands(&project, &[]);
    submitted(&project, "four");
    project.liza(&["submit-verdict", "four", "APPROVED"]).ok();
    project.liza(&["wt-merge", "four", "--without-validation"]).ok();
    assert_eq!(newest(&project)["class"], "CONSISTENT");
}
