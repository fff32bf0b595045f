//! Registering, deregistering, agent states and usage.

use liza_core::model::{Actor, AgentId, AgentStatus, Generation, RefusalClass, Role, Seconds, Status, Usage};
use liza_core::protocol::{Command, Deregister, RecordUsage, Register, SetStatus, UnblockTask};
use liza_testkit::worlds::*;

fn register(agent: AgentId) -> Command {
    Command::from(Register {
        agent,
        terminal: " ".into(),
        machine: None,
        proven_dead: None,
        generation: None,
    })
}

fn set(agent: AgentId, status: AgentStatus) -> Command {
    Command::from(SetStatus::new(agent, status))
}

/// Covers: AG-01
#[test]
fn an_id_contains_its_role_and_has_one_spelling() {
    for good in ["coder-1", "code-reviewer-12", "planner-0"] {
        let id: AgentId = good.parse().unwrap();
        assert_eq!(id.to_string(), good);
    }
    for bad in ["coder", "code_reviewer-1", "tester-1", "coder-1x", "coder-01", " coder-1"] {
        assert!(bad.parse::<AgentId>().is_err(), "{bad}");
    }
}

/// Covers: AG-01
#[test]
fn an_agent_is_registered_with_the_role_of_its_id() {
    let world = World::new();
    for (id, role) in [(coder(1), Role::Coder), (reviewer(1), Role::CodeReviewer), (planner(), Role::Planner)]
    {
        assert_eq!(world.entry(id).role, role);
    }
}

/// Covers: AG-02
#[test]
fn a_registration_starts_with_a_lease_and_a_generation() {
    let mut world = World::empty();
    let change = world.must(Actor::Human, register(coder(1)));
    let entry = world.entry(coder(1));
    assert_eq!((entry.status, entry.current_task.clone()), (AgentStatus::Starting, None));
    assert_eq!(entry.lease_expires, Some(world.now + Seconds(300)));
    assert_eq!((entry.heartbeat, entry.terminal.as_deref()), (Some(world.now), Some("unknown")));
    assert_eq!(change.reply("generation").to_string(), world.generation(coder(1)).to_string());
}

/// Covers: AG-02
#[test]
fn a_live_id_is_refused_and_a_stale_one_is_taken_over() {
    let mut world = World::new();
    world.pass(300);
    world.refused_with("agent_live", Actor::Human, register(coder(1)));
    world.pass(1);
    let old = world.generation(coder(1));
    world.must(Actor::Operator(coder(1)), register(coder(1)));
    assert!(world.generation(coder(1)) > old);
}

/// Covers: AG-02
#[test]
fn a_takeover_keeps_what_the_agent_has_used_so_far() {
    let mut world = World::with_task(Status::Claimed);
    world.edit_agent(coder(1), |entry| entry.context_percent = Some(80));
    world.pass(301);
    world.register(coder(1));
    let entry = world.entry(coder(1));
    assert_eq!((entry.iterations_total, entry.context_percent), (Some(1), None));
    assert_eq!(world.record("t").assigned_to, Some(coder(1)), "its claim waits to be resumed");
    world.claim("t", coder(1));
}

/// Covers: AG-02, CL-10
#[test]
fn an_agent_that_is_known_to_be_dead_is_taken_over_at_once() {
    let mut world = World::with_task(Status::Claimed);
    let old = world.generation(coder(1));
    let proven = |agent, dead| {
        Command::Register(Register {
            agent,
            terminal: String::new(),
            machine: None,
            proven_dead: Some(dead),
            generation: None,
        })
    };
    let other = Generation(old.0 + 1000);
    world.refused_with("agent_live", Actor::Human, proven(coder(1), other));
    world.must(Actor::Human, proven(coder(1), old));
    assert!(world.generation(coder(1)) > old);
    world.refused_with("agent_live", Actor::Human, proven(coder(1), old));
    world.refused_with("fenced", Actor::Supervisor(coder(1), old), set(coder(1), AgentStatus::Idle));
    world.claim("t", coder(1));
    assert_eq!(world.last_event("t").event, "resumed");
    let plans = world.generation(planner());
    world.must(Actor::Human, proven(planner(), plans));
    let second = AgentId::new(Role::Planner, 2);
    world.refused_with("planner_live", Actor::Human, proven(second, plans));
}

/// Covers: AG-02
#[test]
fn only_one_planner_can_be_live() {
    let mut world = World::new();
    let second = AgentId::new(Role::Planner, 2);
    world.refused_with("planner_live", Actor::Human, register(second));
    world.pass(301);
    world.register(second);
    world.refused_with("planner_live", Actor::Human, register(planner()));
}

/// Covers: AG-02
#[test]
fn deregistering_removes_the_entry_and_leaves_the_claim() {
    let mut world = World::with_task(Status::Claimed);
    world.refused_with(
        "not_your_agent",
        world.supervisor(coder(2)),
        Command::from(Deregister::any(coder(1))),
    );
    let lease = world.record("t").lease_expires;
    world.must(world.supervisor(coder(1)), Command::from(Deregister::any(coder(1))));
    assert!(!world.state.board.agents().unwrap().contains_key(&coder(1)));
    assert_eq!((world.status("t"), world.record("t").lease_expires), (Status::Claimed, lease));
    world.refused_with("not_registered", Actor::Human, Command::from(Deregister::any(coder(1))));
    world.register(coder(1));
    world.claim("t", coder(1));
    assert_eq!(world.last_event("t").event, "resumed");
}

