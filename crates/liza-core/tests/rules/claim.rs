//! Which agents may claim which tasks, in which order, and what a claim sets and keeps.

use liza_core::model::WorktreeMode::{Fresh, Keep};
use liza_core::model::{Actor, AgentId, AgentStatus, FileVersion, RefusalClass, Status};
use liza_core::protocol::{
    CancelReservation, ClaimTask, Command, CreateWorktree, DeleteWorktree, Deregister, NewTask, Reply,
    TaskEdit, UnblockTask, WriteHandoff,
};
use liza_core::rules::claimable::claimable_for;
use liza_testkit::worlds::*;

fn priority(priority: i64) -> NewTask {
    NewTask { priority: Some(priority), ..ready() }
}

fn names(world: &World, coder: AgentId) -> Vec<String> {
    claimable_for(&world.state.board, coder, world.now).iter().map(ToString::to_string).collect()
}

fn gone(world: &mut World, agent: AgentId) {
    world.must(Actor::Human, Command::from(Deregister::any(agent)));
}

fn handoff(world: &mut World, id: &str, by: AgentId) {
    let notes = liza_core::protocol::HandoffNotes {
        summary: "half done".into(),
        next_action: "the other half".into(),
        ..Default::default()
    };
    world.must(
        world.agent(by),
        Command::from(WriteHandoff { task: Some(task(id)), notes, dirty: Vec::new() }),
    );
}

/// Covers: CL-01
#[test]
fn free_tasks_are_sorted_by_priority_then_age() {
    let mut world = World::new();
    world.pass(1);
    world.add("late-three", ready());
    world.add("one", priority(1));
    world.add("two", priority(2));
    assert_eq!(names(&world, coder(1)), ["one", "two", "t", "late-three"]);
}

/// Covers: CL-01
#[test]
fn a_waiting_handoff_comes_before_priority() {
    let mut world = World::new();
    world.add("one", priority(1));
    world.claim("t", coder(2));
    handoff(&mut world, "t", coder(2));
    gone(&mut world, coder(2));
    world.pass_with(361, &[]);
    assert_eq!(names(&world, coder(1)), ["t", "one"]);
}

/// Covers: CL-01
#[test]
fn a_coders_own_rejected_task_comes_before_handoffs_and_priority() {
    let mut world = World::with_task(Status::Rejected);
    world.add("one", priority(1));
    world.add("noted", priority(1));
    world.edit_record("noted", |record| record.handoff_pending = Some(true));
    assert_eq!(names(&world, coder(1)), ["t", "noted", "one"]);
    assert_eq!(names(&world, coder(2)), ["noted", "one"]);
}

/// Covers: CL-01
#[test]
fn a_coders_own_claim_is_the_only_candidate_even_after_its_lease() {
    let mut world = World::with_task(Status::Claimed);
    world.add("one", priority(1));
    world.pass(100_000);
    assert_eq!(names(&world, coder(1)), ["t"]);
}

/// Covers: CL-01, IV-07
#[test]
fn no_task_is_claimed_before_its_dependencies_are_merged() {
    let mut world = World::with_task(Status::Approved);
    world.add("d", NewTask { depends_on: vec![task("t")], ..ready() });
    let actor = world.supervisor(coder(1));
    let refusal = world.refused_with("dependencies_unmet", actor, reserve("d", coder(1), base()));
    assert!(refusal.to_string().contains("t (APPROVED)"), "{refusal}");
    assert!(names(&world, coder(1)).is_empty());
    world.merge("t");
    assert_eq!(names(&world, coder(1)), ["d"]);
    world.claim("d", coder(1));
}

/// Covers: CL-01, SP-08
#[test]
fn an_archived_dependency_counts_with_its_last_status() {
    let mut world = World::new();
    world.state.board.archived.insert(task("done"), Status::Merged);
    world.state.board.archived.insert(task("dead"), Status::Abandoned);
    world.add("a", NewTask { depends_on: vec![task("done")], ..ready() });
    world.add("b", NewTask { depends_on: vec![task("dead")], ..ready() });
    world.claim("a", coder(1));
    let actor = world.supervisor(coder(2));
    world.refused_with("dependencies_unmet", actor, reserve("b", coder(2), base()));
}

