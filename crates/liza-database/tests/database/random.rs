//! Random commands: what is decided on the rows that a command asks for is what the whole blackboard would decide.

use liza_core::model::{State, Timestamp};
use liza_core::protocol::{Archive, Command, Request, apply};
use liza_store::StoreError;
use proptest::prelude::*;

use crate::board::{Kind, TestBoard, now, submit};
use crate::steps::{Step, command, steps};
use crate::support::task;

fn request(step: &Step, now: Timestamp) -> Request<Command> {
    let (actor, command) = command(step);
    // Archiving removes rows.
    let command = match step.text % 8 {
        7 => Command::from(Archive { tasks: vec![task(["a", "b", "c", "d"][usize::from(step.which) % 4])] }),
        _ => command,
    };
    Request { actor, now, stop_files: Default::default(), if_revision: None, command }
}

/// The state that a command makes of another one at that time; none if it is refused.
fn expected(before: &State, step: &Step, now: Timestamp, is_renewal: bool) -> Option<State> {
    let decided = apply(&before.board, &request(step, now)).ok()?;
    let mut change = decided.change;
    let mut after = before.clone();
    if !change.is_empty() {
        if is_renewal {
            change.revision = before.board.revision;
        }
        after.apply(&change);
    }
    Some(after)
}

fn run_step(board: &TestBoard, step: &Step) {
    let store = board.store();
    let before = store.snapshot().unwrap();
    let from = now();
    let Request { actor, command, .. } = request(step, from);
    let is_renewal = matches!(command, Command::Heartbeat(_));
    let result = submit(&store, actor, command);
    let until = now();
    let after = store.snapshot().unwrap();
    let mut times = (from.unix()..=until.unix()).map(Timestamp::from_unix);
    match result {
        Ok(_) => {
            // A renewal that needs the lock is a write of its own.
            let same = |now: Timestamp| {
                expected(&before, step, now, is_renewal).as_ref() == Some(&after)
                    || expected(&before, step, now, false).as_ref() == Some(&after)
            };
            if !times.any(same) {
                let expected = expected(&before, step, until, is_renewal);
                assert_eq!(Some(after), expected, "{step:?}");
            }
        }
        Err(StoreError::Refused(refusal)) => {
            let decided = |now: Timestamp| match apply(&before.board, &request(step, now)) {
                Ok(decided) => decided.answer.err(),
                Err(refusal) => Some(refusal),
            };
            assert!(times.any(|now| decided(now).as_ref() == Some(&*refusal)), "{step:?}: {refusal:?}");
        }
        Err(StoreError::Violates(_)) => assert_eq!(after, before),
        Err(error) => panic!("{step:?}: {error:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers: MM-02
    #[test]
    fn needs_postgres_a_partial_read_decides_as_a_full_one(steps in steps()) {
        let board = TestBoard::new(Kind::Database, "random");
        let mut reader = board.store().incremental_reader();
        for step in &steps {
            run_step(&board, step);
            prop_assert_eq!(&*reader.read().unwrap(), &board.store().snapshot().unwrap());
        }
        prop_assert_eq!(board.store().validate(now()).unwrap(), []);
        std::fs::remove_dir_all(&board.root).unwrap();
    }
}