/// Covers: AG-02
#[test]
fn a_registration_that_was_replaced_is_not_the_one_that_leaves() {
    let mut world = World::with_task(Status::Claimed);
    let generation = |world: &World| world.state.board.agents().unwrap()[&coder(1)].generation;
    let seen = generation(&world);
    world.must(Actor::Human, Command::from(Deregister::any(coder(1))));
    world.register(coder(1));
    let leaves = |if_generation| Command::from(Deregister::of(coder(1), if_generation));
    let refusal = world.refused_with("stale_generation", Actor::Human, leaves(seen));
    assert_eq!(refusal.class(), RefusalClass::Inconsistent);
    world.must(Actor::Human, leaves(generation(&world)));
    assert!(!world.state.board.agents().unwrap().contains_key(&coder(1)));
}

/// Covers: AG-03
#[test]
fn each_role_has_its_own_agent_states() {
    use AgentStatus::{Handoff, Idle, Planning, Reviewing, Starting, Waiting, Working};
    let all = [Starting, Idle, Working, Reviewing, Planning, Waiting, Handoff];
    let by_itself: [(AgentId, &[AgentStatus]); 3] = [
        (coder(1), &[Idle, Waiting, Handoff]),
        (reviewer(1), &[Idle, Handoff]),
        (planner(), &[Idle, Planning, Waiting, Handoff]),
    ];
    for (id, known) in by_itself {
        for status in all {
            let mut world = World::new();
            let actor = world.supervisor(id);
            if known.contains(&status) {
                world.must(actor, set(id, status));
                assert_eq!(world.entry(id).status, status);
            } else {
                world.refused_with("bad_agent_status", actor, set(id, status));
            }
        }
    }
}

/// Covers: AG-03, IV-08
#[test]
fn working_and_reviewing_agents_have_a_task() {
    let mut world = World::with_task(Status::Claimed);
    world.must(world.supervisor(coder(1)), set(coder(1), AgentStatus::Working));
    world.refused_with("bad_agent_status", world.supervisor(coder(2)), set(coder(2), AgentStatus::Working));
    world.refused_with("not_your_agent", world.supervisor(coder(2)), set(coder(1), AgentStatus::Idle));
}

/// Covers: SP-07
#[test]
fn a_task_that_a_person_removed_in_the_file_is_no_longer_held() {
    let mut world = World::with_task(Status::Claimed);
    world.refused_with("bad_agent_status", world.supervisor(coder(1)), set(coder(1), AgentStatus::Idle));
    world.edit_record("t", |record| {
        record.status = Some(Status::Blocked);
        record.blocked_reason = Some("human override".to_owned());
    });
    world.must(world.supervisor(coder(1)), set(coder(1), AgentStatus::Idle));
    assert_eq!(world.entry(coder(1)).current_task, None);
    world.must(
        Actor::Human,
        Command::from(UnblockTask {
            task: task("t"),
            reset_cycles: false,
            same_coder: false,
            keep_worktree: false,
            assessment: None,
        }),
    );
    assert_eq!(world.status("t"), Status::Unclaimed, "a block by a person needs no questions");
}

/// Covers: AG-14
#[test]
fn usage_of_sessions_adds_up_for_agent_and_task() {
    let mut world = World::with_task(Status::Claimed);
    let usage = Usage { input: 10, output: 2, cached: 5, cost_usd: 0.5, ..Usage::default() };
    let record = |context_percent| {
        Command::RecordUsage(RecordUsage {
            agent: coder(1),
            task: Some(task("t")),
            usage: usage.clone(),
            context_percent,
            day_ends: World::new().now,
        })
    };
    world.must(world.supervisor(coder(1)), record(Some(40)));
    world.must(world.supervisor(coder(1)), record(None));
    let twice = Some(Usage { input: 20, output: 4, cached: 10, cost_usd: 1.0, ..Usage::default() });
    assert_eq!(
        (world.entry(coder(1)).usage.clone(), world.record("t").usage.clone()),
        (twice.clone(), twice)
    );
    assert_eq!(world.entry(coder(1)).context_percent, Some(40));
    world.refused_with("not_your_agent", world.supervisor(coder(2)), record(None));
}

/// Covers: AG-14
#[test]
fn the_context_of_a_new_session_is_not_measured_yet() {
    let mut world = World::with_task(Status::Claimed);
    world.edit_agent(coder(1), |entry| entry.context_percent = Some(93));
    world.claim("t", coder(1));
    assert_eq!(world.entry(coder(1)).context_percent, None, "it resumes with an empty context");
    world.edit_agent(planner(), |entry| entry.context_percent = Some(93));
    world.must(world.supervisor(planner()), set(planner(), AgentStatus::Waiting));
    assert_eq!(world.entry(planner()).context_percent, Some(93), "the last measured value");
    world.must(world.supervisor(planner()), set(planner(), AgentStatus::Planning));
    assert_eq!(world.entry(planner()).context_percent, None);
}

/// Covers: AG-14
#[test]
fn usage_counts_for_the_agent_when_its_task_is_gone_or_broken() {
    let mut world = World::with_task(Status::Claimed);
    let usage = Usage { input: 10, ..Usage::default() };
    let record = |id: &str| {
        Command::RecordUsage(RecordUsage {
            agent: coder(1),
            task: Some(task(id)),
            usage: usage.clone(),
            context_percent: None,
            day_ends: World::new().now,
        })
    };
    world.must(world.supervisor(coder(1)), record("unheard-of"));
    world.edit_record("t", |record| record.lease_expires = None);
    world.must(world.supervisor(coder(1)), record("t"));
    assert_eq!(world.entry(coder(1)).usage.as_ref().map(|usage| usage.input), Some(20));
    assert_eq!(world.record("t").usage, None);
}
