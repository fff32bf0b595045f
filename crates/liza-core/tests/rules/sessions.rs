//! Whether a session is running: the second and third on a task are shown like the first.

use liza_core::model::{
    Actor, AgentId, AgentStatus, ClientFault, FaultKind, Role, SprintStatus, Status, TaskId,
};
use liza_core::protocol::{
    AddTask, Align, Command, CompleteGoal, Finalize, RecordSession, ReleaseReview, Resume, SetStatus, Verdict,
};
use liza_status::alarms::Observations;
use liza_status::needs_you::NeedsYou;
use liza_status::view::{AgentView, view};
use liza_status::words::{agent_doing, team_does};
use liza_testkit::worlds::*;

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    WithResult,
    Failed,
    Held,
}

fn end_session(world: &mut World, agent: AgentId, end: End) {
    let task: Option<TaskId> = (agent.role() != Role::Planner).then(|| task("t"));
    let fault = ClientFault { kind: FaultKind::Quota, message: "no".into(), reset: None };
    let session = RecordSession {
        fault: (end == End::Held).then_some(fault),
        failed: end != End::WithResult,
        ..RecordSession::new(agent, task.clone(), "codex", world.now)
    };
    world.must(world.supervisor(agent), Command::from(session));
    match agent.role() {
        Role::Planner => {
            set_status(world, agent, AgentStatus::Waiting);
        }
        Role::CodeReviewer if end == End::Failed => {
            let release = ReleaseReview { task: task.unwrap(), reviewer: agent };
            world.must(world.supervisor(agent), Command::from(release));
        }
        Role::Coder | Role::CodeReviewer => {}
    }
    if end == End::Held {
        world.must(Actor::Human, Command::from(Resume { decision: None, note: None }));
    }
}

fn set_status(world: &mut World, agent: AgentId, status: AgentStatus) {
    world.must(world.supervisor(agent), Command::from(SetStatus::new(agent, status)));
}

fn shown(world: &World, agent: AgentId) -> AgentView {
    let view = view(&world.state, &Observations::default(), world.now);
    view.agents.into_iter().find(|shown| shown.id == agent).unwrap()
}

#[track_caller]
fn assert_runs(world: &World, agent: AgentId, doing: &str) {
    let shown = shown(world, agent);
    assert_eq!((agent_doing(&shown).as_str(), shown.is_in_session()), (doing, true));
}

fn begin(world: &mut World, agent: AgentId) {
    match agent.role() {
        Role::Planner => set_status(world, agent, AgentStatus::Planning),
        Role::Coder => drop(world.claim("t", agent)),
        Role::CodeReviewer => drop(world.claim_review("t", agent)),
    }
}

/// Covers: UI-01, UI-03
#[test]
fn every_session_of_a_task_is_shown_as_running_whatever_happened_before() {
    let starts = [
        (planner(), Status::Unclaimed, "PLANNING"),
        (coder(1), Status::Unclaimed, "WORKING t"),
        (reviewer(1), Status::ReadyForReview, "REVIEWING t"),
    ];
    for (agent, status, doing) in starts {
        let mut world = World::with_task(status);
        for end in [End::Failed, End::Held, End::Failed, End::Held] {
            begin(&mut world, agent);
            assert_runs(&world, agent, doing);
            end_session(&mut world, agent, end);
            assert!(!shown(&world, agent).is_in_session(), "{agent} after {end:?}");
        }
    }
}

/// Covers: UI-01, UI-03
#[test]
fn every_review_is_shown_as_running_after_rejections() {
    let mut world = World::new();
    for commit in ['a', 'b', 'c'] {
        begin(&mut world, coder(1));
        assert_runs(&world, coder(1), "WORKING t");
        world.submit("t", coder(1), sha(commit));
        end_session(&mut world, coder(1), End::WithResult);
        begin(&mut world, reviewer(1));
        assert_runs(&world, reviewer(1), "REVIEWING t");
        world.verdict("t", reviewer(1), Verdict::Rejected(FEEDBACK.into()));
        end_session(&mut world, reviewer(1), End::WithResult);
        assert!(!shown(&world, reviewer(1)).is_in_session());
    }
}

