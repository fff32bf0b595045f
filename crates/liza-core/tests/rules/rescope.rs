//! How the planner resolves a blocked task: unblock, supersede, abandon.

use liza_core::model::{Actor, Anomaly, Effect, Status, WorktreeMode};
use liza_core::protocol::{
    AbandonTask, ClaimTask, Command, HandoffNotes, NewTask, SupersedeTask, UnblockTask, WriteHandoff,
};
use liza_testkit::worlds::*;

#[derive(Clone, Copy, Default)]
struct How {
    reset_cycles: bool,
    same_coder: bool,
    keep_worktree: bool,
    assessment: Option<&'static str>,
}

fn unblock_with(how: How) -> Command {
    Command::from(UnblockTask {
        task: task("t"),
        reset_cycles: how.reset_cycles,
        same_coder: how.same_coder,
        keep_worktree: how.keep_worktree,
        assessment: how.assessment.map(str::to_owned),
    })
}

/// Coder-1 and code-reviewer-1 are in a review deadlock.
fn deadlocked() -> World {
    let mut world = World::new();
    world.config().max_review_cycles = 2;
    world.reject_again("t", coder(1));
    world.reject_again("t", coder(1));
    assert_eq!(world.record("t").blocked_reason.as_deref(), Some("review_deadlock"));
    world
}

/// Two coders have failed.
fn exhausted() -> World {
    let mut world = World::with_task(Status::Blocked);
    world.must(Actor::Human, unblock("t"));
    world.claim("t", coder(2));
    world.block("t", coder(2));
    world
}

fn last_anomaly(world: &World) -> &Anomaly {
    world.state.journal.anomalies.last().unwrap()
}

/// Covers: LM-04
#[test]
fn after_two_failed_coders_only_supersede_and_abandon_are_possible() {
    let mut world = exhausted();
    assert_eq!(world.record("t").failed_by, Some(vec![coder(1), coder(2)]));
    for actor in [world.agent(planner()), Actor::Human] {
        for how in [
            How::default(),
            How { same_coder: true, ..How::default() },
            How { keep_worktree: true, assessment: Some("again"), ..How::default() },
        ] {
            let refusal = world.refused_with("hypothesis_exhausted", actor, unblock_with(how));
            let hint = refusal.hint().unwrap_or_default();
            assert!(hint.contains("supersede-task t") && hint.contains("abandon-task t"), "{hint}");
        }
    }
    world.add("new", draft());
    world.clone().must(world.agent(planner()), supersede("t", &["new"]));
    world.must(world.agent(planner()), abandon("t"));
}

/// Covers: LM-06, TS-03
#[test]
fn a_plain_unblock_clears_coder_and_worktree_and_keeps_the_failures() {
    let mut world = World::with_task(Status::Blocked);
    let change = world.must(world.agent(planner()), unblock("t"));
    assert_eq!(change.effects, [Effect::RemoveWorktree(task("t"))]);
    let record = world.record("t");
    assert_eq!(record.status, Some(Status::Unclaimed));
    assert_eq!(record.failed_by, Some(vec![coder(1)]));
    assert_eq!((record.assigned_to, record.worktree.clone(), record.base_commit.clone()), (None, None, None));
    assert_eq!((record.blocked_reason.clone(), record.blocked_questions.clone()), (None, None));
    assert_eq!((record.attempted.clone(), record.iteration), (None, Some(1)));
    assert_eq!(world.last_event("t").more["was"].as_text(), Some("the spec is silent"));
    assert_eq!(world.reserve("t", coder(2), sha('9')), (WorktreeMode::Fresh, sha('9')));
}

/// Covers: LM-06
#[test]
fn same_coder_keeps_worktree_and_base() {
    let mut world = World::with_task(Status::Blocked);
    let change = world.must(world.agent(planner()), unblock_with(How { same_coder: true, ..How::default() }));
    assert!(change.effects.is_empty());
    let record = world.record("t");
    assert_eq!((record.assigned_to, record.base_commit.clone()), (Some(coder(1)), Some(base())));
    assert_eq!(world.reserve("t", coder(1), sha('9')), (WorktreeMode::Keep, base()));
}

/// Covers: LM-06
#[test]
fn keep_worktree_lets_another_coder_continue() {
    let mut world = World::with_task(Status::Blocked);
    let change =
        world.must(world.agent(planner()), unblock_with(How { keep_worktree: true, ..How::default() }));
    assert!(change.effects.is_empty());
    assert_eq!(world.reserve("t", coder(2), sha('9')), (WorktreeMode::Keep, base()));
    world.claim("t", coder(2));
    assert_eq!(world.record("t").iteration, Some(1));
}

