//! The cost of a write, compared with the floor: writing the same bytes durably and nothing else.
//!
//! `cargo bench -p liza-store` prints one table. All figures of a row come from the same run, so the ratios are valid on
//! any disk. Other sizes can be given after `--`, or `edits` for the manual edits alone. Not part of the tests: a busy machine is not a defect.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark panics on failure")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use liza_core::model::{
    AgentId, AgentRecord, AgentStatus, EventName, Generation, HistoryEvent, Loaded, Revision, Role, Seconds,
    State, Status, TaskId, TaskRecord,
};
use liza_core::protocol::{Command, EditTask, Request, TaskEdit};
use liza_store::{Store, ValueSyntax};

#[path = "../tests/store/support.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod support;

use support::{Project, first_entry, fresh_state, heartbeat, human, now, task};

const ROUNDS: usize = 40;

/// Set for a writer process.
const WRITER: &str = "LIZA_BENCH_WRITER";
const WRITERS: usize = 64;
const WRITES: usize = 100;

fn main() {
    if let Some(root) = std::env::var_os(WRITER) {
        return run_writer(Path::new(&root));
    }
    println!(
        "median and 90th percentile in ms over {ROUNDS} rounds; × is the ratio of the medians to the floor"
    );
    println!(
        "{:>7} {:>8} {:>15} {:>22} {:>22} {:>15}",
        "tasks", "KB", "floor", "heartbeat", "transition", "validate"
    );
    let wanted: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let only_edits = std::env::args().any(|arg| arg == "edits");
    for count in if wanted.is_empty() && !only_edits { vec![100, 1_000, 10_000] } else { wanted } {
        measure(count);
    }
    println!("manual edits, medians in ms; × is the ratio to the floor");
    println!(
        "{:>7} {:>10} {:>20} {:>20} {:>20} {:>20} {:>20} {:>20} {:>20} {:>20} {:>20} {:>20} {:>20}",
        "tasks",
        "floor",
        "lock write",
        "…of a status",
        "…of dependencies",
        "lock modify",
        "…that adds a task",
        "write of a coder",
        "…of a replacement",
        "modify that removes",
        "write of an ID",
        "…of an agent",
        "…of far dependencies"
    );
    for count in [1_000, 10_000] {
        measure_manual_edits(count);
    }
    if only_edits {
        return;
    }
    println!("reads of the whole blackboard, medians in ms");
    println!("{:>7} {:>10} {:>16} {:>12}", "tasks", "snapshot", "one task changed", "no change");
    for count in [500, 1_000] {
        measure_reads(count);
    }
    let (apart, together) = (timed(measure_contention), timed(measure_team));
    let each = |time: Duration| ms(time) / (WRITERS * WRITES) as f64;
    println!(
        "a write takes {:.2} ms from {WRITERS} processes, {:.2} ms from {WRITERS} threads of one ({:.1}×)",
        each(apart),
        each(together),
        each(apart) / each(together)
    );
}

/// A writer process: prints how long each write waited for the lock, in microseconds.
fn run_writer(root: &Path) {
    let store = Store::open(root).unwrap().with_lock_timeout(Duration::from_secs(300));
    for round in 0..WRITES {
        let request = request(round, transition(round, round));
        println!("{}", support::submit(&store, request).expect("the command is valid").waited.as_micros());
    }
}

/// Many processes write the same file: none may starve.
fn measure_contention() {
    let project = project(100);
    let program = std::env::current_exe().unwrap();
    let start = |_| Process::new(&program).env(WRITER, &project.root).stdout(Stdio::piped()).spawn().unwrap();
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
}

/// The same from threads of one process, as the sessions of a team write: they share durable writes.
fn measure_team() {
    let project = project(100);
    let store = Store::open(&project.root).unwrap().with_lock_timeout(Duration::from_secs(300));
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                for round in 0..WRITES {
                    submit(&store, round, transition(round, round));
                }
            });
        }
    });
}

/// A project with a blackboard of that many tasks.
fn project(count: usize) -> Project {
    let project = Project::empty(&format!("bench-{count}"));
    drop(Store::create(&project.root, &board(count), &first_entry()).unwrap());
    project
}

