//! Goal and sprint: completion, checkpoints, abort, the next sprint or goal, the archive.

use liza_core::model::{
    Actor, AgentStatus, Effect, GoalStatus, Metrics, Seconds, SprintStatus, Status, StopFile,
};
use liza_core::protocol::{
    Abort, AbortGoal, AddTask, Archive, Checkpoint, CheckpointCause, Command, CompleteGoal, CompleteSprint,
    HandoffNotes, NewGoal, NewSprint, NewTask, Pause, Resume, SetDeadline, SetStatus, UpdateSprintMetrics,
    WriteHandoff, WriteRetro,
};
use liza_core::supervise::failed_planning;
use liza_testkit::worlds::*;

fn complete(world: &mut World) {
    world.must(world.supervisor(planner()), Command::from(CompleteSprint));
}

#[track_caller]
fn not_complete(world: &mut World) {
    world.refused_with("sprint_not_complete", world.supervisor(planner()), Command::from(CompleteSprint));
}

fn deadline(world: &mut World, seconds: u64) {
    let deadline = Some(world.now + Seconds(seconds));
    world.must(Actor::Human, Command::from(SetDeadline { deadline }));
}

fn at_deadline() -> Command {
    Command::from(Checkpoint { cause: CheckpointCause::Deadline })
}

fn asked_for() -> Command {
    Command::from(Checkpoint { cause: CheckpointCause::Human })
}

fn resume() -> Command {
    Command::from(Resume { decision: None, note: None })
}

fn new_goal() -> Command {
    Command::from(NewGoal { description: "Caches".into(), spec_ref: None })
}

/// Covers: SP-01
#[test]
fn no_task_joins_an_aborted_sprint() {
    let mut world = World::new();
    world.edit_sprint().status = SprintStatus::Aborted;
    let add = AddTask { task: task("late"), new: ready() };
    world.refused_with("sprint_status", world.agent(planner()), Command::from(add));
}

/// Covers: SP-01
#[test]
fn a_sprint_is_complete_when_all_planned_tasks_are_terminal() {
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        if status == Status::Superseded {
            world.abandon("new");
        }
        if status.is_terminal() {
            complete(&mut world);
            assert_eq!(world.sprint().status, SprintStatus::Completed);
            assert_eq!(world.sprint().timeline.ended, Some(world.now));
            assert_eq!(world.last_log().action, "sprint_completed");
        } else {
            not_complete(&mut world);
        }
    }
}

/// Covers: SP-01
#[test]
fn a_sprint_without_planned_tasks_is_not_complete() {
    let mut world = World::empty();
    world.register(planner());
    not_complete(&mut world);
}

/// Covers: SP-01
#[test]
fn an_open_replacement_keeps_the_sprint_open() {
    let mut world = World::with_task(Status::Superseded);
    world.edit_sprint().scope.planned = vec![task("t")];
    world.edit_sprint().scope.stretch = vec![task("new")];
    not_complete(&mut world);
    world.abandon("new");
    complete(&mut world);
}

/// Covers: SP-01
#[test]
fn an_injected_task_keeps_the_sprint_open_and_a_stretch_task_does_not() {
    let mut world = World::with_task(Status::Merged);
    world.add("injected", ready());
    world.edit_sprint().scope.planned = vec![task("t")];
    not_complete(&mut world);
    world.edit_sprint().scope.stretch = vec![task("injected")];
    complete(&mut world);
}

/// Covers: SP-01
#[test]
fn a_draft_keeps_the_sprint_open_even_as_a_stretch_task() {
    let mut world = World::with_task(Status::Merged);
    world.add("idea", NewTask { stretch: true, ..draft() });
    assert_eq!(world.sprint().scope.stretch, [task("idea")]);
    not_complete(&mut world);
}

/// Covers: SP-01
#[test]
fn a_planning_session_keeps_the_sprint_open() {
    let mut world = World::with_task(Status::Merged);
    let set = |status| Command::SetStatus(SetStatus::new(planner(), status));
    world.must(world.supervisor(planner()), set(AgentStatus::Planning));
    not_complete(&mut world);
    let mut gone = world.clone();
    gone.pass(361);
    gone.must(Actor::Human, Command::from(CompleteSprint));
    world.must(world.supervisor(planner()), set(AgentStatus::Waiting));
    complete(&mut world);
}

