//! Limits: iterations, review cycles, sessions without a result, and blocking.

use liza_core::model::{Actor, AgentStatus, Config, EventName, RefusalClass, Seconds, Status, TaskRecord};
use liza_core::protocol::{
    Command, CountExit, Deregister, MarkBlocked, NewTask, RecordSession, UnblockTask, UnproductiveExit,
    Verdict,
};
use liza_testkit::worlds::*;

const REASON: &str = "max iterations reached without approval";

/// Covers: LM-01
#[test]
fn the_claim_beyond_the_limit_blocks_the_task_and_counts_as_a_failure() {
    let mut world = World::new();
    world.config().max_coder_iterations = 2;
    world.reject_again("t", coder(1));
    world.reject_again("t", coder(1));
    let actor = world.supervisor(coder(1));
    let change = world.refused_after_write("iteration_limit", actor, reserve("t", coder(1), base()));
    assert_eq!(change.answer.as_ref().err().map(|refusal| refusal.class()), Some(RefusalClass::Refused));
    assert!(change.effects.is_empty());
    let record = world.record("t");
    assert_eq!((record.status, record.blocked_reason.as_deref()), (Some(Status::Blocked), Some(REASON)));
    assert_eq!(record.failed_by, Some(vec![coder(1)]));
    assert!(record.blocked_questions.as_ref().is_some_and(|questions| !questions.is_empty()));
    assert_eq!(world.last_event("t").agent.as_deref(), Some("system"));
}

/// Covers: LM-01, BB-13
#[test]
fn a_task_may_have_its_own_limit_of_iterations() {
    let mut world = World::new();
    world.add("small", NewTask { max_iterations: Some(1), ..ready() });
    world.reject_again("small", coder(1));
    let actor = world.supervisor(coder(1));
    world.refused_after_write("iteration_limit", actor, reserve("small", coder(1), base()));
    world.reject_again("t", coder(1));
    world.reserve("t", coder(1), base());
}

/// Covers: LM-01
#[test]
fn the_limit_is_per_coder_and_resuming_does_not_count() {
    let mut world = World::new();
    world.config().max_coder_iterations = 1;
    world.claim("t", coder(1));
    world.claim("t", coder(1));
    world.submit("t", coder(1), sha('a'));
    world.reject("t");
    world.must(Actor::Human, Command::from(Deregister::any(coder(1))));
    world.claim("t", coder(2));
}

/// Covers: LM-01
#[test]
fn a_fix_by_the_same_coder_counts_against_the_limit() {
    let mut world = World::with_task(Status::IntegrationFailed);
    world.config().max_coder_iterations = 1;
    let mut other = world.clone();
    let actor = world.supervisor(coder(1));
    world.refused_after_write("iteration_limit", actor, reserve("t", coder(1), base()));
    other.claim("t", coder(2));
}

/// Covers: LM-02
#[test]
fn the_last_rejection_rejects_and_blocks_in_one_write() {
    let mut world = World::new();
    for cycle in 1..5 {
        world.reject_again("t", coder(1));
        assert_eq!(world.status("t"), Status::Rejected, "cycle {cycle}");
    }
    world.claim("t", coder(1));
    world.submit("t", coder(1), sha('a'));
    let revision = world.state.board.revision;
    world.claim_review("t", reviewer(1));
    world.must(world.agent(reviewer(1)), verdict("t", Verdict::Rejected(FEEDBACK.into())));
    assert_eq!(world.state.board.revision, revision.next().next());
    let record = world.record("t");
    assert_eq!(record.status, Some(Status::Blocked));
    assert_eq!(record.blocked_reason.as_deref(), Some("review_deadlock"));
    assert_eq!(record.rejection_reason.as_deref(), Some(FEEDBACK));
    assert_eq!(record.failed_by, None);
    assert_eq!((record.assigned_to, record.worktree.is_some()), (Some(coder(1)), true), "work is kept");
    let events = world.events("t");
    assert_eq!(events[events.len() - 2..], ["rejected", "blocked"]);
}

/// Covers: LM-02, BB-13
#[test]
fn a_task_may_have_its_own_limit_of_cycles() {
    let mut world = World::new();
    world.add("strict", NewTask { max_review_cycles: Some(1), ..ready() });
    world.reject_again("strict", coder(1));
    assert_eq!(world.status("strict"), Status::Blocked);
}

