//! Random command sequences of a team: several agents, valid and invalid commands, jumps in time, crashes.
//!
//! After every step all invariants hold; at the end every task can still be completed.

use std::collections::BTreeSet;

use crate::world::{World, number_sha};
use liza_core::model::{Actor, AgentId, Approver, RefusalClass, Role, Seconds, Status, TaskId};
use liza_core::protocol::{
    AbandonTask, ClaimRole, ClaimTask, ClearStaleReviewClaims, Command, CountExit, Deregister, EditTask,
    Finalize, HandoffNotes, Heartbeat, MarkBlocked, ReleaseClaim, ReserveTask, SupersedeTask, TaskEdit,
    UnblockTask, UnproductiveExit, WriteHandoff,
};
use liza_testkit::team::{agent, task};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const TASKS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const AGENTS: [&str; 6] =
    ["planner-1", "coder-1", "coder-2", "coder-3", "code-reviewer-1", "code-reviewer-2"];

/// One random step: action, agent, task, time since the last step.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    what: u8,
    who: u8,
    which: u8,
    other: u8,
    later: u16,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let later = prop_oneof![30 => 0u16..20, 3 => 20u16..400, 1 => 400u16..4000];
    let step = (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), later);
    let step = step.prop_map(|(what, who, which, other, later)| Step { what, who, which, other, later });
    proptest::collection::vec(step, 200..400)
}

fn pick<'a>(names: &[&'a str], number: u8) -> &'a str {
    names[usize::from(number) % names.len()]
}

/// Mostly an agent that can act, sometimes any agent.
fn pair_for(world: &World, id: &TaskId, step: &Step) -> (AgentId, AgentId) {
    let head = world.state.board.summary(id).filter(|_| !step.other.is_multiple_of(4));
    let coder = head.and_then(|head| head.assigned_to);
    let reviewer = head.and_then(|head| head.reviewing_by.or(head.approved_by.and_then(Approver::agent)));
    let any = |role, of| AgentId::new(role, u32::from(step.who % of) + 1);
    (coder.unwrap_or(any(Role::Coder, 3)), reviewer.unwrap_or(any(Role::CodeReviewer, 2)))
}

/// Does the step. Many steps are invalid at that moment, on purpose.
fn take(world: &mut World, step: &Step) {
    world.now = world.now + Seconds(u64::from(step.later));
    let id = task(pick(&TASKS, step.which));
    let other = task(pick(&TASKS, step.other));
    let who = agent(pick(&AGENTS, step.who));
    let (coder, reviewer) = pair_for(world, &id, step);
    let planner = world.session(agent("planner-1"));
    let odd = step.other % 2 == 1;
    let text = || "because".to_owned();
    let outcome = match step.what % 40 {
        0 => world.add(&id, odd, if step.other.is_multiple_of(3) { vec![other] } else { Vec::new() }),
        1 => world.run(Actor::Human, Command::from(Finalize { tasks: Vec::new(), unchanged_since: None })),
        2 | 3 => world.register(who),
        4 => world.run(Actor::Human, Command::from(Deregister::any(who))),
        5 | 6 => {
            let beat = Command::from(Heartbeat { agents: vec![(who, None)], length: None });
            world.run(world.supervisor(who), beat)
        }
        7..=9 => world.claim(&id, coder),
        10 | 11 => world.claim(&id, AgentId::new(Role::Coder, u32::from(step.who % 3) + 1)),
        12 => {
            let head = number_sha(world.integration);
            world.run(world.supervisor(coder), Command::from(ReserveTask { task: id, coder, head }))
        }
        13 => world.run(world.supervisor(coder), Command::from(ClaimTask { task: id, coder })),
        14..=16 => world.submit(&id, coder),
        17 | 18 | 32 => world.claim_review(&id, reviewer),
        19 | 33 | 34 => world.verdict(&id, reviewer, true),
        20 | 21 | 38 => world.verdict(&id, reviewer, false),
        22 | 23 | 35..=37 => world.merge(&id, reviewer, !step.which.is_multiple_of(4)),
        24 => {
            let (questions, attempted) = (vec!["Which?".to_owned()], Vec::new());
            let by = if odd { Actor::Human } else { world.session(coder) };
            world.run(by, Command::from(MarkBlocked { task: id, reason: text(), questions, attempted }))
        }
        25 => {
            let unblock = Command::from(UnblockTask {
                task: id,
                reset_cycles: odd,
                same_coder: step.other.is_multiple_of(3),
                keep_worktree: step.other % 3 == 1,
                assessment: Some(text()),
            });
            world.run(planner, unblock)
        }
        26 if step.other % 4 == 1 => {
            let (reason, root_cause) = (text(), text());
            let supersede =
                Command::from(SupersedeTask { task: id, by: vec![other], reason, root_cause, summary: None });
            world.run(planner, supersede)
        }
        27 if step.other.is_multiple_of(8) => {
            world.run(planner, Command::from(AbandonTask { task: id, reason: text() }))
        }
        26 | 27 => {
            let edit = TaskEdit { depends_on: Some(vec![other]), ..TaskEdit::default() };
            world.run(planner, Command::from(EditTask { task: id, edit }))
        }
        28 => world.run(
            Actor::Human,
            Command::from(ReleaseClaim { task: id, role: ClaimRole::Both, force: odd, reason: None }),
        ),
        29 => {
            let notes = HandoffNotes { summary: text(), next_action: text(), ..HandoffNotes::default() };
            let by = world.session(if odd { coder } else { reviewer });
            world.run(by, Command::from(WriteHandoff { task: Some(id), notes, dirty: Vec::new() }))
        }
        30 => {
            let exit = if odd { UnproductiveExit::Crash } else { UnproductiveExit::Idle };
            world.run(
                world.supervisor(coder),
                Command::from(CountExit {
                    task: id,
                    agent: coder,
                    exit,
                    last_words: None,
                    pause: Seconds(0),
                }),
            )
        }
        _ if odd => world.run(Actor::Human, Command::from(ClearStaleReviewClaims)),
        // The coder commits again after it has submitted.
        _ => {
            world.commit(&id);
            return;
        }
    };
    if let Err(refusal) = outcome {
        assert_ne!(refusal.code(), "not_loaded", "{step:?}");
        assert_ne!(refusal.code(), "broken_task", "{step:?}: {refusal}");
        assert_ne!(refusal.class(), RefusalClass::Inconsistent, "{refusal}");
    }
}

