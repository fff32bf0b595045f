//! Commands of one process that wait for each other share one durable write.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use liza_core::model::{Actor, StopFile, StopFiles, Timestamp};
use liza_store::{Call, Host, Store, StoreError};
use liza_testkit::evidence::{KILLED_AT_RANDOM, tried};

use crate::locking::{acknowledged, worker};
use crate::support::*;

const OTHERS: usize = 15;

/// A host whose command decides only after the others have been sent.
struct First<'a> {
    sent: &'a AtomicUsize,
    act: &'a (dyn Fn() + Sync),
}

impl Host for First<'_> {
    fn masked(&self, text: &str) -> String {
        text.to_owned()
    }

    fn now(&self) -> Timestamp {
        now()
    }

    fn stop_files(&self) -> StopFiles {
        StopFiles::default()
    }

    fn create_stop_files(&self, _: &[StopFile], _: Timestamp) -> std::io::Result<()> {
        wait_until("the others", || self.sent.load(Ordering::SeqCst) == OTHERS);
        (self.act)();
        Ok(())
    }
}

/// Sends a command, and others while it is being decided. Every tenth of the others is refused.
fn send_together(store: &Store, act: &(dyn Fn() + Sync)) -> usize {
    let sent = AtomicUsize::new(0);
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let first = Call { actor: Actor::Human, if_revision: None, command: note("first") };
        let host = First { sent: &sent, act };
        let first = scope.spawn(move || store.submit(first, &host).unwrap());
        for n in 0..OTHERS {
            let (sent, refused) = (&sent, &refused);
            scope.spawn(move || {
                sent.fetch_add(1, Ordering::SeqCst);
                let command = if n % 10 == 5 { add_task("one") } else { note(&format!("other {n}")) };
                match submit(store, human(command)) {
                    Ok(written) => assert!(written.changed),
                    Err(StoreError::Refused(_)) => drop(refused.fetch_add(1, Ordering::SeqCst)),
                    Err(error) => panic!("{error}"),
                }
            });
        }
        assert!(first.join().unwrap().answer.is_ok());
    });
    refused.into_inner()
}

/// How many revisions the last write covers.
fn revisions_of_last_write(project: &Project) -> u64 {
    let records =
        String::from_utf8_lossy(&std::fs::read(project.file("state.yaml.lock")).unwrap()).into_owned();
    let numbers = |key: &str| -> Vec<u64> {
        let values = records.lines().filter_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        values.collect()
    };
    let pairs = numbers("revision ").into_iter().zip(numbers("revision_before "));
    pairs.max().map_or(0, |(revision, before)| revision - before)
}

/// Covers: IS-01
#[test]
fn commands_that_wait_for_each_other_share_one_write() {
    let shared = (0..20).any(|_| {
        let project = Project::new("shared");
        let store = project.store();
        project.add_task("one");
        assert_eq!(send_together(&store, &|| ()), 1, "the task exists already");
        let state = store.snapshot().unwrap();
        assert_eq!(state.journal.human_notes.len(), OTHERS);
        assert_eq!(state.board.revision.0, 2 + OTHERS as u64);
        assert_eq!(project.log().matches("action: note").count(), OTHERS);
        assert_eq!(store.validate(now()).unwrap(), []);
        revisions_of_last_write(&project) > 5
    });
    assert!(shared, "each command was written alone");
}

/// Covers: IS-01, AT-06
#[test]
fn a_save_while_commands_wait_is_not_lost_and_they_decide_again() {
    let project = Project::new("shared-overtaken");
    let store = project.store();
    project.add_task("one");
    let done = AtomicUsize::new(0);
    send_together(&store, &|| {
        if done.fetch_add(1, Ordering::SeqCst) == 0 {
            project.write(&format!("{}# mine\n", project.text()));
        }
    });
    assert!(project.text().contains("# mine"), "{}", project.text());
    assert_eq!(store.snapshot().unwrap().journal.human_notes.len(), OTHERS);
    assert_eq!(project.log().matches("action: note").count(), OTHERS);
}

/// Covers: IS-01, BB-09, BB-12
#[test]
fn random_kills_of_a_team_lose_nothing() {
    let project = Project::new("team-kills");
    let mut all = Vec::new();
    for round in 0..30_u64 {
        let mut child = worker(&project, &format!("team r{round} 8"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let wanted = project.store().snapshot().unwrap().journal.human_notes.len() + 20;
        wait_until("some writes", || project.log().matches("action: note").count() >= wanted);
        // A different moment each time.
        std::thread::park_timeout(Duration::from_micros(round * 13 % 23 * 150));
        child.kill().unwrap();
        all.extend(acknowledged(&child.wait_with_output().unwrap().stdout));
    }
    project.run(note("the end"));
    let state = project.store().snapshot().unwrap();
    let notes = &state.journal.human_notes;
    let lost = all.iter().find(|(text, _)| !notes.iter().any(|note| note.message == *text));
    assert_eq!(lost, None);
    assert_eq!(project.log().matches("action: note").count(), notes.len());
    assert_eq!(state.board.revision.0, 1 + notes.len() as u64);
    assert!(all.len() > 100, "{}", all.len());
    tried(KILLED_AT_RANDOM, 30);
}
