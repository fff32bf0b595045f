//! Revisions, `--if-revision`, and which writes are logged.

use liza_core::model::{Actor, AgentStatus, Metrics, RefusalClass, Revision, Status, Usage};
use liza_core::protocol::{
    BeginMerge, CancelReservation, Command, Heartbeat, MarkBlocked, MarkTriggersSeen, Operation, ReadNotes,
    RecordAnalysis, RecordUsage, SetStatus, TaskEdit, UpdateSprintMetrics, WriteNote,
};
use liza_testkit::worlds::*;

/// Covers: BB-11
#[test]
fn every_write_raises_the_revision_by_one_and_a_read_does_not() {
    let mut world = World::with_task(Status::Approved);
    let before = world.state.board.revision;
    world.must(Actor::Human, Command::from(BeginMerge { task: task("t") }));
    assert_eq!(world.state.board.revision, before);
    world.heartbeat(coder(1));
    assert_eq!(world.state.board.revision, before.next());
}

/// Covers: BB-11
#[test]
fn a_task_has_the_revision_of_its_last_change_except_heartbeats() {
    let mut world = World::with_task(Status::Claimed);
    let claimed = world.record("t").revision;
    assert_eq!(claimed, Some(world.state.board.revision));
    world.add("u", ready());
    world.pass(10);
    world.heartbeat(coder(1));
    assert_eq!(world.record("t").revision, claimed);
    world.submit("t", coder(1), sha('a'));
    assert_eq!(world.record("t").revision, Some(world.state.board.revision));
    world.claim_review("t", reviewer(1));
    let reviewed = world.record("t").revision;
    world.heartbeat(reviewer(1));
    assert_eq!(world.record("t").revision, reviewed);
}

fn rename() -> Command {
    edit("t", TaskEdit { description: Some("Add more retries".into()), ..TaskEdit::default() })
}

/// Covers: BB-11
#[test]
fn a_stale_if_revision_is_inconsistent_and_compares_with_the_target() {
    let mut world = World::new();
    let seen = world.record("t").revision.unwrap();
    world.add("u", ready());
    world.if_revision = Some(seen);
    world.must(Actor::Human, rename());
    let refusal = world.refused_with("stale_revision", Actor::Human, rename());
    assert_eq!(refusal.class(), RefusalClass::Inconsistent);
    world.if_revision = Some(world.state.board.revision);
    world.must(Actor::Human, rename());
}

/// Covers: BB-11
#[test]
fn without_one_target_if_revision_compares_with_the_board() {
    let mut world = World::new();
    let note = Command::from(WriteNote { message: "hi".into(), to: None });
    let now = world.state.board.revision;
    world.if_revision = Some(Revision(now.0 - 1));
    world.refused_with("stale_revision", Actor::Human, note.clone());
    world.if_revision = Some(now);
    world.must(Actor::Human, note);
}

/// Covers: BB-12
#[test]
fn heartbeats_reservations_and_metrics_write_no_log() {
    let mut world = World::with_task(Status::Claimed);
    world.add("u", ready());
    let coder_loop = world.supervisor(coder(1));
    let other_loop = world.supervisor(coder(2));
    let usage = Usage { input: 1, ..Usage::default() };
    let silent = [
        (coder_loop, Command::from(Heartbeat { agents: vec![(coder(1), None)], length: None })),
        (other_loop, reserve("u", coder(2), base())),
        (other_loop, Command::from(CancelReservation { task: task("u"), coder: coder(2) })),
        (Actor::Human, Command::from(UpdateSprintMetrics)),
        (world.supervisor(planner()), Command::from(MarkTriggersSeen { keys: vec!["k".into()] })),
        (world.supervisor(planner()), Command::from(SetStatus::new(planner(), AgentStatus::Idle))),
        (
            coder_loop,
            Command::from(RecordUsage {
                agent: coder(1),
                task: None,
                usage,
                context_percent: None,
                day_ends: world.now,
            }),
        ),
        (coder_loop, Command::from(ReadNotes { agent: coder(1), task: Some(task("t")), number: 1 })),
        (coder_loop, idle_exit("t", coder(1))),
        (Actor::Human, Command::from(RecordAnalysis { findings: Vec::new() })),
    ];
    for (actor, command) in silent {
        let verb = command.verb();
        if verb == "update-sprint-metrics" {
            world.edit_sprint().metrics = Metrics { tasks_done: 7, ..Metrics::default() };
        }
        let change = world.must(actor, command);
        assert!(!change.is_empty() && change.log.is_none(), "{verb}");
    }
}

/// Covers: BB-12
#[test]
fn a_log_entry_has_time_agent_action_and_task_on_one_line() {
    let mut world = World::with_task(Status::Claimed);
    world.pass(4);
    let mut long = block("t");
    if let Command::MarkBlocked(MarkBlocked { reason, .. }) = &mut long {
        *reason = format!("first\nsecond\u{7} {}", "x".repeat(1000));
    }
    world.must(world.agent(coder(1)), long);
    let log = world.last_log();
    assert_eq!((log.timestamp, log.agent.as_str(), log.action.as_str()), (world.now, "coder-1", "blocked"));
    assert_eq!(log.task, Some(task("t")));
    assert!(log.detail.starts_with("first second x") && log.detail.chars().count() <= 301, "{}", log.detail);
}

/// Covers: BB-12
#[test]
fn unchanged_metrics_and_triggers_are_not_written() {
    let mut world = World::new();
    let _metrics = world.sprint().metrics.clone();
    assert!(world.must(Actor::Human, Command::from(UpdateSprintMetrics)).is_empty());
    let keys = world.sprint().seen_triggers.clone();
    assert!(world.must(world.supervisor(planner()), Command::from(MarkTriggersSeen { keys })).is_empty());
}
