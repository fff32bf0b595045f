//! Kills at every step, and at random with several processes: everything is repaired, and nothing is lost.
//!
//! strace kills a process at the n-th system call of a kind that changes or starts something. git is a separate process
//! and keeps running.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use liza_core::model::{Actor, AgentId, Status};
use liza_core::protocol::Verdict;
use liza_team::engine::Engine;
use liza_team::lifecycle::{Submitter, claim_review, claim_task, submit_for_review, submit_verdict};
use liza_team::project::Project;
use liza_testkit::evidence::tried;

use crate::fixture::*;
use crate::remote::shared;
use crate::support::TestProject;

/// The system calls that change or start something.
const STEPS: [&str; 10] =
    ["clone", "clone3", "wait4", "flock", "rename", "fdatasync", "fsync", "pwrite64", "unlink", "mkdir"];

/// Those of them that occur dozens of times around the same steps: for every git command, and for temporary folders that
/// nobody else sees. Every third is enough.
const FREQUENT: [&str; 3] = ["wait4", "unlink", "mkdir"];

/// Fails if processes cannot be traced.
#[track_caller]
fn require_strace(project: &TestProject) {
    let works = project.command("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    let works = works.is_ok_and(|status| status.success());
    assert!(works, "strace is installed and may trace; ./check leaves this test out without it");
}

/// Every commit that coders made, and the first commit.
struct Life {
    project: TestProject,
    start: String,
    commits: Mutex<Vec<String>>,
    tasks: Mutex<u32>,
    kills: AtomicUsize,
}

impl Life {
    fn new() -> Self {
        Self::of(team())
    }

    /// Through a remote.
    fn shared() -> Self {
        Self::of(shared())
    }

    fn of(project: TestProject) -> Self {
        let start = tip(&project, "integration");
        Self {
            project,
            start,
            commits: Mutex::new(Vec::new()),
            tasks: Mutex::new(0),
            kills: AtomicUsize::new(0),
        }
    }

    fn next_task(&self) -> String {
        let mut count = self.tasks.lock().unwrap();
        *count += 1;
        let task = format!("task-{count}");
        self.project.add_task(&task);
        task
    }

    fn act<T>(&self, agent: &str, act: impl FnOnce(&Engine<'_>) -> T) -> T {
        let project = Project::open(&self.project.root).unwrap();
        act(&Engine::new(&project, Actor::Operator(agent.parse().unwrap())))
    }

    fn claim(&self, task: &str, coder: &str) {
        let id: AgentId = coder.parse().unwrap();
        self.act(coder, |engine| claim_task(engine, &task.parse().unwrap(), id)).unwrap();
    }

    fn commit(&self, task: &str) -> String {
        let head = commit(&self.project, &self.project.tree(task), &format!("{task}.txt"), "done\n");
        self.commits.lock().unwrap().push(head.clone());
        head
    }

    fn submit(&self, task: &str, coder: &str, head: &str) {
        self.act(coder, |engine| {
            submit_for_review(engine, &task.parse().unwrap(), &head.parse().unwrap(), Submitter::Person)
        })
        .unwrap();
    }

    fn claim_review(&self, task: &str, reviewer: &str) {
        let id: AgentId = reviewer.parse().unwrap();
        self.act(reviewer, |engine| claim_review(engine, &task.parse().unwrap(), id)).unwrap();
    }

    fn approve(&self, task: &str, reviewer: &str) {
        self.act(reviewer, |engine| {
            submit_verdict(
                engine,
                &task.parse().unwrap(),
                Verdict::Approved(Some("cargo test: passed".to_owned())),
                None,
            )
        })
        .unwrap();
    }

    /// Runs `liza`, killed at the `number`th call of that kind; false if it ended before.
    fn killed(&self, agent: Option<&str>, words: &[&str], call: &str, number: u32) -> bool {
        let mut strace = self.project.command("strace");
        let inject = format!("inject={call}:signal=KILL:when={number}");
        strace.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
        strace.arg(env!("CARGO_BIN_EXE_liza")).args(words);
        strace.envs(agent.map(|agent| ("LIZA_AGENT_ID", agent)));
        let run = self.project.run(&mut strace);
        assert!(run.code == 0 || run.code == -1, "{run:?}");
        run.code == -1
    }

    /// Checks all invariants after a recovery.
    #[track_caller]
    fn check(&self) {
        self.project.liza(&["recover"]).ok();
        check_consistent(&self.project);
        let state = self.project.snapshot();
        for (task, body) in state.bodies() {
            let record = body.record();
            let there = self.project.tree(task.as_str()).join(".git").exists();
            assert_eq!(there, record.worktree.is_some(), "{task}: {:?}", record.status);
            assert_eq!(record.reservation, None, "{task}");
        }
        self.check_commits();
    }

    /// What is on the branch agrees with its receipts.
    #[track_caller]
    fn check_history(&self) {
        if repository(&self.project).receipts_tip().is_some() {
            self.project.liza(&["verify"]).ok();
        }
    }

    /// No commit is lost; only what was approved at exactly that commit is on the branch, and only once.
    #[track_caller]
    fn check_commits(&self) {
        let project = &self.project;
        let commits = self.commits.lock().unwrap().clone();
        let commits: Vec<&str> = commits.iter().map(String::as_str).collect();
        let lost = project.git(&[&["rev-list"][..], &commits, &["--not", "--branches", "--"]].concat());
        assert!(commits.is_empty() || lost.is_empty(), "lost: {lost}");
        let state = project.snapshot();
        let approved: BTreeSet<String> = state
            .bodies()
            .flat_map(|(_, body)| body.record().history.clone().unwrap_or_default())
            .filter(|event| event.event == "approved")
            .map(|event| event.more["commit"].to_string())
            .collect();
        let range = format!("{}..integration", self.start);
        let log = project.git(&[
            "log",
            "--first-parent",
            "--format=%H %P|%(trailers:key=Liza-Task,valueonly,separator=%x2C)",
            &range,
        ]);
        let mut merged = BTreeSet::new();
        for line in log.lines() {
            let (names, task) = line.split_once('|').unwrap();
            let mut names = names.split(' ');
            let (commit, _, second) = (names.next().unwrap(), names.next(), names.next());
            let brought = second.unwrap_or(commit);
            assert!(approved.contains(brought), "{brought} ({task}) was not approved");
            assert!(merged.insert(brought.to_owned()), "{brought} was merged twice");
        }
        for (task, body) in state.bodies() {
            let record = body.record();
            let events = record.history.iter().flatten().filter(|event| event.event == "merged").count();
            let is_merged = record.status.unwrap().name() == "MERGED";
            assert_eq!(events, usize::from(is_merged), "{task}");
            if is_merged {
                let commit = record.review_commit.as_ref().unwrap().as_str();
                assert!(merged.contains(commit), "{task} is MERGED, but {commit} is not on the branch");
            }
        }
    }
}

/// Kills one kind of command at every step, each time on a new task, then finishes it.
fn at_every_step(
    begin: fn() -> Life,
    prepare: impl Fn(&Life, &str),
    words: impl Fn(&Life, &str) -> Vec<String>,
    agent: Option<&str>,
    is_done: &[&str],
    clear_up: impl Fn(&Life, &str),
) {
    let mut life = begin();
    require_strace(&life.project);
    let mut kills = 0;
    for call in STEPS {
        let step = if FREQUENT.contains(&call) { 3 } else { 1 };
        for number in (1..).step_by(step) {
            // A growing blackboard would take most of the test's time.
            if *life.tasks.lock().unwrap() > 20 {
                life.check();
                life.check_history();
                life = begin();
            }
            let task = life.next_task();
            prepare(&life, &task);
            let line = words(&life, &task);
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            let killed = life.killed(agent, &line, call, number);
            if killed {
                kills += 1;
                life.check();
                if !is_done.contains(&life.project.status(&task)) {
                    let mut program = life.project.program();
                    program.args(&line).envs(agent.map(|agent| ("LIZA_AGENT_ID", agent)));
                    life.project.run(&mut program).ok();
                }
            }
            assert!(is_done.contains(&life.project.status(&task)), "{call} {number}: {task}");
            clear_up(&life, &task);
            if !killed {
                break;
            }
        }
    }
    life.check();
    life.check_history();
    assert!(kills >= 10, "only {kills} kills");
    tried("a command of an agent is killed at a system call", kills);
}

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|word| (*word).to_owned()).collect()
}

