//! Claims in unusual situations: coders that failed or are gone, late second steps, fresh counters.

use liza_core::model::WorktreeMode::{Fresh, Keep};
use liza_core::model::{Actor, Status};
use liza_core::protocol::{ClaimTask, Command, Deregister, HandoffNotes, NewTask, UnblockTask, WriteHandoff};
use liza_core::rules::claimable::claimable_for;
use liza_testkit::worlds::*;

/// Covers: CL-03
#[test]
fn stale_coders_and_coders_that_failed_do_not_count_as_alternatives() {
    let mut stale = World::with_task(Status::Blocked);
    stale.must(Actor::Human, unblock("t"));
    stale.pass_with(361, &[coder(1)]);
    stale.claim("t", coder(1));
    let mut both = World::new();
    both.edit_record("t", |record| record.failed_by = Some(vec![coder(1), coder(2)]));
    both.claim("t", coder(1));
}

/// Covers: CL-01
#[test]
fn a_coders_own_failed_merge_is_sorted_by_priority_only() {
    let mut world = World::with_task(Status::IntegrationFailed);
    world.add("one", NewTask { priority: Some(1), ..ready() });
    assert_eq!(claimable_for(&world.state.board, coder(1), world.now), [task("one"), task("t")]);
}

/// A task that was unblocked for coder-1, which is gone.
fn unblocked_for_a_coder_that_is_gone(with_notes: bool) -> World {
    let mut world = World::with_task(Status::Claimed);
    if with_notes {
        let notes = HandoffNotes { summary: "half".into(), next_action: "rest".into(), ..Default::default() };
        world.must(
            world.agent(coder(1)),
            Command::from(WriteHandoff { task: Some(task("t")), notes, dirty: Vec::new() }),
        );
    }
    world.must(Actor::Human, block("t"));
    let same_coder = Command::from(UnblockTask {
        task: task("t"),
        reset_cycles: false,
        same_coder: true,
        keep_worktree: false,
        assessment: None,
    });
    world.must(Actor::Human, same_coder);
    world.must(Actor::Human, Command::from(Deregister::any(coder(1))));
    world
}

/// Covers: CL-06
#[test]
fn another_coder_starts_from_the_head_if_the_intended_coder_is_gone() {
    let mut world = unblocked_for_a_coder_that_is_gone(false);
    assert_eq!(world.reserve("t", coder(2), sha('9')), (Fresh, sha('9')));
    let mut handed_over = unblocked_for_a_coder_that_is_gone(true);
    assert_eq!(handed_over.reserve("t", coder(2), sha('9')), (Keep, base()));
}

/// Covers: CL-05
#[test]
fn a_late_second_step_fails_if_the_coder_has_renewed() {
    let mut world = World::with_task(Status::Claimed);
    world.pass_with(361, &[coder(2)]);
    world.reserve("t", coder(2), base());
    world.pass_with(121, &[coder(1), coder(2)]);
    let late = Command::from(ClaimTask { task: task("t"), coder: coder(2) });
    world.refused_with("claimed_by_other", world.supervisor(coder(2)), late);
    world.submit("t", coder(1), sha('a'));
    assert_eq!(world.record("t").reservation, None, "the submission removed the expired reservation");
}

/// Covers: AG-08
#[test]
fn another_coder_starts_with_fresh_counters() {
    let mut world = World::with_task(Status::Claimed);
    world.must(world.supervisor(coder(1)), idle_exit("t", coder(1)));
    world.pass_with(361, &[coder(2)]);
    world.claim("t", coder(2));
    assert_eq!(world.record("t").idle_exits, None);
}

/// Covers: CL-07
#[test]
fn resuming_does_not_count_as_an_iteration_of_the_agent() {
    let mut world = World::with_task(Status::Claimed);
    world.claim("t", coder(1));
    assert_eq!(world.entry(coder(1)).iterations_total, Some(1));
}