/// Completes a task as a correct team would. It may be abandoned only if two coders failed or it has a dead
/// dependency.
fn finish(world: &mut World, id: &TaskId) {
    let (coder, reviewer) = (AgentId::new(Role::Coder, 9), AgentId::new(Role::CodeReviewer, 9));
    for _ in 0..40 {
        let Some(status) = world.state.board.status(id) else { return };
        if status.is_terminal() {
            return;
        }
        let head = world.state.board.summary(id).unwrap().clone();
        let dead = |dependency: &TaskId| {
            matches!(world.state.board.status(dependency), Some(Status::Abandoned | Status::Superseded))
        };
        let hopeless = head.failed_by.len() >= 2 || head.depends_on.iter().any(dead);
        let give_up = Command::from(AbandonTask { task: id.clone(), reason: "hopeless".to_owned() });
        let _ = match status {
            _ if hopeless && status != Status::Claimed && world.run(Actor::Human, give_up).is_ok() => return,
            Status::Draft => world.run(
                Actor::Human,
                Command::from(Finalize { tasks: vec![id.clone()], unchanged_since: None }),
            ),
            Status::Unclaimed | Status::Rejected | Status::IntegrationFailed => world.claim(id, coder),
            Status::Claimed => world.claim(id, coder).and_then(|_| world.submit(id, coder)),
            Status::ReadyForReview => {
                world.claim_review(id, reviewer).and_then(|_| world.verdict(id, reviewer, true))
            }
            Status::Approved => world.merge(id, reviewer, true),
            Status::Blocked => {
                let unblock = Command::from(UnblockTask {
                    task: id.clone(),
                    reset_cycles: true,
                    same_coder: false,
                    keep_worktree: false,
                    assessment: Some("clearer now".to_owned()),
                });
                world.run(Actor::Human, unblock)
            }
            Status::Merged | Status::Abandoned | Status::Superseded => return,
        };
    }
    panic!("{id} is wedged: {:#?}", world.state.board.body(id));
}

/// Tasks sorted so that each comes after its dependencies.
fn by_dependency(world: &World) -> Vec<TaskId> {
    let mut rest: Vec<TaskId> = world.state.board.tasks.keys().cloned().collect();
    let mut order: Vec<TaskId> = Vec::new();
    while !rest.is_empty() {
        let ready = |id: &TaskId| {
            let head = world.state.board.summary(id).unwrap();
            head.depends_on.iter().all(|dependency| order.contains(dependency))
        };
        let next = rest.iter().position(ready).expect("the dependencies go in a circle");
        order.push(rest.remove(next));
    }
    order
}

/// Runs a random sequence to its last step.
pub(crate) fn run_sequence(steps: &[Step]) -> World {
    let mut world = World::new();
    for name in AGENTS {
        let _ = world.register(agent(name));
    }
    for id in &TASKS[..3] {
        let _ = world.add(&task(id), false, Vec::new());
    }
    for step in steps {
        take(&mut world, step);
    }
    world
}

/// Guards against shallow sequences: together they produce every event except archiving.
///
/// Covers: TS-04
#[test]
fn every_event_happens_in_some_sequence() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for _ in 0..400 {
        let world = run_sequence(&steps().new_tree(&mut runner).unwrap().current());
        let histories = world.state.bodies().flat_map(|(_, body)| body.record().events());
        seen.extend(histories.map(|event| event.event.clone()));
    }
    let all = [
        "abandoned",
        "approved",
        "blocked",
        "claimed",
        "claimed_for_integration_fix",
        "created",
        "finalized",
        "handoff",
        "integration_failed",
        "merged",
        "ready_for_review",
        "reassigned_after_rejection",
        "reclaimed_after_expiry",
        "reclaimed_after_rejection",
        "rejected",
        "released",
        "resumed",
        "superseded",
        "unblocked",
    ];
    assert_eq!(seen, all.map(str::to_owned).into());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers: TS-01, TS-04, CL-10, RV-10, IV-09, IV-16
    #[test]
    fn no_sequence_breaks_an_invariant_or_leaves_a_task_stuck(steps in steps()) {
        let mut world = run_sequence(&steps);
        prop_assert!(world.written > 20, "only {} steps did anything", world.written);

        // All agents are gone; two new ones can still finish everything.
        world.now = world.now + Seconds::hours(1);
        for id in by_dependency(&world) {
            for name in ["coder-9", "code-reviewer-9"] {
                let _ = world.register(agent(name));
                let beat = Command::from(Heartbeat { agents: vec![(agent(name), None)], length: None });
                let _ = world.run(world.supervisor(agent(name)), beat);
            }
            finish(&mut world, &id);
        }
    }
}