/// Covers: SP-01
#[test]
fn a_sprint_completes_only_from_in_progress() {
    let mut world = World::with_task(Status::Merged);
    world.must(Actor::Human, asked_for());
    world.refused_with("sprint_status", Actor::Human, Command::from(CompleteSprint));
    world.must(Actor::Human, resume());
    complete(&mut world);
    world.refused_with("sprint_status", Actor::Human, Command::from(CompleteSprint));
    world.refused_with("sprint_status", Actor::Human, asked_for());
}

/// Covers: SP-01
#[test]
fn the_deadline_starts_one_checkpoint() {
    let mut world = World::new();
    deadline(&mut world, 100);
    world.pass_with(99, &[planner()]);
    world.refused_with("nothing_to_do", world.supervisor(planner()), at_deadline());
    world.pass(1);
    let change = world.must(world.supervisor(planner()), at_deadline());
    assert_eq!(change.stop_files, [StopFile::Checkpoint]);
    assert_eq!(change.effects, [Effect::WriteSprintSummary]);
    assert_eq!(world.sprint().status, SprintStatus::Checkpoint);
    assert_eq!(world.sprint().timeline.checkpoint_at, Some(world.now));
    world.must(Actor::Human, resume());
    world.pass_with(50, &[planner()]);
    world.refused_with("nothing_to_do", world.supervisor(planner()), at_deadline());
    deadline(&mut world, 10);
    world.pass(10);
    world.must(world.supervisor(planner()), at_deadline());
}

/// Covers: SP-01
#[test]
fn a_deadline_is_in_the_future() {
    let mut world = World::new();
    for seconds in [0, 60] {
        let deadline = Some(world.now - Seconds(seconds));
        world.refused_with("past_deadline", Actor::Human, Command::from(SetDeadline { deadline }));
    }
}

/// Covers: SP-01
#[test]
fn a_checkpoint_before_the_deadline_does_not_replace_it() {
    let mut world = World::new();
    deadline(&mut world, 100);
    world.must(Actor::Human, asked_for());
    world.must(Actor::Human, resume());
    world.pass(100);
    world.must(world.supervisor(planner()), at_deadline());
}

/// Covers: SP-01
#[test]
fn a_checkpoint_ends_with_the_humans_decision() {
    let mut world = World::new();
    world.must(Actor::Human, asked_for());
    assert_eq!(world.sprint().status, SprintStatus::Checkpoint);
    assert_eq!(world.goal().status, GoalStatus::InProgress, "a goal has no checkpoint");
    let odd = Command::from(Resume { decision: Some("whatever".into()), note: None });
    world.refused_with("bad_text", Actor::Human, odd);
    for decision in ["continue", "adjust specs", "adjust contracts", "replan", "pivot", "stop"] {
        let decided =
            Command::from(Resume { decision: Some(decision.into()), note: Some("so be it".into()) });
        world.clone().must(Actor::Human, decided);
    }
    let decided = Command::from(Resume { decision: Some("replan".into()), note: Some("split auth".into()) });
    let change = world.must(Actor::Human, decided);
    assert_eq!(
        change.effects,
        [Effect::RemoveStopFile(StopFile::Checkpoint), Effect::RemoveStopFile(StopFile::Pause)]
    );
    assert_eq!(world.sprint().status, SprintStatus::InProgress);
    let kept = world.sprint().decisions.last().unwrap();
    assert_eq!((kept.decision.as_str(), kept.note.as_deref()), ("replan", Some("split auth")));
    assert_eq!(world.last_log().detail, "replan: split auth");
}

/// Covers: SP-07
#[test]
fn pausing_and_resuming_do_not_change_the_sprint() {
    let mut world = World::new();
    let change = world.must(Actor::Human, Command::from(Pause));
    assert_eq!((change.stop_files.as_slice(), change.effects.as_slice()), (&[StopFile::Pause][..], &[][..]));
    assert_eq!(world.last_log().action, "paused");
    world.must(Actor::Human, resume());
    assert_eq!(world.sprint().status, SprintStatus::InProgress);
    assert!(world.sprint().decisions.is_empty(), "no checkpoint, no decision");
}

/// Covers: SP-01
#[test]
fn a_checkpoint_covers_a_deadline_that_passes_during_it() {
    let mut world = World::new();
    deadline(&mut world, 100);
    world.must(Actor::Human, asked_for());
    world.pass_with(100, &[planner()]);
    world.must(world.supervisor(planner()), at_deadline());
    world.refused_with("nothing_to_do", world.supervisor(planner()), at_deadline());
    world.must(Actor::Human, resume());
    world.refused_with("nothing_to_do", world.supervisor(planner()), at_deadline());
}

