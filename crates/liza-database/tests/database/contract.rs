//! The contract of the store: every test runs on a file and on a database.

use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use liza_core::model::{
    Actor, FactKind, Generation, Impact, Refusal, ReviewPhase, Section, Sha, Status, TestFailure, Validation,
    ValidationResult, Value, WorkFacts,
};
use liza_core::protocol::{
    Archive, ClaimReview, Command, Deregister, EditTask, Heartbeat, RecordValidation, Request, SetStatus,
    SubmitForReview, SubmitVerdict, TaskEdit, Verdict, WorktreeFacts,
};
use liza_store::{Store, StoreError, ValueSyntax, read_state};
use liza_testkit::evidence::{KILLED_AT_RANDOM, tried};

use crate::board::{Kind, RealHost, TestBoard, call, claim, entry, human, register, submit};
use crate::support::{add_task, agent, note, task, wait_until};

/// Runs each test on both stores.
macro_rules! on_both_stores {
    ($($(#[$meta:meta])* $name:ident;)+) => {
        mod file {
            $($(#[$meta])* #[test] fn $name() { super::$name(super::Kind::File); })+
        }

        mod needs_postgres {
            $($(#[$meta])* #[test] fn $name() { super::$name(super::Kind::Database); })+
        }
    };
}

on_both_stores! {
    /// Covers: MM-02
    a_command_is_written_with_its_log_entry;
    /// Covers: MM-02
    a_refused_command_writes_nothing;
    /// Covers: MM-02
    parts_are_the_same_as_in_the_whole;
    /// Covers: MM-02, MM-09
    the_text_reads_as_the_state;
    /// Covers: MM-02
    exactly_one_of_many_threads_claims_a_task;
    /// Covers: MM-02
    exactly_one_of_many_processes_claims_a_task;
    /// Covers: MM-02, MM-12
    a_stale_registration_is_fenced;
    /// Covers: MM-02
    only_introduced_violations_are_refused;
    /// Covers: MM-02
    commands_of_one_process_lose_nothing;
    /// Covers: MM-02
    killed_writers_lose_nothing_and_write_the_log_once;
    /// Covers: MM-02, MM-09
    a_value_and_a_text_are_edited_by_hand;
    /// Covers: UI-11, BB-15
    only_settings_that_differ_from_the_default_are_written;
    /// Covers: MM-02
    an_edit_with_a_violation_is_refused;
    /// Covers: MM-02
    an_unchanged_board_is_the_same_state;
    /// Covers: MM-04
    a_watch_reports_a_write_of_another_process;
    /// Covers: JU-07, JU-09
    facts_impact_and_approvals_are_kept;
    /// Covers: JU-03
    the_phase_of_a_review_and_the_result_of_its_validation_are_kept;
    /// Covers: MM-02
    the_log_is_read_from_its_end;
    /// Covers: MM-02, MM-06
    a_heartbeat_renews_the_agent_and_its_task;
    /// Covers: MM-02
    a_deregistered_agent_leaves_the_board;
    /// Covers: MM-02
    archived_tasks_leave_the_board;
    /// Covers: MM-02
    a_revision_that_was_read_is_compared;
    /// Covers: MM-02
    a_check_decides_and_writes_nothing;
}

fn a_command_is_written_with_its_log_entry(kind: Kind) {
    let board = TestBoard::new(kind, "logged");
    let written = human(&board.store(), add_task("one")).unwrap();
    assert_eq!((written.revision, written.changed), (2, true));
    let state = board.store().snapshot().unwrap();
    assert_eq!(state.board.revision.0, 2);
    let record = state.board.body(&task("one")).unwrap().record();
    assert_eq!(record.status, Some(Status::Unclaimed));
    assert_eq!(record.done_when.as_deref(), Some("It works\nand is tested"));
    let log = board.store().log_reader().read_new().unwrap();
    assert_eq!(log.iter().map(|entry| entry.revision.unwrap()).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(board.store().validate(board.now()).unwrap(), []);
    assert_eq!(board.store().log_faults().unwrap(), Vec::<String>::new());
}

fn a_refused_command_writes_nothing(kind: Kind) {
    let board = TestBoard::new(kind, "refused").with_tasks(&["one"]);
    let before = board.store().text().unwrap();
    let error = human(&board.store(), add_task("one")).unwrap_err();
    assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
    assert_eq!(board.store().text().unwrap(), before);
}

fn parts_are_the_same_as_in_the_whole(kind: Kind) {
    let board = TestBoard::new(kind, "parts").with_tasks(&["a", "b"]);
    register(&board.store(), "coder-1");
    let whole = board.store().snapshot().unwrap().board;
    let parts = board.store().read_parts(&[Section::Config, Section::Agents], &[task("b")]).unwrap();
    assert_eq!(parts.config, whole.config);
    assert_eq!(parts.agents, whole.agents);
    assert_eq!(parts.body(&task("b")), whole.body(&task("b")));
    assert_eq!(parts.revision, whole.revision);
    let found = board.store().read_path(".tasks[1].id").unwrap();
    assert_eq!(found[0].as_text(), Some("b"));
}

fn facts_impact_and_approvals_are_kept(kind: Kind) {
    let (board, one) = (TestBoard::new(kind, "approvals").with_tasks(&["one"]), task("one"));
    let (store, reviewer) = (board.store(), agent("code-reviewer-1"));
    let (coder, judge) = (register(&store, "coder-1"), register(&store, "code-reviewer-1"));
    let edit = TaskEdit { impact: Some(Impact::High), ..TaskEdit::default() };
    human(&store, Command::from(EditTask { task: one.clone(), edit })).unwrap();
    claim(&store, &one, "coder-1", coder).unwrap();
    let commit: Sha = "b".repeat(40).parse().unwrap();
    let mut work = WorkFacts { files: 1, added: 2, removed: 3, ..WorkFacts::default() };
    work.note(FactKind::TestsDeleted, "\"it: works\" # in a.rs");
    let facts = Some(WorktreeFacts { work: Some(work.clone()), ..WorktreeFacts::clean(commit.clone()) });
    let command = SubmitForReview { task: one.clone(), commit, facts: facts.clone(), authors: Vec::new() };
    submit(&store, Actor::Agent(agent("coder-1"), coder), Command::from(command)).unwrap();
    let command =
        ClaimReview { task: one.clone(), reviewer, setup_failure: None, integration: None, gate: None };
    submit(&store, Actor::Supervisor(reviewer, judge), Command::from(command)).unwrap();
    let verdict = Verdict::Approved(Some("ran it".to_owned()));
    let command = SubmitVerdict { task: one.clone(), verdict, facts, commit: None, moved: None };
    submit(&store, Actor::Agent(reviewer, judge), Command::from(command)).unwrap();

    let state = board.store().snapshot().unwrap();
    let record = state.board.body(&one).unwrap().record();
    assert_eq!((record.status, record.impact), (Some(Status::ReadyForReview), Some(Impact::High)));
    assert_eq!(record.facts, Some(work));
    assert_eq!(record.approvals.as_ref().unwrap()[0].agent, reviewer);
    assert_eq!(state.board.summary(&one).unwrap().approved_so_far, [reviewer]);
}

fn the_phase_of_a_review_and_the_result_of_its_validation_are_kept(kind: Kind) {
    let (board, one) = (TestBoard::new(kind, "validated").with_tasks(&["one"]), task("one"));
    let (store, reviewer) = (board.store(), agent("code-reviewer-1"));
    let (coder, judge) = (register(&store, "coder-1"), register(&store, "code-reviewer-1"));
    let edit = TaskEdit { validate: Some(vec!["make".to_owned()]), ..TaskEdit::default() };
    human(&store, Command::from(EditTask { task: one.clone(), edit })).unwrap();
    claim(&store, &one, "coder-1", coder).unwrap();
    let commit: Sha = "b".repeat(40).parse().unwrap();
    let facts = Some(WorktreeFacts::clean(commit.clone()));
    let command = SubmitForReview { task: one.clone(), commit: commit.clone(), facts, authors: Vec::new() };
    submit(&store, Actor::Agent(agent("coder-1"), coder), Command::from(command)).unwrap();
    let supervisor = Actor::Supervisor(reviewer, judge);
    let gate = Some("gate".to_owned());
    let command = ClaimReview { task: one.clone(), reviewer, setup_failure: None, integration: None, gate };
    submit(&store, supervisor, Command::from(command)).unwrap();
    let record = || {
        let state = board.store().snapshot().unwrap();
        assert_eq!(read_state_of(&board), state, "the text says the same");
        state.board.body(&one).unwrap().record().clone()
    };
    assert_eq!(record().review_phase, Some(ReviewPhase::Validation));
    assert_eq!(record().validated, None);
    let failure = TestFailure {
        what: "failed with exit status 7".to_owned(),
        output: ".liza/integration-tests/one-validation-1.log".to_owned(),
        last_lines: vec!["\"it: fails\" # here".to_owned(), "- no list".to_owned()],
    };
    let validation = Validation {
        commit: commit.clone(),
        result: ValidationResult::Held,
        commands: vec!["make".to_owned()],
        gate: "gate".to_owned(),
        tree: Some(commit),
        time: board.now(),
        command: Some("make".to_owned()),
        failure: Some(failure),
        flaky: vec!["make: \"flaky\"".to_owned()],
        head: None,
        settings: vec!["word".to_owned()],
        receipt: Some("9f".repeat(32)),
    };
    let command = RecordValidation { task: one.clone(), reviewer, validation: validation.clone() };
    submit(&store, supervisor, Command::from(command)).unwrap();
    assert_eq!((record().validated, record().review_phase), (Some(validation), None));
    assert_eq!(board.store().validate(board.now()).unwrap(), []);
}

/// The state in the text of the blackboard.
fn read_state_of(board: &TestBoard) -> liza_core::State {
    let copy = board.root.join("copy.yaml");
    std::fs::write(&copy, board.store().text().unwrap()).unwrap();
    read_state(&copy).unwrap()
}

fn the_text_reads_as_the_state(kind: Kind) {
    let board = TestBoard::new(kind, "text").with_tasks(&["a", "b"]);
    register(&board.store(), "coder-1");
    human(&board.store(), note("text: # with \"all\"\nof it")).unwrap();
    assert_eq!(read_state_of(&board), board.store().snapshot().unwrap());
    let (state, misspelled) = board.store().writable_snapshot().unwrap();
    assert_eq!(state, read_state_of(&board));
    assert_eq!(misspelled, []);
}

fn exactly_one_of_many_threads_claims_a_task(kind: Kind) {
    let board = TestBoard::new(kind, "threads").with_tasks(&["one"]);
    let store = board.store().with_lock_timeout(Duration::from_secs(60));
    let coders: Vec<(String, Generation)> =
        (1..=8).map(|n| format!("coder-{n}")).map(|id| (id.clone(), register(&store, &id))).collect();
    let won = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (coder, generation) in &coders {
            let (store, won) = (store.clone(), &won);
            scope.spawn(move || match claim(&store, &task("one"), coder, *generation) {
                Ok(_) => drop(won.fetch_add(1, Ordering::SeqCst)),
                Err(StoreError::Refused(_)) => {}
                Err(error) => panic!("{error:?}"),
            });
        }
    });
    assert_eq!(won.into_inner(), 1);
    assert_eq!(store.validate(board.now()).unwrap(), []);
}

const WORK: &str = "LIZA_DATABASE_TEST_WORK";
const ROOT: &str = "LIZA_DATABASE_TEST_ROOT";

/// A process that works on the blackboard: `claim CODER GENERATION`, `notes NAME` or `join ADDRESS NAME`.
pub(crate) fn worker(board: &TestBoard, work: &str) -> Process {
    let mut process = Process::new(std::env::current_exe().unwrap());
    process.args(["contract::work", "--exact", "--nocapture", "--test-threads=1"]);
    process.env(WORK, work).env(ROOT, &board.root).env_remove("NEXTEST");
    process.stdout(Stdio::piped()).stderr(Stdio::inherit());
    process
}

/// The work of such a process; does nothing in a normal test run.
#[test]
fn work() {
    let (Ok(work), Some(root)) = (std::env::var(WORK), std::env::var_os(ROOT)) else { return };
    let root = std::path::Path::new(&root);
    liza_database::install();
    println!();
    if let ["join", address, name] = work.split(' ').collect::<Vec<_>>()[..] {
        let joined = Store::join_database(&root.join("other"), &address.parse().unwrap(), Some(name));
        let noted = joined.and_then(|store| human(&store, note("from another machine")));
        return match noted {
            Ok(_) => println!("JOINED"),
            Err(StoreError::Database(error)) => {
                println!("{:?}: {error}; {}", error.reason, error.reason.hint())
            }
            Err(error) => println!("{error}"),
        };
    }
    let store = Store::open(root).unwrap().with_lock_timeout(Duration::from_secs(60));
    match work.split(' ').collect::<Vec<_>>()[..] {
        ["claim", coder, generation] => {
            let generation = Generation(generation.parse().unwrap());
            let claimed = claim(&store, &task("one"), coder, generation);
            println!("{}", if claimed.is_ok() { "WON" } else { "LOST" });
        }
        ["notes", name] => {
            for n in 0..1_000 {
                let text = format!("{name}.{n}.");
                let written = human(&store, note(&text)).unwrap();
                println!("ACK {text} {}", written.revision);
            }
        }
        _ => panic!("unknown work {work:?}"),
    }
}

fn exactly_one_of_many_processes_claims_a_task(kind: Kind) {
    let board = TestBoard::new(kind, "processes").with_tasks(&["one"]);
    let store = board.store();
    let start = |n: u32| {
        let id = format!("coder-{n}");
        let generation = register(&store, &id);
        worker(&board, &format!("claim {id} {generation}")).spawn().unwrap()
    };
    let workers: Vec<_> = (1..=4).map(start).collect();
    let outputs = workers.into_iter().map(|child| child.wait_with_output().unwrap());
    let won = outputs.filter(|output| String::from_utf8_lossy(&output.stdout).contains("WON")).count();
    assert_eq!(won, 1);
    assert_eq!(store.validate(board.now()).unwrap(), []);
    tried("processes claim the same task: one gets it", 4);
}

fn a_stale_registration_is_fenced(kind: Kind) {
    let board = TestBoard::new(kind, "fenced").with_tasks(&["one"]);
    let store = board.store();
    let generation = register(&store, "coder-1");
    let other = Generation(generation.0 + 1);
    let stale = Actor::Supervisor(agent("coder-1"), other);
    let error = submit(
        &store,
        stale,
        Command::from(SetStatus::new(agent("coder-1"), liza_core::model::AgentStatus::Idle)),
    )
    .unwrap_err();
    let StoreError::Refused(refusal) = error else { panic!("{error:?}") };
    assert!(matches!(*refusal, Refusal::Fenced { .. }), "{refusal:?}");
    let beat = Heartbeat { agents: vec![(agent("coder-1"), Some(other))], length: None };
    assert!(matches!(submit(&store, stale, beat.into()), Err(StoreError::Refused(_))));
}

fn only_introduced_violations_are_refused(kind: Kind) {
    let board = TestBoard::new(kind, "introduced").with_tasks(&["one", "two"]);
    // A specification that does not exist is wrong from now on, for both tasks.
    std::fs::remove_file(board.root.join("specs/x.md")).unwrap();
    assert!(!board.store().validate(board.now()).unwrap().is_empty());
    let edit = |text: &str| {
        let edit = TaskEdit { spec_ref: Some(text.to_owned()), ..TaskEdit::default() };
        Command::from(EditTask { task: task("one"), edit })
    };
    let described = TaskEdit { description: Some("Changed".to_owned()), ..TaskEdit::default() };
    human(&board.store(), Command::from(EditTask { task: task("one"), edit: described })).unwrap();
    let error = human(&board.store(), edit("specs/y.md")).unwrap_err();
    assert!(matches!(error, StoreError::Violates(_) | StoreError::Refused(_)), "{error:?}");
}

fn commands_of_one_process_lose_nothing(kind: Kind) {
    let board = TestBoard::new(kind, "team");
    let store = board.store().with_lock_timeout(Duration::from_secs(60));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = store.clone();
            scope.spawn(move || {
                for n in 0..20 {
                    assert!(human(&store, note(&format!("{thread}.{n}."))).unwrap().changed);
                }
            });
        }
    });
    let state = store.snapshot().unwrap();
    assert_eq!(state.journal.human_notes.len(), 160);
    assert_eq!(state.board.revision.0, 161);
    let log = store.log_reader().read_new().unwrap();
    let mut revisions: Vec<u64> = log.iter().filter_map(|entry| entry.revision).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=161).collect::<Vec<_>>());
}