fn needs_text(world: &World) -> String {
    let view = view(&world.state, &Observations::default(), world.now);
    let about = |need: &&NeedsYou| need.task.as_ref().is_some_and(|own| *own == task("t"));
    view.needs_you.iter().find(about).map(|need| need.text.to_string()).unwrap_or_default()
}

fn align(world: &mut World) {
    let align = Align { summary: "only the human can answer it".into() };
    world.must(world.agent(planner()), Command::from(align));
}

/// Covers: UI-01, UI-03
#[test]
fn a_planner_that_has_left_a_question_ends_its_session() {
    let mut world = World::with_task(Status::Blocked);
    begin(&mut world, planner());
    assert_runs(&world, planner(), "LOOKING at t");
    assert!(needs_text(&world).contains("looks at it now"), "{}", needs_text(&world));
    align(&mut world);
    world.pass(12);
    assert_runs(&world, planner(), "ENDING its session, 12s");
    let text = needs_text(&world);
    assert!(!text.is_empty() && !text.contains("looks at it"), "{text}");
    // Another task that is blocked since is looked at next.
    world.add("u", ready());
    world.claim("u", coder(2));
    world.block("u", coder(2));
    assert_runs(&world, planner(), "ENDING its session, 12s");
    end_session(&mut world, planner(), End::WithResult);
    begin(&mut world, planner());
    assert!(
        agent_doing(&shown(&world, planner())).starts_with("LOOKING at "),
        "another session decides again"
    );
}

/// Covers: UI-01, UI-03
#[test]
fn a_planner_that_has_answered_one_question_of_two_looks_at_the_other() {
    let mut world = World::with_task(Status::Blocked);
    world.add("u", ready());
    world.claim("u", coder(2));
    world.block("u", coder(2));
    begin(&mut world, planner());
    world.must(world.agent(planner()), unblock("t"));
    assert_runs(&world, planner(), "LOOKING at u");
    world.must(world.agent(planner()), unblock("u"));
    world.pass(3);
    assert_runs(&world, planner(), "ENDING its session, 3s");
}

/// Covers: UI-01, UI-03
#[test]
fn a_planner_that_has_judged_the_goal_ends_its_session() {
    let mut world = World::with_task(Status::Merged);
    world.edit_sprint().status = SprintStatus::Completed;
    begin(&mut world, planner());
    assert_runs(&world, planner(), "JUDGING the goal");
    world.must(world.agent(planner()), Command::from(CompleteGoal));
    world.pass(12);
    assert_runs(&world, planner(), "ENDING its session, 12s");
    let view = view(&world.state, &Observations::default(), world.now);
    assert_eq!(team_does(&view), "the team is working");
}

fn finalize(world: &mut World, id: &str) {
    let finalize = Finalize { tasks: vec![task(id)], unchanged_since: None };
    world.must(world.agent(planner()), Command::from(finalize));
}

/// Covers: UI-01, UI-03
#[test]
fn a_planner_plans_until_no_draft_is_left() {
    let mut world = World::empty();
    world.edit_goal().planned = false;
    for agent in [planner(), coder(1)] {
        world.register(agent);
    }
    begin(&mut world, planner());
    assert_runs(&world, planner(), "PLANNING");
    for id in ["t", "u"] {
        let add = AddTask { task: task(id), new: draft() };
        world.must(world.agent(planner()), Command::from(add));
    }
    assert_runs(&world, planner(), "PLANNING");
    finalize(&mut world, "t");
    assert_runs(&world, planner(), "PLANNING");
    finalize(&mut world, "u");
    world.pass(40);
    assert_runs(&world, planner(), "ENDING its session, 40s");
}