/// Covers: CL-01, CL-07
#[test]
fn a_claim_is_free_for_others_only_after_the_grace_period() {
    let mut world = World::with_task(Status::Claimed);
    world.pass_with(360, &[coder(2)]);
    assert!(names(&world, coder(2)).is_empty(), "300 s of lease and 60 s of grace have not passed");
    world.pass_with(1, &[coder(2)]);
    assert_eq!(names(&world, coder(2)), ["t"]);
    world.claim("t", coder(2));
    assert_eq!(world.last_event("t").event, "reclaimed_after_expiry");
    assert_eq!(world.entry(coder(1)).current_task, None, "the coder that lost it is freed in the same write");
}

/// Covers: CL-01, CL-05
#[test]
fn a_live_reservation_excludes_others_and_an_expired_one_does_not() {
    let mut world = World::new();
    world.reserve("t", coder(1), base());
    assert!(names(&world, coder(2)).is_empty());
    world.pass(120);
    let actor = world.supervisor(coder(2));
    world.refused_after_write("reserved", actor, reserve("t", coder(2), base()));
    world.pass(1);
    world.claim("t", coder(2));
    let late = Command::from(ClaimTask { task: task("t"), coder: coder(1) });
    let actor = world.supervisor(coder(1));
    world.refused_with("no_reservation", actor, late);
    assert_eq!(world.record("t").assigned_to, Some(coder(2)));
}

/// Covers: CL-02
#[test]
fn a_rejected_task_waits_for_its_coder_while_that_coder_is_live() {
    let mut world = World::with_task(Status::Rejected);
    let actor = world.supervisor(coder(2));
    world.refused_with("reserved_for_coder", actor, reserve("t", coder(2), base()));
    world.pass_with(299, &[coder(2)]);
    world.refused_with("reserved_for_coder", actor, reserve("t", coder(2), base()));
    world.claim("t", coder(1));
    assert_eq!(world.last_event("t").event, "reclaimed_after_rejection");
}

/// Covers: CL-02
#[test]
fn a_rejected_task_is_free_for_all_once_its_coder_is_gone() {
    let mut deregistered = World::with_task(Status::Rejected);
    gone(&mut deregistered, coder(1));
    deregistered.claim("t", coder(2));
    assert_eq!(deregistered.record("t").assigned_to, Some(coder(2)));

    let mut expired = World::with_task(Status::Rejected);
    expired.pass_with(361, &[coder(2)]);
    expired.claim("t", coder(2));
    assert_eq!(expired.last_event("t").event, "reassigned_after_rejection");
}

/// Covers: CL-03
#[test]
fn a_coder_that_failed_may_not_claim_while_another_coder_is_live() {
    let mut world = World::with_task(Status::Blocked);
    world.must(Actor::Human, unblock("t"));
    let actor = world.supervisor(coder(1));
    world.refused_with("failed_before", actor, reserve("t", coder(1), base()));
    assert!(names(&world, coder(1)).is_empty());
    assert_eq!(names(&world, coder(2)), ["t"]);
    gone(&mut world, coder(2));
    world.claim("t", coder(1));
}

/// Covers: CL-03, LM-06
#[test]
fn the_planner_can_return_a_task_to_the_coder_that_failed() {
    let mut world = World::with_task(Status::Blocked);
    let same_coder = Command::from(UnblockTask {
        task: task("t"),
        reset_cycles: false,
        same_coder: true,
        keep_worktree: false,
        assessment: None,
    });
    world.must(Actor::Human, same_coder);
    let actor = world.supervisor(coder(2));
    world.refused_with("reserved_for_coder", actor, reserve("t", coder(2), base()));
    assert_eq!(world.reserve("t", coder(1), sha('9')), (Keep, base()));
    world.claim("t", coder(1));
    assert_eq!(world.record("t").failed_by, Some(vec![coder(1)]));
}

/// Covers: CL-04
#[test]
fn a_reservation_changes_no_status_and_only_the_second_step_claims() {
    let mut world = World::new();
    world.reserve("t", coder(1), base());
    let record = world.record("t");
    assert_eq!((record.status, record.assigned_to), (Some(Status::Unclaimed), None));
    assert_eq!(world.entry(coder(1)).current_task, None);
    let actor = world.supervisor(coder(1));
    world.must(actor, Command::from(CancelReservation { task: task("t"), coder: coder(1) }));
    assert_eq!(world.record("t").reservation, None);
    world.refused_with(
        "no_reservation",
        actor,
        Command::from(ClaimTask { task: task("t"), coder: coder(1) }),
    );
}