fn killed_writers_lose_nothing_and_write_the_log_once(kind: Kind) {
    let board = TestBoard::new(kind, "kills");
    let mut acknowledged = Vec::new();
    for round in 0..10_u64 {
        let mut child = worker(&board, &format!("notes r{round}")).spawn().unwrap();
        let wanted = board.store().snapshot().unwrap().journal.human_notes.len() + 3;
        wait_until("some writes", || {
            board.store().snapshot().is_ok_and(|state| state.journal.human_notes.len() >= wanted)
        });
        std::thread::park_timeout(Duration::from_micros(round * 13 % 23 * 300));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap().stdout;
        let text = String::from_utf8_lossy(&output).into_owned();
        acknowledged.extend(
            text.lines().filter_map(|line| Some(line.strip_prefix("ACK ")?.split(' ').next()?.to_owned())),
        );
    }
    // A killed process may still be ending its transaction.
    human(&board.store(), note("the end")).unwrap();
    let state = board.store().snapshot().unwrap();
    let notes = &state.journal.human_notes;
    let lost = acknowledged.iter().find(|text| !notes.iter().any(|note| note.message == **text));
    assert_eq!(lost, None);
    assert!(acknowledged.len() >= 20, "{}", acknowledged.len());
    let log = board.store().log_reader().read_new().unwrap();
    assert_eq!(log.iter().filter(|entry| entry.action == "note").count(), notes.len());
    assert_eq!(state.board.revision.0, 1 + notes.len() as u64);
    tried(KILLED_AT_RANDOM, 10);
}

