//! Leases, heartbeats, generations, and releasing a claim.

use liza_core::model::{
    Actor, AgentStatus, Effect, Generation, MAX_LEASE, RefusalClass, Seconds, Status, lease_holds,
    lease_is_live,
};
use liza_core::protocol::{
    BeginMerge, CancelReservation, ClaimRole, ClaimTask, ClearStaleReviewClaims, Command, CreateWorktree,
    Deregister, HandoffNotes, Heartbeat, NewTask, Register, ReleaseClaim, WriteHandoff,
};
use liza_core::rules::claimable::reviewable_for;
use liza_testkit::worlds::*;

fn beat(agents: &[(liza_core::model::AgentId, Option<Generation>)]) -> Command {
    Command::from(Heartbeat { agents: agents.to_vec(), length: None })
}

/// Covers: CL-07
#[test]
fn a_claim_lasts_for_the_lease_duration() {
    let mut world = World::new();
    world.claim("t", coder(1));
    assert_eq!(world.record("t").lease_expires, Some(world.now + Seconds(300)));
    world.config().lease_duration = Seconds(50);
    world.pass(400);
    world.claim("t", coder(1));
    assert_eq!(world.record("t").lease_expires, Some(world.now + Seconds(50)), "never the old one");
}

/// Covers: CL-07, BB-13
#[test]
fn a_task_may_have_its_own_lease_duration() {
    let mut world = World::new();
    world.add("long", NewTask { lease: Some(Seconds(900)), ..ready() });
    world.claim("long", coder(1));
    let expected = Some(world.now + Seconds(900));
    assert_eq!(
        (world.record("long").lease_expires, world.entry(coder(1)).lease_expires),
        (expected, expected)
    );
    world.pass(10);
    world.heartbeat(coder(1));
    assert_eq!(world.record("long").lease_expires, Some(world.now + Seconds(900)));
    world.submit("long", coder(1), sha('a'));
    world.claim_review("long", reviewer(1));
    assert_eq!(world.record("long").review_lease_expires, Some(world.now + Seconds(900)));
}

/// Covers: CL-07
#[test]
fn a_heartbeat_extends_the_leases_of_agent_and_task() {
    let mut world = World::with_task(Status::Claimed);
    world.pass(200);
    let change = world.heartbeat(coder(1));
    let expected = Some(world.now + Seconds(300));
    assert_eq!(world.record("t").lease_expires, expected);
    assert_eq!(world.entry(coder(1)).lease_expires, expected);
    assert_eq!(world.entry(coder(1)).heartbeat, Some(world.now));
    assert_eq!(change.log, None);
    let length = Some(Seconds(1000));
    let agents = vec![(coder(1), None)];
    world.must(world.supervisor(coder(1)), Command::from(Heartbeat { agents, length }));
    assert_eq!(world.record("t").lease_expires, Some(world.now + Seconds(1000)));
}

/// Covers: CL-07, AG-17
#[test]
fn after_expiry_the_agent_must_stop_until_its_supervisor_has_renewed() {
    let mut world = World::with_task(Status::Claimed);
    world.pass(300);
    let mut in_time = world.clone();
    in_time.submit("t", coder(1), sha('a'));
    world.pass(1);
    let actor = world.agent(coder(1));
    let refusal = world.refused_with("lease_lost", actor, submit("t", sha('a')));
    assert_eq!(refusal.class(), RefusalClass::Stop);
    world.refused_with("lease_lost", actor, beat(&[(coder(1), None)]));
    world.heartbeat(coder(1));
    world.submit("t", coder(1), sha('a'));
}

/// Covers: CL-07
#[test]
fn the_task_lease_applies_even_if_the_agents_lease_was_edited() {
    let mut world = World::with_task(Status::Claimed);
    world.pass(301);
    let now = world.now;
    world.edit_agent(coder(1), |entry| entry.lease_expires = Some(now + Seconds(300)));
    world.refused_with("lease_lost", world.agent(coder(1)), submit("t", sha('a')));
}

