//! What several machines share through a database: stop files, edits, the text, and few round trips.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use liza_core::model::{Actor, Revision, StopFile, StopFiles, Timestamp};
use liza_core::protocol::{Pause, Resume};
use liza_store::{Call, Export, Host, RaisedAlarms, Store, StoreError, ValueSyntax};

use crate::board::{Kind, TestBoard, claim, entry, human, now, register};
use crate::proxy::Proxy;
use crate::server::Server;
use crate::support::{add_task, note, task};

/// A host on a machine whose clock is wrong.
struct SkewedHost(i64);

impl Host for SkewedHost {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix(now().unix() + self.0)
    }

    fn stop_files(&self) -> StopFiles {
        StopFiles::default()
    }

    fn create_stop_files(&self, _: &[StopFile], _: Timestamp) -> std::io::Result<()> {
        panic!("stop files are rows")
    }

    fn masked(&self, text: &str) -> String {
        text.replace("secret", "***")
    }
}

/// Covers: MM-03
#[test]
fn needs_postgres_the_clocks_of_the_machines_do_not_matter() {
    let board = TestBoard::new(Kind::Database, "skew");
    let store = board.store();
    for skew in [-600, 600, 0] {
        let call = Call { actor: Actor::Human, if_revision: None, command: note(&format!("secret {skew}")) };
        store.submit(call, &SkewedHost(skew)).unwrap().answer.unwrap();
    }
    let log = store.log_reader().read_new().unwrap();
    assert_eq!(log.len(), 4);
    for entry in &log[1..] {
        assert!((entry.timestamp.unix() - now().unix()).abs() < 60, "{entry:?}");
        assert!(entry.detail.contains("***"), "{entry:?}");
    }
}

/// Covers: MM-11
#[test]
fn needs_postgres_a_stop_file_is_a_row_that_stops_every_machine() {
    let board = TestBoard::new(Kind::Database, "stop").with_tasks(&["one"]);
    let (here, there) = (board.store(), board.store());
    let generation = register(&there, "coder-1");
    let call = Call { actor: Actor::Human, if_revision: None, command: Pause };
    here.submit(call, &SkewedHost(0)).unwrap().answer.unwrap();
    assert!(there.stop_rows().unwrap().unwrap().pause.is_some());
    assert!(!board.root.join(".liza/PAUSE").exists());
    let refused = claim(&there, &task("one"), "coder-1", generation).unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
    let call =
        Call { actor: Actor::Human, if_revision: None, command: Resume { decision: None, note: None } };
    let outcome = here.submit(call, &SkewedHost(0)).unwrap();
    outcome.answer.unwrap();
    assert!(!outcome.written.effects.is_empty(), "the caller removes the row");
    here.change_stop_rows(&[], &[StopFile::Pause]).unwrap();
    claim(&there, &task("one"), "coder-1", generation).unwrap();
    // A watch reports a row, too.
    let watch = there.watch().unwrap();
    while watch.wait(Duration::from_millis(1500)) {}
    here.change_stop_rows(&[StopFile::Abort], &[]).unwrap();
    let started = Instant::now();
    assert!(watch.wait(Duration::from_secs(20)));
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(there.stop_rows().unwrap().unwrap().abort.is_some());
}

/// Covers: MM-09
#[test]
fn needs_postgres_an_edit_is_merged_with_writes_of_others() {
    let board = TestBoard::new(Kind::Database, "merge").with_tasks(&["one", "two"]);
    let store = board.store();
    let session = store.begin_edit().unwrap();
    let text = session.text().unwrap();
    let edited = text.replace("description: \"Do one", "description: \"Do 1");
    assert_ne!(edited, text);
    // No lock is held over the edit.
    human(&board.store(), add_task("three")).unwrap();
    session.replace(&edited, &entry("merged"), now()).unwrap();
    let state = store.snapshot().unwrap();
    assert_eq!(state.board.tasks.len(), 3);
    assert!(
        state.board.body(&task("one")).unwrap().record().description.as_ref().unwrap().starts_with("Do 1")
    );

    let session = store.begin_edit().unwrap();
    let text = session.text().unwrap();
    let edited = text.replace("description: \"Do two", "description: \"Do 2");
    let other = board.store();
    let path = ".tasks[] | select(.id == \"two\") | .description";
    other.begin_edit().unwrap().set(path, "theirs", ValueSyntax::BySchema, &entry("theirs"), now()).unwrap();
    let error = session.replace(&edited, &entry("mine"), now()).unwrap_err();
    assert!(matches!(error, StoreError::Overtaken { .. }), "{error:?}");
    assert_eq!(store.validate(now()).unwrap(), []);
}

/// Covers: MM-09
#[test]
fn needs_postgres_a_command_may_change_a_copy_of_the_text() {
    let board = TestBoard::new(Kind::Database, "modify").with_tasks(&["one"]);
    let store = board.store();
    let mut session = store.begin_edit().unwrap();
    session.begin_modify(now()).unwrap();
    let copy = session.path();
    let text = std::fs::read_to_string(&copy).unwrap();
    std::fs::write(&copy, text.replace("priority: 3", "priority: 2")).unwrap();
    session.finish_modify(&entry("modified"), now()).unwrap();
    assert!(!copy.exists());
    assert_eq!(store.snapshot().unwrap().board.body(&task("one")).unwrap().record().priority, Some(2));
}

