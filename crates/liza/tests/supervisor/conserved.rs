//! What cannot be merged keeps no code reviewer from reviews, and a person sees what to do about it.

use liza_core::model::Status;

use crate::fixture::{Bench, CODER, REVIEWER};
use crate::support::process::wait_for;

/// A project with two submissions, and a third task that a code reviewer has approved and no one has merged.
fn with_submissions() -> Bench {
    let bench = Bench::new("coder_poll_interval: 1\nstop_grace: 1", &[("c", CODER), ("r", REVIEWER)]);
    for task in ["first", "two", "three"] {
        bench.project.add_task(task);
        assert_eq!(bench.agent(&["coder", task, "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
    }
    bench.project.liza(&["submit-verdict", "first", "APPROVED"]).ok();
    bench
}

/// The reviews that were done, and whether anything was merged.
fn until_reviewed(bench: &Bench) {
    for task in ["two", "three"] {
        wait_for(&format!("{task} is reviewed"), || {
            let reviewed = [Status::Approved, Status::Merged].contains(&bench.status(task));
            reviewed.then_some(())
        });
    }
}

/// Covers: AX-01, AX-03
#[test]
fn an_approved_task_without_an_approval_does_not_stop_reviews() {
    let bench = with_submissions();
    bench.project.liza(&["lock", "write", ".tasks[0].review_commit", &"7".repeat(40)]).ok();
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    for task in ["two", "three"] {
        bench.until_status(task, Status::Merged);
    }
    assert!(!reviewer.output().contains("merging first"), "{}", reviewer.output());
    assert_eq!(bench.status("first"), Status::Approved);
    reviewer.stop();
}

/// Covers: AX-01, AX-04
#[test]
fn a_checkout_of_the_integration_branch_that_is_in_the_way_does_not_stop_reviews() {
    let bench = with_submissions();
    bench.project.git(&["checkout", "-q", "integration"]);
    for task in ["first", "two", "three"] {
        bench.project.write(&format!("{task}.txt"), "mine\n");
    }
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    until_reviewed(&bench);
    assert_eq!(bench.status("first"), Status::Approved);
    // The third failure says what to do, and it stays when the team has ended.
    reviewer.wait_for_output("Commit, stash or move what git names there");
    reviewer.stop();
    // On lines of any length.
    let shown = bench.project.liza(&["status"]).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    let root = bench.project.root.display().to_string();
    for words in ["WORK FAILS", "first.txt", "Commit, stash or move", &format!("git -C {root} status")] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    for task in ["first", "two", "three"] {
        std::fs::remove_file(bench.project.root.join(format!("{task}.txt"))).unwrap();
    }
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    for task in ["first", "two", "three"] {
        bench.until_status(task, Status::Merged);
    }
    reviewer.stop();
    assert!(!bench.project.liza(&["status"]).ok().contains("WORK FAILS"));
}

/// Covers: AX-01
#[test]
fn a_foreign_commit_on_the_integration_branch_does_not_stop_reviews() {
    let bench = with_submissions();
    bench.project.liza(&["wt-merge", "first"]).ok();
    bench.project.git(&["checkout", "-q", "integration"]);
    bench.project.write("mine.txt", "by hand\n");
    bench.project.git(&["add", "mine.txt"]);
    bench.project.git(&["commit", "-qm", "by hand"]);
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    for task in ["two", "three"] {
        bench.until_status(task, Status::Approved);
    }
    bench.project.liza(&["accept-integration"]).ok();
    for task in ["two", "three"] {
        bench.until_status(task, Status::Merged);
    }
    reviewer.stop();
}

/// Covers: AX-02
#[test]
fn an_answered_task_is_taken_by_a_coder_that_is_free() {
    let waits = r#"case $1 in asked) "$LIZA" mark-blocked asked --reason unclear --question "Which?" ;;
        long) until [ -e "$HOME/go-on" ]; do sleep 0.05; done ;; esac"#;
    let bench = Bench::new("coder_poll_interval: 1\nstop_grace: 1", &[("w", waits), ("c", CODER)]);
    bench.project.add_task("asked");
    let mut first = bench.agent(&["coder", "--cli", "w"]);
    bench.until_status("asked", Status::Blocked);
    bench.project.add_task("long");
    bench.until_status("long", Status::Claimed);
    let said = bench.project.liza(&["answer", "asked", "this one"]).ok().to_owned();
    assert!(said.contains("the next free coder takes asked: coder-1 works on long"), "{said}");
    let shown = bench.project.liza(&["status", "--json"]).result();
    assert_eq!(shown["claimable"], serde_json::json!(["asked"]), "{shown}");
    let mut second = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("asked", Status::ReadyForReview);
    assert_eq!(bench.task("asked").assigned_to.unwrap().to_string(), "coder-2");
    std::fs::write(bench.project.home().join("go-on"), "").unwrap();
    second.stop();
    first.stop();
}
