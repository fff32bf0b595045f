//! What may be merged, by which agent, and what is recorded.

use liza_core::model::{Actor, Approver, Effect, Loaded, MergeHold, Seconds, Sha, Status};
use liza_core::model::{BranchMerge, BranchSteps};
use liza_core::protocol::{
    AcceptIntegration, Answer, BeginMerge, Command, Deregister, HandoffNotes, MarkBlocked, MergeFailure,
    RecordMerge, RecordMergeFailure, Resume, WriteHandoff,
};
use liza_core::rules::claimable::{held_merge, mergeable_for};
use liza_core::rules::found_merges::FoundMerges;
use liza_status::alarms::{AlarmKind, Observations, alarms};
use liza_status::needs_you::needs_you;
use liza_testkit::worlds::*;

fn begin() -> Command {
    Command::from(BeginMerge { task: task("t") })
}

/// Covers: RV-04
#[test]
fn only_a_code_reviewer_merges() {
    let mut world = World::with_task(Status::Approved);
    for other in [world.supervisor(coder(1)), world.supervisor(planner()), Actor::Operator(coder(1))] {
        world.refused_with("wrong_role", other, begin());
        world.refused_with("wrong_role", other, merged("t", sha('a')));
        world.refused_with("wrong_role", other, conflict("t", sha('a')));
    }
    world.refused_with("not_permitted", world.agent(reviewer(1)), begin());
    let change = world.must(world.supervisor(reviewer(1)), begin());
    assert!(change.is_empty(), "a check changes nothing");
    assert_eq!(change.reply("commit").as_str(), Some(sha('a').as_str()));
    assert_eq!(change.reply("base_commit").as_str(), Some(base().as_str()));
    world.must(Actor::Human, begin());
}

/// Covers: RV-04, RV-10
#[test]
fn only_the_approved_commit_is_merged() {
    let mut world = World::with_task(Status::Approved);
    let actor = world.supervisor(reviewer(1));
    world.refused_with("not_approved_commit", actor, merged("t", sha('b')));
    world.refused_with("not_approved_commit", actor, conflict("t", sha('b')));
    assert_eq!(world.status("t"), Status::Approved);
    let short: Sha = "aaaaaaaa".parse().unwrap();
    world.must(actor, merged("t", short));
    assert_eq!(world.last_event("t").more["commit"].as_text(), Some(sha('a').as_str()), "in full");
}

/// Covers: RV-10
#[test]
fn a_new_submission_voids_the_old_approval() {
    let mut world = World::with_task(Status::IntegrationFailed);
    world.claim("t", coder(1));
    let actor = world.supervisor(reviewer(1));
    world.refused_with("wrong_status", actor, merged("t", sha('a')));
    world.submit("t", coder(1), sha('b'));
    world.refused_with("wrong_status", actor, merged("t", sha('a')));
    world.approve("t");
    world.refused_with("not_approved_commit", actor, merged("t", sha('a')));
}

/// Covers: RV-05
#[test]
fn a_conflict_is_recorded_with_its_files() {
    let mut world = World::with_task(Status::Approved);
    let change = world.fail_merge("t");
    assert!(change.effects.is_empty(), "the worktree stays");
    let record = world.record("t");
    assert_eq!(record.status, Some(Status::IntegrationFailed));
    assert_eq!((record.assigned_to, record.worktree.is_some()), (Some(coder(1)), true));
    assert_eq!(record.merge_commit, None);
    let event = world.last_event("t");
    assert_eq!(
        (event.more["reason"].to_string(), event.more["files"].to_string()),
        ("conflict".into(), "src/a.rs".into())
    );
    assert!(world.last_log().detail.contains("src/a.rs"));
}

/// Covers: RV-05
#[test]
fn a_failed_integration_test_is_recorded_with_its_output() {
    let mut world = World::with_task(Status::Approved);
    let failure = MergeFailure::Test { what: "exit 1".into(), output: ".liza/out.txt".into() };
    let command = Command::from(RecordMergeFailure { task: task("t"), commit: sha('a'), failure });
    world.must(world.supervisor(reviewer(1)), command);
    assert_eq!(world.last_event("t").more["output"].to_string(), ".liza/out.txt");
    assert!(world.last_log().detail.contains(".liza/out.txt"));
}

