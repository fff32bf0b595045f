//! Time, leases and takeovers in a database: the clock is the database's, and renewals take no lock.

use liza_core::model::{Actor, Generation, Refusal, Seconds, Status};
use liza_core::protocol::{Command, Heartbeat, ReserveTask};
use liza_store::{Store, StoreError};
use liza_testkit::evidence::{DATABASE_FAILS, tried};

use crate::board::{Done, Kind, TestBoard, claim, human, now, register, submit};
use crate::server::{Server, clock_at};
use crate::support::{agent, note, task, wait_until};

/// Lets time pass for this project.
fn pass(board: &TestBoard, seconds: i64) {
    board.sql(&format!(
        "UPDATE liza.projects SET clock_offset_ms = clock_offset_ms + {seconds} * 1000 WHERE id = PROJECT"
    ));
}

pub(crate) fn beat(store: &Store, coder: &str, generation: Generation) -> Result<Done, StoreError> {
    let actor = Actor::Supervisor(agent(coder), generation);
    let beat = Heartbeat { agents: vec![(agent(coder), Some(generation))], length: None };
    submit(store, actor, beat.into())
}

/// A board with a task that coder-1 has claimed, and coder-2.
fn claimed(name: &str) -> (TestBoard, Generation, Generation) {
    let board = TestBoard::new(Kind::Database, name).with_tasks(&["one"]);
    let store = board.store();
    let (first, second) = (register(&store, "coder-1"), register(&store, "coder-2"));
    claim(&store, &task("one"), "coder-1", first).unwrap();
    (board, first, second)
}

fn lease_of(store: &Store, coder: &str) -> i64 {
    let state = store.snapshot().unwrap();
    state.board.agents().unwrap()[&agent(coder)].lease_expires.unwrap().unix()
}

fn take_over(store: &Store, coder: &str, generation: Generation) -> Result<Done, StoreError> {
    claim(store, &task("one"), coder, generation)
}

fn lease_length(store: &Store) -> i64 {
    let Seconds(length) = store.snapshot().unwrap().board.config().unwrap().lease_duration;
    i64::try_from(length).unwrap()
}

/// Covers: MM-03
#[test]
fn needs_postgres_time_is_the_databases_and_not_this_machines() {
    let board = TestBoard::new(Kind::Database, "time");
    pass(&board, 600);
    human(&board.store(), note("later")).unwrap();
    let log = board.store().log_reader().read_new().unwrap();
    let written = log.last().unwrap().timestamp;
    assert!((595..=660).contains(&(written.unix() - now().unix())), "{written}");
    let store = board.store();
    drop(store.snapshot().unwrap());
    assert!((595..=660).contains(&liza_store::clock_difference()), "{}", liza_store::clock_difference());
}

/// Covers: MM-03
#[test]
fn needs_postgres_time_does_not_go_back_and_then_no_one_is_taken_over() {
    let (board, first, second) = claimed("step-back");
    let store = board.store();
    pass(&board, 600);
    human(&store, note("ahead")).unwrap();
    let ahead = store.log_reader().read_new().unwrap().last().unwrap().timestamp;
    // The clock of the server is set back by twenty minutes.
    pass(&board, -1200);
    human(&store, note("behind")).unwrap();
    let behind = store.log_reader().read_new().unwrap().last().unwrap().timestamp;
    assert!(behind >= ahead, "{behind} is before {ahead}");
    let length = lease_length(&store);
    // The lease has expired, but all leases hold for one length after the step.
    board.sql("UPDATE liza.heartbeats SET lease_expires = 1 WHERE project = PROJECT AND agent = 'coder-1'");
    pass(&board, length - 30);
    beat(&store, "coder-2", second).unwrap();
    let refused = take_over(&store, "coder-2", second).unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
    assert!(beat(&store, "coder-1", first).is_ok(), "its lease can still be renewed");
}

