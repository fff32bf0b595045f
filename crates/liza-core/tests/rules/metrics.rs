//! The sprint's metrics, from tasks and histories.

use liza_core::model::{Actor, Metrics, Status};
use liza_core::protocol::{Archive, Command, CompleteSprint, NewTask, UpdateSprintMetrics};
use liza_core::rules::metrics::sprint_metrics;
use liza_testkit::worlds::*;

fn metrics_of(world: &World) -> Metrics {
    sprint_metrics(&world.state)
}

/// Covers: SP-02
#[test]
fn each_status_counts_as_done_in_progress_blocked_or_nothing() {
    for &status in Status::ALL {
        let world = World::with_task(status);
        let found = metrics_of(&world);
        let counts = (found.tasks_done, found.tasks_in_progress, found.tasks_blocked);
        let expected = match status {
            Status::Merged | Status::Abandoned | Status::Superseded => (1, 0, 0),
            Status::Claimed
            | Status::ReadyForReview
            | Status::Rejected
            | Status::Approved
            | Status::IntegrationFailed => (0, 1, 0),
            Status::Blocked => (0, 0, 1),
            Status::Draft | Status::Unclaimed => (0, 0, 0),
        };
        assert_eq!(counts, expected, "{status}");
    }
}

/// Covers: SP-02
#[test]
fn claims_submissions_and_verdicts_are_counted_from_the_task_histories() {
    let mut world = World::new();
    world.reject_again("t", coder(1));
    world.reject_again("t", coder(1));
    world.claim("t", coder(1));
    world.pass(1000);
    world.claim("t", coder(1));
    world.submit("t", coder(1), sha('a'));
    for agent in [reviewer(1), coder(2)] {
        world.heartbeat(agent);
    }
    world.verdict("t", reviewer(1), approved());
    let found = metrics_of(&world);
    assert_eq!(found.iterations_total, 3, "resuming is not a claim");
    assert_eq!((found.review_cycles_total, found.task_submitted_for_review_count), (2, 3));
    let verdicts =
        (found.review_verdict_approvals, found.review_verdict_rejections, found.review_verdict_count);
    assert_eq!(verdicts, (1, 2, 3));
    assert_eq!(found.review_verdict_approval_rate_percent, Some(33));
    assert_eq!(found.task_outcome_approval_rate_percent, Some(33));
}

/// Covers: SP-02
#[test]
fn every_kind_of_claim_counts_as_an_iteration() {
    let mut world = World::with_task(Status::IntegrationFailed);
    world.claim("t", coder(1));
    world.submit("t", coder(1), sha('b'));
    world.reject("t");
    world.pass_with(361, &[coder(2)]);
    world.claim("t", coder(2));
    world.pass(361);
    world.register(coder(1));
    world.claim("t", coder(1));
    let claims =
        ["claimed", "claimed_for_integration_fix", "reassigned_after_rejection", "reclaimed_after_expiry"];
    for claim in claims {
        assert!(world.events("t").contains(&claim), "{claim}");
    }
    assert_eq!(metrics_of(&world).iterations_total, 4);
}

/// Covers: SP-02
#[test]
fn without_a_divisor_there_is_no_rate() {
    let world = World::new();
    let found = metrics_of(&world);
    assert_eq!(found, Metrics::default());
    assert_eq!(found.review_verdict_approval_rate_percent, None);
    assert_eq!(found.task_outcome_approval_rate_percent, None);
}

/// Covers: SP-02
#[test]
fn replacements_count_and_stretch_tasks_do_not() {
    let mut world = World::new();
    world.add("extra", NewTask { stretch: true, ..ready() });
    world.claim("extra", coder(1));
    world.add("new", draft());
    world.must(Actor::Human, supersede("t", &["new"]));
    world.edit_sprint().scope.planned = vec![task("t")];
    world.claim("new", coder(2));
    let found = metrics_of(&world);
    assert_eq!((found.tasks_done, found.tasks_in_progress, found.iterations_total), (1, 1, 1));
}

/// Covers: SP-02, SP-08
#[test]
fn counts_stay_when_the_tasks_are_archived() {
    let mut world = World::with_task(Status::Merged);
    let last = metrics_of(&world);
    assert_eq!((last.tasks_done, last.review_verdict_approvals), (1, 1));
    world.must(Actor::Human, Command::from(UpdateSprintMetrics));
    world.must(Actor::Human, Command::from(CompleteSprint));
    world.must(Actor::Human, Command::from(Archive { tasks: vec![task("t")] }));
    assert_eq!(metrics_of(&world), last);
}

/// Covers: SP-02
#[test]
fn over_95_percent_of_at_least_five_verdicts_looks_rubber_stamped() {
    let verdicts = |approvals, count| Metrics {
        review_verdict_approvals: approvals,
        review_verdict_count: count,
        ..Metrics::default()
    };
    assert!(verdicts(5, 5).looks_rubber_stamped());
    assert!(!verdicts(4, 4).looks_rubber_stamped());
    assert!(!verdicts(19, 20).looks_rubber_stamped(), "exactly 95 % is not over 95 %");
    assert!(verdicts(96, 100).looks_rubber_stamped());
    assert!(verdicts(24, 25).looks_rubber_stamped());
}

/// Covers: SP-02
#[test]
fn one_approval_of_one_verdict_is_a_hundred_percent() {
    let found = metrics_of(&World::with_task(Status::Approved));
    assert_eq!(found.review_verdict_approval_rate_percent, Some(100));
    assert_eq!(found.task_outcome_approval_rate_percent, Some(100));
}