/// Covers: CL-04, CL-10
#[test]
fn only_the_owner_of_a_reservation_with_the_same_registration_can_use_it() {
    let mut world = World::new();
    world.reserve("t", coder(1), base());
    let other = world.supervisor(coder(2));
    world.refused_with(
        "no_reservation",
        other,
        Command::from(ClaimTask { task: task("t"), coder: coder(2) }),
    );
    world.refused_with(
        "no_reservation",
        other,
        Command::from(CancelReservation { task: task("t"), coder: coder(2) }),
    );
    world.pass(301);
    world.register(coder(1));
    let reregistered = world.supervisor(coder(1));
    world.refused_with(
        "no_reservation",
        reregistered,
        Command::from(ClaimTask { task: task("t"), coder: coder(1) }),
    );
    world.claim("t", coder(1));
}

/// Covers: CL-05
#[test]
fn of_racing_claims_one_wins_and_the_losers_are_logged() {
    let mut world = World::new();
    world.register(coder(3));
    world.reserve("t", coder(1), base());
    for loser in [coder(2), coder(3)] {
        let actor = world.supervisor(loser);
        let change = world.refused_after_write("reserved", actor, reserve("t", loser, base()));
        assert_eq!(change.answer.as_ref().err().map(|refusal| refusal.class()), Some(RefusalClass::Refused));
        let log = world.last_log();
        assert_eq!((log.action.as_str(), log.agent.as_str()), ("claim_failed", loser.to_string().as_str()));
        assert_eq!(log.task, Some(task("t")));
        assert!(change.effects.is_empty(), "a loser changes no worktree");
    }
    let winner = world.supervisor(coder(1));
    world.must(winner, Command::from(ClaimTask { task: task("t"), coder: coder(1) }));
    let actor = world.supervisor(coder(2));
    world.refused_after_write("claimed_by_other", actor, reserve("t", coder(2), base()));
    assert_eq!(world.last_log().action, "claim_failed");
    assert_eq!(world.record("t").assigned_to, Some(coder(1)));
}

/// Covers: CL-06, TS-03
#[test]
fn a_first_claim_starts_from_the_head() {
    let mut world = World::new();
    assert_eq!(world.reserve("t", coder(1), sha('9')), (Fresh, sha('9')));
    world.claim("t", coder(1));
    let record = world.record("t");
    assert_eq!(record.worktree.as_ref().map(|path| path.as_str()), Some(".worktrees/t"));
    assert_eq!(record.base_commit, Some(base()));
    assert_eq!(record.reservation, None);
}

/// Covers: CL-06, TS-03
#[test]
fn the_same_coder_continues_its_work_after_a_rejection() {
    let mut world = World::with_task(Status::Rejected);
    assert_eq!(world.reserve("t", coder(1), sha('9')), (Keep, base()));
    world.claim("t", coder(1));
    let record = world.record("t");
    assert_eq!((record.review_cycles_current, record.review_cycles_total), (Some(1), Some(1)));
    assert_eq!((record.base_commit.clone(), record.iteration), (Some(base()), Some(2)));
    assert_eq!(record.lease_expires, world.entry(coder(1)).lease_expires);
}

/// Covers: CL-06
#[test]
fn the_same_coder_resumes_its_claim_with_its_work() {
    let mut world = World::with_task(Status::Claimed);
    world.pass(1000);
    assert_eq!(world.reserve("t", coder(1), sha('9')), (Keep, base()));
    world.claim("t", coder(1));
    assert_eq!(world.last_event("t").event, "resumed");
}

/// Covers: CL-06, TS-03, TS-06
#[test]
fn another_coder_starts_a_rejected_task_from_the_head() {
    let mut world = World::with_task(Status::Rejected);
    gone(&mut world, coder(1));
    assert_eq!(world.reserve("t", coder(2), sha('9')), (Fresh, sha('9')));
    world.must(world.supervisor(coder(2)), Command::from(ClaimTask { task: task("t"), coder: coder(2) }));
    let record = world.record("t");
    assert_eq!((record.review_cycles_current, record.review_cycles_total), (Some(0), Some(1)));
    assert_eq!((record.base_commit.clone(), record.iteration), (Some(sha('9')), Some(1)));
}

