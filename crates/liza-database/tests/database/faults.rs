//! What a database can do wrong: gone, restarted, read-only, a lost answer, a newer program. And what must hold then.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use liza_core::model::Actor;
use liza_store::{DatabaseReason, RequestId, Store, StoreError, ValueSyntax};
use liza_testkit::evidence::{DATABASE_FAILS, tried};

use crate::board::{Kind, RealHost, TestBoard, call, entry, human, now};
use crate::proxy::Proxy;
use crate::server::Server;
use crate::support::{note, wait_until};

fn reason(error: StoreError) -> DatabaseReason {
    let StoreError::Database(error) = error else { panic!("{error:?}") };
    assert!(!error.reason.hint().is_empty());
    error.reason
}

fn notes(store: &Store) -> usize {
    store.snapshot().unwrap().journal.human_notes.len()
}

/// Covers: MM-05
#[test]
fn needs_postgres_a_lost_answer_is_found_and_nothing_is_done_twice() {
    let proxy = Proxy::new(Server::shared());
    let board = TestBoard::at(&proxy.address(), "lost-answer");
    let store = board.store();
    let created = proxy.rules.commits.load(Ordering::SeqCst);
    for n in 1..=5 {
        proxy.rules.lose_answers.store(1, Ordering::SeqCst);
        let written = human(&store, note(&format!("note {n}"))).unwrap();
        assert_eq!((written.revision, written.changed), (1 + n as u64, true));
        assert_eq!(proxy.rules.lose_answers.load(Ordering::SeqCst), 0, "the proxy did its part");
        assert_eq!(notes(&store), n);
    }
    assert_eq!(proxy.rules.commits.load(Ordering::SeqCst), created + 5, "no commit was sent twice");
    tried(DATABASE_FAILS, 5);
}

/// Covers: MM-05
#[test]
fn needs_postgres_a_lost_commit_is_sent_again() {
    let proxy = Proxy::new(Server::shared());
    let board = TestBoard::at(&proxy.address(), "lost-commit");
    let store = board.store();
    let created = proxy.rules.commits.load(Ordering::SeqCst);
    proxy.rules.lose_commits.store(1, Ordering::SeqCst);
    let written = human(&store, note("once")).unwrap();
    assert_eq!(written.revision, 2);
    assert_eq!(proxy.rules.commits.load(Ordering::SeqCst), created + 2);
    assert_eq!(notes(&store), 1);
    tried(DATABASE_FAILS, 1);
}

/// Whether the last question for a request waits for a lock.
fn waits_for_lock(proxy: &Proxy) -> bool {
    let Some(question) = proxy.rules.question.lock().unwrap().clone() else { return false };
    let waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query";
    !Server::shared().sql(&format!("{waiting} = $question${question}$question$")).is_empty()
}

/// Covers: MM-05
#[test]
fn needs_postgres_a_commit_that_arrives_late_is_waited_for() {
    let proxy = Proxy::new(Server::shared());
    let board = TestBoard::at(&proxy.address(), "late-commit");
    let store = board.store();
    let created = proxy.rules.commits.load(Ordering::SeqCst);
    proxy.rules.late_commits.store(1, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let written = scope.spawn(|| human(&store, note("once")).unwrap());
        let is_answered = || proxy.rules.answers.load(Ordering::SeqCst) > 0;
        wait_until("someone asks for the request", || is_answered() || waits_for_lock(&proxy));
        proxy.rules.passes_late.store(true, Ordering::SeqCst);
        assert_eq!(written.join().unwrap().revision, 2);
    });
    assert_eq!(proxy.rules.commits.load(Ordering::SeqCst), created + 1, "no commit was sent twice");
    assert_eq!(notes(&store), 1);
}

/// Covers: MM-05
#[test]
fn needs_postgres_an_error_that_ends_the_connection_says_nothing_about_the_commit() {
    let proxy = Proxy::new(Server::shared());
    let board = TestBoard::at(&proxy.address(), "denied");
    let store = board.store();
    proxy.rules.deny_answers.store(1, Ordering::SeqCst);
    assert_eq!(human(&store, note("once")).unwrap().revision, 2);
    assert_eq!(proxy.rules.deny_answers.load(Ordering::SeqCst), 0, "the proxy did its part");
    assert_eq!(notes(&store), 1);
    proxy.rules.deny_answers.store(1, Ordering::SeqCst);
    let session = store.begin_edit().unwrap();
    let text = session.text().unwrap();
    let edited = session.replace(&format!("{text}own_key: 1\n"), &entry("edited"), now()).unwrap();
    assert_eq!((edited.revision.0, proxy.rules.deny_answers.load(Ordering::SeqCst)), (3, 0));
}