/// Covers: CL-07, AG-17
#[test]
fn an_agent_that_was_taken_over_must_stop_and_affects_no_other() {
    let mut world = World::with_task(Status::Claimed);
    world.pass_with(361, &[coder(2)]);
    world.reserve("t", coder(2), base());
    world.heartbeat(coder(1));
    let refusal = world.refused_with("task_lost", world.agent(coder(1)), submit("t", sha('a')));
    assert_eq!(refusal.class(), RefusalClass::Stop);
    let claim = Command::from(ClaimTask { task: task("t"), coder: coder(2) });
    world.must(world.supervisor(coder(2)), claim);
    let lease = world.record("t").lease_expires;
    world.pass(1);
    world.heartbeat(coder(1));
    assert_eq!(world.record("t").lease_expires, lease, "a renewal does not change the task of another agent");
    let refusal = world.refused_with("task_lost", world.agent(coder(1)), submit("t", sha('a')));
    assert_eq!(refusal.class(), RefusalClass::Stop);
    world.refused_with("task_lost", world.agent(coder(1)), block("t"));
}

/// Covers: AG-17, CL-11
#[test]
fn a_session_whose_claim_was_released_must_stop() {
    let mut world = World::with_task(Status::Claimed);
    world.must(Actor::Human, release("t", true));
    let refusal = world.refused_with("task_lost", world.agent(coder(1)), submit("t", sha('a')));
    assert_eq!(refusal.class(), RefusalClass::Stop);
    world.refused_with("not_your_task", Actor::Operator(coder(1)), submit("t", sha('a')));
}

/// Covers: CL-07
#[test]
fn a_failed_takeover_leaves_the_claim_to_its_coder() {
    let mut world = World::with_task(Status::Claimed);
    world.pass_with(361, &[coder(2)]);
    world.reserve("t", coder(2), base());
    let cancel = Command::from(CancelReservation { task: task("t"), coder: coder(2) });
    world.must(world.supervisor(coder(2)), cancel);
    world.heartbeat(coder(1));
    world.submit("t", coder(1), sha('a'));
}

/// Covers: CL-07
#[test]
fn in_a_batch_a_stale_registration_is_named_and_the_others_are_renewed() {
    let mut world = World::new();
    world.pass(100);
    let old = Some(Generation(0));
    let batch = beat(&[(coder(1), Some(world.generation(coder(1)))), (coder(2), old)]);
    let change = world.must(world.supervisor(coder(1)), batch);
    assert_eq!(change.reply("lost"), serde_json::json!(["coder-2"]));
    assert_eq!(world.entry(coder(1)).heartbeat, Some(world.now));
    assert_ne!(world.entry(coder(2)).heartbeat, Some(world.now));
    world.refused_with("fenced", Actor::Human, beat(&[(coder(2), old)]));
    world.refused_with("nothing_to_do", Actor::Human, beat(&[]));
}

/// Covers: CL-07, IV-16
#[test]
fn an_agent_with_a_broken_task_keeps_its_lease() {
    let mut world = World::with_task(Status::Claimed);
    world.edit_record("t", |record| record.worktree = None);
    world.pass(100);
    world.heartbeat(coder(1));
    assert_eq!(world.entry(coder(1)).lease_expires, Some(world.now + Seconds(300)));
}

/// Covers: AG-12
#[test]
fn no_agent_renews_the_lease_of_another() {
    let mut world = World::new();
    world.refused_with("not_your_agent", world.supervisor(coder(1)), beat(&[(coder(2), None)]));
    let known = Some(world.generation(coder(2)));
    world.refused_with("not_your_agent", world.agent(coder(1)), beat(&[(coder(2), known)]));
    world.must(Actor::Human, beat(&[(coder(2), None)]));
}

/// Covers: CL-09
#[test]
fn submitting_clears_the_coders_lease() {
    let world = World::with_task(Status::ReadyForReview);
    let record = world.record("t");
    assert_eq!((record.lease_expires, record.assigned_to), (None, Some(coder(1))));
    assert_eq!((record.reviewing_by, record.review_lease_expires), (None, None));
}