/// Covers: RO-09
#[test]
fn three_failures_of_hidden_tests_name_them_and_further_ones_do_not() {
    let mut world = World::with_task(Status::Approved);
    let fail = |world: &mut World, names: &[&str]| {
        let failure = MergeFailure::Holdout { names: names.iter().map(ToString::to_string).collect() };
        let command = RecordMergeFailure { task: task("t"), commit: sha('a'), failure };
        world.must(world.supervisor(reviewer(1)), Command::from(command));
        let told = MergeFailure::of_event(world.last_event("t")).unwrap();
        let shown = world.last_log().detail.contains("login");
        // Approved once more, as after a fix.
        world.edit_record("t", |record| record.status = Some(Status::Approved));
        (told, shown)
    };
    for _ in 0..3 {
        let told = MergeFailure::Holdout { names: vec!["login".to_owned()] };
        assert_eq!(fail(&mut world, &["login"]), (told, true));
    }
    let told = MergeFailure::Holdout { names: Vec::new() };
    assert_eq!(fail(&mut world, &["login"]), (told, false));
}

/// Covers: RV-07, TS-03
#[test]
fn a_merge_is_recorded_with_its_commit_and_drift_and_cleans_up() {
    let mut world = World::with_task(Status::Approved);
    let change = world.merge("t");
    assert_eq!(change.effects, [Effect::RemoveWorktree(task("t")), Effect::CompleteSprint]);
    let record = world.record("t");
    assert_eq!(record.merge_commit, Some(sha('f')));
    assert_eq!((record.worktree.clone(), record.assigned_to), (None, None));
    let by = record.approved_by.and_then(Approver::agent);
    assert_eq!((by, record.review_commit.clone()), (Some(reviewer(1)), Some(sha('a'))));
    assert_eq!(world.last_event("t").more["drift_commits"].to_string(), "2");
    assert_eq!(world.last_event("t").more["coder"].to_string(), "coder-1");
    assert!(world.last_log().detail.starts_with("merge commit "), "{}", world.last_log().detail);
}

/// Covers: RV-09
#[test]
fn the_approvers_supervisor_merges_while_it_is_live() {
    let mut world = World::with_task(Status::Approved);
    let mine = |world: &World, by| mergeable_for(&world.state.board, by, world.now);
    assert_eq!(mine(&world, reviewer(1)), [task("t")]);
    assert!(mine(&world, reviewer(2)).is_empty());
    world.refused_with("merge_belongs_to", world.supervisor(reviewer(2)), begin());
    world.pass_with(360, &[reviewer(2)]);
    world.refused_with("merge_belongs_to", world.supervisor(reviewer(2)), begin());
}

/// Covers: RV-09
#[test]
fn another_reviewers_supervisor_merges_when_the_approver_is_gone() {
    let mut expired = World::with_task(Status::Approved);
    expired.pass_with(361, &[reviewer(2)]);
    let mut left = World::with_task(Status::Approved);
    left.must(Actor::Human, Command::from(Deregister::any(reviewer(1))));
    let mut unknown = World::with_task(Status::Approved);
    unknown.edit_record("t", |record| record.approved_by = None);
    for mut world in [expired, left, unknown] {
        assert_eq!(mergeable_for(&world.state.board, reviewer(2), world.now), [task("t")]);
        world.must(world.supervisor(reviewer(2)), begin());
        world.must(world.supervisor(reviewer(2)), merged("t", sha('a')));
        assert_eq!(world.last_log().agent, "code-reviewer-2");
    }
}

/// Covers: RV-07
#[test]
fn an_approval_ends_with_the_merge_that_failed() {
    let mut world = World::with_task(Status::Approved);
    let failure = MergeFailure::Holdout { names: Vec::new() };
    let command = RecordMergeFailure { task: task("t"), commit: sha('a'), failure };
    world.must(world.supervisor(reviewer(1)), Command::from(command));
    assert_eq!((world.status("t"), world.record("t").approved_by), (Status::IntegrationFailed, None));
}

