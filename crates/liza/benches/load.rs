//! A whole team under load, and at rest: 50 coders, 10 code reviewers, 500 tasks, played by the rehearsal agent.
//!
//! `cargo bench -p liza --bench load` runs it and prints the figures; `LIZA_LOAD=CODERS,REVIEWERS,TASKS` makes it
//! smaller. Whether anything was claimed twice, lost, or merged without approval is read from git and the histories.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops at the first thing that is wrong"
)]

mod shared;
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use liza::project::{Project, now};
use liza_core::model::{Board, EventName, State, Status, TaskId};
use liza_core::rules::claimable::claimable;
use shared::{Killed, add, name};
use support::TestProject;

/// How often the blackboard is looked at: the figures are as exact as that.
const LOOK: Duration = Duration::from_millis(4);
/// So many tasks can be worked on at the same time, fewer than there are coders: somebody is always free.
const CHAINS: usize = 40;
const IDLE: Duration = Duration::from_secs(30);
const IDLE_TASKS: usize = 20;

#[derive(Debug, Clone, Copy)]
struct Size {
    coders: usize,
    reviewers: usize,
    tasks: usize,
}

fn main() {
    let said = std::env::var("LIZA_LOAD").unwrap_or_else(|_| "50,10,500".to_owned());
    let numbers: Vec<usize> =
        said.split(',').map(|number| number.trim().parse().expect("a number")).collect();
    let [coders, reviewers, tasks] = numbers[..] else { panic!("LIZA_LOAD is CODERS,REVIEWERS,TASKS") };
    let size = Size { coders, reviewers, tasks };
    println!("{coders} coders, {reviewers} code reviewers, {tasks} tasks, one planner\n");
    let free = under_load(size, "off");
    let confined = under_load(size, "auto");
    println!(
        "\n  confined / not confined  {:>7.0} % of the tasks per minute (wanted: at least 80 %)",
        confined / free * 100.0
    );
    at_rest(size);
}

/// Everybody at work until the goal is reached; returns the tasks per minute.
fn under_load(size: Size, sandbox: &str) -> f64 {
    let project = TestProject::new();
    project.liza(&["lock", "write", "config.sandbox", sandbox]).ok();
    let opened = Project::open(&project.root).unwrap();
    (0..size.tasks).for_each(|number| add(&opened, number, number.checked_sub(CHAINS.min(size.coders))));
    let began = Instant::now();
    let mut team = Team::start(&project, size);
    let mut watch = Latencies::default();
    let mut memory = Memory::default();
    let mut next = Instant::now();
    while team.child.0.try_wait().unwrap().is_none() {
        watch.look(&opened);
        if Instant::now() >= next {
            memory.look(team.child.0.id());
            next = Instant::now() + Duration::from_millis(500);
        }
        thread::sleep(LOOK);
    }
    let took = began.elapsed();
    let state = opened.store().snapshot().unwrap();
    check(&project, &state, size);
    let rate = size.tasks as f64 / took.as_secs_f64() * 60.0;
    println!("\nunder load, sandbox {sandbox}");
    println!("  tasks per minute         {rate:>8.0}");
    println!("  in all                   {:>8.1} s", took.as_secs_f64());
    watch.print();
    memory.print(size.coders + size.reviewers + 1);
    rate
}

/// Nobody has anything to do; then one task comes at a time.
fn at_rest(size: Size) {
    let project = TestProject::bare();
    project.liza(&["init"]);
    let opened = Project::open(&project.root).unwrap();
    let mut team = Team::start(&project, size);
    let all = size.coders + size.reviewers + 1;
    wait_for("everybody is there", || {
        opened.state().is_ok_and(|state| state.board.agents().unwrap().len() == all)
    });
    thread::sleep(Duration::from_secs(3));
    let (before, began) = (wakes(team.child.0.id()), Instant::now());
    thread::sleep(IDLE);
    let rate = (wakes(team.child.0.id()) - before) as f64 / began.elapsed().as_secs_f64();
    println!("\nat rest");
    println!("  wakes per second, in all {rate:>8.2}        (wanted: under 2)");
    let mut times = Vec::new();
    for number in 0..IDLE_TASKS {
        add(&opened, number, None);
        let (id, began) = (name(number), Instant::now());
        wait_for("it is taken", || !is_free(&opened.state().unwrap().board, &id));
        times.push(began.elapsed());
        wait_for("it is merged", || opened.state().unwrap().board.status(&id) == Some(Status::Merged));
    }
    tell("claimable to reserved", &mut times, "(wanted: p99 under 100 ms)");
    team.child.stop();
}

fn is_free(board: &Board, task: &TaskId) -> bool {
    claimable(board, now()).contains(task)
}

struct Team {
    child: Killed,
}

impl Team {
    fn start(project: &TestProject, size: Size) -> Self {
        let out = fs::File::create(project.home().join("run.out")).unwrap();
        let words = ["run", "--in-place", "--cli", "rehearsal", "--plain", "--verbose", "--coders"];
        let mut program = project.program();
        program.args(words).arg(size.coders.to_string()).args(["--reviewers", &size.reviewers.to_string()]);
        let child =
            program.stdout(out.try_clone().unwrap()).stderr(out).stdin(Stdio::null()).spawn().unwrap();
        Self { child: Killed(child) }
    }
}