/// Covers: MM-05
#[test]
fn needs_postgres_a_notification_does_not_decide_about_a_commit() {
    let proxy = Proxy::new(Server::shared());
    let board = TestBoard::at(&proxy.address(), "lost-notification");
    let store = board.store();
    let created = proxy.rules.commits.load(Ordering::SeqCst);
    proxy.rules.lose_notifications.store(1, Ordering::SeqCst);
    *proxy.rules.recorded.lock().unwrap() = Some(Vec::new());
    assert_eq!(human(&store, note("once")).unwrap().revision, 2);
    assert_eq!(proxy.rules.lose_notifications.load(Ordering::SeqCst), 0, "the proxy did its part");
    assert_eq!(proxy.rules.commits.load(Ordering::SeqCst), created + 1);
    let sent = proxy.rules.recorded.lock().unwrap().take().unwrap();
    let both = sent.iter().find(|text| text.contains("COMMIT") && text.contains("NOTIFY"));
    assert_eq!(both, None, "a failed notification would look like a failed commit");
    human(&store, note("again")).unwrap();
    assert_eq!(notes(&store), 2);
}

/// A server on which a commit is written, but waits for another server that does not exist.
pub(crate) struct HangingCommits<'s>(&'s Server);

impl<'s> HangingCommits<'s> {
    pub(crate) fn new(server: &'s Server) -> Self {
        Self::set(server, "nowhere");
        Self(server)
    }

    fn set(server: &Server, standby: &str) {
        server.sql(&format!("ALTER SYSTEM SET synchronous_standby_names = '{standby}'"));
        server.sql("SELECT pg_reload_conf()");
        wait_until("the setting applies", || server.sql("SHOW synchronous_standby_names") == [standby]);
    }

    /// Ends the connection of the commit that waits, as an administrator does; then lets commits through.
    pub(crate) fn end(&self) {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        wait_until("a commit waits", || !self.0.sql(end).is_empty());
        Self::set(self.0, "");
    }
}

/// Covers: MM-05
#[test]
fn needs_postgres_a_commit_that_ends_with_the_connection_is_found() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "terminated");
    let store = board.store();
    human(&store, note("before")).unwrap();
    let hanging = HangingCommits::new(&server);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| human(&store, note("once")));
        hanging.end();
        assert_eq!(writing.join().unwrap().unwrap().revision, 3);
    });
    assert_eq!(notes(&store), 2);
    assert_eq!(store.log_reader().read_new().unwrap().len(), 3, "logged once");
}

/// Covers: MM-05, MM-09
#[test]
fn needs_postgres_an_edit_that_ends_with_the_connection_is_found() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "terminated-edit").with_tasks(&["one"]);
    let store = board.store();
    let hanging = HangingCommits::new(&server);
    let session = store.begin_edit().unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            session.set(".tasks[0].priority", "1", ValueSyntax::BySchema, &entry("set"), now())
        });
        hanging.end();
        assert_eq!(writing.join().unwrap().unwrap().revision.0, 3);
    });
    let log = store.log_reader().read_new().unwrap();
    assert_eq!(log.iter().filter(|entry| entry.detail == "set").count(), 1, "{log:?}");
}

/// Covers: MM-05
#[test]
fn needs_postgres_a_request_is_carried_out_once() {
    let board = TestBoard::new(Kind::Database, "request");
    let store = board.store();
    let id = RequestId::new();
    let send =
        |id: &RequestId, text: &str| store.submit_request(id, call(Actor::Human, note(text)), &RealHost);
    assert!(send(&id, "one").unwrap().written.changed);
    let again = send(&id, "one").unwrap_err();
    assert!(again.to_string().contains("revision 2"), "{again}");
    assert_eq!(reason(again), DatabaseReason::RequestRepeated);
    assert_eq!(reason(send(&id, "two").unwrap_err()), DatabaseReason::RequestReused);
    assert_eq!(notes(&store), 1);
    // Eight days later it is not known any more whether a request was carried out.
    let unused = RequestId::new();
    board.sql("UPDATE liza.projects SET clock_offset_ms = 8 * 86400000 WHERE id = PROJECT");
    assert_eq!(reason(send(&unused, "late").unwrap_err()), DatabaseReason::RequestTooOld);
    assert_eq!(notes(&store), 1);
}