/// Covers: CL-09
#[test]
fn a_review_has_its_own_lease_that_heartbeats_extend_and_a_verdict_clears() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.claim_review("t", reviewer(1));
    assert_eq!(world.record("t").reviewing_by, Some(reviewer(1)));
    assert_eq!(world.record("t").review_lease_expires, Some(world.now + Seconds(300)));
    assert_eq!(world.entry(reviewer(1)).status, AgentStatus::Reviewing);
    world.pass(100);
    world.heartbeat(reviewer(1));
    assert_eq!(world.record("t").review_lease_expires, Some(world.now + Seconds(300)));
    world.must(world.agent(reviewer(1)), verdict("t", approved()));
    let record = world.record("t");
    assert_eq!((record.reviewing_by, record.review_lease_expires), (None, None));
    assert_eq!(world.entry(reviewer(1)).status, AgentStatus::Idle);
    assert_eq!(world.entry(reviewer(1)).current_task, None);
}

/// Covers: CL-09
#[test]
fn a_review_is_free_if_unclaimed_or_its_lease_has_ended() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.claim_review("t", reviewer(1));
    world.pass(300);
    let actor = world.supervisor(reviewer(2));
    world.refused_with("review_claimed", actor, claim_review("t", reviewer(2)));
    world.pass(1);
    world.claim_review("t", reviewer(2));
    assert_eq!(world.record("t").reviewing_by, Some(reviewer(2)));
    assert_eq!(world.entry(reviewer(1)).current_task, None, "the reviewer that lost it is freed");
}

/// Covers: CL-09
#[test]
fn a_review_claim_without_an_expiry_is_stale() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.claim_review("t", reviewer(1));
    world.edit_record("t", |record| record.review_lease_expires = None);
    world.claim_review("t", reviewer(2));
    assert_eq!(world.entry(reviewer(1)).current_task, None);
}

/// Covers: CL-10
#[test]
fn a_generation_is_the_revision_of_its_registration_and_only_increases() {
    let mut world = World::new();
    let first = world.generation(coder(1));
    world.pass(301);
    world.register(coder(1));
    let second = world.generation(coder(1));
    assert_eq!(second.0, world.state.board.revision.0);
    assert!(second > first);
    world.must(Actor::Human, Command::from(Deregister::any(coder(1))));
    world.register(coder(1));
    assert!(world.generation(coder(1)) > second);
}

/// Covers: CL-10
#[test]
fn an_older_registration_is_refused_at_every_write() {
    let mut world = World::with_task(Status::Approved);
    world.add("u", ready());
    let (old_coder, old_reviewer) = (world.generation(coder(1)), world.generation(reviewer(1)));
    world.pass(301);
    world.register(coder(1));
    world.register(reviewer(1));
    let coder_session = Actor::Agent(coder(1), old_coder);
    let coder_loop = Actor::Supervisor(coder(1), old_coder);
    let merger = Actor::Supervisor(reviewer(1), old_reviewer);
    let tries = [
        (coder_session, submit("u", sha('a'))),
        (coder_session, block("u")),
        (coder_loop, reserve("u", coder(1), base())),
        (coder_loop, beat(&[(coder(1), Some(old_coder))])),
        (coder_loop, Command::from(CreateWorktree { task: task("u"), fresh: false, head: base() })),
        (coder_loop, Command::from(Deregister::any(coder(1)))),
        (merger, Command::from(BeginMerge { task: task("t") })),
        (merger, merged("t", sha('a'))),
        (Actor::Agent(reviewer(1), old_reviewer), verdict("t", approved())),
    ];
    for (actor, command) in tries {
        let refusal = world.refused_with("fenced", actor, command);
        assert_eq!(refusal.class(), RefusalClass::Stop);
    }
    assert!(world.state.board.agents().unwrap().contains_key(&coder(1)), "the live agent stays");
}

/// Covers: CL-10
#[test]
fn an_operator_needs_no_generation_and_an_unknown_agent_is_refused() {
    let mut world = World::with_task(Status::Claimed);
    world.must(Actor::Operator(coder(1)), submit("t", sha('a')));
    let stranger = Actor::Supervisor(coder(9), Generation(1));
    world.refused_with("not_registered", stranger, reserve("t", coder(9), base()));
}