/// Covers: LM-03
#[test]
fn a_block_needs_a_reason_and_one_to_three_questions() {
    let mut world = World::with_task(Status::Claimed);
    let actor = world.agent(coder(1));
    let blocked = |reason: &str, questions: &[&str]| {
        Command::MarkBlocked(MarkBlocked {
            task: task("t"),
            reason: reason.into(),
            questions: questions.iter().map(|question| (*question).to_owned()).collect(),
            attempted: vec!["read the spec".into()],
        })
    };
    world.refused_with("missing", actor, blocked(" ", &["why?"]));
    world.refused_with("missing", actor, blocked("unclear", &[]));
    world.refused_with("missing", actor, blocked("unclear", &["", " "]));
    world.refused_with("bad_text", actor, blocked("unclear", &["a?", "b?", "c?", "d?"]));
    world.refused_with("bad_text", Actor::Human, blocked("unclear", &["a?", "b?", "c?", "d?"]));
    world.must(actor, blocked("unclear", &["a?", "b?", "c?"]));
    let record = world.record("t");
    assert_eq!(record.blocked_questions.as_ref().map(Vec::len), Some(3));
    assert_eq!(record.attempted, Some(vec!["read the spec".to_owned()]));
}

/// Covers: LM-03
#[test]
fn the_coders_own_block_is_its_failure_and_frees_it() {
    let world = World::with_task(Status::Blocked);
    let record = world.record("t");
    assert_eq!(record.failed_by, Some(vec![coder(1)]));
    assert_eq!((record.assigned_to, record.worktree.is_some()), (Some(coder(1)), true));
    assert_eq!((record.base_commit.clone(), record.lease_expires), (Some(base()), None));
    let entry = world.entry(coder(1));
    assert_eq!((entry.status, entry.current_task.clone()), (AgentStatus::Idle, None));
}

/// Covers: LM-03
#[test]
fn a_block_by_a_supervisor_is_no_failure_of_the_coder() {
    let mut world = World::with_task(Status::Claimed);
    world.must(world.supervisor(coder(1)), block("t"));
    assert_eq!((world.status("t"), world.record("t").failed_by.clone()), (Status::Blocked, None));
    let mut other = World::with_task(Status::Claimed);
    other.refused_with("not_your_task", other.supervisor(coder(2)), block("t"));
}

/// Covers: LM-03, IV-11
#[test]
fn a_coder_fails_at_a_task_only_once() {
    let mut world = World::with_task(Status::Blocked);
    let back = Command::from(UnblockTask {
        task: task("t"),
        reset_cycles: false,
        same_coder: true,
        keep_worktree: false,
        assessment: None,
    });
    world.must(Actor::Human, back);
    world.claim("t", coder(1));
    world.block("t", coder(1));
    assert_eq!(world.record("t").failed_by, Some(vec![coder(1)]));
    world.must(Actor::Human, unblock("t"));
}

/// Covers: LM-03
#[test]
fn a_human_override_frees_coder_and_reviewer_and_ends_a_reservation() {
    let mut claimed = World::with_task(Status::Claimed);
    claimed.must(Actor::Human, block("t"));
    assert_eq!(claimed.entry(coder(1)).current_task, None);
    let mut reviewed = World::with_task(Status::ReadyForReview);
    reviewed.claim_review("t", reviewer(1));
    reviewed.must(Actor::Human, block("t"));
    assert_eq!(reviewed.entry(reviewer(1)).current_task, None);
    assert_eq!(reviewed.record("t").reviewing_by, None);
    let mut reserved = World::new();
    reserved.reserve("t", coder(1), base());
    reserved.must(Actor::Human, block("t"));
    assert_eq!(reserved.record("t").reservation, None);
}

fn crash() -> Command {
    Command::from(CountExit {
        task: task("t"),
        agent: coder(1),
        exit: UnproductiveExit::Crash,
        last_words: None,
        pause: Seconds(0),
    })
}