/// Covers: CL-04, IV-04, RV-08
#[test]
fn needs_strace_a_claim_is_killed_at_every_step() {
    at_every_step(
        Life::new,
        |_, _| {},
        |_, task| words(&["claim-task", task, "coder-1"]),
        None,
        &["CLAIMED"],
        |life, task| {
            life.commit(task);
            life.project.liza(&["release-claim", task, "--force"]).ok();
        },
    );
}

/// Covers: RV-01, BB-12
#[test]
fn needs_strace_a_submission_is_killed_at_every_step() {
    at_every_step(
        Life::new,
        |life, task| {
            life.claim(task, "coder-1");
            life.commit(task);
        },
        |life, task| {
            let head = life.project.git_at(&life.project.tree(task), &["rev-parse", "HEAD"]);
            words(&["submit-for-review", task, &head])
        },
        Some("coder-1"),
        &["READY_FOR_REVIEW"],
        |_, _| {},
    );
}

/// Covers: RV-02, BB-12
#[test]
fn needs_strace_a_verdict_is_killed_at_every_step() {
    at_every_step(
        Life::new,
        |life, task| {
            life.claim(task, "coder-1");
            let head = life.commit(task);
            life.submit(task, "coder-1", &head);
            life.claim_review(task, "code-reviewer-1");
        },
        |_, task| words(&["submit-verdict", task, "REJECTED", "no"]),
        Some("code-reviewer-1"),
        &["REJECTED"],
        |_, _| {},
    );
}