/// Covers: CL-11
#[test]
fn stale_review_claims_are_cleared_and_live_ones_stay() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.add("u", ready());
    world.claim("u", coder(2));
    world.submit("u", coder(2), sha('b'));
    world.claim_review("t", reviewer(1));
    world.pass(200);
    world.claim_review("u", reviewer(2));
    world.pass(100);
    assert!(world.must(Actor::Human, Command::from(ClearStaleReviewClaims)).is_empty(), "its last second");
    assert!(reviewable_for(&world.state.board, reviewer(2), world.now).iter().all(|id| *id != task("t")));
    world.pass(1);
    let change = world.must(Actor::Human, Command::from(ClearStaleReviewClaims));
    assert_eq!(change.reply("cleared"), serde_json::json!(["t"]));
    let record = world.record("t");
    assert_eq!((record.reviewing_by, record.review_lease_expires), (None, None));
    assert_eq!(world.entry(reviewer(1)).current_task, None);
    assert_eq!(world.record("u").reviewing_by, Some(reviewer(2)));
    let again = world.must(Actor::Human, Command::from(ClearStaleReviewClaims));
    assert!(again.is_empty() && again.log.is_none());
}

/// Covers: CL-11
#[test]
fn releasing_a_claim_keeps_failures_and_history_and_saves_the_work() {
    let mut world = World::with_task(Status::Claimed);
    world.edit_record("t", |record| record.failed_by = Some(vec![coder(2)]));
    let change = world.must(Actor::Human, release("t", true));
    assert_eq!(change.effects, [Effect::RemoveWorktree(task("t"))]);
    let record = world.record("t");
    assert_eq!(record.status, Some(Status::Unclaimed));
    assert_eq!(record.failed_by, Some(vec![coder(2)]));
    assert_eq!((record.assigned_to, record.lease_expires, record.worktree.clone()), (None, None, None));
    assert_eq!(world.events("t"), ["created", "claimed", "released"]);
    assert_eq!(world.entry(coder(1)).current_task, None);
    assert_eq!(world.entry(coder(1)).status, AgentStatus::Idle);
}

/// Covers: CL-11
#[test]
fn a_live_lease_is_released_only_by_force() {
    let mut world = World::with_task(Status::Claimed);
    world.pass(300);
    world.refused_with("lease_live", Actor::Human, release("t", false));
    world.pass(1);
    world.must(Actor::Human, release("t", false));
    world.refused_with("nothing_to_release", Actor::Human, release("t", true));
}

/// Covers: CL-11
#[test]
fn releasing_a_review_leaves_the_submission() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.refused_with("nothing_to_release", Actor::Human, release("t", true));
    world.claim_review("t", reviewer(1));
    let as_coder =
        Command::from(ReleaseClaim { task: task("t"), role: ClaimRole::Coder, force: true, reason: None });
    world.refused_with("nothing_to_release", Actor::Human, as_coder);
    let change = world.must(Actor::Human, release("t", true));
    assert!(change.effects.is_empty());
    let record = world.record("t");
    assert_eq!((record.status, record.reviewing_by), (Some(Status::ReadyForReview), None));
    assert_eq!((record.assigned_to, record.review_commit.clone()), (Some(coder(1)), Some(sha('a'))));
    assert_eq!(world.entry(reviewer(1)).current_task, None);
}

/// Covers: CL-11
#[test]
fn a_released_task_can_be_claimed_like_a_new_one() {
    let mut world = World::with_task(Status::Claimed);
    let notes = HandoffNotes { summary: "half".into(), next_action: "rest".into(), ..Default::default() };
    world.must(
        world.agent(coder(1)),
        Command::from(WriteHandoff { task: Some(task("t")), notes, dirty: Vec::new() }),
    );
    world.pass_with(361, &[coder(2)]);
    world.reserve("t", coder(2), base());
    world.must(Actor::Human, release("t", false));
    let record = world.record("t");
    assert_eq!((record.reservation.clone(), record.handoff_pending), (None, Some(false)));
    assert_eq!(record.iteration, None);
}

