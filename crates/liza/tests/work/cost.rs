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
