//! The cost of judging, counted in writes and processes: these figures are the same on every machine. Times are in the benchmarks.

use std::fs;

use liza_ids::Digest;

use crate::fixture::*;
use crate::support::TestProject;

/// Runs a command; returns the processes of git that it started, and its writes.
fn cost(project: &TestProject, words: &[&str]) -> (usize, u64) {
    let calls = project.home().join("calls");
    let path = git_wrapper(project, &format!("echo . >> '{}'", calls.display()));
    let before = project.snapshot().board.revision.0;
    let _ = fs::remove_file(&calls);
    project.run(project.program().args(words).env("PATH", path)).ok();
    (fs::read_to_string(calls).unwrap().lines().count(), project.snapshot().board.revision.0 - before)
}

/// Covers: JU-10
#[test]
fn a_task_without_commands_pays_for_none_and_receipts_cost_the_same_however_many_there_are() {
    let project = team();
    let mut costs = Vec::new();
    for task in ["warm", "few", "many"] {
        if task == "many" {
            let texts: Vec<Vec<u8>> =
                (0..200).map(|number| format!("receipt {number}").into_bytes()).collect();
            let added: Vec<Digest> = repository(&project).add_receipts(&texts).unwrap();
            assert_eq!(added.len(), 200);
        }
        submitted(&project, task);
        let review = cost(&project, &["claim-review", task, "code-reviewer-1"]);
        verdict(&project, task, &["APPROVED"]).ok();
        costs.push((review, cost(&project, &["wt-merge", task])));
    }
    let [_, few, many] = costs.as_slice() else { panic!("{costs:?}") };
    assert_eq!(few, many, "as many processes and writes");
    let ((_, writes), _) = few;
    assert_eq!(*writes, 1, "the claim of a review without commands is one write");
    assert!(!project.root.join(".liza/integration-tests").exists(), "nothing was run");
}

/// Runs a command; returns what it asked git.
fn asked(project: &TestProject, words: &[&str]) -> Vec<String> {
    let file = project.home().join("asked");
    let path = git_wrapper(project, &format!("echo \"$*\" >> '{}'", file.display()));
    let _ = fs::remove_file(&file);
    project.run(project.program().args(words).env("PATH", path)).ok();
    fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

/// Covers: JU-10
#[test]
fn a_command_adds_few_processes_to_a_review_and_nothing_asks_git_for_an_object_twice() {
    let project = team();
    let mut costs = Vec::new();
    for (task, commands) in [("warm", "[]"), ("without", "[]"), ("with", "[\"true\"]")] {
        project.set_config("validation", commands);
        submitted(&project, task);
        let review = asked(&project, &["claim-review", task, "code-reviewer-1"]);
        verdict(&project, task, &["APPROVED"]).ok();
        let merge = asked(&project, &["wt-merge", task]);
        for asked in [&review, &merge] {
            let about_objects = |line: &&String| line.contains(" ls-tree ") || line.contains("^{tree}");
            let mut objects: Vec<&String> = asked.iter().filter(about_objects).collect();
            let all = objects.len();
            objects.sort_unstable();
            objects.dedup();
            assert_eq!(objects.len(), all, "{asked:#?}");
        }
        costs.push(review.len());
    }
    let [_, without, with] = costs.as_slice() else { panic!("{costs:?}") };
    assert!(with - without <= 8, "{costs:?}");
}

/// The environment of every process of the machine was read several times for each command that was run.
///
/// Covers: JU-10
#[test]
#[cfg(target_os = "linux")]
fn needs_strace_a_command_that_ends_by_itself_is_not_searched_for_among_all_processes() {
    let project = team();
    project.set_config("validation", "[\"true\"]");
    submitted(&project, "one");
    let trace = project.home().join("trace");
    let mut strace = project.command("strace");
    strace.args(["-f", "-qq", "-e", "trace=execve,openat", "-o"]).arg(&trace);
    project.run(strace.arg(env!("CARGO_BIN_EXE_liza")).args(["claim-review", "one", "code-reviewer-1"])).ok();
    let calls = fs::read_to_string(trace).unwrap();
    assert!(calls.lines().any(|call| call.contains("execve(") && call.contains("/bin/sh")), "it was run");
    assert_eq!(calls.lines().filter(|call| call.contains("/environ\"")).count(), 0);
    let rooms = calls.lines().filter(|call| call.contains("[\"") && call.contains("\"confine\"]")).count();
    assert!(rooms <= 2, "one to find out whether rooms make copies, and the command's: {rooms}");
}