/// Covers: MM-03
#[test]
fn needs_postgres_no_one_is_taken_over_after_a_failover() {
    let (board, _, second) = claimed("failover");
    let store = board.store();
    let length = lease_length(&store);
    // Another server has the project now, and its clock is an hour ahead.
    pass(&board, 3600 + length);
    board.sql("UPDATE liza.projects SET server = 'another/00000001' WHERE id = PROJECT");
    let _ = beat(&store, "coder-2", second);
    let refused = take_over(&store, "coder-2", second).unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
    // Once a lease length and the grace have passed without a renewal, the task is free.
    pass(&board, length + 61);
    beat(&store, "coder-2", second).unwrap();
    take_over(&store, "coder-2", second).unwrap();
}

/// Covers: MM-06
#[test]
fn needs_postgres_a_renewal_takes_no_lock_on_the_project() {
    let (board, first, _) = claimed("no-lock");
    let store = board.store();
    drop(store.snapshot().unwrap());
    let before = lease_of(&store, "coder-1");
    let revision = store.snapshot().unwrap().board.revision;
    // Another process holds the lock on the project.
    let mut other = Server::shared().connect().unwrap();
    let hold = format!("BEGIN; SELECT 1 FROM liza.projects WHERE name = '{}' FOR UPDATE", board.name);
    other.simple_query(&hold).unwrap();
    pass_time_of_row(&board, 100);
    assert!(beat(&store, "coder-1", first).unwrap().changed);
    other.simple_query("ROLLBACK").unwrap();
    assert!(lease_of(&store, "coder-1") >= before);
    assert_eq!(store.snapshot().unwrap().board.revision, revision, "a renewal is no revision");
}

/// Makes the lease of coder-1 older.
fn pass_time_of_row(board: &TestBoard, seconds: i64) {
    board.sql(&format!(
        "UPDATE liza.heartbeats SET lease_expires = lease_expires - {seconds} WHERE project = PROJECT AND agent = 'coder-1'"
    ));
}

/// Covers: MM-06
#[test]
fn needs_postgres_a_takeover_and_a_renewal_never_both_succeed() {
    for round in 0..5 {
        let (board, first, second) = claimed("takeover");
        let (store, other) = (board.store(), board.store());
        let length = lease_length(&store);
        // Just expired, with its grace: both may try.
        pass(&board, length + 61);
        beat(&store, "coder-2", second).unwrap();
        let (taken, renewed) = std::thread::scope(|scope| {
            let taken = scope.spawn(|| take_over(&store, "coder-2", second).is_ok());
            let renewed = scope.spawn(|| {
                if round % 2 == 0 {
                    std::thread::yield_now();
                }
                beat(&other, "coder-1", first)
            });
            (taken.join().unwrap(), renewed.join().unwrap())
        });
        let state = store.snapshot().unwrap();
        let holder = state.board.summary(&task("one")).unwrap().assigned_to;
        if taken {
            assert_eq!(holder, Some(agent("coder-2")));
            assert_eq!(state.board.agents().unwrap()[&agent("coder-1")].current_task, None);
        } else {
            assert!(renewed.is_ok(), "one of them must succeed");
            assert_eq!(holder, Some(agent("coder-1")));
        }
        assert_eq!(
            store.validate(state.board.agents().unwrap()[&agent("coder-2")].heartbeat.unwrap()).unwrap(),
            []
        );
    }
}

