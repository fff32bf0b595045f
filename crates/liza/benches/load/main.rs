//! A whole team under load, and at rest: 50 coders and 10 code reviewers, played by the rehearsal agent, with 500 tasks
//! that are confined and 500 that are not, in two rounds each.
//!
//! `cargo bench -p liza --bench load` runs it and prints the figures; `LIZA_LOAD=CODERS,REVIEWERS,TASKS` makes it
//! smaller; `cargo bench -p liza --bench load -- machines` compares three processes on a database with the file, and `-- validation` tasks
//! that one trivial command validates with tasks without one. Whether
//! anything was claimed twice, lost, or merged without approval is read from git and the histories.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops at the first thing that is wrong"
)]

mod figures;
mod machines;
#[path = "../../../liza-database/tests/database/server.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod server;
#[path = "../shared/mod.rs"]
mod shared;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use figures::{Memory, check, tell, wakes};
use liza_core::model::{Board, Status, TaskId};
use liza_core::rules::claimable::claimable;
use liza_team::project::{Project, now};
use shared::{Killed, add, cpu_ticks_of_children, name};
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

impl Size {
    fn wanted(default: &str) -> Self {
        let said = std::env::var("LIZA_LOAD").unwrap_or_else(|_| default.to_owned());
        let numbers: Vec<usize> =
            said.split(',').map(|number| number.trim().parse().expect("a number")).collect();
        let [coders, reviewers, tasks] = numbers[..] else { panic!("LIZA_LOAD is CODERS,REVIEWERS,TASKS") };
        println!("{coders} coders, {reviewers} code reviewers, {tasks} tasks, one planner\n");
        Self { coders, reviewers, tasks }
    }
}

fn main() {
    if std::env::args().any(|word| word == "machines") {
        return machines::compare(Size::wanted("15,3,150"));
    }
    if std::env::args().any(|word| word == "validation") {
        return with_validation(Size::wanted("20,5,200"));
    }
    let size = Size::wanted("50,10,500");
    let half = Size { tasks: size.tasks.div_ceil(2), ..size };
    compare(half, "confined / not confined", [("off", "[]"), ("auto", "[]")]);
    at_rest(size);
}

/// The cost of validating each task by one command that does nothing.
fn with_validation(size: Size) {
    let half = Size { tasks: size.tasks.div_ceil(2), ..size };
    compare(half, "with a command / without", [("auto", "[]"), ("auto", "[\"true\"]")]);
}

/// Two teams, by their settings of sandbox and validation, in two rounds each. The computing time says more on a machine that
/// others use.
fn compare(size: Size, what: &str, teams: [(&str, &str); 2]) {
    // In this order, so that what the machine remembers of earlier rounds falls on both.
    let [one, other, other_again, one_again] =
        [0, 1, 1, 0].map(|team: usize| under_load(size, teams[team].0, teams[team].1));
    let share = |of: fn(&Cost) -> f64| (of(&one) + of(&one_again)) / (of(&other) + of(&other_again)) * 100.0;
    println!(
        "\n  {what} {:>7.0} % of the tasks per minute (wanted: at least 80 %), {:.0} % by computing time",
        share(|cost| cost.took.as_secs_f64()),
        share(|cost| cost.computed)
    );
}

/// What a round took, and the seconds that all its processes computed.
struct Cost {
    took: Duration,
    computed: f64,
}

/// Everybody at work until the goal is reached.
fn under_load(size: Size, sandbox: &str, validation: &str) -> Cost {
    let project = TestProject::new();
    project.liza(&["config", "validation", validation]).ok();
    project.liza(&["lock", "write", "config.sandbox", sandbox]).ok();
    let opened = Project::open(&project.root).unwrap();
    fill(&opened, size);
    let (began, computed_before) = (Instant::now(), cpu_ticks_of_children());
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
    let computed = (cpu_ticks_of_children() - computed_before) as f64 / 100.0;
    let state = opened.store().snapshot().unwrap();
    check(&project, &state, size.tasks, "integration");
    let rate = size.tasks as f64 / took.as_secs_f64() * 60.0;
    println!("\nunder load, sandbox {sandbox}, validation {validation}");
    println!("  tasks per minute         {rate:>8.0}");
    println!("  in all                   {:>8.1} s", took.as_secs_f64());
    println!("  computing time           {:>8.0} ms for each task", computed / size.tasks as f64 * 1000.0);
    watch.print();
    memory.print(size.coders + size.reviewers + 1);
    Cost { took, computed }
}

/// Puts tasks on the blackboard, in chains.
fn fill(project: &Project, size: Size) {
    (0..size.tasks).for_each(|number| add(project, number, number.checked_sub(CHAINS.min(size.coders))));
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

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}
