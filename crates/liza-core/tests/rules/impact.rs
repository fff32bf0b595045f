//! Work of high impact needs two approvals of one commit; a reviewer unlike the author comes first.

use liza_core::model::{
    Actor, AgentId, Approver, Config, FactKind, Impact, ReviewDiversity, Seconds, Status, TaskRecord,
    WorkFacts,
};
use liza_core::protocol::{
    AddTask, Command, Deregister, EditTask, NewTask, SubmitVerdict, TaskEdit, Verdict,
};
use liza_core::rules::approvals::{has_approval, lacks_approval};
use liza_core::rules::claimable::reviewable_for;
use liza_core::rules::found_merges::FoundMerges;
use liza_core::rules::impact::high_impact;
use liza_core::supervise::{is_done, still_owns, work_of};
use liza_testkit::worlds::*;

fn reviews(world: &World, agent: AgentId) -> Vec<String> {
    reviewable_for(&world.state.board, agent, world.now).iter().map(ToString::to_string).collect()
}

/// A submission that the plan says has a high impact.
fn submitted() -> World {
    let mut world = World::new();
    world.edit("t", TaskEdit { impact: Some(Impact::High), ..TaskEdit::default() });
    world.claim("t", coder(1));
    world.submit("t", coder(1), sha('a'));
    world
}

/// Covers: JU-09
#[test]
fn the_plan_and_facts_raise_the_impact() {
    let config = Config { high_impact_lines: 100, ..Config::default() };
    let with = |facts: WorkFacts| TaskRecord { facts: Some(facts), ..TaskRecord::default() };
    let lines = |added| WorkFacts { added, removed: 50, ..WorkFacts::default() };
    assert!(high_impact(&config, &TaskRecord::default()).is_empty());
    assert!(high_impact(&config, &with(lines(50))).is_empty());
    assert_eq!(high_impact(&config, &with(lines(51))), ["101 changed lines"]);
    let planned = TaskRecord { impact: Some(Impact::High), ..TaskRecord::default() };
    assert_eq!(high_impact(&config, &planned), ["the plan says so"]);
    for kind in FactKind::ALL {
        let mut facts = lines(0);
        facts.note(*kind, "x");
        let raises = match kind {
            FactKind::Protected
            | FactKind::Deciding
            | FactKind::HighImpact
            | FactKind::TestsDeleted
            | FactKind::TestsSkipped => true,
            FactKind::Instructions
            | FactKind::TestsChanged
            | FactKind::TestsAdded
            | FactKind::Unplanned
            | FactKind::Undone
            | FactKind::OtherTasks
            | FactKind::Uncounted => false,
        };
        let lowered = TaskRecord { impact: Some(Impact::Normal), ..with(facts) };
        assert_eq!(!high_impact(&config, &lowered).is_empty(), raises, "{kind:?}");
    }
}