/// Covers: RV-07, NT-02
#[test]
fn a_merge_removes_the_handoff_notes() {
    let mut world = World::with_task(Status::Claimed);
    let notes = HandoffNotes { summary: "half".into(), next_action: "rest".into(), ..Default::default() };
    world.must(
        world.agent(coder(1)),
        Command::from(WriteHandoff { task: Some(task("t")), notes, dirty: Vec::new() }),
    );
    world.submit("t", coder(1), sha('a'));
    world.approve("t");
    world.merge("t");
    assert_eq!(world.record("t").handoff_pending, Some(false));
    assert!(world.state.board.handoff.ready().unwrap().is_empty());
}

/// Covers: RV-07
#[test]
fn a_merge_recorded_by_a_person_is_logged_for_the_approver() {
    let mut world = World::with_task(Status::Approved);
    world.must(Actor::Human, merged("t", sha('a')));
    assert_eq!(world.last_log().agent, "code-reviewer-1");
}

/// Covers: MM-12
#[test]
fn the_recorded_head_moves_only_from_where_it_is() {
    let record = |old: Option<Sha>| {
        let (task, commit, merge_commit) = (task("t"), sha('a'), sha('f'));
        Command::from(RecordMerge { task, commit, merge_commit, drift_commits: 0, old_head: old })
    };
    let at = |recorded: Option<Sha>| {
        let mut world = World::with_task(Status::Approved);
        world.edit_goal().integration_head = recorded;
        world
    };
    let merge = |recorded: Option<Sha>, old: Option<Sha>| {
        let mut world = at(recorded);
        world.must(Actor::Human, record(old));
        assert_eq!(world.status("t"), Status::Merged);
        world.edit_goal().integration_head.clone()
    };
    assert_eq!(merge(Some(head()), Some(head())), Some(sha('f')));
    assert_eq!(merge(None, Some(head())), Some(sha('f')), "of an older version");
    assert_eq!(merge(None, None), Some(sha('f')));
    assert_eq!(merge(Some(head()), None), Some(head()), "the head contains it already");
    assert_eq!(merge(Some(sha('f')), Some(head())), Some(sha('f')), "the human has accepted it");
    at(Some(sha('d'))).refused_with("foreign_commits", Actor::Human, record(Some(head())));
}

/// An approved task whose integration test fails with and without it.
fn held() -> World {
    let mut world = World::with_task(Status::Approved);
    world.edit_goal().integration_head = Some(head());
    world.must(world.supervisor(reviewer(1)), head_test(Some("pytest: not found")));
    world.must(world.supervisor(reviewer(1)), hold("t", sha('a')));
    world
}

fn to_merge(world: &World) -> usize {
    mergeable_for(&world.state.board, reviewer(1), world.now).len()
}

/// Covers: RV-06, UI-03
#[test]
fn a_test_that_fails_without_the_task_is_a_question_to_the_human_and_not_the_tasks_fault() {
    let mut world = held();
    let record = world.record("t").clone();
    assert_eq!(
        (record.status, record.merge_held),
        (Some(Status::Approved), Some(MergeHold::HeadFails(head())))
    );
    assert_eq!((record.iteration, record.failed_by), (Some(1), None));
    assert_eq!(world.last_event("t").event, "merge_held");
    assert_eq!(to_merge(&world), 0, "it is not tried again and again");
    world.refused_with("merge_held", world.supervisor(reviewer(1)), begin());
    world.must(Actor::Human, begin());
    let (state, seen) = (&world.state, Observations::default());
    let asked = needs_you(state, &seen, &alarms(state, &seen, world.now), world.now);
    let [need] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(need.kind, AlarmKind::IntegrationTestBroken);
    assert_eq!(need.command, "liza resume");
    for words in ["without the change of any task; waiting: t.", "It printed: pytest: not found", "liza sync"]
    {
        assert!(need.text.contains(words), "{words}: {}", need.text);
    }
    assert!(need.text.find("liza sync") < need.text.find("It printed"), "the cure first: {}", need.text);
}