/// An approval: stated, pushed if there is a remote, recorded. Its merge rests on that statement.
fn approval_killed_at_every_step(begin: fn() -> Life) {
    at_every_step(
        begin,
        |life, task| {
            life.claim(task, "coder-1");
            let head = life.commit(task);
            life.submit(task, "coder-1", &head);
            life.claim_review(task, "code-reviewer-1");
        },
        |_, task| words(&["submit-verdict", task, "APPROVED", "cargo test: passed"]),
        Some("code-reviewer-1"),
        &["APPROVED"],
        |life, task| _ = life.project.liza_as("code-reviewer-1", &["wt-merge", task]).ok(),
    );
}

/// Covers: JU-04, RV-02
#[test]
fn needs_strace_an_approval_is_killed_at_every_step() {
    approval_killed_at_every_step(Life::new);
}

/// Covers: JU-04, MM-07
#[test]
fn needs_strace_an_approval_through_a_remote_is_killed_at_every_step() {
    approval_killed_at_every_step(Life::shared);
}

/// Covers: JU-03, JU-04
#[test]
fn needs_strace_a_validation_is_killed_at_every_step() {
    validation_killed_at_every_step(Life::new);
}

/// Covers: JU-03, JU-04, MM-07
#[test]
fn needs_strace_a_validation_through_a_remote_is_killed_at_every_step() {
    validation_killed_at_every_step(Life::shared);
}

/// The claim of a review whose command validates it: claimed, run, stated, recorded, begun.
fn validation_killed_at_every_step(begin: fn() -> Life) {
    at_every_step(
        begin,
        |life, task| {
            life.project.liza(&["config", "validation", "[\"test -f README.md || true\"]"]).ok();
            life.claim(task, "coder-1");
            let head = life.commit(task);
            life.submit(task, "coder-1", &head);
        },
        |_, task| words(&["claim-review", task, "code-reviewer-1"]),
        None,
        &["READY_FOR_REVIEW"],
        |life, task| {
            let record = life.project.record(task);
            if record.reviewing_by.is_none() || record.review_phase.is_some() {
                // Not by this process: the commands run confined below the program itself.
                life.project.liza(&["claim-review", task, "code-reviewer-1"]).ok();
            }
            let record = life.project.record(task);
            assert_eq!(record.validated.unwrap().result.to_string(), "green");
            assert_eq!(record.review_phase, None);
            // The statement is there.
            life.approve(task, "code-reviewer-1");
        },
    );
}

/// Covers: RV-08, RV-10
#[test]
fn needs_strace_a_merge_is_killed_at_every_step() {
    merge_killed_at_every_step(Life::new, |life, task| {
        let approve = |task: &str| {
            life.claim(task, "coder-1");
            let head = life.commit(task);
            life.submit(task, "coder-1", &head);
            life.claim_review(task, "code-reviewer-1");
            life.approve(task, "code-reviewer-1");
        };
        approve(task);
        // Every second merge needs a merge commit.
        if task.ends_with(['0', '2', '4', '6', '8']) {
            let other = life.next_task();
            approve(&other);
            life.project.liza_as("code-reviewer-1", &["wt-merge", &other]).ok();
        }
    });
}

/// Covers: JU-03, JU-05, RV-08
#[test]
fn needs_strace_a_merge_with_a_command_is_killed_at_every_step() {
    merge_killed_at_every_step(Life::new, approved_by_the_human);
}

/// Covers: JU-05, MM-07, RV-08
#[test]
fn needs_strace_a_merge_through_a_remote_is_killed_at_every_step() {
    merge_killed_at_every_step(Life::shared, approved_by_the_human);
}

