//! Stop files created manually and the deadline change the blackboard exactly as the commands do.

use liza_core::model::{
    Actor, AgentStatus, Change, Effect, GoalStatus, LogEntry, Refusal, Seconds, Sprint, SprintStatus, State,
    Status, StopFile, StopFileTimes, StopFiles, Timestamp,
};
use liza_core::protocol::{
    Abort, Checkpoint, CheckpointCause, Command, CompleteSprint, FollowStopFile, NewSprint, Pause, Request,
    Resume, apply,
};
use liza_core::supervise::stop_files::{next_deadline, reconcile};
use liza_testkit::boards;
use liza_testkit::team::*;

fn at(state: &State, now: Timestamp, command: Command) -> Result<Change, Refusal> {
    apply(&state.board, &Request { now, ..request(Actor::Human, command) }).map(|decided| decided.change)
}

fn done(state: &mut State, now: Timestamp, command: Command) -> (Vec<Effect>, LogEntry) {
    let change = at(state, now, command).unwrap();
    state.apply(&change);
    (change.effects, change.log.unwrap())
}

/// Applies the stop files until nothing changes; returns the log.
fn apply_stop_files(state: &mut State, files: StopFileTimes, now: Timestamp) -> Vec<(String, String)> {
    let mut logged = Vec::new();
    while let Some(command) = reconcile(state, files, now) {
        let (_, log) = done(state, now, command.clone());
        logged.push((log.agent, format!("{} {}", log.action, log.detail)));
        let again = at(state, now, command.clone()).unwrap_err();
        assert!(["nothing_to_do", "goal_not_open"].contains(&again.code()), "{command:?}: {again}");
    }
    logged
}

fn sprint(state: &State) -> &Sprint {
    state.board.sprint.ready().unwrap()
}

fn human(words: &str) -> Vec<(String, String)> {
    vec![("human".to_owned(), words.to_owned())]
}

/// Covers: SP-01, SP-07
#[test]
fn a_checkpoint_file_is_a_checkpoint_from_its_creation_to_its_removal() {
    let mut state = empty_state();
    let (made, noticed) = (now() + Seconds(10), now() + Seconds(40));
    let files = StopFileTimes { checkpoint: Some(made), ..StopFileTimes::default() };
    assert_eq!(
        apply_stop_files(&mut state, files, noticed),
        human("checkpoint CHECKPOINT was created by hand")
    );
    assert_eq!(sprint(&state).status, SprintStatus::Checkpoint);
    assert_eq!(sprint(&state).timeline.checkpoint_at, Some(made));
    let gone = apply_stop_files(&mut state, StopFileTimes::default(), noticed + Seconds(60));
    assert_eq!(gone, human("resumed CHECKPOINT was removed by hand"));
    assert_eq!(sprint(&state).status, SprintStatus::InProgress);
    assert_eq!(sprint(&state).decisions.last().unwrap().decision, "continue");
}

/// Covers: SP-01
#[test]
fn a_file_older_than_the_sprint_or_from_the_future_is_dated_within_it() {
    for (made, kept) in [(now() - Seconds(9000), now()), (now() + Seconds(9000), now() + Seconds(5))] {
        let mut state = empty_state();
        apply_stop_files(
            &mut state,
            StopFileTimes { checkpoint: Some(made), ..StopFileTimes::default() },
            now() + Seconds(5),
        );
        assert_eq!(sprint(&state).timeline.checkpoint_at, Some(kept));
    }
}

/// Covers: SP-07
#[test]
fn removing_the_checkpoint_file_keeps_the_pause() {
    let mut state = empty_state();
    done(&mut state, now(), Command::from(Pause));
    done(&mut state, now(), Command::from(Checkpoint { cause: CheckpointCause::Human }));
    let files = StopFileTimes { pause: Some(now()), ..StopFileTimes::default() };
    let command = reconcile(&state, files, now()).unwrap();
    let (effects, _) = done(&mut state, now(), command);
    assert_eq!(effects, [Effect::RemoveStopFile(StopFile::Checkpoint)]);
    assert_eq!(reconcile(&state, files, now()), None, "and the pause is recorded");
}

/// Covers: SP-07
#[test]
fn a_manual_pause_is_logged_once_at_its_start_and_once_at_its_end() {
    let mut state = empty_state();
    let files = StopFileTimes { pause: Some(now()), ..StopFileTimes::default() };
    assert_eq!(apply_stop_files(&mut state, files, now()), human("paused PAUSE was created by hand"));
    assert_eq!(sprint(&state).timeline.paused_at, Some(now()));
    assert_eq!(apply_stop_files(&mut state, files, now() + Seconds(5)), []);
    let gone = apply_stop_files(&mut state, StopFileTimes::default(), now() + Seconds(9));
    assert_eq!(gone, human("resumed PAUSE was removed by hand"));
    assert_eq!(sprint(&state).timeline.paused_at, None);
}

/// Covers: SP-07
#[test]
fn stops_by_commands_are_not_recorded_again() {
    let mut state = empty_state();
    done(&mut state, now(), Command::from(Pause));
    let paused = StopFileTimes { pause: Some(now()), ..StopFileTimes::default() };
    assert_eq!(reconcile(&state, paused, now()), None);
    done(&mut state, now(), Command::from(Resume { decision: None, note: None }));
    assert_eq!(reconcile(&state, StopFileTimes::default(), now()), None);
    done(&mut state, now(), Command::from(Checkpoint { cause: CheckpointCause::Human }));
    let held = StopFileTimes { checkpoint: Some(now()), ..StopFileTimes::default() };
    assert_eq!(reconcile(&state, held, now()), None);
    done(&mut state, now(), Command::from(Abort));
    let aborted = StopFileTimes { abort: Some(now()), ..held };
    assert_eq!(reconcile(&state, aborted, now()), None);
}

