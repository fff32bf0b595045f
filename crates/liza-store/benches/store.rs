//! What a write costs, against the floor: writing the same bytes durably and nothing else.
//!
//! `cargo bench -p liza-store` prints one table. All figures of a row come from the same run, so the ratios hold on
//! any disk. Sizes of one's own come after `--`. Never part of the tests: a busy machine is not a defect.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measurement stops at the first thing that is wrong"
)]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use liza_core::agent::{Actor, AgentRecord, AgentStatus, Role};
use liza_core::board::{Loaded, State};
use liza_core::command::{Halt, TaskEdit};
use liza_core::config::Config;
use liza_core::event::{EventName, HistoryEvent, LogEntry};
use liza_core::goal::{Goal, GoalStatus};
use liza_core::ids::{Generation, Revision, TaskId};
use liza_core::record::{Status, TaskRecord};
use liza_core::sprint::Sprint;
use liza_core::time::{Seconds, Timestamp};
use liza_core::{Command, Request};
use liza_store::Store;

const ROUNDS: usize = 40;

/// Set for a process that is one of many writers.
const WRITER: &str = "LIZA_BENCH_WRITER";
const WRITERS: usize = 64;
const WRITES: usize = 100;

fn main() {
    if let Some(root) = std::env::var_os(WRITER) {
        return write_many(Path::new(&root));
    }
    println!(
        "median and 90th percentile in ms over {ROUNDS} rounds; × is the ratio of the medians to the floor"
    );
    println!(
        "{:>7} {:>8} {:>15} {:>22} {:>22} {:>15}",
        "tasks", "KB", "floor", "heartbeat", "transition", "validate"
    );
    let wanted: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    for count in if wanted.is_empty() { vec![100, 1_000, 10_000] } else { wanted } {
        measure(count);
    }
    println!("looks at the whole blackboard, medians in ms");
    println!("{:>7} {:>10} {:>16} {:>12}", "tasks", "snapshot", "one task changed", "no change");
    for count in [500, 1_000] {
        measure_looks(count);
    }
    compete();
}

/// One of many writers: prints how long each of its writes waited for the lock, in microseconds.
fn write_many(root: &Path) {
    let store = Store::open(root).unwrap().with_lock_timeout(Duration::from_secs(300));
    for round in 0..WRITES {
        let request = request(round, transition(round, round));
        println!("{}", store.submit(&request).expect("the command is valid").waited.as_micros());
    }
}

/// Many processes at the same file: none may be starved.
fn compete() {
    let root = project(100);
    let program = std::env::current_exe().unwrap();
    let start = |_| Process::new(&program).env(WRITER, &root).stdout(Stdio::piped()).spawn().unwrap();
    let writers: Vec<Child> = (0..WRITERS).map(start).collect();
    let mut waits: Vec<u64> = Vec::new();
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        waits
            .extend(String::from_utf8_lossy(&output.stdout).lines().map(|line| line.parse::<u64>().unwrap()));
    }
    assert_eq!(waits.len(), WRITERS * WRITES);
    let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64 / 1000.0;
    let longest = waits.iter().max().copied().unwrap_or(0) as f64 / 1000.0;
    println!(
        "{WRITERS} processes × {WRITES} writes: mean wait for the lock {mean:.1} ms, longest {longest:.1} ms ({:.1}×)",
        longest / mean
    );
    fs::remove_dir_all(&root).unwrap();
}

fn now() -> Timestamp {
    Timestamp::from_unix(1_737_122_400)
}

/// A project with a blackboard of that many tasks.
fn project(count: usize) -> PathBuf {
    let root =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}-{count}", std::process::id()));
    fs::create_dir_all(root.join("specs")).unwrap();
    fs::write(root.join("specs/x.md"), "# x\n").unwrap();
    let entry = LogEntry {
        timestamp: now(),
        agent: "human".to_owned(),
        action: "goal_created".to_owned(),
        task: None,
        detail: "bench".to_owned(),
    };
    drop(Store::create(&root, &board(count), &entry).unwrap());
    root
}

fn measure(count: usize) {
    let root = project(count);
    let store = Store::open(&root).unwrap();
    let bytes = fs::read(root.join(".liza/state.yaml")).unwrap();
    let mut figures = [const { Vec::new() }; 3];
    // In turn, so that a slow moment of the disk hits all of them alike.
    for round in 0..ROUNDS {
        figures[0].push(timed(|| floor(&root.join(".liza"), &bytes)));
        figures[1].push(timed(|| submit(&store, round, heartbeat())));
        figures[2].push(timed(|| submit(&store, round, transition(round * 7 % count, round))));
    }
    let mut validations: Vec<Duration> =
        (0..5).map(|_| timed(|| drop(store.validate(now()).unwrap()))).collect();
    let [base, ..] = figures.each_mut().map(|times| median(times).0);
    let cell = |times: &mut Vec<Duration>| {
        let (middle, tail) = median(times);
        format!("{:>6.2} {:>6.2}", ms(middle), ms(tail))
    };
    let ratio = |times: &mut Vec<Duration>| median(times).0.as_secs_f64() / base.as_secs_f64();
    let [floor, beat, change] = &mut figures;
    println!(
        "{count:>7} {:>8} {:>15} {:>15} {:>5.2}× {:>15} {:>5.2}× {:>15}",
        bytes.len() / 1024,
        cell(floor),
        cell(beat),
        ratio(beat),
        cell(change),
        ratio(change),
        cell(&mut validations),
    );
    fs::remove_dir_all(&root).unwrap();
}