/// Covers: CL-06
#[test]
fn a_takeover_starts_from_the_head() {
    let mut world = World::with_task(Status::Claimed);
    world.pass_with(361, &[coder(2)]);
    assert_eq!(world.reserve("t", coder(2), sha('9')), (Fresh, sha('9')));
}

/// Covers: CL-06, NT-02
#[test]
fn a_handoff_keeps_the_worktree_for_any_coder() {
    let mut world = World::with_task(Status::Claimed);
    handoff(&mut world, "t", coder(1));
    world.pass_with(361, &[coder(2)]);
    assert_eq!(world.reserve("t", coder(2), sha('9')), (Keep, base()));
    world.must(world.supervisor(coder(2)), Command::from(ClaimTask { task: task("t"), coder: coder(2) }));
    assert_eq!(world.record("t").base_commit, Some(base()));
    assert_eq!(world.record("t").handoff_pending, Some(true), "the flag is cleared when the notes are taken");
}

/// Covers: CL-06, TS-03, RV-11
#[test]
fn an_integration_fix_keeps_the_worktree_and_takes_the_new_head() {
    for by in [coder(1), coder(2)] {
        let mut world = World::with_task(Status::IntegrationFailed);
        assert_eq!(world.reserve("t", by, sha('9')), (Keep, sha('9')));
        world.must(world.supervisor(by), Command::from(ClaimTask { task: task("t"), coder: by }));
        let record = world.record("t");
        assert_eq!(record.integration_fix, Some(true));
        assert_eq!(record.base_commit, Some(sha('9')));
        assert!(record.lease_expires.is_some());
        assert_eq!(world.last_event("t").event, "claimed_for_integration_fix");
    }
}

/// Covers: CL-06
#[test]
fn a_fix_that_starts_from_the_head_is_no_longer_a_fix() {
    let mut world = World::with_task(Status::IntegrationFailed);
    world.claim("t", coder(1));
    world.submit("t", coder(1), sha('b'));
    world.reject("t");
    gone(&mut world, coder(1));
    world.claim("t", coder(2));
    assert_eq!(world.record("t").integration_fix, Some(false));
}

/// Covers: TS-05
#[test]
fn iterations_count_the_claims_of_one_coder() {
    let mut world = World::new();
    assert_eq!(world.record("t").iteration, None);
    world.reject_again("t", coder(1));
    assert_eq!(world.record("t").iteration, Some(1));
    world.claim("t", coder(1));
    assert_eq!(world.record("t").iteration, Some(2));
    world.pass(1000);
    world.claim("t", coder(1));
    assert_eq!(world.record("t").iteration, Some(2), "resuming after expiry is not a new iteration");
    world.pass_with(361, &[coder(2)]);
    world.claim("t", coder(2));
    assert_eq!(world.record("t").iteration, Some(1), "another coder starts at 1");
}

/// Covers: TS-05
#[test]
fn an_integration_fix_counts_for_the_same_coder_only() {
    let mut same = World::with_task(Status::IntegrationFailed);
    same.claim("t", coder(1));
    assert_eq!(same.record("t").iteration, Some(2));
    let mut other = World::with_task(Status::IntegrationFailed);
    other.claim("t", coder(2));
    assert_eq!(other.record("t").iteration, Some(1));
}

/// Covers: TS-05
#[test]
fn the_iteration_is_kept_in_terminal_states() {
    for end in [Status::Merged, Status::Abandoned] {
        let mut world = World::with_task(if end == Status::Merged { end } else { Status::Rejected });
        if end == Status::Abandoned {
            world.abandon("t");
        }
        assert_eq!(world.record("t").iteration, Some(1), "{end}");
    }
}

/// Covers: TS-06
#[test]
fn cycles_count_rejections_and_the_total_never_decreases() {
    let mut world = World::new();
    for n in 1..=2 {
        world.reject_again("t", coder(1));
        assert_eq!(world.record("t").review_cycles_current, Some(n));
        assert_eq!(world.record("t").review_cycles_total, Some(n));
    }
    gone(&mut world, coder(1));
    world.reject_again("t", coder(2));
    assert_eq!(world.record("t").review_cycles_current, Some(1));
    assert_eq!(world.record("t").review_cycles_total, Some(3));
    world.claim("t", coder(2));
    world.submit("t", coder(2), sha('b'));
    world.verdict("t", reviewer(1), approved());
    assert_eq!(world.record("t").review_cycles_total, Some(3), "an approval is not a cycle");
}