/// Covers: MM-04, MM-05
#[test]
fn needs_postgres_a_store_waits_for_a_server_that_restarts() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "restart");
    let store = board.store().with_retry_limit(Duration::from_secs(60));
    human(&store, note("before")).unwrap();
    server.stop("immediate");
    let quick = board.store().with_retry_limit(Duration::from_millis(300));
    let started = Instant::now();
    assert_eq!(reason(quick.snapshot().unwrap_err()), DatabaseReason::Unreachable);
    assert_eq!(reason(human(&quick, note("no")).unwrap_err()), DatabaseReason::Unreachable);
    assert!(started.elapsed() < Duration::from_secs(20));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| human(&store, note("after")).unwrap());
        server.start("");
        assert_eq!(waiting.join().unwrap().revision, 3);
    });
    assert_eq!(notes(&store), 2);
    tried(DATABASE_FAILS, 1);
}

/// Covers: MM-04
#[test]
fn needs_postgres_a_server_without_writes_is_read() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "read-only");
    server.sql("ALTER DATABASE liza SET default_transaction_read_only = on");
    let store = board.store().with_retry_limit(Duration::from_millis(200));
    assert_eq!(reason(human(&store, note("no")).unwrap_err()), DatabaseReason::ReadOnly);
    assert_eq!(notes(&store), 0);
}

/// Covers: MM-04
#[test]
fn needs_postgres_a_held_lock_ends_with_a_reason() {
    let board = TestBoard::new(Kind::Database, "held");
    let store = board.store().with_retry_limit(Duration::from_millis(100));
    let mut other = Server::shared().connect().unwrap();
    let hold = format!("BEGIN; SELECT 1 FROM liza.projects WHERE name = '{}' FOR UPDATE", board.name);
    other.simple_query(&hold).unwrap();
    let started = Instant::now();
    assert_eq!(reason(human(&store, note("no")).unwrap_err()), DatabaseReason::Slow);
    assert!(started.elapsed() >= Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(notes(&store), 0, "reading needs no lock");
    other.simple_query("ROLLBACK").unwrap();
    human(&store, note("yes")).unwrap();
}

/// Covers: MM-05
#[test]
fn needs_postgres_a_partition_only_delays() {
    let proxy = Proxy::new(Server::shared());
    let board = TestBoard::at(&proxy.address(), "partition");
    let store = board.store().with_retry_limit(Duration::from_secs(60));
    human(&store, note("before")).unwrap();
    proxy.partition(true);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| human(&store, note("after")).unwrap());
        wait_until("an attempt during the partition", || proxy.rules.refused.load(Ordering::SeqCst) > 0);
        proxy.partition(false);
        assert_eq!(waiting.join().unwrap().revision, 3);
    });
    assert_eq!(notes(&store), 2);
    tried(DATABASE_FAILS, 1);
}

/// Covers: MM-01
#[test]
fn needs_postgres_tables_of_a_newer_program_and_missing_boards_are_refused() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "newer");
    let address = server.address().parse().unwrap();
    let other = board.root.join("other");
    let joined = Store::join_database(&other, &address, None).unwrap();
    assert_eq!(joined.snapshot().unwrap(), board.store().snapshot().unwrap());
    human(&joined, note("from here")).unwrap();
    assert_eq!(notes(&board.store()), 1);
    let missing = Store::join_database(&board.root.join("third"), &address, Some("no-such")).unwrap_err();
    assert!(missing.to_string().contains(&board.name), "it names those that exist: {missing}");
    assert_eq!(reason(missing), DatabaseReason::NoProject);
    let used = board.store();
    human(&used, note("in use")).unwrap();
    let mut reader = used.incremental_reader();
    reader.read().unwrap();
    server.sql("UPDATE liza.meta SET version = 99");
    assert_eq!(reason(human(&used, note("no")).unwrap_err()), DatabaseReason::NewerSchema);
    assert_eq!(reason(used.snapshot().unwrap_err()), DatabaseReason::NewerSchema);
    assert_eq!(reason(used.begin_edit().map(drop).unwrap_err()), DatabaseReason::NewerSchema);
    assert_eq!(reason(reader.read().unwrap_err()), DatabaseReason::NewerSchema);
    assert_eq!(reason(board.store().snapshot().unwrap_err()), DatabaseReason::NewerSchema);
    assert_eq!(reason(human(&board.store(), note("no")).unwrap_err()), DatabaseReason::NewerSchema);
}