/// Covers: LM-06
#[test]
fn a_missing_coder_or_worktree_cannot_be_kept() {
    let mut world = World::new();
    world.must(Actor::Human, block("t"));
    world.refused_with(
        "nothing_kept",
        Actor::Human,
        unblock_with(How { same_coder: true, ..How::default() }),
    );
    world.refused_with(
        "nothing_kept",
        Actor::Human,
        unblock_with(How { keep_worktree: true, ..How::default() }),
    );
    world.must(Actor::Human, unblock("t"));
}

/// Covers: LM-06
#[test]
fn abandoning_needs_a_rationale_and_frees_everything() {
    let mut world = World::with_task(Status::Blocked);
    let blank = Command::from(AbandonTask { task: task("t"), reason: " ".into() });
    world.refused_with("missing", Actor::Human, blank);
    let change = world.abandon("t");
    assert_eq!(change.effects, [Effect::RemoveWorktree(task("t")), Effect::CompleteSprint]);
    assert_eq!(world.last_event("t").more["reason"].as_text(), Some("not worth it"));
    assert_eq!(world.last_log().detail, "not worth it");
    assert_eq!(world.record("t").failed_by, Some(vec![coder(1)]));
}

/// Covers: LM-07
#[test]
fn a_deadlock_can_be_reassigned_to_another_coder_with_the_worktree() {
    let mut world = deadlocked();
    let how = How { keep_worktree: true, assessment: Some("feedback not addressed"), ..How::default() };
    world.must(world.agent(planner()), unblock_with(how));
    assert_eq!(world.reserve("t", coder(2), sha('9')), (WorktreeMode::Keep, base()));
    world.must(world.supervisor(coder(2)), Command::from(ClaimTask { task: task("t"), coder: coder(2) }));
    assert_eq!(world.record("t").review_cycles_current, Some(0), "a new coder has all review cycles");
    assert_eq!(world.record("t").review_cycles_total, Some(2));
    assert_eq!(last_anomaly(&world).kind, "review_deadlock");
}

/// Covers: LM-07, LM-06
#[test]
fn a_clarified_deadlock_returns_to_the_same_coder_with_all_cycles() {
    let mut world = deadlocked();
    let how =
        How { reset_cycles: true, same_coder: true, assessment: Some("criteria unclear"), ..How::default() };
    world.must(world.agent(planner()), unblock_with(how));
    assert_eq!(world.record("t").review_cycles_current, Some(0));
    world.reject_again("t", coder(1));
    assert_eq!((world.status("t"), world.record("t").review_cycles_total), (Status::Rejected, Some(3)));
}

/// Covers: LM-06
#[test]
fn without_reset_the_same_coder_has_no_cycle_left() {
    let mut world = deadlocked();
    let how = How { same_coder: true, assessment: Some("go on"), ..How::default() };
    world.must(world.agent(planner()), unblock_with(how));
    assert_eq!(world.record("t").review_cycles_current, Some(2));
    world.reject_again("t", coder(1));
    assert_eq!(world.status("t"), Status::Blocked);
}

/// Covers: LM-07
#[test]
fn superseding_or_abandoning_a_deadlock_records_the_assessment() {
    let mut world = deadlocked();
    world.add("new", draft());
    let mut replaced = world.clone();
    replaced.must(replaced.agent(planner()), supersede("t", &["new"]));
    assert_eq!(last_anomaly(&replaced).details["assessment"].as_text(), Some("two things in one"));
    world.must(world.agent(planner()), abandon("t"));
    assert_eq!(last_anomaly(&world).details["assessment"].as_text(), Some("not worth it"));
    for world in [replaced, world] {
        let anomaly = last_anomaly(&world);
        assert_eq!((anomaly.kind.as_str(), anomaly.task.clone()), ("review_deadlock", Some(task("t"))));
        assert_eq!(anomaly.reporter.as_deref(), Some("planner-1"));
    }
}

