//! The blackboard in PostgreSQL, compared with the same statements sent by nothing but a client.
//!
//! `cargo bench -p liza-store --bench database` prints one table: writes per second, and the ratio to the bare statements in
//! the same run. The bare statements are those that the store sent for one command, with other numbers. Needs PostgreSQL.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark panics on failure")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use liza_core::model::{Actor, AgentId, Generation, Loaded, Role, State};
use liza_core::protocol::{ClaimTask, Command, EditTask, Heartbeat, ReserveTask, TaskEdit};
use liza_store::Store;

#[path = "../tests/database/board.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod board;
#[path = "../tests/database/proxy.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod proxy;
#[path = "../tests/database/server.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod server;
#[path = "../../liza-store/tests/store/support.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod support;

use board::{TestBoard, human, register, submit};
use proxy::Proxy;
use server::Server;
use support::task;

/// How long each figure is measured.
const TIME: Duration = Duration::from_secs(3);

/// How many clients write at the same time.
const CLIENTS: usize = 16;

/// How many tasks the blackboard has.
const TASKS: usize = 200;

/// A revision that occurs nowhere else in the statements.
const MARK: u64 = 7_000_003;

/// The ID of the last request that was replayed.
static REPLAYED: AtomicU64 = AtomicU64::new(0);

fn main() {
    println!("{TASKS} tasks, {} s for each figure; × is bare statements / store", TIME.as_secs());
    println!("{:<44} {:>10} {:>10} {:>7}", "", "bare/s", "store/s", "×");
    for (name, settings) in
        [("", ""), (", commits take 5 ms", "-c fsync=on -c commit_delay=5000 -c commit_siblings=0")]
    {
        let server = Server::own(settings);
        let board = TestBoard::with_state(&server.address(), "bench", &state());
        fill(&board.store());
        measure(&server, &board, name);
    }
}

/// A blackboard on which a task may be claimed as often as the measurement wants.
fn state() -> State {
    let mut state = support::fresh_state();
    let Loaded::Ready(config) = &mut state.board.config else { panic!("no config") };
    config.max_sessions = 10_000;
    state
}

fn fill(store: &Store) {
    std::thread::scope(|scope| {
        for part in 0..8 {
            let store = store.clone();
            scope.spawn(move || {
                for n in (part..TASKS).step_by(8) {
                    human(&store, support::add_task(&format!("task-{n}"))).unwrap();
                }
            });
        }
    });
}

/// Measures the statements of one command, and then the store.
fn compare(
    name: &str,
    clients: usize,
    server: &Server,
    board: &TestBoard,
    statements: &[String],
    store: Work<'_>,
) {
    reset(server, board, MARK);
    let bare = rate(clients, &|_| replay(server, statements));
    reset(server, board, 1_000);
    // The replay may have claimed it.
    let _ = human(&board.store(), release(0));
    row(name, bare, rate(clients, store));
}

/// Forgets the log, and sets the revision: the statements that are replayed have others.
fn reset(server: &Server, board: &TestBoard, revision: u64) {
    let project = format!("(SELECT id FROM liza.projects WHERE name = '{}')", board.name);
    server.sql(&format!(
        "DELETE FROM liza.log WHERE project = {project}; DELETE FROM liza.requests WHERE project = {project}; \
         UPDATE liza.projects SET revision = {revision} WHERE id = {project}"
    ));
}

fn measure(server: &Server, board: &TestBoard, name: &str) {
    let sent = recorded(server, board, &|store| assert!(human(store, edit(0, 0)).unwrap().changed));
    let own = |n: usize| edits_of(&board.store(), n);
    compare(&format!("transitions, 1 client{name}"), 1, server, board, &sent, &own);
    compare(&format!("transitions, {CLIENTS} processes{name}"), CLIENTS, server, board, &sent, &own);
    let shared = board.store();
    let one = format!("transitions, {CLIENTS} threads of one{name}");
    compare(&one, CLIENTS, server, board, &sent, &|n| edits_of(&shared, n));

    let store = board.store();
    let coders: Vec<Generation> = (1..=CLIENTS).map(|n| register(&store, &format!("coder-{n}"))).collect();
    let sent = recorded(server, board, &|store| claim(store, 0, 0, coders[0]));
    let alone = |n: usize| claims_of(&board.store(), n, 1, coders[n]);
    compare(&format!("claims, 1 client{name}"), 1, server, board, &sent, &alone);
    let all = |n: usize| claims_of(&board.store(), n, CLIENTS, coders[n]);
    compare(&format!("claims, {CLIENTS} processes{name}"), CLIENTS, server, board, &sent, &all);

    let sent = recorded(server, board, &|store| beat(store, coders[0]));
    let own = |_: usize| until_over(|_| beat(&store, coders[0]));
    compare(&format!("heartbeats, 1 client{name}"), 1, server, board, &sent, &own);
}

fn row(name: &str, bare: f64, store: f64) {
    println!("{name:<44} {bare:>10.0} {store:>10.0} {:>6.2}×", bare / store);
}

