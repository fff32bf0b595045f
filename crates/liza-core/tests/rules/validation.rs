//! Validation before a review: set, frozen, inherited; green lets the session begin, red sends the work back
//! without one, held waits for the human.

use liza_core::model::{
    Actor, ReviewPhase, Seconds, Status, StopFile, StopFiles, Validation, ValidationKind, ValidationResult,
};
use liza_core::protocol::{Command, NewTask, ReleaseReview, RetryValidation, TaskEdit, Verdict};
use liza_core::rules::judging_settings::judging_settings;
use liza_core::rules::validation::{commands, held_validation};
use liza_core::supervise::{Work, work_of};
use liza_status::alarms::{AlarmKind, alarms};
use liza_status::needs_you::needs_you;
use liza_status::view::view;
use liza_testkit::worlds::*;

use ValidationResult::{Green, Held, Red};

/// A submitted task in a project whose work must pass `cargo test`.
fn submitted() -> World {
    let mut world = World::with_task(Status::ReadyForReview);
    world.config().validation = vec!["cargo test".into()];
    world.edit_goal().integration_head = Some(head());
    world
}

/// The same, claimed by a code reviewer whose supervisor runs the command.
fn validating() -> World {
    let mut world = submitted();
    world.must(world.supervisor(reviewer(1)), claim_validation("t", reviewer(1)));
    world
}

fn record(world: &mut World, result: ValidationResult) -> Done {
    world.must(world.supervisor(reviewer(1)), record_validation("t", reviewer(1), validation(result)))
}

fn sessions(world: &World) -> u32 {
    world.sprint().sessions.tasks.get(&task("t")).copied().unwrap_or(0)
}