/// Covers: LM-07
#[test]
fn a_planner_must_assess_a_deadlock() {
    let mut world = deadlocked();
    let how = How { same_coder: true, assessment: Some("  "), ..How::default() };
    world.refused_with("assessment_needed", world.agent(planner()), unblock_with(how));
    assert!(world.state.journal.anomalies.is_empty());
    world.must(world.agent(planner()), unblock_with(How { assessment: Some("criteria unclear"), ..how }));
    let anomaly = last_anomaly(&world);
    assert_eq!(anomaly.details["assessment"].as_text(), Some("criteria unclear"));
    assert_eq!(world.last_event("t").more["assessment"].as_text(), Some("criteria unclear"));
}

/// Covers: LM-07
#[test]
fn resolving_an_exhausted_hypothesis_is_recorded() {
    let mut world = exhausted();
    world.abandon("t");
    assert_eq!(last_anomaly(&world).kind, "hypothesis_exhaustion");
    let mut plain = World::with_task(Status::Blocked);
    plain.abandon("t");
    assert!(plain.state.journal.anomalies.is_empty(), "one failure does not exhaust the hypothesis");
}

/// Covers: LM-05
#[test]
fn superseding_is_one_write_with_reason_references_and_root_cause() {
    let mut world = World::with_task(Status::Blocked);
    world.add("a", draft());
    world.add("b", ready());
    let revision = world.state.board.revision;
    let change = world.must(world.agent(planner()), supersede("t", &["a", "b", "a"]));
    assert_eq!(world.state.board.revision, revision.next());
    assert_eq!(change.effects, [Effect::RemoveWorktree(task("t"))]);
    let original = world.record("t");
    assert_eq!(original.status, Some(Status::Superseded));
    assert_eq!(original.superseded_by, Some(vec![task("a"), task("b")]));
    assert_eq!(original.rescope_reason.as_deref(), Some("too broad"));
    assert_eq!((original.worktree.clone(), original.assigned_to), (None, None));
    for id in ["a", "b"] {
        let new = world.record(id);
        assert_eq!(new.status, Some(Status::Unclaimed), "{id} is finalized here");
        assert_eq!(new.supersedes, Some(vec![task("t")]));
        assert_eq!(new.rescope_reason.as_deref(), Some("too broad"));
    }
    assert_eq!(world.last_log().action, "rescoped");
    assert!(world.last_log().detail.contains("two things in one"), "{}", world.last_log().detail);
    let alignment = world.state.journal.alignment_history.last().unwrap();
    assert_eq!(alignment.event, "rescope_t");
    assert!(alignment.summary.contains("two things in one"));
    assert_eq!(world.sprint().scope.planned, [task("t"), task("a"), task("b")]);
}

/// Covers: LM-05
#[test]
fn superseding_needs_reason_root_cause_and_replacements() {
    let mut world = World::with_task(Status::Blocked);
    world.add("a", draft());
    let with = |by: &[&str], reason: &str, root_cause: &str| {
        Command::SupersedeTask(SupersedeTask {
            task: task("t"),
            by: by.iter().map(|id| task(id)).collect(),
            reason: reason.into(),
            root_cause: root_cause.into(),
            summary: Some("Now: one of two".into()),
        })
    };
    world.refused_with("missing", Actor::Human, with(&["a"], " ", "root"));
    world.refused_with("missing", Actor::Human, with(&["a"], "why", ""));
    world.refused_with("missing", Actor::Human, with(&[], "why", "root"));
    world.must(Actor::Human, with(&["a"], "why", "root"));
    assert_eq!(world.state.journal.alignment_history.last().unwrap().summary, "Now: one of two");
}

/// Covers: LM-05
#[test]
fn a_replacement_is_another_open_task_that_is_not_started() {
    let mut world = World::with_task(Status::Claimed);
    world.add("old", ready());
    world.add("bare", NewTask { done_when: None, ..draft() });
    for bad in ["old", "nowhere", "t"] {
        world.refused_with("bad_replacement", Actor::Human, supersede("old", &[bad]));
    }
    world.refused_with("gates_missing", Actor::Human, supersede("old", &["bare"]));
    world.add("reserved", ready());
    world.reserve("reserved", coder(2), base());
    world.refused_with("reserved", Actor::Human, supersede("old", &["reserved"]));
    world.refused_with("reserved", Actor::Human, supersede("reserved", &["old"]));
    world.refused_with("reserved", Actor::Human, abandon("reserved"));
}