fn a_value_and_a_text_are_edited_by_hand(kind: Kind) {
    let board = TestBoard::new(kind, "edits").with_tasks(&["one", "two"]);
    let store = board.store();
    let session = store.begin_edit().unwrap();
    let edited =
        session.set(".tasks[0].priority", "1", ValueSyntax::BySchema, &entry("set"), board.now()).unwrap();
    assert_eq!(store.snapshot().unwrap().board.revision, edited.revision);
    let session = store.begin_edit().unwrap();
    let text = session.text().unwrap();
    let changed = text.replace("description: \"Do two", "own_key: kept # why\n    description: \"Do 2");
    assert_ne!(changed, text);
    let edited = session.replace(&changed, &entry("replaced"), board.now()).unwrap();
    let state = store.snapshot().unwrap();
    assert_eq!(state.board.body(&task("one")).unwrap().record().priority, Some(1));
    let two = state.board.body(&task("two")).unwrap().record().clone();
    assert!(two.description.unwrap().starts_with("Do 2"));
    assert_eq!(two.revision, Some(edited.revision));
    // Keys and comments that the program does not know survive its writes.
    let describe = TaskEdit { description: Some("Again".to_owned()), ..TaskEdit::default() };
    human(&store, Command::from(EditTask { task: task("two"), edit: describe })).unwrap();
    let text = store.text().unwrap();
    assert!(text.contains("own_key: kept # why"), "{text}");
    let log = store.log_reader().read_new().unwrap();
    let details: Vec<&str> = log.iter().map(|entry| entry.detail.as_str()).collect();
    assert!(details.contains(&"set") && details.contains(&"replaced"), "{details:?}");
}