/// Covers: SP-07
#[test]
fn a_repeated_command_is_written_once() {
    let mut world = World::new();
    for (command, file) in [(Command::from(Pause), StopFile::Pause), (asked_for(), StopFile::Checkpoint)] {
        world.must(Actor::Human, command.clone());
        world.stop_files.pause = file == StopFile::Pause;
        let (log, at) = (world.log.len(), world.sprint().timeline.checkpoint_at);
        world.pass(10);
        let again = world.must(Actor::Human, command);
        assert!(again.is_empty(), "{file:?}");
        // The file is created again if it was removed in the meantime.
        assert_eq!(again.stop_files, [file]);
        assert_eq!((world.log.len(), world.sprint().timeline.checkpoint_at), (log, at));
    }
}

/// Covers: SP-07
#[test]
fn resuming_a_running_sprint_changes_nothing() {
    let mut world = World::new();
    let change = world.must(Actor::Human, resume());
    assert!(change.is_empty());
    assert_eq!(change.reply("changed"), false);
    // A file created manually can be resumed from, and so can a later decision.
    world.stop_files.checkpoint = true;
    assert!(!world.must(Actor::Human, resume()).is_empty());
    world.stop_files.checkpoint = false;
    let late = Command::from(Resume { decision: Some("replan".into()), note: None });
    world.must(Actor::Human, late);
    assert_eq!(world.sprint().decisions.len(), 1);
}

/// Covers: SP-01, SP-07
#[test]
fn the_decision_to_stop_ends_the_goal() {
    let mut world = World::new();
    world.must(Actor::Human, asked_for());
    let stop = || Command::from(Resume { decision: Some("stop".into()), note: Some("too dear".into()) });
    let change = world.must(Actor::Human, stop());
    assert_eq!(change.stop_files, [StopFile::Abort], "it exists before the write");
    assert_eq!((world.goal().status, world.sprint().status), (GoalStatus::Aborted, SprintStatus::Aborted));
    assert_eq!(world.sprint().timeline.ended, Some(world.now));
    assert_eq!(world.sprint().decisions.last().unwrap().note.as_deref(), Some("too dear"));
    let log = world.last_log();
    assert_eq!((log.action.as_str(), log.detail.as_str()), ("aborted", "stop: too dear"));
    world.refused_with("goal_not_open", Actor::Human, stop());
}

/// Covers: SP-01
#[test]
fn the_planner_does_not_complete_the_goal_during_a_checkpoint() {
    let mut world = World::with_task(Status::Merged);
    world.must(Actor::Human, asked_for());
    world.refused_with("sprint_status", world.agent(planner()), Command::from(CompleteGoal));
    let change = world.must(Actor::Human, Command::from(CompleteGoal));
    assert_eq!(
        change.effects,
        [Effect::RemoveStopFile(StopFile::Checkpoint)],
        "the decision ends the checkpoint"
    );
    assert_eq!(world.sprint().status, SprintStatus::Completed);
}

/// Covers: SP-01
#[test]
fn a_checkpoint_ends_with_its_sprint() {
    let mut world = World::with_task(Status::Merged);
    complete(&mut world);
    world.stop_files.checkpoint = true;
    let mut next = world.clone();
    let change = next.must(Actor::Human, Command::from(NewSprint));
    assert_eq!(change.effects, [Effect::RemoveStopFile(StopFile::Checkpoint)]);
    let change = world.must(Actor::Human, new_goal());
    assert_eq!(
        change.effects,
        [Effect::RemoveStopFile(StopFile::Checkpoint), Effect::RemoveStopFile(StopFile::Abort)]
    );
    // The planner's next task starts a sprint too, but the planner may not remove the human's file.
    let mut planned = World::with_task(Status::Merged);
    complete(&mut planned);
    planned.stop_files.checkpoint = true;
    assert_eq!(planned.add("more", ready()).effects, []);
}