/// What it costs to look at everything: for the first time, after a change of one task, and after none.
fn measure_looks(count: usize) {
    let root = project(count);
    let store = Store::open(&root).unwrap();
    let mut reader = store.incremental_reader();
    drop(reader.read().unwrap());
    let mut figures = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        submit(&store, round, transition(round * 7 % count, round));
        figures[0].push(timed(|| drop(store.snapshot().unwrap())));
        figures[1].push(timed(|| drop(reader.read().unwrap())));
        figures[2].push(timed(|| drop(reader.read().unwrap())));
    }
    let [snapshot, changed, same] = figures.each_mut().map(|times| ms(median(times).0));
    println!("{count:>7} {snapshot:>10.2} {changed:>16.2} {same:>12.2}");
    fs::remove_dir_all(&root).unwrap();
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn median(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort();
    (times[times.len() / 2], times[times.len() * 9 / 10])
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The least that a durable replacement of a file can be.
fn floor(folder: &Path, bytes: &[u8]) {
    let (step, path) = (folder.join("floor.tmp"), folder.join("floor.yaml"));
    let mut file = File::create(&step).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_data().unwrap();
    fs::rename(&step, &path).unwrap();
    File::open(folder).unwrap().sync_all().unwrap();
}

fn request(round: usize, command: Command) -> Request {
    let now = now() + Seconds(round as u64);
    Request { actor: Actor::Human, now, halt: Halt::default(), if_revision: None, command }
}

fn submit(store: &Store, round: usize, command: Command) {
    assert!(store.submit(&request(round, command)).expect("the command is valid").written);
}

fn heartbeat() -> Command {
    Command::Heartbeat { agents: vec![("coder-1".parse().unwrap(), None)], length: None }
}

fn transition(task: usize, round: usize) -> Command {
    let edit = TaskEdit { description: Some(format!("Changed in round {round}")), ..TaskEdit::default() };
    Command::EditTask { task: id(task), edit }
}

fn id(n: usize) -> TaskId {
    format!("task-{n}").parse().unwrap()
}

/// A blackboard of tasks as they look in the middle of their lives.
fn board(count: usize) -> State {
    let mut state = State::default();
    let board = &mut state.board;
    board.revision = Revision(1);
    board.goal = Loaded::Ready(Goal {
        id: "goal-1".to_owned(),
        description: "Measure".to_owned(),
        spec_ref: None,
        created: Some(now()),
        status: GoalStatus::InProgress,
    });
    board.config = Loaded::Ready(Config::default());
    board.sprint = Loaded::Ready(Sprint::begin(1, "goal-1", now()));
    board.circuit_breaker = Loaded::Ready(Default::default());
    board.discovered = Loaded::Ready(Vec::new());
    board.handoff = Loaded::Ready(Default::default());
    let agent = |n: u32| {
        let entry = AgentRecord {
            role: Role::Coder,
            status: AgentStatus::Idle,
            current_task: None,
            lease_expires: Some(now() + Seconds(300)),
            heartbeat: Some(now()),
            terminal: Some(format!("/dev/pts/{n}")),
            generation: Some(Generation(u64::from(n))),
            iterations_total: Some(3),
            context_percent: None,
            usage: None,
        };
        (liza_core::ids::AgentId::new(Role::Coder, n), entry)
    };
    board.agents = Loaded::Ready((1..=8).map(agent).collect());
    for n in 0..count {
        board.put(id(n), record(n));
    }
    state
}

fn record(n: usize) -> TaskRecord {
    let event =
        |minute: u64, name: EventName| HistoryEvent::new(now() + Seconds(minute * 60), name, "coder-1");
    TaskRecord {
        id: Some(id(n)),
        description: Some(format!(
            "Add retry logic with exponential backoff to endpoint number {n} of the API"
        )),
        status: Some(Status::Unclaimed),
        priority: Some(3),
        depends_on: Some(if n > 0 { vec![id(n - 1)] } else { Vec::new() }),
        spec_ref: Some("specs/x.md".to_owned()),
        done_when: Some("Endpoint retries 3x on 5xx errors with exponential backoff; tests pass".to_owned()),
        scope: Some("src/api/".to_owned()),
        created: Some(now()),
        revision: Some(Revision(1)),
        history: Some(vec![
            event(0, EventName::Created),
            event(1, EventName::Claimed),
            event(9, EventName::Handoff).with("note", "half done: see the notes"),
            event(12, EventName::Released),
        ]),
        ..TaskRecord::default()
    }
}
