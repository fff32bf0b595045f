//! PAUSE, CHECKPOINT and ABORT: what is still possible and what is not.

use liza_core::model::{Actor, AgentStatus, GoalStatus, RefusalClass, Severity, Status, StopFiles, Urgency};
use liza_core::protocol::{
    Abort, Align, BeginMerge, ClaimTask, Command, Deregister, Discover, HandoffNotes, Register,
    ReleaseReview, WriteHandoff, WriteNote,
};
use liza_testkit::worlds::*;

const PAUSE: StopFiles = StopFiles { pause: true, checkpoint: false, abort: false };
const CHECKPOINT: StopFiles = StopFiles { pause: false, checkpoint: true, abort: false };
const ABORT: StopFiles = StopFiles { pause: false, checkpoint: false, abort: true };

fn begin_merge() -> Command {
    Command::from(BeginMerge { task: task("t") })
}

fn discover() -> Command {
    Command::from(Discover {
        task: None,
        description: "no timeout".into(),
        severity: Severity::Low,
        urgency: Urgency::Deferred,
        recommendation: None,
    })
}

/// Covers: AG-17
#[test]
fn under_pause_and_checkpoint_no_work_starts() {
    for (halt, file) in [(PAUSE, "PAUSE"), (CHECKPOINT, "CHECKPOINT")] {
        for who in [false, true] {
            let as_supervisor = |world: &World, id| if who { Actor::Human } else { world.supervisor(id) };
            let mut free = World::new();
            free.stop_files = halt;
            let refusal =
                free.refused_with("halted", as_supervisor(&free, coder(1)), reserve("t", coder(1), base()));
            assert_eq!(refusal.class(), RefusalClass::Stop);
            assert!(refusal.to_string().starts_with(&format!(".liza/{file} ")), "{refusal}");
            let mut submitted = World::with_task(Status::ReadyForReview);
            submitted.stop_files = halt;
            let review = claim_review("t", reviewer(1));
            submitted.refused_with("halted", as_supervisor(&submitted, reviewer(1)), review);
            let mut approved = World::with_task(Status::Approved);
            approved.stop_files = halt;
            approved.refused_with("halted", as_supervisor(&approved, reviewer(1)), begin_merge());
        }
    }
}

/// Covers: AG-17
#[test]
fn under_pause_and_checkpoint_takeovers_wait() {
    for halt in [PAUSE, CHECKPOINT] {
        let mut world = World::with_task(Status::Claimed);
        world.pass_with(361, &[coder(2)]);
        world.stop_files = halt;
        world.refused_with("halted", world.supervisor(coder(2)), reserve("t", coder(2), base()));
    }
}

/// Covers: AG-17
#[test]
fn under_pause_and_checkpoint_finished_work_is_accepted() {
    for halt in [PAUSE, CHECKPOINT] {
        let mut world = World::with_task(Status::Claimed);
        world.stop_files = halt;
        world.clone().must(world.agent(coder(1)), block("t"));
        let notes = HandoffNotes { summary: "a".into(), next_action: "b".into(), ..Default::default() };
        let handoff = Command::from(WriteHandoff { task: Some(task("t")), notes, dirty: Vec::new() });
        world.clone().must(world.agent(coder(1)), handoff);
        world.must(world.agent(coder(1)), discover());
        world.submit("t", coder(1), sha('a'));
        world.stop_files = StopFiles::default();
        world.claim_review("t", reviewer(1));
        world.stop_files = halt;
        world.must(world.agent(reviewer(1)), verdict("t", approved()));
        world.must(world.supervisor(reviewer(1)), merged("t", sha('a')));
    }
}

/// Covers: AG-17
#[test]
fn under_pause_and_checkpoint_supervisors_renew_leases() {
    for halt in [PAUSE, CHECKPOINT] {
        let mut world = World::with_task(Status::Claimed);
        world.stop_files = halt;
        world.pass(200);
        world.heartbeat(coder(1));
        world.pass(200);
        world.submit("t", coder(1), sha('a'));
    }
}

/// Covers: AG-17
#[test]
fn abort_refuses_every_agents_write() {
    let mut world = World::with_task(Status::Claimed);
    world.stop_files = ABORT;
    let (session, stand_in) = (world.agent(coder(1)), Actor::Operator(coder(1)));
    for actor in [session, stand_in] {
        for command in [submit("t", sha('a')), block("t"), discover()] {
            let refusal = world.refused_with("halted", actor, command);
            assert_eq!(refusal.class(), RefusalClass::Stop);
        }
    }
    world.refused_with("halted", world.agent(planner()), Command::from(Align { summary: "x".into() }));
    world.refused_with("halted", Actor::Human, reserve("t", coder(1), base()));
    let newcomer = Command::from(Register {
        agent: coder(7),
        terminal: String::new(),
        machine: None,
        proven_dead: None,
        generation: None,
    });
    world.refused_with("halted", Actor::Human, newcomer);
}

/// Covers: AG-17
#[test]
fn under_abort_supervisors_exit_cleanly_and_the_human_decides() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.claim_review("t", reviewer(1));
    world.stop_files = ABORT;
    let give_up = Command::from(ReleaseReview { task: task("t"), reviewer: reviewer(1) });
    world.must(world.supervisor(reviewer(1)), give_up);
    world.must(world.supervisor(reviewer(1)), Command::from(Deregister::any(reviewer(1))));
    world.must(Actor::Operator(coder(2)), Command::from(Deregister::any(coder(2))));
    world.must(Actor::Human, Command::from(WriteNote { message: "enough".into(), to: None }));
    world.must(Actor::Human, Command::from(Abort));
}

/// Covers: AG-17
#[test]
fn of_several_files_abort_is_named_before_checkpoint_before_pause() {
    let mut world = World::new();
    let mut named = |halt| {
        world.stop_files = halt;
        let actor = world.supervisor(coder(1));
        world.refused_with("halted", actor, reserve("t", coder(1), base())).to_string()
    };
    assert!(named(StopFiles { pause: true, checkpoint: true, abort: true }).starts_with(".liza/ABORT "));
    assert!(
        named(StopFiles { pause: true, checkpoint: true, abort: false }).starts_with(".liza/CHECKPOINT ")
    );
}

/// Covers: SP-01
#[test]
fn an_aborted_goal_starts_nothing_even_without_the_file() {
    let mut world = World::new();
    world.edit_goal().status = GoalStatus::Aborted;
    let actor = world.supervisor(coder(1));
    let refusal = world.refused_with("goal_aborted", actor, reserve("t", coder(1), base()));
    assert_eq!(refusal.class(), RefusalClass::Stop);
}

/// Covers: AG-17
#[test]
fn a_claim_whose_worktree_is_being_created_is_completed() {
    let mut world = World::new();
    world.reserve("t", coder(1), base());
    world.stop_files = PAUSE;
    world.must(world.supervisor(coder(1)), Command::from(ClaimTask { task: task("t"), coder: coder(1) }));
    assert_eq!(world.entry(coder(1)).status, AgentStatus::Working);
}