/// Covers: SP-01
#[test]
fn abort_ends_sprint_and_goal_permanently() {
    for command in [Command::from(Abort), Command::from(AbortGoal)] {
        let mut world = World::new();
        world.must(Actor::Human, asked_for());
        let change = world.must(Actor::Human, command);
        assert_eq!(change.effects, [Effect::RemoveStopFile(StopFile::Checkpoint)]);
        assert_eq!(world.sprint().status, SprintStatus::Aborted);
        assert_eq!(world.sprint().timeline.ended, Some(world.now));
        assert_eq!(world.goal().status, GoalStatus::Aborted);
        assert_eq!(world.last_log().action, "aborted");
        world.must(Actor::Human, resume());
        assert_eq!(world.sprint().status, SprintStatus::Aborted, "resuming does not reopen it");
        world.refused_with("goal_not_open", Actor::Human, Command::from(Abort));
        world.refused_with("goal_not_open", Actor::Human, Command::from(CompleteGoal));
        world.refused_with("goal_not_open", Actor::Human, Command::from(NewSprint));
        let more = Command::from(AddTask { task: task("more"), new: ready() });
        world.refused_with("goal_not_open", Actor::Human, more);
    }
}

/// Covers: SP-01
#[test]
fn the_goal_is_complete_only_when_no_task_is_open() {
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        if status == Status::Superseded {
            world.abandon("new");
        }
        for actor in [world.agent(planner()), Actor::Human] {
            let mut copy = world.clone();
            if status.is_terminal() {
                copy.must(actor, Command::from(CompleteGoal));
                assert_eq!(copy.goal().status, GoalStatus::Completed);
                assert_eq!(copy.sprint().status, SprintStatus::Completed);
                copy.refused_with("goal_not_open", actor, Command::from(CompleteGoal));
            } else {
                copy.refused_with("tasks_open", actor, Command::from(CompleteGoal));
            }
        }
    }
}

/// Covers: SP-01
#[test]
fn a_task_added_after_the_end_starts_the_next_sprint() {
    let mut world = World::with_task(Status::Merged);
    complete(&mut world);
    let change = world.add("more", ready());
    assert_eq!(change.closed_sprint.as_ref().map(|sprint| sprint.id.clone()), Some("sprint-1".to_owned()));
    assert_eq!((world.sprint().id.as_str(), world.sprint().status), ("sprint-2", SprintStatus::InProgress));
    assert_eq!(world.sprint().scope.planned, [task("more")]);
}

/// Covers: SP-09
#[test]
fn a_new_sprint_closes_a_finished_one_and_takes_the_open_tasks() {
    let mut world = World::with_task(Status::Merged);
    world.refused_with("sprint_status", Actor::Human, Command::from(NewSprint));
    world.add("left", NewTask { stretch: true, ..ready() });
    complete(&mut world);
    let text = "smaller tasks".to_owned();
    world.must(Actor::Human, Command::from(WriteRetro { text }));
    let change = world.must(Actor::Human, Command::from(NewSprint));
    let closed = change.closed_sprint.clone().unwrap();
    assert_eq!((closed.id.as_str(), closed.retrospective.as_deref()), ("sprint-1", Some("smaller tasks")));
    let next = world.sprint();
    assert_eq!((next.id.as_str(), next.goal_ref.as_deref()), ("sprint-2", Some("goal-1")));
    assert_eq!((next.scope.planned.len(), next.scope.stretch.clone()), (0, vec![task("left")]));
    assert_eq!((next.timeline.started, next.timeline.deadline), (Some(world.now), None));
}

/// Covers: SP-09
#[test]
fn a_retrospective_must_not_be_empty_and_is_kept() {
    let mut world = World::new();
    world.refused_with("missing", Actor::Human, Command::from(WriteRetro { text: " ".into() }));
    world.must(Actor::Human, Command::from(WriteRetro { text: "fine".into() }));
    assert_eq!(world.sprint().retrospective.as_deref(), Some("fine"));
}

/// Covers: SP-02
#[test]
fn edited_metrics_are_counted_again() {
    let mut world = World::with_task(Status::Merged);
    let counted = world.sprint().metrics.clone();
    assert_eq!(counted.tasks_done, 1);
    world.edit_sprint().metrics = Metrics { tasks_done: 3, ..Metrics::default() };
    world.must(world.agent(coder(1)), Command::from(UpdateSprintMetrics));
    assert_eq!(world.sprint().metrics, counted);
}

/// Covers: SP-08
#[test]
fn terminal_tasks_of_past_sprints_are_archived() {
    let mut world = World::with_task(Status::Merged);
    let archive = || Command::from(Archive { tasks: vec![task("t")] });
    world.refused_with("not_archivable", Actor::Human, archive());
    complete(&mut world);
    let change = world.must(Actor::Human, archive());
    let last = &change.tasks[&task("t")];
    assert_eq!(last.history.as_ref().unwrap().last().unwrap().event, "archived");
    assert_eq!(last.merge_commit, Some(sha('f')), "nothing is lost");
    assert!(!world.state.board.tasks.contains_key(&task("t")));
    assert_eq!(world.state.board.archived[&task("t")], Status::Merged);
    assert!(world.violations().is_empty(), "the sprint still names it");
}