/// Covers: JU-09
#[test]
fn two_code_reviewers_approve_the_same_commit() {
    let mut world = submitted();
    world.config().roles = serde_json::from_str(r#"{"code-reviewer": {"model": "big"}}"#).unwrap();
    world.edit_agent(reviewer(1), |entry| entry.client = Some("codex".into()));
    world.approve("t");
    assert_eq!(world.status("t"), Status::ReadyForReview);
    let record = world.record("t").clone();
    assert_eq!((record.reviewing_by, record.review_lease_expires, record.approved_by), (None, None, None));
    assert_eq!(world.entry(reviewer(1)).current_task, None);
    let approval = &record.approvals.as_ref().unwrap()[0];
    assert_eq!((approval.agent, &approval.commit), (reviewer(1), &sha('a')));
    assert_eq!((approval.program.as_deref(), approval.model.as_deref()), (Some("codex"), Some("big")));
    assert!(!has_approval(&record), "one is not enough");
    let edited = TaskRecord { status: Some(Status::Approved), ..record };
    assert!(lacks_approval(&edited), "whoever writes the status approves nothing");
    // The session of the first one has its result, and has lost nothing.
    assert!(is_done(&world.state, reviewer(1), Some(&task("t"))));
    assert!(still_owns(&world.state, reviewer(1), Some(&task("t"))));

    world.verdict("t", reviewer(2), approved());
    assert_eq!(world.status("t"), Status::Approved);
    assert_eq!(world.record("t").approved_by, Some(Approver::Agent(reviewer(2))));
    assert!(!lacks_approval(world.record("t")));
    assert_eq!(world.record("t").approvals.as_ref().unwrap().len(), 2);
}

/// The statement of a merge names the approvals of all of them.
///
/// Covers: JU-05, PV-01
#[test]
fn the_past_has_everybody_who_approved_a_commit_until_it_is_rejected() {
    let mut world = submitted();
    let approvers = |world: &World, commit: char| -> Vec<String> {
        world.record("t").past().approvers(&sha(commit)).into_iter().map(str::to_owned).collect()
    };
    world.approve("t");
    assert_eq!(approvers(&world, 'a'), ["code-reviewer-1"]);
    let mut rejected = submitted();
    rejected.approve("t");
    rejected.verdict("t", reviewer(2), Verdict::Rejected(FEEDBACK.into()));
    assert!(approvers(&rejected, 'a').is_empty(), "a rejection takes the approval back");
    world.verdict("t", reviewer(2), approved());
    assert_eq!(approvers(&world, 'a'), ["code-reviewer-1", "code-reviewer-2"]);
    assert!(approvers(&world, 'b').is_empty());
}

/// Covers: JU-09
#[test]
fn one_code_reviewer_counts_once_and_is_not_offered_it_again() {
    let mut world = submitted();
    assert_eq!(reviews(&world, reviewer(1)), ["t"]);
    world.approve("t");
    assert!(reviews(&world, reviewer(1)).is_empty());
    assert_eq!(reviews(&world, reviewer(2)), ["t"]);
    world.refused_with("has_approved", world.supervisor(reviewer(1)), claim_review("t", reviewer(1)));
    assert_eq!(world.record("t").approvals.as_ref().unwrap().len(), 1);
    // Other work goes on.
    world.add("other", ready());
    world.claim("other", coder(2));
    world.submit("other", coder(2), sha('b'));
    assert_eq!(reviews(&world, reviewer(1)), ["other"]);
    world.approve("other");
    assert_eq!(world.status("other"), Status::Approved, "a normal impact needs one");
    assert_eq!(world.record("other").approvals, None);
}

/// Covers: JU-09
#[test]
fn the_first_rejection_rejects_and_another_commit_begins_again() {
    let mut world = submitted();
    world.approve("t");
    world.verdict("t", reviewer(2), Verdict::Rejected(FEEDBACK.into()));
    assert_eq!(world.status("t"), Status::Rejected);
    assert_eq!(world.record("t").approvals, None);
    world.claim("t", coder(1));
    world.submit("t", coder(1), sha('b'));
    assert_eq!(reviews(&world, reviewer(1)), ["t"]);

    // Work that comes back to the coder without a verdict.
    let mut world = submitted();
    world.approve("t");
    let (record, approvals) = (world.record("t").clone(), world.record("t").approvals.clone());
    for (commit, kept) in [('a', approvals), ('b', None)] {
        let (mut again, record) = (submitted(), record.clone());
        again.edit_record("t", |claimed| {
            *claimed = TaskRecord {
                status: Some(Status::Claimed),
                lease_expires: Some(world.now + Seconds(200)),
                ..record
            };
        });
        again.edit_agent(coder(1), |entry| entry.current_task = Some(task("t")));
        again.submit("t", coder(1), sha(commit));
        assert_eq!(again.record("t").approvals, kept, "{commit}");
    }
}

/// Covers: JU-09
#[test]
fn an_agent_that_leaves_keeps_its_approval_and_the_human_suffices() {
    let mut world = submitted();
    world.approve("t");
    world.must(Actor::Human, Command::from(Deregister::any(reviewer(1))));
    world.verdict("t", reviewer(2), approved());
    assert_eq!(world.status("t"), Status::Approved);

    for approvals in 0..2 {
        let mut world = submitted();
        (0..approvals).for_each(|_| drop(world.approve("t")));
        let verdict = SubmitVerdict {
            task: task("t"),
            verdict: Verdict::Approved(None),
            facts: None,
            commit: None,
            moved: None,
        };
        world.must(Actor::Human, Command::from(verdict));
        assert_eq!((world.status("t"), lacks_approval(world.record("t"))), (Status::Approved, false));
    }
}

/// Covers: JU-09
#[test]
fn agents_only_raise_the_impact_and_a_new_plan_does_not_lower_it() {
    let mut world = World::new();
    let edit = |impact| {
        let edit = TaskEdit { impact: Some(impact), ..TaskEdit::default() };
        Command::from(EditTask { task: task("t"), edit })
    };
    let planner = world.agent(planner());
    world.must(planner, edit(Impact::Normal));
    world.must(planner, edit(Impact::High));
    world.refused_with("not_permitted", planner, edit(Impact::Normal));
    assert_eq!(world.record("t").impact, Some(Impact::High));
    let new = NewTask { impact: Some(Impact::Normal), ..draft() };
    world.must(planner, Command::from(AddTask { task: task("t2"), new }));
    world.must(planner, supersede("t", &["t2"]));
    assert_eq!(world.record("t2").impact, Some(Impact::High));
    let lower = TaskEdit { impact: Some(Impact::Normal), ..TaskEdit::default() };
    world.edit("t2", lower);
    assert_eq!(world.record("t2").impact, Some(Impact::Normal), "the human's word");
}

/// Covers: JU-09
#[test]
fn a_reviewer_unlike_the_author_comes_first_and_no_one_waits_for_it() {
    let mut world = World::with_task(Status::ReadyForReview);
    let takes = |world: &World, number: u32| {
        !work_of(&world.state, reviewer(number), &FoundMerges::default(), world.now).is_empty()
    };
    let program = |world: &mut World, agent: AgentId, name: &str| {
        world.edit_agent(agent, |entry| entry.client = Some(name.to_owned()));
    };
    assert!(takes(&world, 1) && takes(&world, 2), "no program is known");
    program(&mut world, coder(1), "claude");
    program(&mut world, reviewer(1), "claude");
    program(&mut world, reviewer(2), "claude");
    assert!(takes(&world, 1) && takes(&world, 2), "all are like the author");
    program(&mut world, reviewer(2), "codex");
    assert!(!takes(&world, 1) && takes(&world, 2));

    let mut off = world.clone();
    off.config().review_diversity = ReviewDiversity::Off;
    assert!(takes(&off, 1));
    let mut models = world.clone();
    models.config().roles = serde_json::from_str(r#"{"code-reviewer": {"model": "other"}}"#).unwrap();
    assert!(takes(&models, 1), "its model is not the author's");
    let mut busy = world.clone();
    busy.edit_agent(reviewer(2), |entry| entry.current_task = Some(task("x")));
    assert!(takes(&busy, 1));
    let mut gone = world.clone();
    gone.edit_agent(reviewer(2), |entry| entry.lease_expires = Some(world.now - Seconds(1000)));
    assert!(takes(&gone, 1));
    let mut dropped = world.clone();
    dropped.edit_record("t", |record| record.review_dropped_by = Some(vec![reviewer(2)]));
    assert!(takes(&dropped, 1));
    // A free agent looks for work this often.
    let interval = world.config().coder_poll_interval;
    world.now = world.now + interval;
    assert!(takes(&world, 1));
}