/// Work that is repeated until the time is over; returns how often.
type Work<'w> = &'w (dyn Fn(usize) -> u64 + Sync);

/// How many times a second that many clients do their work.
fn rate(clients: usize, work: Work<'_>) -> f64 {
    let started = Instant::now();
    let count: u64 = std::thread::scope(|scope| {
        let running: Vec<_> = (0..clients).map(|n| scope.spawn(move || work(n))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    count as f64 / started.elapsed().as_secs_f64()
}

fn until_over(mut step: impl FnMut(u64)) -> u64 {
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < TIME {
        step(count);
        count += 1;
    }
    count
}

fn edit(task_number: usize, n: u64) -> Command {
    let edit = TaskEdit { description: Some(format!("Changed {n} times")), ..TaskEdit::default() };
    Command::from(EditTask { task: task(&format!("task-{task_number}")), edit })
}

fn edits_of(store: &Store, client: usize) -> u64 {
    until_over(|n| assert!(human(store, edit(client, n)).unwrap().changed))
}

fn claim(store: &Store, task_number: usize, coder: usize, generation: Generation) {
    let agent = AgentId::new(Role::Coder, u32::try_from(coder + 1).unwrap());
    let (id, actor) = (task(&format!("task-{task_number}")), Actor::Supervisor(agent, generation));
    let head = "a".repeat(40).parse().unwrap();
    submit(store, actor, Command::from(ReserveTask { task: id.clone(), coder: agent, head })).unwrap();
    submit(store, actor, Command::from(ClaimTask { task: id, coder: agent })).unwrap();
}

fn release(task_number: usize) -> Command {
    let (task, role) = (task(&format!("task-{task_number}")), liza_core::protocol::ClaimRole::Both);
    Command::from(liza_core::protocol::ReleaseClaim {
        task,
        role,
        force: true,
        reason: Some("bench".to_owned()),
    })
}

/// Claims and releases the client's share of the tasks in turn, since each claim makes the history of its task longer;
/// only the time of the claims counts.
fn claims_of(store: &Store, client: usize, clients: usize, generation: Generation) -> u64 {
    let (started, mut claiming, mut count) = (Instant::now(), Duration::ZERO, 0_u64);
    let mut tasks = (client..TASKS).step_by(clients).cycle();
    while started.elapsed() < TIME {
        let task_number = tasks.next().expect("a client has a task");
        let begun = Instant::now();
        claim(store, task_number, client, generation);
        claiming += begun.elapsed();
        count += 1;
        human(store, release(task_number)).unwrap();
    }
    (count as f64 * TIME.as_secs_f64() / claiming.as_secs_f64()) as u64
}

fn beat(store: &Store, generation: Generation) {
    let coder = AgentId::new(Role::Coder, 1);
    let beat = Heartbeat { agents: vec![(coder, Some(generation))], length: None };
    submit(store, Actor::Supervisor(coder, generation), beat.into()).unwrap();
}

/// The statements that the store sends for one command, once it knows the blackboard.
fn recorded(server: &Server, board: &TestBoard, command: &dyn Fn(&Store)) -> Vec<String> {
    reset(server, board, MARK - 1);
    let found = record(server, board, command);
    println!("  {} round trips, {} bytes", found.len(), found.concat().len());
    found
}

fn record(server: &Server, board: &TestBoard, command: &dyn Fn(&Store)) -> Vec<String> {
    let proxy = Proxy::new(server);
    let root = board.root.join("recording");
    let _ = std::fs::remove_dir_all(&root);
    let store = Store::join_database(&root, &proxy.address().parse().unwrap(), Some(&board.name)).unwrap();
    std::fs::create_dir_all(root.join("specs")).unwrap();
    std::fs::write(root.join("specs/x.md"), "# x\n").unwrap();
    drop(store.snapshot().unwrap());
    *proxy.rules.recorded.lock().unwrap() = Some(Vec::new());
    command(&store);
    proxy.rules.recorded.lock().unwrap().take().unwrap()
}

/// Sends recorded statements again and again, each time with new numbers where a key must be new.
fn replay(server: &Server, statements: &[String]) -> u64 {
    let mut client = server.connect().unwrap();
    until_over(|_| {
        let number = REPLAYED.fetch_add(10, Ordering::SeqCst) + 20_000_000;
        for (n, sql) in statements.iter().enumerate() {
            let mut sql = with_new_request(sql, number + n as u64);
            for step in 0..5 {
                sql = sql.replace(&(MARK + step).to_string(), &(number + step).to_string());
            }
            client.simple_query(&sql).unwrap_or_else(|error| panic!("{error:?}: {sql}"));
        }
    })
}

/// The statements with another request ID.
fn with_new_request(sql: &str, number: u64) -> String {
    let Some(at) = sql.find("INSERT INTO liza.requests VALUES (") else { return sql.to_owned() };
    let start = at + sql[at..].find("E'").expect("an ID") + 2;
    let end = start + sql[start..].find('\'').expect("its end");
    format!("{}{number}{}", &sql[..start], &sql[end..])
}