/// Covers: SP-01, SP-07
#[test]
fn an_abort_file_aborts_permanently_and_takes_precedence() {
    let mut state = empty_state();
    let all = StopFileTimes { pause: Some(now()), checkpoint: Some(now()), abort: Some(now()) };
    let logged = apply_stop_files(&mut state, all, now());
    assert_eq!(logged[0].1, "aborted goal and sprint aborted");
    assert_eq!(state.board.goal.ready().unwrap().status, GoalStatus::Aborted);
    assert_eq!(sprint(&state).status, SprintStatus::Aborted);
    let after = apply_stop_files(&mut state, StopFileTimes::default(), now());
    assert_eq!(after, human("resumed PAUSE was removed by hand"), "nothing reopens the goal");
    assert_eq!(state.board.goal.ready().unwrap().status, GoalStatus::Aborted);
}

/// Covers: SP-01
#[test]
fn the_deadline_starts_one_checkpoint_by_the_system() {
    let mut state = empty_state();
    let due = now() + Seconds(100);
    boards::sprint(&mut state).timeline.deadline = Some(due);
    assert_eq!(next_deadline(&state, now()), Some(due));
    assert_eq!(reconcile(&state, StopFileTimes::default(), due - Seconds(1)), None);
    let command = reconcile(&state, StopFileTimes::default(), due);
    assert_eq!(command, Some(Command::from(Checkpoint { cause: CheckpointCause::Deadline })));
    let (_, log) = done(&mut state, due, command.unwrap());
    assert_eq!((log.agent.as_str(), log.action.as_str()), ("system", "checkpoint"));
    assert_eq!(next_deadline(&state, due), None);
    done(&mut state, due + Seconds(50), Command::from(Resume { decision: None, note: None }));
    assert_eq!(reconcile(&state, StopFileTimes::default(), due + Seconds(60)), None);
}

/// Covers: SP-01
#[test]
fn a_deadline_that_passes_during_a_checkpoint_starts_no_second_one() {
    let mut state = empty_state();
    let due = now() + Seconds(100);
    boards::sprint(&mut state).timeline.deadline = Some(due);
    done(&mut state, now() + Seconds(50), Command::from(Checkpoint { cause: CheckpointCause::Human }));
    done(&mut state, now() + Seconds(300), Command::from(Resume { decision: None, note: None }));
    assert_eq!(
        reconcile(&state, StopFileTimes::default(), now() + Seconds(301)),
        None,
        "the human has just looked"
    );
}

/// Covers: SP-07
#[test]
fn a_pause_continues_after_its_sprint_ends() {
    let mut state = empty_state();
    done(&mut state, now(), Command::from(Pause));
    boards::sprint(&mut state).status = SprintStatus::Completed;
    done(&mut state, now(), Command::from(NewSprint));
    let files = StopFileTimes { pause: Some(now()), ..StopFileTimes::default() };
    assert_eq!(reconcile(&state, files, now()), None);
    assert_eq!(
        reconcile(&state, StopFileTimes::default(), now()),
        Some(Command::from(FollowStopFile { file: StopFile::Pause, since: None }))
    );
}

/// Covers: SP-06
#[test]
fn a_finished_sprint_ignores_a_checkpoint_file() {
    let mut state = empty_state();
    boards::sprint(&mut state).status = SprintStatus::Completed;
    let files = StopFileTimes { checkpoint: Some(now()), ..StopFileTimes::default() };
    assert_eq!(reconcile(&state, files, now()), None);
}

/// Covers: SP-01
#[test]
fn a_sprint_is_complete_if_a_person_ended_its_last_task_in_the_file() {
    let mut state = state_with(Status::Abandoned);
    boards::sprint(&mut state).scope.planned = vec![task("t")];
    assert_eq!(reconcile(&state, StopFileTimes::default(), now()), Some(Command::from(CompleteSprint)));
    done(&mut state, now(), Command::from(CompleteSprint));
    assert_eq!(reconcile(&state, StopFileTimes::default(), now()), None);
    // A working planner may add tasks, and an open task keeps the sprint open.
    let mut planning = state_with(Status::Abandoned);
    boards::sprint(&mut planning).scope.planned = vec![task("t")];
    entry(&mut planning, "planner-1").status = AgentStatus::Planning;
    assert_eq!(reconcile(&planning, StopFileTimes::default(), now()), None);
    let mut open = state_with(Status::Unclaimed);
    boards::sprint(&mut open).scope.planned = vec![task("t")];
    assert_eq!(reconcile(&open, StopFileTimes::default(), now()), None);
}

/// Covers: SP-06
#[test]
fn a_file_that_is_back_at_the_time_of_the_write_was_not_removed() {
    let mut state = empty_state();
    let files = StopFileTimes { checkpoint: Some(now()), pause: Some(now()), ..StopFileTimes::default() };
    apply_stop_files(&mut state, files, now());
    for file in [StopFile::Checkpoint, StopFile::Pause] {
        let command = Command::from(FollowStopFile { file, since: None });
        let stop_files = StopFiles { pause: true, checkpoint: true, abort: false };
        let request = Request { stop_files, ..request(Actor::Human, command) };
        assert_eq!(apply(&state.board, &request).unwrap_err().code(), "nothing_to_do", "{file:?}");
    }
}