/// Covers: SP-08
#[test]
fn open_and_broken_tasks_are_not_archived() {
    for &status in Status::ALL.iter().filter(|status| !status.is_terminal()) {
        let mut world = World::with_task(status);
        world.edit_sprint().scope.planned.clear();
        world.refused_with("not_archivable", Actor::Human, Command::from(Archive { tasks: vec![task("t")] }));
        world.edit_record("t", |record| record.status = None);
        world.refused_with("not_archivable", Actor::Human, Command::from(Archive { tasks: vec![task("t")] }));
    }
}

/// Covers: SP-08
#[test]
fn an_archived_id_is_taken_and_its_task_cannot_be_changed() {
    let mut world = World::with_task(Status::Merged);
    complete(&mut world);
    world.must(Actor::Human, Command::from(Archive { tasks: vec![task("t")] }));
    let again = Command::from(AddTask { task: task("t"), new: ready() });
    world.refused_with("task_exists", Actor::Human, again);
    world.refused_with("archived", Actor::Human, abandon("t"));
    world.add("d", NewTask { depends_on: vec![task("t")], ..ready() });
    world.claim("d", coder(1));
}

/// Covers: SP-01, SP-08
#[test]
fn a_new_goal_archives_the_old_one_and_starts_a_new_sprint() {
    let mut world = World::with_task(Status::Rejected);
    world.refused_with("tasks_open", Actor::Human, new_goal());
    world.abandon("t");
    world.add("d", ready());
    world.abandon("d");
    let change = world.must(Actor::Human, new_goal());
    assert_eq!(change.closed_goal.as_ref().map(|goal| goal.id.clone()), Some("goal-1".to_owned()));
    assert_eq!(change.closed_sprint.as_ref().map(|sprint| sprint.id.clone()), Some("sprint-1".to_owned()));
    for id in ["t", "d"] {
        let last = change.tasks[&task(id)].history.as_ref().unwrap().last().unwrap();
        assert_eq!(last.event, "archived", "the archive gets the last record of {id}");
        assert_eq!(world.state.board.archived[&task(id)], Status::Abandoned);
    }
    assert!(world.state.board.tasks.is_empty());
    let goal = world.goal();
    assert_eq!((goal.id.as_str(), goal.status), ("goal-2", GoalStatus::InProgress));
    assert_eq!((goal.description.as_str(), goal.spec_ref.as_deref()), ("Caches", Some("specs/vision.md")));
    assert_eq!(
        (world.sprint().id.as_str(), world.sprint().goal_ref.as_deref()),
        ("sprint-2", Some("goal-2"))
    );
    assert_eq!(world.last_log().action, "goal_created");
}

/// Covers: SP-01
#[test]
fn a_new_goal_abandons_the_open_tasks_of_an_aborted_one() {
    let mut world = World::with_task(Status::Claimed);
    let notes = HandoffNotes { summary: "half".into(), next_action: "rest".into(), ..Default::default() };
    world.must(
        world.agent(coder(1)),
        Command::from(WriteHandoff { task: Some(task("t")), notes, dirty: Vec::new() }),
    );
    world.must(Actor::Human, Command::from(Abort));
    world.stop_files.abort = true;
    let blank = Command::from(NewGoal { description: " ".into(), spec_ref: None });
    world.refused_with("missing", Actor::Human, blank);
    let change = world.must(Actor::Human, new_goal());
    assert!(change.effects.contains(&Effect::RemoveStopFile(StopFile::Abort)));
    assert!(change.effects.contains(&Effect::RemoveWorktree(task("t"))));
    assert_eq!(world.state.board.archived[&task("t")], Status::Abandoned);
    assert_eq!(world.entry(coder(1)).current_task, None);
    assert!(world.state.board.handoff.ready().unwrap().is_empty());
}

/// Covers: SP-01
#[test]
fn failed_planning_counts_only_while_its_matter_is_left() {
    let mut world = World::new();
    let sprint = world.edit_sprint();
    sprint.planner_exits.count = 3;
    assert_eq!(failed_planning(sprint, &[]), 3, "an older version does not know the matter");
    sprint.planner_exits.woken_for.push("t is blocked".to_owned());
    assert_eq!(failed_planning(sprint, &[]), 0);
}
