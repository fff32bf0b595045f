//! The project's integration test, run on the merged result.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_git::{IntegrationTestResult, TestStage};
use liza_ids::GateSettings;
use liza_ids::gate::GatePatterns;

use crate::support::{TestRepo, read, script, write};

const LONG: Duration = Duration::from_secs(60);

/// A repository whose HEAD has this test, and the file for its output.
fn with_test(text: &str) -> (TestRepo, PathBuf) {
    let test = TestRepo::at("my próject");
    script(&test.root.join("scripts/integration-test.sh"), text);
    test.git(&["add", "."]);
    test.git(&["commit", "-qm", "test"]);
    let output = test.home.path().join("output");
    (test, output)
}

/// Runs the test of HEAD, if it has one, unconfined.
fn run_head(test: &TestRepo, output: &Path, limit: Duration) -> IntegrationTestResult {
    let (repo, commit) = (&test.repo, test.sha("HEAD"));
    if !repo.is_tested(&commit).unwrap() {
        return IntegrationTestResult::NoScript;
    }
    let protected = repo.protected(&commit, &GatePatterns::new(&GateSettings::default())).unwrap();
    let checkout = repo.scratch_checkout(&commit).unwrap();
    let (liza, plan) = (Path::new("liza"), &|_: &Path, _: &Path| Ok(None));
    let stage = TestStage { liza, caches: output, minimum: None, cancelled: None, plan };
    repo.run_test((&commit, &checkout), &protected, output, limit, &stage).unwrap()
}

fn run(test: &TestRepo, output: &Path, limit: Duration) -> IntegrationTestResult {
    let before = test.worktree_list();
    let result = run_head(test, output, limit);
    assert_eq!(test.worktree_list(), before, "its worktree is gone");
    assert_eq!(fs::read_dir(test.root.join(".worktrees")).map_or(0, Iterator::count), 0);
    result
}

#[cfg(target_os = "linux")]
fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z")
}

/// Covers: RV-06
#[test]
fn a_commit_without_a_script_needs_no_test() {
    let test = TestRepo::new();
    assert_eq!(run(&test, &test.home.path().join("output"), LONG), IntegrationTestResult::NoScript);
}

/// Covers: RV-06
#[test]
fn a_test_runs_in_a_clean_checkout_of_the_commit() {
    let (test, output) = with_test("pwd; cat a; git rev-parse HEAD; env | grep -c ^GIT_DIR; echo done >&2");
    let commit = test.sha("HEAD");
    crate::support::write(&test.root.join("a"), "dirty\n");
    assert_eq!(run(&test, &output, LONG), IntegrationTestResult::Passed);
    let text = read(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains(".worktrees/.integration-test-"), "{text}");
    assert_eq!(lines[1..], ["a", commit.as_str(), "0", "done"]);
}

/// Covers: RV-06
#[test]
fn a_failed_test_is_reported_with_status_and_output() {
    let (test, output) = with_test("echo it broke; exit 3");
    assert_eq!(run(&test, &output, LONG), IntegrationTestResult::Failed { status: Some(3), signal: None });
    assert_eq!(read(&output), "it broke\n");
}

/// Covers: RV-06
#[test]
#[cfg(target_os = "linux")]
fn after_the_time_limit_the_whole_process_family_is_killed() {
    // One child in the group, one that left it, one that left it and whose parent is gone.
    let (test, output) = with_test(
        "sleep 600 & echo $!\nsetsid sleep 600 & echo $!\n(setsid sh -c 'echo $$; exec sleep 600' &)\nsleep 600",
    );
    let mut pids = String::new();
    // A busy machine may need longer before there is something to kill.
    for limit in [500, 2_000, 10_000, 30_000].map(Duration::from_millis) {
        assert_eq!(run(&test, &output, limit), IntegrationTestResult::TimedOut);
        pids = read(&output);
        if pids.lines().count() == 3 {
            break;
        }
    }
    assert_eq!(pids.lines().count(), 3, "{pids}");
    for pid in pids.lines() {
        assert!(!is_running(pid), "{pid} of {pids}");
    }
}

/// Covers: RV-06
#[test]
#[cfg(target_os = "linux")]
fn background_processes_of_a_passed_test_are_killed_too() {
    let (test, output) = with_test("setsid sleep 600 & echo $!");
    assert_eq!(run(&test, &output, LONG), IntegrationTestResult::Passed);
    assert!(!is_running(&read(&output)));
}

/// Covers: RV-06
#[test]
fn a_script_that_cannot_start_fails_and_one_that_is_not_executable_runs() {
    let (test, output) = with_test("echo ran");
    test.git(&["update-index", "--chmod=-x", "scripts/integration-test.sh"]);
    test.git(&["commit", "-qm", "mode"]);
    assert_eq!(run(&test, &output, LONG), IntegrationTestResult::Passed);
    let (test, output) = with_test("");
    fs::write(test.root.join("scripts/integration-test.sh"), "#!/nonexistent/shell\n").unwrap();
    test.git(&["commit", "-qam", "shell"]);
    assert_eq!(run(&test, &output, LONG), IntegrationTestResult::Failed { status: Some(126), signal: None });
    assert!(read(&output).contains("could not be started"));
}

/// Covers: RV-06
#[test]
fn a_checkout_left_by_a_crash_is_removed() {
    let (test, output) = with_test("true");
    let left = [".worktrees", ".liza"].map(|at| test.root.join(at).join(".integration-test-4194305-0"));
    left.iter().for_each(|left| write(&left.join("a"), "a\n"));
    assert_eq!(run_head(&test, &output, LONG), IntegrationTestResult::Passed);
    assert!(!left.iter().any(|left| left.exists()));
}