/// Covers: MM-06
#[test]
fn needs_postgres_a_takeover_waits_for_a_renewal_that_has_begun() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "waits").with_tasks(&["one"]);
    let store = board.store();
    let (first, second) = (register(&store, "coder-1"), register(&store, "coder-2"));
    claim(&store, &task("one"), "coder-1", first).unwrap();
    let seconds = lease_length(&store) + 61;
    server.sql(&format!("UPDATE liza.projects SET clock_offset_ms = {seconds} * 1000"));
    beat(&store, "coder-2", second).unwrap();
    let mut renewal = server.connect().unwrap();
    renewal.batch_execute("BEGIN").unwrap();
    // As far as a lease of now goes.
    let renew = format!(
        "UPDATE liza.heartbeats SET lease_expires = lease_expires + {seconds} WHERE agent = 'coder-1'"
    );
    assert_eq!(renewal.execute(&*renew, &[]).unwrap(), 1);
    let taken = std::thread::scope(|scope| {
        let taken = scope.spawn(|| take_over(&store, "coder-2", second));
        let waits = || server.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") != ["0"];
        wait_until("the takeover waits", waits);
        renewal.batch_execute("COMMIT").unwrap();
        taken.join().unwrap()
    });
    assert!(matches!(taken, Err(StoreError::Refused(_))), "{taken:?}");
    assert_eq!(
        store.snapshot().unwrap().board.summary(&task("one")).unwrap().assigned_to,
        Some(agent("coder-1"))
    );
}

/// Covers: MM-06
#[test]
fn needs_postgres_a_lease_without_a_row_is_lost() {
    let (board, first, second) = claimed("no-row");
    let store = board.store();
    let length = lease_length(&store);
    pass(&board, length + 61);
    beat(&store, "coder-2", second).unwrap();
    take_over(&store, "coder-2", second).unwrap();
    let rows = board.sql("SELECT agent FROM liza.heartbeats WHERE project = PROJECT ORDER BY agent");
    assert_eq!(rows, ["coder-2"], "the takeover has deleted the expired row");
    let actor = Actor::Supervisor(agent("coder-1"), first);
    let head = "a".repeat(40).parse().unwrap();
    let again = Command::from(ReserveTask { task: task("one"), coder: agent("coder-1"), head });
    let StoreError::Refused(refusal) = submit(&store, actor, again).unwrap_err() else { panic!() };
    assert!(!matches!(*refusal, Refusal::NotLoaded { .. }), "{refusal:?}");
    assert!(store.snapshot().unwrap().board.summary(&task("one")).unwrap().is(Status::Claimed));
}

/// Covers: MM-12
#[test]
fn needs_postgres_a_generation_is_random_and_not_a_revision() {
    let board = TestBoard::new(Kind::Database, "generation");
    let store = board.store();
    let one = register(&store, "coder-1");
    assert!(one.0 > 1_000_000, "{one} is a revision");
    assert_ne!(store.new_generation(), store.new_generation());
    let state = store.snapshot().unwrap();
    assert_eq!(state.board.agents().unwrap()[&agent("coder-1")].generation, Some(one));
}

/// Covers: MM-03
#[test]
fn needs_postgres_needs_faketime_a_server_whose_clock_jumps_takes_no_one_over() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "jump").with_tasks(&["one"]);
    let store = board.store().with_retry_limit(std::time::Duration::from_secs(60));
    let (first, second) = (register(&store, "coder-1"), register(&store, "coder-2"));
    claim(&store, &task("one"), "coder-1", first).unwrap();
    server.stop("fast");
    server.start_with("", &clock_at("+10m"));
    human(&store, note("ahead")).unwrap();
    let last = |store: &Store| store.log_reader().read_new().unwrap().last().unwrap().timestamp;
    let ahead = last(&store);
    assert!((590..=660).contains(&(ahead.unix() - now().unix())), "{ahead}");
    server.stop("fast");
    // Twenty minutes back: the lease has ended, but all leases hold for one length after the step.
    server.start_with("", &clock_at("-10m"));
    human(&store, note("behind")).unwrap();
    assert!(last(&store) >= ahead, "time never decreases");
    let _ = beat(&store, "coder-2", second);
    let refused = take_over(&store, "coder-2", second).unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
    assert!(beat(&store, "coder-1", first).is_ok(), "its lease can still be renewed");
    tried(DATABASE_FAILS, 2);
}