/// Covers: CL-07, CL-09
#[test]
fn a_heartbeat_renews_no_task_of_another_agent() {
    let mut world = World::with_task(Status::Claimed);
    world.edit_agent(coder(2), |entry| entry.current_task = Some(task("t")));
    let lease = world.record("t").lease_expires;
    world.pass(100);
    world.heartbeat(coder(2));
    assert_eq!(world.record("t").lease_expires, lease);
    world.edit_agent(coder(2), |entry| entry.current_task = None);
    world.submit("t", coder(1), sha('a'));
    world.claim_review("t", reviewer(1));
    world.edit_agent(reviewer(2), |entry| entry.current_task = Some(task("t")));
    let lease = world.record("t").review_lease_expires;
    world.pass(100);
    world.heartbeat(reviewer(2));
    assert_eq!(world.record("t").review_lease_expires, lease);
}

/// A clock that was years ahead gave the leases, and was then set right.
///
/// Covers: AT-12
#[test]
fn a_lease_of_years_counts_as_expired_everywhere() {
    const YEARS: Seconds = Seconds(10 * 365 * 86_400);
    let late = |world: &World| Some(world.now + YEARS);
    let mut world = World::with_task(Status::Claimed);
    let until = late(&world);
    world.edit_agent(coder(1), |entry| entry.lease_expires = until);
    world.edit_record("t", |record| record.lease_expires = until);
    // Its agent may not act on it, until its supervisor has renewed it.
    world.refused_with("lease_lost", world.agent(coder(1)), submit("t", sha('a')));
    let violations = world.violations();
    assert!(violations.iter().any(|found| found.contains("longer than any lease")), "{violations:?}");
    // Others see an agent that is gone, and may take over or release.
    assert!(!world.entry(coder(1)).is_live(world.now) && !world.entry(coder(1)).holds(world.now));
    let mut released = world.clone();
    released.must(Actor::Human, release("t", false));
    let mut taken = world.clone();
    taken.reserve("t", coder(2), base());
    // A reservation, a registration and a review of years keep no one away.
    let mut reserved = taken.clone();
    reserved.edit_record("t", |record| {
        if let Some(reservation) = &mut record.reservation {
            reservation.expires = reservation.expires + YEARS;
        }
    });
    assert_eq!(reserved.state.board.summary(&task("t")).unwrap().reserved(reserved.now), None);
    let again = Register {
        agent: coder(1),
        terminal: "/dev/pts/1".to_owned(),
        machine: None,
        proven_dead: None,
        generation: None,
    };
    world.must(Actor::Operator(coder(1)), Command::from(again));
    let mut review = World::with_task(Status::ReadyForReview);
    review.claim_review("t", reviewer(1));
    let until = late(&review);
    review.edit_record("t", |record| record.review_lease_expires = until);
    assert!(review.state.board.summary(&task("t")).unwrap().review_is_free(review.now));
    review.claim_review("t", reviewer(2));
}

/// Covers: AT-12
#[test]
fn the_longest_lease_is_live_and_a_renewal_corrects_a_longer_one() {
    let mut world = World::with_task(Status::Claimed);
    let now = world.now;
    assert!(lease_is_live(now + MAX_LEASE, now) && lease_is_live(now, now));
    assert!(!lease_is_live(now - Seconds(1), now) && lease_holds(now - Seconds(60), now));
    assert!(!lease_holds(now - Seconds(61), now) && !lease_holds(now + Seconds(90_000), now));
    world.edit_agent(coder(1), |entry| entry.lease_expires = Some(now + Seconds(90_000_000)));
    world.heartbeat(coder(1));
    assert_eq!(world.entry(coder(1)).lease_expires, Some(now + Seconds(300)));
    assert_eq!(world.record("t").lease_expires, Some(now + Seconds(300)));
    world.must(world.agent(coder(1)), submit("t", sha('a')));
}