fn offered(world: &World, by: u32) -> bool {
    let work = work_of(&world.state, reviewer(by), &Default::default(), world.now);
    work.contains(&Work::Review(task("t")))
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Covers: JU-02
#[test]
fn a_planner_sets_commands_and_cannot_weaken_them_after_the_draft() {
    let mut world = World::new();
    let planner = world.agent(planner());
    let edit_as = |world: &mut World, actor: Actor, new: &[&str]| {
        world.must(actor, edit("v", TaskEdit { validate: Some(lines(new)), ..TaskEdit::default() }))
    };
    world.add("v", NewTask { validate: lines(&["make a", "make a", "make b"]), ..draft() });
    assert_eq!(world.record("v").validation, Some(lines(&["make a", "make b"])));
    edit_as(&mut world, planner, &["make c"]);
    assert_eq!(world.record("v").validation, Some(lines(&["make c"])), "a draft is rewritten");

    world.add("u", NewTask { validate: lines(&["make a"]), ..ready() });
    let add = edit("u", TaskEdit { validate: Some(lines(&["make b"])), ..TaskEdit::default() });
    world.must(planner, add);
    assert_eq!(world.record("u").validation, Some(lines(&["make a", "make b"])), "a planner only adds");
    world.claim("u", coder(1));
    world.must(planner, edit("u", TaskEdit { validate: Some(lines(&["make c"])), ..TaskEdit::default() }));
    assert_eq!(world.record("u").validation, Some(lines(&["make a", "make b", "make c"])));
    world.refused_with(
        "wrong_status",
        planner,
        edit("u", TaskEdit { scope: Some("x".into()), ..TaskEdit::default() }),
    );
    world.must(Actor::Human, edit("u", TaskEdit { validate: Some(lines(&["true"])), ..TaskEdit::default() }));
    assert_eq!(world.record("u").validation, Some(lines(&["true"])), "the human replaces them");
    for bad in ["", "a\nb"] {
        let edit = edit("u", TaskEdit { validate: Some(lines(&[bad])), ..TaskEdit::default() });
        assert!(world.run(planner, edit).is_err(), "{bad:?}");
    }
}

/// Covers: JU-02
#[test]
fn a_replacement_inherits_the_commands_of_what_it_replaces() {
    let mut world = World::new();
    world.add("v", NewTask { validate: lines(&["make a", "make b"]), ..ready() });
    world.add("n", NewTask { validate: lines(&["make b", "make c"]), ..draft() });
    let planner = world.agent(planner());
    world.must(planner, supersede("v", &["n"]));
    assert_eq!(world.record("n").validation, Some(lines(&["make b", "make c", "make a"])));
    world.config().validation = lines(&["cargo test", "make a"]);
    let state = &world.state.board;
    let all = commands(state.config().unwrap(), world.record("n"));
    let all: Vec<(&str, ValidationKind)> = all.iter().map(|c| (c.line.as_str(), c.kind)).collect();
    let (keeps, shows) = (ValidationKind::Keeps, ValidationKind::Shows);
    assert_eq!(all, [("cargo test", keeps), ("make a", keeps), ("make b", shows), ("make c", shows)]);
}

/// Covers: JU-03, JU-04
#[test]
fn a_session_is_paid_for_only_after_a_green_validation() {
    let mut world = validating();
    assert_eq!(world.record("t").review_phase, Some(ReviewPhase::Validation));
    assert_eq!(sessions(&world), 1, "the coder's");
    let (supervisor, agent) = (world.supervisor(reviewer(1)), world.agent(reviewer(1)));
    world.refused_with("validation_stale", supervisor, begin_review("t", reviewer(1)));
    world.refused_with("no_receipt", agent, verdict("t", approved()));
    record(&mut world, Green);
    assert_eq!((world.status("t"), sessions(&world)), (Status::ReadyForReview, 1));
    world.must(supervisor, begin_review("t", reviewer(1)));
    assert_eq!((world.record("t").review_phase, sessions(&world)), (None, 2));
    world.must(agent, verdict("t", approved()));
    assert_eq!(world.status("t"), Status::Approved);
}

/// Covers: JU-03
#[test]
fn a_red_validation_sends_the_work_back_without_a_review() {
    let mut world = validating();
    record(&mut world, Red);
    let task = world.record("t");
    assert_eq!(
        (world.status("t"), task.review_cycles_total, sessions(&world)),
        (Status::Rejected, Some(0), 2)
    );
    let reason = task.rejection_reason.clone().unwrap();
    assert!(
        reason.starts_with("validation_failed: `cargo test` failed with exit status 1 at aaaaaaa"),
        "{reason}"
    );
    assert!(reason.contains("error: one test failed"), "{reason}");
    assert_eq!(world.entry(reviewer(1)).current_task, None);
    world.claim("t", coder(1));
    world.refused_with("already_failed", world.agent(coder(1)), submit("t", sha('a')));
    world.submit("t", coder(1), sha('b'));
    assert!(offered(&world, 1));
}

/// Covers: JU-03
#[test]
fn other_commands_or_the_human_let_the_same_commit_be_submitted_again() {
    let rejected = || {
        let mut world = validating();
        record(&mut world, Red);
        world.claim("t", coder(1));
        world
    };
    let mut world = rejected();
    world.config().validation.push("make lint".into());
    world.submit("t", coder(1), sha('a'));
    let mut world = rejected();
    world.must(Actor::Human, Command::from(RetryValidation { task: task("t") }));
    assert_eq!(
        world.record("t").validation_retried,
        Some(sha('a')),
        "what was stated before holds nothing up"
    );
    world.submit("t", coder(1), sha('a'));
    world.refused_with("nothing_to_do", Actor::Human, Command::from(RetryValidation { task: task("t") }));
}

/// Found by the simulation, seed 47: the approved task was merged without a result of its commands.
///
/// Covers: JU-03, PV-03
#[test]
fn a_result_that_passed_is_not_forgotten_before_the_merge() {
    let mut world = validating();
    record(&mut world, Green);
    let validated = world.record("t").validated.clone();
    world.refused_with("nothing_to_do", Actor::Human, Command::from(RetryValidation { task: task("t") }));
    assert_eq!(world.record("t").validated, validated);
}

/// Covers: JU-03
#[test]
fn rework_that_never_passes_is_bounded_by_the_sessions_of_the_task() {
    let mut world = submitted();
    world.config().max_sessions = 5;
    for round in ['b', 'c', 'd', 'e', 'f'] {
        let commit = world.record("t").review_commit.clone().unwrap();
        let _ = world.run(world.supervisor(reviewer(1)), claim_validation("t", reviewer(1)));
        if world.status("t") == Status::Blocked {
            assert_eq!(sessions(&world), 5);
            return;
        }
        let red = Validation { commit, ..validation(Red) };
        world.must(world.supervisor(reviewer(1)), record_validation("t", reviewer(1), red));
        let _ = world.run(world.supervisor(coder(1)), reserve("t", coder(1), head()));
        if world.status("t") == Status::Blocked {
            assert_eq!(sessions(&world), 5);
            return;
        }
        world.claim("t", coder(1));
        world.submit("t", coder(1), sha(round));
    }
    panic!("{} sessions", sessions(&world));
}

/// Covers: JU-03
#[test]
fn a_command_that_fails_without_the_work_holds_the_review_and_asks_the_human() {
    let mut world = validating();
    record(&mut world, Held);
    assert_eq!((world.status("t"), sessions(&world)), (Status::ReadyForReview, 1));
    assert!(
        held_validation(&world.state.board, &task("t")).is_some()
            && !offered(&world, 1)
            && !offered(&world, 2)
    );
    world.refused_with("validation_held", world.supervisor(reviewer(1)), claim_validation("t", reviewer(1)));
    let seen = Default::default();
    let needs = needs_you(&world.state, &seen, &alarms(&world.state, &seen, world.now), world.now);
    let need = needs.iter().find(|need| need.kind == AlarmKind::ValidationHeld).unwrap();
    assert_eq!(need.command, "liza retry-validation t");
    let shown = view(&world.state, &seen, world.now);
    let shown = shown.tasks.iter().find(|shown| shown.id == task("t")).unwrap();
    assert_eq!(shown.next.to_string(), "waits for you: correct the validation, then try again");

    let ends: [fn(&mut World); 3] = [
        |world| world.edit_goal().integration_head = Some(sha('9')),
        |world| world.config().validation = lines(&["cargo nextest run"]),
        |world| drop(world.must(Actor::Human, Command::from(RetryValidation { task: task("t") }))),
    ];
    for end in ends {
        let mut world = validating();
        record(&mut world, Held);
        end(&mut world);
        assert!(offered(&world, 1));
        world.must(world.supervisor(reviewer(1)), claim_validation("t", reviewer(1)));
        let phase = world.record("t").review_phase;
        assert_eq!(phase, Some(ReviewPhase::Validation), "what has not passed is run again");
        world.refused_with("no_receipt", world.agent(reviewer(1)), verdict("t", approved()));
    }
}

/// A result as the supervisor of a machine with these settings finds it.
fn held_here(world: &World) -> Validation {
    Validation { settings: vec![judging_settings(world.state.board.config().unwrap())], ..validation(Held) }
}

/// Covers: JU-03
#[test]
fn a_hold_ends_when_a_setting_changes_that_can_have_caused_it() {
    type Change = (fn(&mut World), bool);
    let changes: [Change; 4] = [
        (|world| world.config().validation_limit = Seconds(9_000), true),
        (|world| world.config().setup = Some("make deps".into()), true),
        (|world| world.config().pass_env = lines(&["DISPLAY"]), true),
        (|world| world.config().max_review_cycles = 9, false),
    ];
    for (change, ends) in changes {
        let mut world = validating();
        let held = held_here(&world);
        world.must(world.supervisor(reviewer(1)), record_validation("t", reviewer(1), held));
        assert!(!offered(&world, 1));
        change(&mut world);
        assert_eq!(offered(&world, 1), ends);
    }
}

/// Each machine tries under the settings that its person has accepted, once.
///
/// Covers: JU-03
#[test]
fn machines_with_different_settings_do_not_try_in_turn() {
    let mut world = validating();
    let before = world.state.board.config().unwrap().setup.clone();
    let held = held_here(&world);
    world.must(world.supervisor(reviewer(1)), record_validation("t", reviewer(1), held));
    // As the other machine sees it.
    world.config().setup = Some("make deps".into());
    assert!(offered(&world, 2));
    world.must(world.supervisor(reviewer(2)), claim_validation("t", reviewer(2)));
    let held = held_here(&world);
    world.must(world.supervisor(reviewer(2)), record_validation("t", reviewer(2), held));
    assert!(!offered(&world, 2));
    world.config().setup = before;
    assert!(!offered(&world, 1), "what was tried here is not tried again");
}

/// Covers: JU-03, JU-04
#[test]
fn only_the_holder_of_the_claim_records_a_result_and_only_of_this_commit() {
    let mut world = validating();
    let other = world.supervisor(reviewer(2));
    world.refused_with("not_your_review", other, record_validation("t", reviewer(2), validation(Green)));
    let own = world.supervisor(reviewer(1));
    let replayed = Validation { commit: sha('b'), ..validation(Green) };
    world.refused_with("validation_stale", own, record_validation("t", reviewer(1), replayed));
    let foreign = Validation { commands: lines(&["true"]), ..validation(Green) };
    world.refused_with("validation_stale", own, record_validation("t", reviewer(1), foreign));
    // The lease is lost, another reviewer has it: the own result is refused.
    world.pass(400);
    world.heartbeat(reviewer(2));
    world.must(world.supervisor(reviewer(2)), claim_validation("t", reviewer(2)));
    world.heartbeat(reviewer(1));
    world.refused_with("not_your_review", own, record_validation("t", reviewer(1), validation(Red)));
    // Work that is submitted again is validated again.
    world.must(world.supervisor(reviewer(2)), record_validation("t", reviewer(2), validation(Green)));
    world.must(world.supervisor(reviewer(2)), begin_review("t", reviewer(2)));
    assert_eq!(world.record("t").reviewing_by, Some(reviewer(2)));
}

/// A supervisor is killed after each write in turn. The same code reviewer goes on, or one of another machine.
///
/// Covers: JU-03
#[test]
fn a_review_goes_on_after_a_kill_at_any_step() {
    let steps = [
        claim_validation("t", reviewer(1)),
        record_validation("t", reviewer(1), validation(Green)),
        begin_review("t", reviewer(1)),
    ];
    for (killed_after, next) in (0..=steps.len()).flat_map(|step| [(step, reviewer(1)), (step, reviewer(2))])
    {
        let mut world = submitted();
        for step in steps.iter().take(killed_after) {
            world.must(world.supervisor(reviewer(1)), step.clone());
        }
        world.pass(400);
        world.heartbeat(next);
        let (supervisor, case) = (world.supervisor(next), format!("after {killed_after}, {next}"));
        world.must(supervisor, claim_validation("t", next));
        // What has passed is not run again.
        assert_eq!(world.record("t").review_phase.is_some(), killed_after < 2, "{case}");
        if killed_after < 2 {
            world.must(supervisor, record_validation("t", next, validation(Green)));
            world.must(supervisor, begin_review("t", next));
        }
        if next != reviewer(1) {
            // The killed one comes back late.
            world.heartbeat(reviewer(1));
            let late = world.supervisor(reviewer(1));
            let result = record_validation("t", reviewer(1), validation(Red));
            world.refused_with("not_your_review", late, result);
            world.refused_with("not_your_review", late, begin_review("t", reviewer(1)));
        }
        world.must(world.agent(next), verdict("t", approved()));
        assert_eq!(world.status("t"), Status::Approved, "{case}");
        let paid = 2 + u32::from(killed_after == 3);
        assert_eq!(sessions(&world), paid, "{case}: a validation costs no session");
    }
}

/// Covers: JU-03
#[test]
fn a_human_verdict_ends_a_validation() {
    let mut world = validating();
    world.must(Actor::Human, verdict("t", Verdict::Approved(None)));
    assert_eq!((world.status("t"), world.entry(reviewer(1)).current_task.clone()), (Status::Approved, None));
    let own = world.supervisor(reviewer(1));
    world.refused_with("wrong_status", own, record_validation("t", reviewer(1), validation(Green)));
    world.refused_with("wrong_status", own, begin_review("t", reviewer(1)));
}

/// Covers: JU-03
#[test]
fn under_a_stop_file_the_result_is_kept_and_no_session_begins() {
    for file in [StopFile::Pause, StopFile::Checkpoint] {
        let mut world = validating();
        world.stop_files = StopFiles {
            pause: file == StopFile::Pause,
            checkpoint: file == StopFile::Checkpoint,
            abort: false,
        };
        record(&mut world, Green);
        let own = world.supervisor(reviewer(1));
        assert!(world.run(own, begin_review("t", reviewer(1))).is_err());
        world.must(own, Command::from(ReleaseReview { task: task("t"), reviewer: reviewer(1) }));
        world.stop_files = StopFiles::default();
        world.must(own, claim_validation("t", reviewer(1)));
        assert_eq!(
            world.record("t").review_phase,
            None,
            "the receipt stays usable: the session begins at once"
        );
    }
}

/// Covers: JU-03
#[test]
fn a_changed_gate_lets_the_commands_run_again() {
    let mut world = validating();
    world.must(
        world.supervisor(reviewer(1)),
        record_validation("t", reviewer(1), Validation { gate: "old".into(), ..validation(Green) }),
    );
    let own = world.supervisor(reviewer(1));
    world.refused_with("validation_stale", own, begin_review("t", reviewer(1)));
    world.must(own, Command::from(ReleaseReview { task: task("t"), reviewer: reviewer(1) }));
    world.must(own, claim_validation("t", reviewer(1)));
    assert_eq!(world.record("t").review_phase, Some(ReviewPhase::Validation));
}

/// Covers: JU-02
#[test]
fn a_project_without_commands_works_as_before() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.must(world.supervisor(reviewer(1)), claim_validation("t", reviewer(1)));
    assert_eq!((world.record("t").review_phase, sessions(&world)), (None, 2));
}

/// Covers: JU-03
#[test]
fn thirty_commands_are_run_and_no_more() {
    for (number, is_run) in [(30, true), (31, false)] {
        let mut world = World::with_task(Status::ReadyForReview);
        world.config().validation = (0..number).map(|command| format!("make {command}")).collect();
        let claimed = world.run(world.supervisor(reviewer(1)), claim_validation("t", reviewer(1)));
        assert_eq!(claimed.is_ok(), is_run, "{number}: {claimed:?}");
    }
}