/// Covers: MM-09
#[test]
fn needs_postgres_a_blackboard_goes_from_one_store_to_the_other_and_back() {
    for (from, to) in [(Kind::Database, Kind::File), (Kind::File, Kind::Database)] {
        let board = TestBoard::new(from, "content").with_tasks(&["one", "two"]);
        let store = board.store();
        register(&store, "coder-1");
        human(&store, note("noted")).unwrap();
        let export = Export::parse(&store.export().unwrap().text().unwrap()).unwrap();
        let copy = TestBoard::new(to, "copy");
        let other = copy.store();
        other.import(&export, &entry("imported"), now()).unwrap();
        let (old, new) = (store.snapshot().unwrap().board, other.snapshot().unwrap().board);
        assert_eq!(
            new.tasks.keys().collect::<Vec<_>>(),
            old.tasks.keys().collect::<Vec<_>>(),
            "{from:?} to {to:?}"
        );
        assert_eq!((new.agents, new.goal), (old.agents, old.goal));
        let read = |store: &Store| store.log_reader().read_new().unwrap();
        let (log, all) = (read(&store), read(&other));
        assert!(log.iter().all(|entry| all.contains(entry)), "{log:?}\n{all:?}");
        assert!(other.import(&export, &entry("imported"), now()).is_err(), "it is not empty");
        // Its next write goes on from there.
        human(&other, note("three")).unwrap();
        assert_eq!(other.snapshot().unwrap().board.revision, new.revision.next());
    }
}

/// Covers: MM-10
#[test]
fn needs_postgres_two_round_trips_hold_the_lock_and_waiting_commands_share_them() {
    let proxy = Proxy::new(Server::shared());
    let board = TestBoard::at(&proxy.address(), "round-trips");
    let store = board.store();
    let before = proxy.rules.commits.load(Ordering::SeqCst);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let store = store.clone();
            scope.spawn(move || {
                for n in 0..10 {
                    human(&store, add_task(&format!("task-{thread}-{n}"))).unwrap();
                }
            });
        }
    });
    let commits = proxy.rules.commits.load(Ordering::SeqCst) - before;
    assert!(commits < 160, "160 commands in {commits} transactions");
    assert_eq!(proxy.rules.between.load(Ordering::SeqCst), 0, "more than two round trips");
    let notified = proxy.rules.notifications.load(Ordering::SeqCst) as f64;
    let allowed = started.elapsed().as_secs_f64() * 10.0 + 1.0;
    assert!(notified <= allowed, "{notified} notifications, {allowed} allowed");
    assert_eq!(store.snapshot().unwrap().board.tasks.len(), 160);
    assert_eq!(store.validate(now()).unwrap(), []);
}

/// Covers: MM-11
#[test]
fn needs_postgres_an_alarm_is_raised_by_one_machine_and_once_per_episode() {
    let board = TestBoard::new(Kind::Database, "alarms");
    let (here, there) = (board.store(), board.store());
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>();
    let raise = |store: &Store, alarms: &[&str], revision: u64, at: i64| {
        let seen = (Revision(revision), Timestamp::from_unix(at));
        store.raise_alarms(&keys(alarms), &|key| key.starts_with("late"), seen).unwrap().unwrap()
    };
    let new = |alarms: &[&str]| RaisedAlarms::New(keys(alarms));
    assert_eq!(raise(&here, &["a", "b\nc"], 5, 100), new(&["a", "b\nc"]));
    assert_eq!(raise(&there, &["a", "b\nc"], 5, 101), new(&[]));
    assert_eq!(raise(&there, &["a"], 6, 102), new(&[]), "one has ended");
    // What a slow machine still sees is neither raised again nor ended.
    assert_eq!(raise(&here, &["a", "b\nc"], 5, 103), RaisedAlarms::Outdated);
    assert_eq!(raise(&here, &[], 6, 101), RaisedAlarms::Outdated);
    assert_eq!(raise(&here, &["a", "b\nc"], 7, 104), new(&["b\nc"]), "another episode");
    // What a machine cannot see yet has not ended, and is not raised again when it does.
    assert_eq!(raise(&here, &["a", "late"], 7, 105), new(&["late"]));
    assert_eq!(raise(&there, &["a"], 7, 105), new(&[]));
    assert_eq!(raise(&there, &["a", "late"], 7, 105), new(&[]));
    // Many machines at the same moment: one of them raises it.
    let raised: usize = std::thread::scope(|scope| {
        let racing = |_| {
            let store = board.store();
            scope.spawn(move || match raise(&store, &["a", "d"], 8, 105) {
                RaisedAlarms::New(new) => new.len(),
                RaisedAlarms::Outdated => panic!("all see the same"),
            })
        };
        (0..4).map(racing).collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(raised, 1);
}

/// Covers: MM-01
#[test]
fn needs_postgres_tables_of_an_older_program_are_changed_and_keep_their_rows() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "older");
    human(&board.store(), note("before")).unwrap();
    server.sql(
        "UPDATE liza.meta SET version = 1; DROP TABLE liza.alarms; \
         CREATE TABLE liza.alarms (project bigint NOT NULL, key text NOT NULL, text text NOT NULL)",
    );
    let stores: Vec<Store> = (0..4).map(|_| board.store()).collect();
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(move || human(store, note("after")).unwrap());
        }
    });
    assert_eq!(board.store().snapshot().unwrap().journal.human_notes.len(), 5);
    assert_eq!(server.sql("SELECT version FROM liza.meta"), ["2"]);
    let seen = (Revision(9), now());
    let raised = board.store().raise_alarms(&BTreeSet::from(["a".to_owned()]), &|_| false, seen).unwrap();
    assert!(matches!(raised, Some(RaisedAlarms::New(new)) if new.len() == 1));
}
