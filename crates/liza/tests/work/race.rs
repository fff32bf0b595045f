//! Many claims at once: one winner with its worktree intact, and no claim waits for the git of another.

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::fixture::*;
use crate::support::TestProject;

fn coders(project: &TestProject, count: u32) -> Vec<String> {
    let names: Vec<String> = (1..=count).map(|number| format!("coder-{number}")).collect();
    for name in &names {
        project.register(name);
    }
    names
}

fn start(project: &TestProject, words: &[&str], path: Option<&std::ffi::OsString>) -> Child {
    let mut program = project.program();
    program.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(path) = path {
        program.env("PATH", path);
    }
    program.spawn().unwrap()
}

/// Covers: CL-05, CL-04
#[test]
fn of_many_racing_claims_of_one_task_one_wins_and_the_others_leave_nothing() {
    let project = TestProject::new();
    let names = coders(&project, 12);
    for round in 0..3 {
        let task = format!("task-{round}");
        project.add_task(&task);
        let claims: Vec<Child> =
            names.iter().map(|name| start(&project, &["claim-task", &task, name, "--json"], None)).collect();
        let outputs: Vec<_> = claims.into_iter().map(|claim| claim.wait_with_output().unwrap()).collect();
        let won: Vec<usize> = (0..names.len()).filter(|n| outputs[*n].status.success()).collect();
        assert_eq!(won.len(), 1, "{outputs:?}");
        for output in outputs.iter().filter(|output| !output.status.success()) {
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("\"reserved\"") || text.contains("\"claimed_by_other\""), "{text}");
        }
        let record = project.record(&task);
        let winner = record.assigned_to.unwrap().to_string();
        assert!(outputs[won[0]].stdout.windows(winner.len()).any(|part| part == winner.as_bytes()));
        assert_eq!(history(&project, &task), ["created", "claimed"]);
        assert!(project.tree(&task).join("specs/vision.md").exists());
        assert_eq!(project.git_at(&project.tree(&task), &["status", "--porcelain"]), "");
        let lost = project.log().matches("action: claim_failed").count();
        assert_eq!(lost, (round + 1) * (names.len() - 1));
        project.liza(&["release-claim", &task, "--force"]).ok();
    }
    assert_eq!(branches(&project, "rescue/*"), Vec::<String>::new());
    check_consistent(&project);
}

/// Covers: CL-04, IV-04
#[test]
fn fifty_claims_of_different_tasks_all_succeed_and_every_visible_claim_has_a_worktree() {
    let project = TestProject::new();
    let names = coders(&project, 50);
    for name in &names {
        project.add_task(&name.replace("coder", "task"));
    }
    // Fifty writers on a busy machine: the waiting time is not tested here.
    project.liza(&["lock", "write", ".config.lock_timeout", "120"]).ok();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                let state = project.snapshot();
                let claimed =
                    state.bodies().filter(|(_, body)| body.record().status.unwrap().name() == "CLAIMED");
                for (task, _) in claimed {
                    seen += 1;
                    assert!(project.tree(task.as_str()).join(".git").exists(), "{task} without a worktree");
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            seen
        });
        let tasks: Vec<String> = names.iter().map(|name| name.replace("coder", "task")).collect();
        let claims: Vec<Child> = names
            .iter()
            .zip(&tasks)
            .map(|(name, task)| start(&project, &["claim-task", task, name, "--json"], None))
            .collect();
        let ends: Vec<_> = claims.into_iter().map(|claim| claim.wait_with_output().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(watching.join().unwrap() > 0);
        for end in ends {
            assert!(end.status.success(), "{end:?}");
        }
    });
    let state = project.snapshot();
    assert!(state.bodies().all(|(_, body)| body.record().status.unwrap().name() == "CLAIMED"));
    check_consistent(&project);
}

/// Covers: CL-04, BB-09
#[test]
fn the_blackboard_is_never_locked_while_git_runs() {
    let project = TestProject::new();
    let names = coders(&project, 20);
    for name in &names {
        project.add_task(&name.replace("coder", "task"));
    }
    let go = project.home().join("go");
    let wait = format!("while [ ! -e '{}' ]; do sleep 0.1; done", go.display());
    let path = git_wrapper(&project, &format!("case \"$*\" in *'read-tree -u'*) {wait};; esac"));
    let claims: Vec<Child> = names
        .iter()
        .map(|name| {
            let task = name.replace("coder", "task");
            start(&project, &["claim-task", &task, name, "--json"], Some(&path))
        })
        .collect();
    let reserved = || project.snapshot().board.summaries().filter(|head| head.reservation.is_some()).count();
    let began = Instant::now();
    while reserved() < names.len() {
        assert!(began.elapsed() < Duration::from_secs(100), "{} of {} reserved", reserved(), names.len());
        std::thread::sleep(Duration::from_millis(20));
    }
    // Twenty git processes hang; the blackboard is not locked.
    for _ in 0..5 {
        project.liza(&["note", "still here"]).ok();
    }
    assert_eq!(reserved(), names.len());
    std::fs::write(go, "").unwrap();
    for claim in claims {
        let output = claim.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    check_consistent(&project);
}