/// The human's word on a change of the gate outlives the kill of its merge, which tests both versions.
///
/// Covers: JU-01, RV-08
#[test]
fn needs_strace_a_merge_that_changes_the_gate_is_killed_at_every_step() {
    merge_killed_at_every_step(Life::new, |life, task| {
        life.claim(task, "coder-1");
        let (tree, file) = (life.project.tree(task), format!("scripts/{task}.sh"));
        let head = commit(&life.project, &tree, &file, "exit 0\n");
        life.commits.lock().unwrap().push(head.clone());
        life.submit(task, "coder-1", &head);
        life.project.liza(&["submit-verdict", task, "APPROVED"]).ok();
        life.project.liza(&["wt-merge", task, "--json"]).refused(1, "gate_changed");
        life.project.liza(&["accept-gate", task]).ok();
    });
}

/// Its command runs at the merge only: the human's approval needs no validation.
fn approved_by_the_human(life: &Life, task: &str) {
    life.project.liza(&["config", "validation", "[\"test -d specs\"]"]).ok();
    life.claim(task, "coder-1");
    let head = life.commit(task);
    life.submit(task, "coder-1", &head);
    life.project.liza(&["submit-verdict", task, "APPROVED"]).ok();
}

fn merge_killed_at_every_step(begin: fn() -> Life, approve: impl Fn(&Life, &str)) {
    at_every_step(begin, approve, |_, task| words(&["wt-merge", task]), None, &["MERGED"], |_, _| {});
}

/// Covers: CL-04, CL-05, RV-08, RV-10
#[test]
fn several_processes_are_killed_at_random_repeatedly() {
    const WORKERS: u64 = 4;
    const ROUNDS: u64 = 150;
    let life = Life::new();
    for number in 1..=WORKERS {
        let _ = life.project.liza(&["register", &format!("coder-{number}")]);
    }
    std::thread::scope(|scope| {
        for worker in 1..=WORKERS {
            let life = &life;
            scope.spawn(move || run_coder(life, worker, ROUNDS));
        }
    });
    life.check();
    let merged = life.project.tasks_in(Status::Merged).len();
    let kills = life.kills.into_inner();
    assert!(kills >= 100 && merged > 0, "{kills} kills, {merged} merges");
    tried("a command of an agent is killed at a random moment", kills);
}

/// One coder: tries the next step of its task, and every second time the process is killed.
fn run_coder(life: &Life, worker: u64, rounds: u64) {
    let coder = format!("coder-{worker}");
    let mut random = Random(worker * 7919);
    let mut task = life.next_task();
    for _ in 0..rounds {
        let record = life.project.record(&task);
        let head = record.review_commit.map(|commit| commit.as_str().to_owned());
        let run =
            |agent: Option<&str>, words: &[&str], limit: Option<Duration>| run_for(life, agent, words, limit);
        let limit = random.next().is_multiple_of(2).then(|| Duration::from_micros(random.next() % 90_000));
        match record.status.unwrap().name() {
            "UNCLAIMED" | "INTEGRATION_FAILED" => run(None, &["claim-task", &task, &coder], limit),
            "REJECTED" => run(None, &["claim-task", &task, &coder], limit),
            "CLAIMED" => {
                let head = life.commit_if_new(&task);
                run(Some(&coder), &["submit-for-review", &task, &head], limit);
            }
            "READY_FOR_REVIEW" => {
                run(None, &["claim-review", &task, "code-reviewer-1"], limit);
                run(Some("code-reviewer-1"), &["submit-verdict", &task, "APPROVED"], limit);
            }
            "APPROVED" => {
                assert!(head.is_some());
                run(None, &["wt-merge", &task], limit);
            }
            "MERGED" => task = life.next_task(),
            other => panic!("{task} is {other}"),
        }
        if random.next().is_multiple_of(8) {
            run(None, &["recover"], limit);
        }
    }
}

impl Life {
    /// The commit of the task's worktree, created now if it has none; its base if it has no worktree.
    fn commit_if_new(&self, task: &str) -> String {
        let folder = self.project.tree(task);
        let path = folder.join(format!("{task}.txt"));
        if folder.join(".git").exists() && !path.exists() {
            return self.commit(task);
        }
        if folder.join(".git").exists() {
            return self.project.git_at(&folder, &["rev-parse", "HEAD"]);
        }
        tip(&self.project, &format!("task/{task}"))
    }
}

/// Runs `liza`, killed after that time if one is given.
fn run_for(life: &Life, agent: Option<&str>, words: &[&str], limit: Option<Duration>) {
    let mut program = life.project.program();
    program.args(words).envs(agent.map(|agent| ("LIZA_AGENT_ID", agent)));
    program.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = program.spawn().unwrap();
    let Some(limit) = limit else {
        child.wait().unwrap();
        return;
    };
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    child.kill().unwrap();
    if child.wait().unwrap().signal() == Some(9) {
        life.kills.fetch_add(1, Ordering::Relaxed);
    }
}

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}