/// Covers: IV-09
#[test]
fn a_claim_needs_a_registered_coder_without_a_task() {
    let mut world = World::with_task(Status::Claimed);
    world.add("u", ready());
    let actor = world.supervisor(coder(1));
    world.refused_with("agent_busy", actor, reserve("u", coder(1), base()));
    world.refused_with("not_registered", Actor::Human, reserve("u", coder(9), base()));
    world.refused_with("wrong_role", Actor::Human, reserve("u", reviewer(1), base()));
    let other = world.supervisor(coder(2));
    world.refused_with("not_your_agent", other, reserve("u", coder(1), base()));
}

/// Covers: IV-09
#[test]
fn of_two_reservations_a_coder_can_complete_only_one() {
    let mut world = World::new();
    world.add("u", ready());
    world.reserve("t", coder(1), base());
    world.reserve("u", coder(1), base());
    let actor = world.supervisor(coder(1));
    world.must(actor, Command::from(ClaimTask { task: task("u"), coder: coder(1) }));
    world.refused_with("agent_busy", actor, Command::from(ClaimTask { task: task("t"), coder: coder(1) }));
}

/// Covers: CL-07, AG-03
#[test]
fn task_and_agent_entry_change_in_the_same_write() {
    let mut world = World::new();
    world.claim("t", coder(1));
    let entry = world.entry(coder(1));
    assert_eq!((entry.status, entry.current_task.clone()), (AgentStatus::Working, Some(task("t"))));
    assert_eq!(entry.lease_expires, world.record("t").lease_expires);
    assert_eq!(entry.iterations_total, Some(1));
    world.submit("t", coder(1), sha('a'));
    let entry = world.entry(coder(1));
    assert_eq!((entry.status, entry.current_task.clone()), (AgentStatus::Waiting, None));
    world.add("u", ready());
    world.claim("u", coder(1));
    assert_eq!(world.entry(coder(1)).iterations_total, Some(2));
}

/// Covers: CM-07
#[test]
fn wt_create_works_only_for_claimed_and_reserved_tasks() {
    let create = || Command::from(CreateWorktree { task: task("t"), fresh: false, head: sha('9') });
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        let actor = world.supervisor(coder(1));
        if status == Status::Claimed {
            let done = world.must(actor, create());
            assert!(done.change.is_empty() && matches!(done.answer, Ok(Reply::CreateWorktree(_))));
            let other = world.supervisor(coder(2));
            world.refused_with("not_your_agent", other, create());
        } else {
            world.refused_with("wrong_status", actor, create());
        }
    }
    let mut world = World::new();
    world.reserve("t", coder(1), base());
    world.must(world.supervisor(coder(1)), create());
    world.refused_with("not_your_agent", world.supervisor(coder(2)), create());
    world.pass(121);
    world.refused_with("wrong_status", Actor::Human, create());
}

/// Covers: CM-07
#[test]
fn wt_delete_works_only_if_no_agent_needs_the_worktree() {
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        let delete = Command::from(DeleteWorktree { task: task("t") });
        if status == Status::Blocked || status.is_terminal() {
            let change = world.must(Actor::Human, delete);
            assert_eq!(change.effects.len(), 1);
            assert_eq!((world.record("t").worktree.clone(), world.status("t")), (None, status));
        } else {
            world.refused_with("wrong_status", Actor::Human, delete);
        }
    }
}

/// Covers: CL-02
#[test]
fn a_worktree_of_its_own_raises_the_version_of_the_file() {
    let mut world = World::new();
    world.state.board.version = FileVersion::FIRST;
    let done = world.must(world.supervisor(coder(1)), reserve("t", coder(1), base()));
    assert_eq!(done.version, Some(FileVersion::OWN_REPOSITORIES));
    assert_eq!(world.must(world.supervisor(coder(1)), claim("t", coder(1))).version, None);
}

/// Covers: CL-02
#[test]
fn a_reservation_that_has_ended_keeps_nobody_from_an_edit() {
    let mut world = World::new();
    world.reserve("t", coder(1), base());
    let lower = || TaskEdit { priority: Some(4), ..TaskEdit::default() };
    world.refused_with("reserved", Actor::Human, edit("t", lower()));
    world.pass(200);
    world.must(Actor::Human, edit("t", lower()));
}