fn an_edit_with_a_violation_is_refused(kind: Kind) {
    let board = TestBoard::new(kind, "invalid").with_tasks(&["one"]);
    let store = board.store();
    let before = store.text().unwrap();
    let session = store.begin_edit().unwrap();
    let text = before.replace("status: UNCLAIMED", "status: CLAIMED");
    assert_ne!(text, before);
    let error = session.replace(&text, &entry("wrong"), board.now()).unwrap_err();
    assert!(matches!(error, StoreError::Violates(_)), "{error:?}");
    assert_eq!(store.text().unwrap(), before);
    let error = store.begin_edit().unwrap().set(
        ".nothing.here",
        "1",
        ValueSyntax::BySchema,
        &entry("no"),
        board.now(),
    );
    assert!(error.is_err() || store.text().unwrap().contains("nothing"));
}

fn an_unchanged_board_is_the_same_state(kind: Kind) {
    let board = TestBoard::new(kind, "reader").with_tasks(&["one", "two", "three"]);
    let mut reader = board.store().incremental_reader();
    let first = reader.read().unwrap();
    assert!(Arc::ptr_eq(&first, &reader.read().unwrap()));
    let describe = TaskEdit { description: Some("Again".to_owned()), ..TaskEdit::default() };
    human(&board.store(), Command::from(EditTask { task: task("two"), edit: describe })).unwrap();
    human(&board.store(), note("noted")).unwrap();
    let second = reader.read().unwrap();
    assert_eq!(*second, board.store().snapshot().unwrap());
    assert_ne!(first.board.revision, second.board.revision);
}