/// Covers: MM-12
#[test]
fn a_merge_that_the_blackboard_does_not_know_is_recorded_when_the_human_accepts_the_branch() {
    for status in [Status::Unclaimed, Status::Claimed, Status::ReadyForReview, Status::Blocked] {
        let mut world = World::with_task(status);
        if let Loaded::Ready(sprint) = &mut world.state.board.sprint {
            (sprint.sessions.planner, sprint.sessions.shared) = (3, 2);
        }
        let merge = BranchMerge { task: task("t"), commit: sha('c'), merge_commit: sha('d') };
        let accept = || AcceptIntegration { head: sha('d'), detail: "x".into(), merged: vec![merge.clone()] };
        world.must(Actor::Human, Command::from(accept()));
        let sessions = &world.sprint().sessions;
        assert_eq!((sessions.planner, sessions.shared), (0, 0), "as by any other merge");
        let record = world.record("t").clone();
        assert_eq!((record.status, record.merge_commit), (Some(Status::Merged), Some(sha('d'))), "{status}");
        assert_eq!((record.assigned_to, record.worktree), (None, None));
        assert_eq!(world.last_event("t").event, "merged");
        assert_eq!(world.last_log().task, Some(task("t")));
        world.must(Actor::Human, Command::from(accept()));
        assert_eq!(world.record("t").history.as_ref().map(Vec::len), record.history.as_ref().map(Vec::len));
    }
}

/// Covers: RV-06, JU-03
#[test]
fn a_held_merge_continues_when_the_branch_or_a_setting_changes_or_the_human_says_so() {
    let mut moved = held();
    let accept = AcceptIntegration { head: sha('d'), detail: "sync".into(), merged: Vec::new() };
    moved.must(Actor::Human, Command::from(accept));
    assert_eq!(moved.last_log().detail, "sync");
    let mut merged = held();
    merged.must(merged.supervisor(planner()), head_test(None));
    let mut resumed = held();
    let reply = resumed.must(Actor::Human, Command::from(Resume { decision: None, note: None }));
    assert_eq!(reply.reply("changed"), true);
    let mut set = held();
    set.config().integration_test_limit = Seconds(9_000);
    for mut world in [moved, merged, resumed, set] {
        assert_eq!(to_merge(&world), 1);
        assert!(alarms(&world.state, &Observations::default(), world.now).is_empty());
        world.merge("t");
        assert_eq!((world.record("t").merge_held.clone(), world.goal().head_test.clone()), (None, None));
    }
}

/// Covers: RV-06
#[test]
fn only_the_tasks_that_were_tried_on_the_failing_head_are_held() {
    let mut world = held();
    let held = |world: &World| {
        held_merge(&world.state.board, world.state.board.summary(&task("t")).unwrap()).is_some()
    };
    assert!(held(&world));
    // Another commit of the task is tried: it may be the one that corrects the test.
    let block = MarkBlocked {
        task: task("t"),
        reason: "human override".into(),
        questions: Vec::new(),
        attempted: Vec::new(),
    };
    world.must(Actor::Human, Command::from(block));
    world.must(Actor::Human, Command::from(Answer { task: task("t"), text: "fix the test".into() }));
    world.claim("t", coder(1));
    world.submit("t", coder(1), sha('b'));
    world.approve("t");
    assert!(!held(&world));
    assert_eq!(to_merge(&world), 1);
}

/// Covers: AC-15, RV-11
#[test]
fn the_commit_whose_merge_failed_is_not_submitted_again() {
    let mut world = World::with_task(Status::IntegrationFailed);
    world.claim("t", coder(1));
    let refused = world.refused_with("already_failed", world.agent(coder(1)), submit("t", sha('a')));
    assert!(refused.to_string().contains("conflict in src/a.rs"), "{refused}");
    world.submit("t", coder(1), sha('b'));
    // Somebody has decided that it may be tried again.
    let mut world = World::with_task(Status::IntegrationFailed);
    world.claim("t", coder(1));
    world.block("t", coder(1));
    world.must(Actor::Human, Command::from(Answer { task: task("t"), text: "the test was flaky".into() }));
    world.claim("t", coder(1));
    world.submit("t", coder(1), sha('a'));
}

/// Covers: MM-12
#[test]
fn a_merge_that_is_recorded_already_holds_nothing() {
    let world = World::with_task(Status::Merged);
    let merge_commit = world.record("t").merge_commit.clone().unwrap();
    let beyond = |merge_commit| BranchSteps {
        merges: vec![BranchMerge { task: task("t"), commit: sha('a'), merge_commit }],
        has_others: false,
    };
    assert_eq!(FoundMerges::new(&world.state.board, &beyond(merge_commit)), FoundMerges::NONE);
    assert!(FoundMerges::new(&world.state.board, &beyond(sha('9'))).hold_merges());
}