fn measure(count: usize) {
    let project = project(count);
    let store = project.store();
    let bytes = fs::read(project.file("state.yaml")).unwrap();
    let mut figures = [const { Vec::new() }; 3];
    // Interleaved, so that a slow moment of the disk affects all of them.
    for round in 0..ROUNDS {
        figures[0].push(timed(|| floor(store.folder(), &bytes)));
        figures[1].push(timed(|| submit(&store, round, heartbeat("coder-1"))));
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
}

/// The cost of `lock write`, and of `lock modify` without its command.
fn measure_manual_edits(count: usize) {
    let project = project(count);
    let store = project.store();
    let bytes = fs::read(project.file("state.yaml")).unwrap();
    let mut figures = [const { Vec::new() }; 12];
    for round in 0..ROUNDS / 4 {
        figures[0].push(timed(|| floor(store.folder(), &bytes)));
        let set = |path: &str, value: &str| {
            timed(|| {
                let session = store.begin_edit().unwrap();
                drop(session.set(path, value, ValueSyntax::BySchema, &first_entry(), now()).unwrap());
            })
        };
        let path = format!(".tasks[] | select(.id == \"task-{}\") | .priority", round * 7 % count);
        figures[1].push(set(&path, &(round % 5 + 1).to_string()));
        figures[2].push(set(&format!(".tasks[{}].status", count / 2 + round), "DRAFT"));
        figures[3].push(set(&format!(".tasks[{}].depends_on", count / 3 + round), "[]"));
        figures[4].push(modify(&store, |text| {
            let text = text.replacen("lock_timeout: ", &format!("round: {round}\n  lock_timeout: "), 1);
            text.replacen(&format!("  round: {}\n", round.wrapping_sub(1)), "", 1)
        }));
        let new = format!(
            "  - id: new-{round}\n    description: d\n    status: DRAFT\n    depends_on: [task-{round}]\n    created: 2025-01-17T14:00:00Z\nagents:\n"
        );
        figures[5].push(modify(&store, |text| text.replacen("agents:\n", &new, 1)));
        figures[6].push(set(&format!(".tasks[{}].assigned_to", count / 4 + round), "coder-1"));
        figures[7].push(set(&format!(".tasks[{}].superseded_by", count / 5 + round), "[task-1]"));
        figures[8].push(modify(&store, |text| {
            let from = text.find(&format!("  - id: new-{round}\n")).unwrap();
            let end = from + text[from..].find("agents:\n").unwrap();
            format!("{}{}", &text[..from], &text[end..])
        }));
        // The last task: no other depends on it.
        figures[9].push(set(&format!(".tasks[{}].id", count - 1), &format!("renamed-{round}")));
        figures[10].push(set(".agents.coder-1.iterations_total", &round.to_string()));
        // Its dependencies reach through a quarter of all tasks.
        let far = format!("[task-{}]", count / 4 - 2 * round);
        figures[11].push(set(&format!(".tasks[{}].depends_on", count - 2), &far));
    }
    let figures = figures.each_mut().map(|times| ms(median(times).0));
    print!("{count:>7} {:>10.2}", figures[0]);
    for figure in &figures[1..] {
        print!(" {figure:>12.2} {:>6.2}×", figure / figures[0]);
    }
    println!();
}

/// The time of a `lock modify`, without that of its command.
fn modify(store: &Store, change: impl Fn(&str) -> String) -> Duration {
    let mut session = None;
    let begun = timed(|| {
        let mut begun = store.begin_edit().unwrap();
        begun.begin_modify(now()).unwrap();
        session = Some(begun);
    });
    let session = session.unwrap();
    fs::write(session.path(), change(&fs::read_to_string(session.path()).unwrap())).unwrap();
    begun + timed(|| drop(session.finish_modify(&first_entry(), now()).unwrap()))
}

/// The cost of reading everything: a snapshot, and an incremental read after a change of one task and after none.
fn measure_reads(count: usize) {
    let project = project(count);
    let store = project.store();
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

/// The least that a durable replacement of a file needs.
fn floor(folder: &Path, bytes: &[u8]) {
    let (step, path) = (folder.join("floor.tmp"), folder.join("floor.yaml"));
    let mut file = File::create(&step).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_data().unwrap();
    fs::rename(&step, &path).unwrap();
    File::open(folder).unwrap().sync_all().unwrap();
}

fn request(round: usize, command: Command) -> Request<Command> {
    let now = now() + Seconds(round as u64);
    Request { now, ..human(command) }
}

fn submit(store: &Store, round: usize, command: Command) {
    assert!(support::submit(store, request(round, command)).expect("the command is valid").changed);
}

fn transition(task: usize, round: usize) -> Command {
    let edit = TaskEdit { description: Some(format!("Changed in round {round}")), ..TaskEdit::default() };
    Command::from(EditTask { task: id(task), edit })
}

fn id(n: usize) -> TaskId {
    task(&format!("task-{n}"))
}

/// A blackboard with tasks in the middle of their lifecycle.
fn board(count: usize) -> State {
    let mut state = fresh_state();
    let board = &mut state.board;
    let agent = |n: u32| {
        let entry = AgentRecord {
            role: Role::Coder,
            status: AgentStatus::Idle,
            current_task: None,
            lease_expires: Some(now() + Seconds(300)),
            heartbeat: Some(now()),
            terminal: Some(format!("/dev/pts/{n}")),
            machine: None,
            generation: Some(Generation(u64::from(n))),
            last_result: None,
            iterations_total: Some(3),
            client: None,
            session: None,
            last_session: None,
            context_percent: None,
            usage: None,
        };
        (AgentId::new(Role::Coder, n), entry)
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