fn a_watch_reports_a_write_of_another_process(kind: Kind) {
    let board = TestBoard::new(kind, "watch");
    let watch = board.store().watch().unwrap();
    // The start itself may be reported.
    while watch.wait(Duration::from_millis(1500)) {}
    let mut child = worker(&board, "notes w").spawn().unwrap();
    assert!(watch.wait(Duration::from_secs(20)));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn the_log_is_read_from_its_end(kind: Kind) {
    let board = TestBoard::new(kind, "tail");
    for n in 0..20 {
        human(&board.store(), note(&format!("note {n}"))).unwrap();
    }
    let mut reader = board.store().recent_log_reader(600);
    let recent = reader.read_new().unwrap();
    assert!((1..20).contains(&recent.len()), "{}", recent.len());
    assert!(recent.last().unwrap().detail.contains("note 19"));
    assert_eq!(reader.read_new().unwrap(), []);
    human(&board.store(), note("one more")).unwrap();
    let new = reader.read_new().unwrap();
    assert_eq!(new.len(), 1);
    assert!(new[0].detail.contains("one more"));
    assert_eq!(board.store().log_tail(600).unwrap().last(), new.last());
}

fn a_heartbeat_renews_the_agent_and_its_task(kind: Kind) {
    let board = TestBoard::new(kind, "beat").with_tasks(&["one"]);
    let store = board.store();
    let generation = register(&store, "coder-1");
    claim(&store, &task("one"), "coder-1", generation).unwrap();
    let before = store.snapshot().unwrap();
    let length = Some(liza_core::model::Seconds(7_200));
    let beat = Heartbeat { agents: vec![(agent("coder-1"), Some(generation))], length };
    let actor = Actor::Supervisor(agent("coder-1"), generation);
    let outcome =
        store.submit(liza_store::Call { actor, if_revision: None, command: beat }, &RealHost).unwrap();
    let renewed = outcome.answer.unwrap();
    assert_eq!(renewed.claims, [(task("one"), generation)]);
    let after = store.snapshot().unwrap();
    let lease = after.board.agents().unwrap()[&agent("coder-1")].lease_expires;
    assert_eq!(lease, renewed.lease_expires);
    assert!(lease > before.board.agents().unwrap()[&agent("coder-1")].lease_expires);
    assert_eq!(after.board.body(&task("one")).unwrap().record().lease_expires, lease);
    assert_eq!(after.board.summary(&task("one")).unwrap().lease_expires, lease);
    assert!(store.text().unwrap().contains(&lease.unwrap().to_string()));
    assert_eq!(
        store.read_parts(&[], &[task("one")]).unwrap().body(&task("one")).unwrap().record().lease_expires,
        lease
    );
}

fn a_deregistered_agent_leaves_the_board(kind: Kind) {
    let board = TestBoard::new(kind, "leave");
    let store = board.store();
    for name in ["coder-1", "coder-2"] {
        register(&store, name);
    }
    let leave = |name: &str| human(&store, Command::from(Deregister::any(agent(name)))).unwrap();
    leave("coder-1");
    let state = store.snapshot().unwrap();
    assert_eq!(state.board.agents().unwrap().keys().copied().collect::<Vec<_>>(), [agent("coder-2")]);
    leave("coder-2");
    assert!(store.snapshot().unwrap().board.agents().unwrap().is_empty());
    register(&store, "coder-1");
    assert_eq!(store.snapshot().unwrap().board.agents().unwrap().len(), 1);
}

fn archived_tasks_leave_the_board(kind: Kind) {
    let board = TestBoard::new(kind, "archive").with_tasks(&["one", "two", "three"]);
    let store = board.store();
    let mut reader = store.incremental_reader();
    drop(reader.read().unwrap());
    let abandon = liza_core::protocol::AbandonTask { task: task("two"), reason: "no".to_owned() };
    human(&store, Command::from(abandon)).unwrap();
    // Only a task of no running sprint can be archived.
    let session = store.begin_edit().unwrap();
    session.set(".sprint.scope.planned", "[]", ValueSyntax::Yaml, &entry("no plan"), board.now()).unwrap();
    human(&store, Command::from(Archive { tasks: vec![task("two")] })).unwrap();
    let state = store.snapshot().unwrap();
    assert_eq!(state.board.tasks.keys().cloned().collect::<Vec<_>>(), [task("one"), task("three")]);
    assert_eq!(state.board.archived.get(&task("two")), Some(&Status::Abandoned));
    assert_eq!(*reader.read().unwrap(), state);
    let record = store.archived_task(&task("two")).unwrap().expect("its last record");
    assert!(record.contains("id: two") && record.contains("status: ABANDONED"), "{record}");
    assert_eq!(store.archived_task(&task("one")).unwrap(), None, "it is not archived");
    assert!(human(&store, add_task("two")).is_err(), "the name is taken");
}

fn a_revision_that_was_read_is_compared(kind: Kind) {
    let board = TestBoard::new(kind, "revision").with_tasks(&["one"]);
    let store = board.store();
    let read = store.snapshot().unwrap().board.revision;
    let describe = |text: &str| {
        let edit = TaskEdit { description: Some(text.to_owned()), ..TaskEdit::default() };
        Command::from(EditTask { task: task("one"), edit })
    };
    human(&store, describe("first")).unwrap();
    let call = liza_store::Call { if_revision: Some(read), ..call(Actor::Human, describe("second")) };
    let error = store.submit(call, &RealHost).unwrap_err();
    let StoreError::Refused(refusal) = error else { panic!("{error:?}") };
    assert!(matches!(*refusal, Refusal::StaleRevision { .. }), "{refusal:?}");
}

fn a_check_decides_and_writes_nothing(kind: Kind) {
    let board = TestBoard::new(kind, "check").with_tasks(&["one"]);
    let store = board.store();
    let before = store.text().unwrap();
    let request = |id: &str| Request {
        actor: Actor::Human,
        now: board.now(),
        stop_files: Default::default(),
        if_revision: None,
        command: add_task(id),
    };
    assert!(store.check(request("two")).is_ok());
    assert!(store.check(request("one")).is_err());
    assert_eq!(store.text().unwrap(), before);
}

fn only_settings_that_differ_from_the_default_are_written(kind: Kind) {
    let board = TestBoard::new(kind, "settings");
    let store = board.store();
    let text = store.text().unwrap();
    assert!(text.contains("\nconfig:\n  max_coder_iterations: 11\n  lock_timeout: 11\n"), "{text}");
    assert_eq!(store.read_path(".config.lease_duration").unwrap(), []);
    let value = |path: &str| store.read_path_in_force(path).unwrap();
    assert_eq!(value(".config.lease_duration"), [Value::Int(300)]);
    assert_eq!(value(".config.lock_timeout"), [Value::Int(11)]);
    assert_eq!(value(".config.nothing"), []);
    assert_eq!(value(".goal.id"), [Value::from("goal-1")]);
}
