//! What wakes the planner, once per change.

use liza_core::model::{
    Actor, AnomalyType, Fields, GoalStatus, Severity, SprintStatus, Status, Urgency, Value,
};
use liza_core::protocol::{
    AddTask, Command, CompleteSprint, ConvertDiscovery, Deregister, Discover, Finalize, LogAnomaly,
    MarkTriggersSeen, NewSprint, NewTask, WriteNote,
};
use liza_core::rules::triggers::{Trigger, TriggerKind, planner_triggers, unseen};
use liza_testkit::worlds::*;

fn triggers(world: &World) -> Vec<Trigger> {
    planner_triggers(&world.state, world.now)
}

fn kinds(world: &World) -> Vec<TriggerKind> {
    triggers(world).iter().map(|trigger| trigger.kind).collect()
}

/// The planner has seen all triggers.
fn mark_seen(world: &mut World) {
    let keys = triggers(world).into_iter().map(|trigger| trigger.key).collect();
    world.must(world.supervisor(planner()), Command::from(MarkTriggersSeen { keys }));
}

fn new_kinds(world: &World) -> Vec<TriggerKind> {
    unseen(&triggers(world), &world.sprint().seen_triggers).iter().map(|trigger| trigger.kind).collect()
}

fn discover(urgency: Urgency) -> Command {
    Command::from(Discover {
        task: None,
        description: "no timeout".into(),
        severity: Severity::Critical,
        urgency,
        recommendation: None,
    })
}

/// Covers: AG-11
#[test]
fn a_goal_without_tasks_triggers_planning_and_an_empty_goal_does_not() {
    let mut world = World::empty();
    world.register(planner());
    assert_eq!(kinds(&world), [TriggerKind::InitialPlanning]);
    mark_seen(&mut world);
    assert!(new_kinds(&world).is_empty());
    world.must(Actor::Human, Command::from(WriteNote { message: "the spec is there now".into(), to: None }));
    assert_eq!(new_kinds(&world), [TriggerKind::InitialPlanning], "a note is a new trigger");
    world.edit_goal().description = " ".into();
    assert!(kinds(&world).is_empty());
    assert!(kinds(&World::new()).is_empty(), "a free task is for the coders");
}

/// Covers: AG-11
#[test]
fn drafts_alone_trigger_planning() {
    let mut world = World::with_task(Status::Draft);
    assert_eq!(kinds(&world), [TriggerKind::InitialPlanning]);
    world.must(Actor::Human, Command::from(Finalize { tasks: Vec::new(), unchanged_since: None }));
    assert!(kinds(&world).is_empty());
}

/// Covers: AG-11
#[test]
fn a_finished_goal_has_no_triggers() {
    let mut world = World::with_task(Status::Blocked);
    world.edit_goal().status = GoalStatus::Completed;
    assert!(kinds(&world).is_empty());
}

/// Covers: AG-11
#[test]
fn a_blocked_task_triggers_once_per_change() {
    let mut world = World::with_task(Status::Blocked);
    assert_eq!(kinds(&world), [TriggerKind::BlockedTasks]);
    assert_eq!(triggers(&world)[0].detail, "the spec is silent");
    mark_seen(&mut world);
    world.pass(10_000);
    assert!(new_kinds(&world).is_empty(), "the same block does not wake again");
    world.must(Actor::Human, unblock("t"));
    world.register(coder(2));
    world.pass(1);
    world.register(reviewer(1));
    world.claim("t", coder(2));
    world.must(world.supervisor(coder(2)), block("t"));
    assert_eq!(new_kinds(&world), [TriggerKind::BlockedTasks], "a second block does");
}

/// Covers: AG-11
#[test]
fn a_review_deadlock_is_named_in_the_blocked_trigger() {
    let mut world = World::new();
    world.config().max_review_cycles = 1;
    world.reject_again("t", coder(1));
    let found = triggers(&world);
    assert_eq!((found[0].kind, found[0].detail.as_str()), (TriggerKind::BlockedTasks, "REVIEW_DEADLOCK"));
}

/// Covers: AG-11, LM-04
#[test]
fn two_failed_coders_exhaust_a_hypothesis() {
    let mut world = World::with_task(Status::Blocked);
    world.must(Actor::Human, unblock("t"));
    world.claim("t", coder(2));
    world.block("t", coder(2));
    assert_eq!(kinds(&world), [TriggerKind::HypothesisExhausted]);
}

/// Covers: AG-11
#[test]
fn a_failed_merge_triggers_after_a_minute_or_the_second_time() {
    let mut world = World::with_task(Status::IntegrationFailed);
    world.pass(59);
    assert!(kinds(&world).is_empty(), "a coder may still take it");
    world.pass(1);
    assert_eq!(kinds(&world), [TriggerKind::IntegrationFailed]);
    mark_seen(&mut world);
    world.reserve("t", coder(1), base());
    assert!(new_kinds(&world).is_empty(), "a claim in progress is not a new trigger");
    world.claim("t", coder(1));
    assert!(kinds(&world).is_empty());
    world.submit("t", coder(1), sha('b'));
    world.approve("t");
    world.fail_merge("t");
    assert_eq!(new_kinds(&world), [TriggerKind::IntegrationFailed], "at once, the second time");
}

/// Covers: AG-11, NT-03
#[test]
fn an_immediate_discovery_triggers_until_it_is_converted() {
    let mut world = World::new();
    world.must(world.agent(coder(1)), discover(Urgency::Deferred));
    assert!(kinds(&world).is_empty());
    world.must(world.agent(coder(1)), discover(Urgency::Immediate));
    assert_eq!(kinds(&world), [TriggerKind::ImmediateDiscovery]);
    let discovery = "disc-2".parse().unwrap();
    world.must(world.agent(planner()), Command::from(ConvertDiscovery { discovery, task: task("t") }));
    assert!(kinds(&world).is_empty());
}