/// From the write that makes a task claimable to the one that reserves it, as an onlooker sees them.
#[derive(Default)]
struct Latencies {
    file: Option<(u64, i64)>,
    /// The tasks that were free from the beginning, before anybody was there.
    first: BTreeSet<TaskId>,
    free: BTreeMap<TaskId, Instant>,
    taken: BTreeSet<TaskId>,
    times: Vec<Duration>,
}

impl Latencies {
    fn look(&mut self, project: &Project) {
        let Ok(data) = fs::metadata(project.folder().join("state.yaml")) else { return };
        let seen = (data.ino(), data.mtime_nsec());
        let at = Instant::now();
        if self.file == Some(seen) {
            return;
        }
        let Ok(state) = project.state() else { return };
        let board = &state.board;
        let free: BTreeSet<TaskId> = claimable(board, now()).into_iter().collect();
        if self.file.replace(seen).is_none() {
            self.first.clone_from(&free);
        }
        for task in &free {
            self.free.entry(task.clone()).or_insert(at);
        }
        for head in
            board.summaries().filter(|head| head.is(Status::Claimed) || head.reserved(now()).is_some())
        {
            if self.taken.insert(head.id.clone()) && !self.first.contains(&head.id) {
                // One that was never seen free was taken between two looks.
                self.times
                    .push(self.free.get(&head.id).map_or(Duration::ZERO, |since| at.duration_since(*since)));
            }
        }
    }

    fn print(&mut self) {
        tell("claimable to reserved", &mut self.times, "(wanted: p99 under 250 ms)");
    }
}

fn tell(what: &str, times: &mut [Duration], wanted: &str) {
    times.sort();
    let at = |share: f64| {
        let index = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len().max(1)) - 1;
        times.get(index).map_or(0.0, Duration::as_secs_f64) * 1000.0
    };
    println!(
        "  {what:<24} p50 {:.0} ms, p99 {:.0} ms, longest {:.0} ms, of {} {wanted}",
        at(0.5),
        at(0.99),
        at(1.0),
        times.len()
    );
}

/// What the team's own process and its session helpers take.
#[derive(Default)]
struct Memory {
    team: u64,
    helper: u64,
}

impl Memory {
    fn look(&mut self, team: u32) {
        self.team = self.team.max(kilobytes(team, "status", "VmHWM:"));
        for child in children(team) {
            let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            if line.split(|byte| *byte == 0).nth(1) == Some(b"session") {
                self.helper = self.helper.max(kilobytes(child, "smaps_rollup", "Pss:"));
            }
        }
    }

    fn print(&self, agents: usize) {
        let megabytes = |kilobytes: u64| kilobytes as f64 / 1024.0;
        println!(
            "  memory per supervisor    {:>8.2} MB     ({:.0} MB for {agents}; wanted: under 3 MB)",
            megabytes(self.team) / agents as f64,
            megabytes(self.team)
        );
        println!(
            "  a session's helper       {:>8.2} MB     (its own share, the largest seen)",
            megabytes(self.helper)
        );
    }
}

fn kilobytes(process: u32, file: &str, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// How often a process has been given the CPU, over all its threads.
fn wakes(process: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let count = |text: String| -> u64 {
        let lines = text.lines().filter(|line| line.contains("ctxt_switches"));
        lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    };
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok()).map(count).sum()
}

/// Nothing claimed twice, nothing lost, nothing merged that was not approved at exactly that commit.
fn check(project: &TestProject, state: &State, size: Size) {
    let integration = project.git(&["ls-tree", "-r", "--name-only", "integration"]);
    let files: BTreeSet<&str> = integration.lines().collect();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let (mut doubles, mut lost, mut unapproved) = (0, 0, 0);
    for (id, body) in state.bodies() {
        let record = body.record();
        let count = |name: EventName| record.history.iter().flatten().filter(|event| event.is(name)).count();
        let claims = count(EventName::Claimed) + count(EventName::ReclaimedAfterExpiry);
        doubles += usize::from(claims != 1);
        let there = files.contains(format!("src/{id}.sh").as_str())
            && files.contains(format!("tests/{id}.sh").as_str());
        lost += usize::from(record.status != Some(Status::Merged) || !there);
        unapproved += usize::from(count(EventName::Approved) != 1 || record.approved_by.is_none());
        known.extend(record.review_commit.iter().chain(&record.merge_commit).map(ToString::to_string));
    }
    let all = project.git(&["rev-list", "main..integration"]);
    unapproved += all.lines().filter(|commit| !known.contains(*commit)).count();
    // The planner may add tasks of its own.
    lost += (0..size.tasks).filter(|number| !state.board.tasks.contains_key(&name(*number))).count();
    println!("double claims {doubles}, lost work {lost}, unapproved merges {unapproved}\n");
    assert_eq!((doubles, lost, unapproved), (0, 0, 0), "{}", project.root.display());
    project.liza(&["validate"]).ok();
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}