/// Covers: AG-05
#[test]
fn crashes_in_a_row_block_the_task_at_their_limit() {
    let mut world = World::with_task(Status::Claimed);
    let actor = world.supervisor(coder(1));
    for n in 1..5 {
        world.must(actor, crash());
        assert_eq!((world.status("t"), world.record("t").crashes), (Status::Claimed, Some(n)));
    }
    world.must(actor, crash());
    let record = world.record("t");
    assert_eq!((record.status, record.failed_by.clone()), (Some(Status::Blocked), None));
    assert_eq!((record.crashes, world.entry(coder(1)).current_task.clone()), (None, None));
    assert!(world.last_event("t").is(EventName::Blocked));
}

/// Covers: AG-08
#[test]
fn idle_exits_have_their_own_limit_and_progress_clears_both() {
    let mut world = World::with_task(Status::Claimed);
    let actor = world.supervisor(coder(1));
    world.must(actor, idle_exit("t", coder(1)));
    world.must(actor, idle_exit("t", coder(1)));
    world.must(actor, crash());
    world.submit("t", coder(1), sha('a'));
    assert_eq!((world.record("t").idle_exits, world.record("t").crashes), (None, None));
    world.reject("t");
    world.claim("t", coder(1));
    for _ in 0..3 {
        world.must(actor, idle_exit("t", coder(1)));
    }
    assert_eq!(world.status("t"), Status::Blocked);
}

/// Covers: AG-08
#[test]
fn a_reviewers_empty_exits_are_counted_and_never_block() {
    let mut world = World::with_task(Status::ReadyForReview);
    let actor = world.supervisor(reviewer(1));
    for _ in 0..3 {
        world.claim_review("t", reviewer(1));
        world.must(actor, idle_exit("t", reviewer(1)));
        assert_eq!(world.record("t").reviewing_by, None, "it goes back in the same write");
    }
    assert_eq!((world.status("t"), world.record("t").idle_exits), (Status::ReadyForReview, None));
    assert_eq!(world.record("t").review_dropped_by, Some(vec![reviewer(1)]), "it drops the review");
    world.claim_review("t", reviewer(1));
    world.must(world.agent(reviewer(1)), verdict("t", approved()));
    assert_eq!(world.record("t").idle_exits, None);
}

/// Covers: AG-08
#[test]
fn exits_count_only_for_the_agent_that_holds_the_task() {
    let mut world = World::with_task(Status::Claimed);
    world.refused_with("task_lost", world.supervisor(coder(2)), idle_exit("t", coder(2)));
    world.refused_with("not_your_agent", world.supervisor(coder(2)), idle_exit("t", coder(1)));
}

/// Covers: LM-03
#[test]
fn removing_a_task_does_not_free_an_agent_that_works_on_another() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.add("u", ready());
    world.claim("u", coder(1));
    world.must(Actor::Human, block("t"));
    let entry = world.entry(coder(1));
    assert_eq!((entry.status, entry.current_task.clone()), (AgentStatus::Working, Some(task("u"))));
}

/// Covers: AX-08
#[test]
fn a_tasks_own_limit_may_have_the_name_of_the_setting() {
    let limit = |json: serde_json::Value| {
        Config::default().max_iterations(&serde_json::from_value::<TaskRecord>(json).unwrap())
    };
    assert_eq!(limit(serde_json::json!({"max_coder_iterations": 15})), 15);
    assert_eq!(limit(serde_json::json!({"max_coder_iterations": 15, "max_iterations": 12})), 12);
}

/// Covers: AX-22
#[test]
fn the_time_of_the_next_try_is_the_one_that_the_supervisor_keeps() {
    let mut world = World::with_task(Status::Claimed);
    let session =
        RecordSession { failed: true, ..RecordSession::new(coder(1), Some(task("t")), "c", world.now) };
    world.must(world.supervisor(coder(1)), Command::from(session));
    let again = |world: &World| world.entry(coder(1)).last_session.as_ref().unwrap().again;
    assert_eq!(again(&world), None);
    let Command::CountExit(exit) = crash() else { panic!("a crash") };
    let exit = CountExit { pause: Seconds(20), ..exit };
    world.must(world.supervisor(coder(1)), Command::from(exit));
    assert_eq!(again(&world), Some(world.now + Seconds(20)));
}
