//! Whether a session is running: the second and third on a task are shown like the first.

use liza_core::model::{Actor, AgentId, AgentStatus, ClientFault, FaultKind, Role, Status, TaskId, Usage};
use liza_core::protocol::{Command, RecordSession, ReleaseReview, Resume, SetStatus, Verdict};
use liza_core::watch::alarms::Observations;
use liza_core::watch::view::{AgentView, view};
use liza_core::watch::words::agent_doing;

use crate::support::*;

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
        agent,
        task: task.clone(),
        client: "codex".into(),
        started: world.now,
        end: "exited 1".into(),
        said: None,
        fault: (end == End::Held).then_some(fault),
        advice: None,
        failed: end != End::WithResult,
        unsubmitted: None,
        usage: Usage::default(),
        conversation: None,
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
    world.must(world.supervisor(agent), Command::from(SetStatus { agent, status }));
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