/// Covers: LM-08
#[test]
fn dependants_of_the_original_depend_on_its_replacements() {
    let mut world = World::new();
    world.add("other", ready());
    world.add("d", NewTask { depends_on: vec![task("other"), task("t")], ..ready() });
    world.add("a", draft());
    world.add("b", NewTask { depends_on: vec![task("t")], ..draft() });
    world.must(Actor::Human, supersede("t", &["a", "b"]));
    let deps = |id| world.record(id).depends_on.clone().unwrap();
    assert_eq!(deps("d"), [task("other"), task("a"), task("b")]);
    assert_eq!(deps("b"), [task("a")], "a replacement does not wait for itself");
    assert_eq!(world.status("d"), Status::Unclaimed);
}

/// Covers: LM-08, IV-06
#[test]
fn a_rescope_that_would_close_a_cycle_is_refused() {
    let mut world = World::new();
    world.add("d", NewTask { depends_on: vec![task("t")], ..ready() });
    world.add("a", NewTask { depends_on: vec![task("d")], ..draft() });
    let wrong = world.violates(Actor::Human, supersede("t", &["a"]));
    assert!(wrong.iter().any(|text| text.contains("cycle")), "{wrong:?}");
    assert_eq!(world.status("t"), Status::Unclaimed);
}

/// Covers: LM-05, NT-02
#[test]
fn superseded_and_abandoned_tasks_leave_no_handoff_notes() {
    let mut world = World::with_task(Status::Claimed);
    let notes = HandoffNotes { summary: "half".into(), next_action: "rest".into(), ..Default::default() };
    world.must(
        world.agent(coder(1)),
        Command::from(WriteHandoff { task: Some(task("t")), notes, dirty: Vec::new() }),
    );
    world.must(Actor::Human, block("t"));
    world.add("new", draft());
    let mut other = world.clone();
    other.must(Actor::Human, supersede("t", &["new"]));
    world.abandon("t");
    for world in [world, other] {
        assert!(world.state.board.handoff.ready().unwrap().is_empty());
        assert_eq!(world.record("t").handoff_pending, Some(false));
    }
}

/// Covers: LM-06
#[test]
fn a_task_without_its_worktree_is_no_fix_and_has_no_handoff() {
    let mut world = World::with_task(Status::IntegrationFailed);
    world.claim("t", coder(1));
    let notes = HandoffNotes { summary: "half".into(), next_action: "rest".into(), ..Default::default() };
    world.must(
        world.agent(coder(1)),
        Command::from(WriteHandoff { task: Some(task("t")), notes, dirty: Vec::new() }),
    );
    world.block("t", coder(1));
    let mut kept = world.clone();
    kept.must(Actor::Human, unblock_with(How { keep_worktree: true, ..How::default() }));
    let flags = |world: &World| (world.record("t").integration_fix, world.record("t").handoff_pending);
    assert_eq!(flags(&kept), (Some(true), Some(true)));
    world.must(Actor::Human, unblock("t"));
    assert_eq!(flags(&world), (Some(false), Some(false)));
}

/// Covers: LM-07
#[test]
fn a_person_may_resolve_a_deadlock_without_an_assessment() {
    let mut world = deadlocked();
    world.must(Actor::Human, unblock("t"));
    assert!(world.state.journal.anomalies.is_empty());
}

/// Covers: LM-08
#[test]
fn dependencies_of_terminal_tasks_do_not_change() {
    let mut world = World::new();
    world.add("d", NewTask { depends_on: vec![task("t")], ..ready() });
    world.abandon("d");
    world.add("new", draft());
    world.must(Actor::Human, supersede("t", &["new"]));
    assert_eq!(world.record("d").depends_on, Some(vec![task("t")]));
}

/// Covers: LM-05, SP-01
#[test]
fn the_replacement_of_a_stretch_task_is_stretch() {
    let mut world = World::new();
    world.add("extra", NewTask { stretch: true, ..ready() });
    world.add("new", NewTask { stretch: true, ..draft() });
    world.edit_sprint().scope.stretch = vec![task("extra")];
    world.must(Actor::Human, supersede("extra", &["new"]));
    assert_eq!(world.sprint().scope.stretch, [task("extra"), task("new")]);
    assert_eq!(world.sprint().scope.planned, [task("t")]);
}

/// Covers: AC-05
#[test]
fn with_a_used_up_budget_only_a_person_replaces_a_task() {
    let mut world = World::with_task(Status::Blocked);
    world.add("a", ready());
    world.edit_sprint().sessions.tasks.insert(task("t"), 1000);
    world.refused_with("session_budget", world.agent(planner()), supersede("t", &["a"]));
    world.must(Actor::Human, supersede("t", &["a"]));
}