/// Covers: LM-08, AG-11
#[test]
fn a_task_that_depends_on_an_abandoned_one_wakes_the_planner() {
    let mut world = World::new();
    world.add("d", NewTask { depends_on: vec![task("t")], ..ready() });
    assert!(kinds(&world).is_empty());
    world.abandon("t");
    let found = triggers(&world);
    assert_eq!((found[0].kind, found[0].subject.as_str()), (TriggerKind::DeadDependency, "d"));
    assert_eq!(world.status("d"), Status::Unclaimed, "nothing is blocked silently");
    mark_seen(&mut world);
    assert!(new_kinds(&world).is_empty());
}

/// Covers: LM-08
#[test]
fn superseding_leaves_no_dead_dependency() {
    let mut world = World::new();
    world.add("d", NewTask { depends_on: vec![task("t")], ..ready() });
    world.add("new", draft());
    world.must(Actor::Human, supersede("t", &["new"]));
    assert!(kinds(&world).is_empty());
}

/// Covers: SP-01, AG-11
#[test]
fn a_completed_sprint_triggers_once() {
    let mut world = World::with_task(Status::Merged);
    world.must(world.supervisor(planner()), Command::from(CompleteSprint));
    assert_eq!(kinds(&world), [TriggerKind::SprintCompleted]);
    mark_seen(&mut world);
    assert!(new_kinds(&world).is_empty());
}

/// Covers: AG-11
#[test]
fn a_new_sprint_does_not_repeat_seen_triggers() {
    let mut world = World::with_task(Status::Merged);
    world.must(world.agent(coder(1)), discover(Urgency::Immediate));
    world.must(world.supervisor(planner()), Command::from(CompleteSprint));
    mark_seen(&mut world);
    world.must(Actor::Human, Command::from(NewSprint));
    assert!(new_kinds(&world).is_empty());
}

/// Covers: AG-20
#[test]
fn triggers_are_sorted_by_kind_then_priority_then_age() {
    let mut world = World::new();
    for (id, priority) in [("low", 5), ("high", 1)] {
        world.add(id, NewTask { priority: Some(priority), ..ready() });
        world.must(Actor::Human, block(id));
    }
    world.must(Actor::Human, block("t"));
    world.must(world.agent(coder(1)), discover(Urgency::Immediate));
    let subjects: Vec<String> = triggers(&world).into_iter().map(|trigger| trigger.subject).collect();
    assert_eq!(subjects, ["high", "t", "low", "disc-1"]);
}

/// Covers: AG-11
#[test]
fn triggers_have_the_names_of_the_specification() {
    let names = [
        (TriggerKind::InitialPlanning, "INITIAL_PLANNING"),
        (TriggerKind::BlockedTasks, "BLOCKED_TASKS"),
        (TriggerKind::IntegrationFailed, "INTEGRATION_FAILED"),
        (TriggerKind::HypothesisExhausted, "HYPOTHESIS_EXHAUSTED"),
        (TriggerKind::ImmediateDiscovery, "IMMEDIATE_DISCOVERY"),
        (TriggerKind::SprintCompleted, "SPRINT_COMPLETED"),
        (TriggerKind::NewDraft, "NEW_DRAFT"),
    ];
    for (kind, name) in names {
        assert_eq!(kind.to_string(), name);
    }
}

/// Covers: UI-12
#[test]
fn a_task_that_the_human_adds_in_one_line_wakes_the_planner_once() {
    let mut world = World::new();
    let new = NewTask { description: "an idea".into(), draft: true, ..NewTask::default() };
    world.must(Actor::Human, Command::from(AddTask { task: task("idea"), new }));
    assert_eq!(new_kinds(&world), [TriggerKind::NewDraft]);
    mark_seen(&mut world);
    assert!(new_kinds(&world).is_empty());
}

/// Covers: AC-03, AG-11
#[test]
fn a_new_planner_is_not_woken_for_an_answer_that_the_last_one_has_used() {
    let mut world = World::new();
    let details = Fields::from_iter([("question".to_owned(), Value::Text("Which database?".to_owned()))]);
    let question = LogAnomaly { kind: AnomalyType::SpecGap, task: None, details };
    world.must(world.agent(planner()), Command::from(question));
    world.pass(5);
    world.must(Actor::Human, Command::from(WriteNote { message: "SQLite".into(), to: None }));
    world.must(Actor::Human, block("t"));
    assert_eq!(new_kinds(&world), [TriggerKind::QuestionAnswered, TriggerKind::BlockedTasks]);
    mark_seen(&mut world);
    world.must(Actor::Human, Command::from(Deregister::any(planner())));
    world.register(planner());
    assert_eq!(new_kinds(&world), [TriggerKind::BlockedTasks], "only what is unresolved");
}

/// A planner that asks before it judges must judge once it has the answer.
///
/// Covers: SP-01, AC-03
#[test]
fn an_answer_wakes_the_planner_again_for_the_goal_that_it_has_not_judged() {
    let mut world = World::new();
    world.edit_sprint().status = SprintStatus::Completed;
    mark_seen(&mut world);
    assert!(!new_kinds(&world).contains(&TriggerKind::SprintCompleted));
    world.must(Actor::Human, Command::from(WriteNote { message: "Yes".into(), to: None }));
    assert!(new_kinds(&world).contains(&TriggerKind::SprintCompleted));
}
