//! Submitting, reviewing and judging exactly one commit.

use liza_core::model::{
    Actor, AgentId, Approver, CommitAuthor, FactKind, PRIOR_FEEDBACK, RefusalClass, Sha, Status, WorkFacts,
};
use liza_core::protocol::{
    ClaimReview, ClaimTask, Command, Deregister, HandoffNotes, Intent, MovedChange, NewTask, PreCheck,
    ReleaseReview, SubmitForReview, SubmitVerdict, Verdict, WorktreeFacts, WriteHandoff,
};
use liza_core::rules::claimable::reviewable_for;
use liza_core::rules::metrics::sprint_metrics;
use liza_testkit::worlds::*;

fn submit_facts(commit: Sha, facts: WorktreeFacts) -> Command {
    Command::from(SubmitForReview { task: task("t"), commit, facts: Some(facts), authors: vec![] })
}

fn judge(verdict: Verdict, facts: WorktreeFacts) -> Command {
    Command::from(SubmitVerdict { task: task("t"), verdict, facts: Some(facts), commit: None, moved: None })
}

/// A submission that code-reviewer-1 is reviewing.
fn under_review() -> World {
    let mut world = World::with_task(Status::ReadyForReview);
    world.claim_review("t", reviewer(1));
    world
}

/// Covers: RV-01
#[test]
fn only_the_owner_submits() {
    let mut world = World::with_task(Status::Claimed);
    let refusal = world.refused_with("not_your_task", world.agent(coder(2)), submit("t", sha('a')));
    assert_eq!(
        refusal.class(),
        RefusalClass::Refused,
        "it never held the task: a mistake, not a reason to stop"
    );
    world.refused_with("not_your_task", Actor::Operator(coder(2)), submit("t", sha('a')));
    world.refused_with("not_permitted", world.agent(reviewer(1)), submit("t", sha('a')));
}

/// Covers: RV-01
#[test]
fn a_dirty_worktree_is_not_submitted() {
    let mut world = World::with_task(Status::Claimed);
    let facts = WorktreeFacts { dirty: vec!["src/new.rs".into()], ..WorktreeFacts::clean(sha('a')) };
    let refusal = world.refused_with("dirty_worktree", world.agent(coder(1)), submit_facts(sha('a'), facts));
    assert!(refusal.to_string().contains("src/new.rs"), "{refusal}");
}

/// Covers: RV-01
#[test]
fn the_submitted_commit_is_the_head_of_the_task_branch() {
    let mut world = World::with_task(Status::Claimed);
    let actor = world.agent(coder(1));
    world.refused_with("head_moved", actor, submit_facts(sha('b'), WorktreeFacts::clean(sha('a'))));
    let elsewhere = WorktreeFacts { on_task_branch: false, ..WorktreeFacts::clean(sha('a')) };
    world.refused_with("wrong_branch", actor, submit_facts(sha('a'), elsewhere));
}

/// Covers: RV-01
#[test]
fn the_base_itself_is_nothing_to_review() {
    let mut world = World::with_task(Status::Claimed);
    world.refused_with("nothing_to_review", world.agent(coder(1)), submit("t", base()));
}

/// Covers: AX-06, IS-10
#[test]
fn work_of_people_and_of_earlier_coders_is_submitted_and_work_of_another_agent_is_not() {
    let author = |name: &str, agent| CommitAuthor { commit: sha('c'), name: name.to_owned(), agent };
    let submit = |authors: Vec<CommitAuthor>| {
        let facts = Some(WorktreeFacts::clean(sha('a')));
        Command::from(SubmitForReview { task: task("t"), commit: sha('a'), facts, authors })
    };
    let mut world = World::with_task(Status::Claimed);
    let other = submit(vec![author("Ada", None), author("coder-2 for Ada", Some(coder(2)))]);
    let refusal = world.refused_with("foreign_author", world.agent(coder(1)), other);
    assert!(refusal.to_string().contains("coder-2"), "{refusal}");
    let own = author("coder-1 for Ada", Some(coder(1)));
    world.must(world.agent(coder(1)), submit(vec![author("Ada", None), own, author("Ada", None)]));
    assert_eq!(world.last_event("t").list("authors"), ["Ada"], "each once");
}

/// Covers: RV-01
#[test]
fn status_commit_and_history_are_one_write() {
    let mut world = World::with_task(Status::Claimed);
    let short: Sha = "aaaaaaaa".parse().unwrap();
    let change = world.must(world.agent(coder(1)), submit_facts(short, WorktreeFacts::clean(sha('a'))));
    let record = &change.tasks[&task("t")];
    assert_eq!(record.status, Some(Status::ReadyForReview));
    assert_eq!(record.review_commit, Some(sha('a')), "a short hash is resolved to the full one");
    assert_eq!(world.last_event("t").event, "ready_for_review");
    assert_eq!(world.last_event("t").more["commit"].as_text(), Some(sha('a').as_str()));
    assert_eq!(world.last_log().action, "ready_for_review");
}

/// Covers: RV-11
#[test]
fn a_fix_must_contain_the_head_that_it_merges() {
    let mut world = World::with_task(Status::IntegrationFailed);
    world.reserve("t", coder(1), sha('9'));
    world.must(world.supervisor(coder(1)), Command::from(ClaimTask { task: task("t"), coder: coder(1) }));
    let without = WorktreeFacts { has_base: false, ..WorktreeFacts::clean(sha('b')) };
    let actor = world.agent(coder(1));
    let refusal = world.refused_with("base_not_merged", actor, submit_facts(sha('b'), without));
    assert!(refusal.to_string().contains(sha('9').as_str()), "{refusal}");
    world.must(actor, submit_facts(sha('b'), WorktreeFacts::clean(sha('b'))));
}

/// Covers: RV-11
#[test]
fn ordinary_work_may_be_rebased() {
    let mut world = World::with_task(Status::Claimed);
    let without = WorktreeFacts { has_base: false, ..WorktreeFacts::clean(sha('b')) };
    world.must(world.agent(coder(1)), submit_facts(sha('b'), without));
}

/// Covers: RV-02
#[test]
fn only_the_holder_of_the_review_submits_a_verdict() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.refused_with("not_your_review", world.agent(reviewer(1)), verdict("t", approved()));
    world.claim_review("t", reviewer(1));
    world.refused_with("not_your_review", world.agent(reviewer(2)), verdict("t", approved()));
    world.must(world.agent(reviewer(1)), verdict("t", approved()));
    assert_eq!(world.record("t").approved_by, Some(Approver::Agent(reviewer(1))));
}

/// Covers: RV-02
#[test]
fn a_verdict_needs_a_live_review_lease() {
    let mut world = under_review();
    world.pass(301);
    for actor in [world.agent(reviewer(1)), Actor::Operator(reviewer(1))] {
        let refusal = world.refused_with("lease_lost", actor, verdict("t", approved()));
        assert_eq!(refusal.class(), RefusalClass::Stop);
    }
    world.heartbeat(reviewer(1));
    world.must(world.agent(reviewer(1)), verdict("t", approved()));
}

/// Covers: RV-02
#[test]
fn a_verdict_needs_the_submitted_commit_unchanged() {
    let mut world = under_review();
    let actor = world.agent(reviewer(1));
    for outcome in [approved(), Verdict::Rejected("no".into())] {
        world.refused_with("head_moved", actor, judge(outcome.clone(), WorktreeFacts::clean(sha('b'))));
        let touched =
            WorktreeFacts { changed_tracked: vec!["src/a.rs".into()], ..WorktreeFacts::clean(sha('a')) };
        world.refused_with("review_touched", actor, judge(outcome, touched));
    }
    let untracked = WorktreeFacts { dirty: vec!["target/".into()], ..WorktreeFacts::clean(sha('a')) };
    world.must(actor, judge(approved(), untracked));
}

/// Covers: RV-02
#[test]
fn no_agent_reviews_its_own_work() {
    let mut world = under_review();
    world.edit_record("t", |record| record.assigned_to = Some(reviewer(1)));
    world.refused_with("own_work", world.agent(reviewer(1)), verdict("t", approved()));
    world.edit_record("t", |record| record.reviewing_by = None);
    let actor = world.supervisor(reviewer(1));
    world.refused_with("own_work", actor, claim_review("t", reviewer(1)));
}

/// Covers: RV-02
#[test]
fn a_rejection_needs_a_reason() {
    let mut world = under_review();
    let actor = world.agent(reviewer(1));
    world.refused_with("missing", actor, verdict("t", Verdict::Rejected(" \n".into())));
    world.must(actor, verdict("t", Verdict::Rejected("no tests".into())));
    let record = world.record("t");
    assert_eq!(record.rejection_reason.as_deref(), Some("no tests"));
    assert_eq!((record.assigned_to, record.worktree.is_some()), (Some(coder(1)), true));
    assert_eq!(record.approved_by, None);
}

/// Covers: AX-08
#[test]
fn the_approval_of_the_human_names_the_human() {
    let mut world = under_review();
    world.must(Actor::Human, verdict("t", approved()));
    assert_eq!(serde_json::to_value(world.record("t")).unwrap()["approved_by"], "human");
    world.must(world.supervisor(reviewer(2)), merged("t", sha('a')));
}

/// Covers: RV-03
#[test]
fn a_second_rejection_needs_the_prior_feedback_status() {
    let mut world = under_review();
    let actor = world.agent(reviewer(1));
    world.must(actor, verdict("t", Verdict::Rejected("no tests".into())));
    world.claim("t", coder(1));
    world.submit("t", coder(1), sha('b'));
    world.claim_review("t", reviewer(1));
    let bare = Verdict::Rejected("still no tests".into());
    let refusal =
        world.refused_with("prior_feedback_missing", actor, judge(bare, WorktreeFacts::clean(sha('b'))));
    assert!(refusal.to_string().contains(PRIOR_FEEDBACK), "{refusal}");
    let hint = refusal.hint().unwrap_or_default();
    for word in ["RESOLVED", "STILL PRESENT", "PARTIAL"] {
        assert!(hint.contains(word), "{hint}");
    }
    world.must(actor, judge(Verdict::Rejected(FEEDBACK.into()), WorktreeFacts::clean(sha('b'))));
}

/// Covers: RV-03, TS-06
#[test]
fn a_new_coder_has_no_prior_feedback() {
    let mut world = World::with_task(Status::Rejected);
    world.must(Actor::Human, Command::from(Deregister::any(coder(1))));
    world.claim("t", coder(2));
    world.submit("t", coder(2), sha('b'));
    world.verdict("t", reviewer(1), Verdict::Rejected("no tests".into()));
}

/// Covers: CL-09
#[test]
fn a_reviewer_holds_one_review_at_a_time() {
    let mut world = under_review();
    world.add("u", ready());
    world.claim("u", coder(2));
    world.submit("u", coder(2), sha('b'));
    let actor = world.supervisor(reviewer(1));
    world.refused_with("agent_busy", actor, claim_review("u", reviewer(1)));
    world.refused_with("wrong_role", Actor::Human, claim_review("u", coder(1)));
    world.claim_review("t", reviewer(1));
}

/// Covers: CL-09
#[test]
fn reviews_are_sorted_own_first_then_by_priority_then_age() {
    let mut world = under_review();
    world.pass(1);
    for (id, priority) in [("late", 3), ("one", 1), ("three", 3)] {
        world.add(id, NewTask { priority: Some(priority), ..ready() });
        world.claim(id, coder(2));
        world.submit(id, coder(2), sha('b'));
        world.pass(1);
    }
    let names = |by| -> Vec<String> {
        reviewable_for(&world.state.board, by, world.now).iter().map(ToString::to_string).collect()
    };
    assert_eq!(names(reviewer(1)), ["t", "one", "late", "three"]);
    assert_eq!(names(reviewer(2)), ["one", "late", "three"]);
}

/// No checkout of the submission can be set up.
fn void(world: &mut World, by: AgentId) -> Done {
    let setup_failure = Some("npm ci exited 3".to_owned());
    let claim = ClaimReview { task: task("t"), reviewer: by, setup_failure, integration: None, gate: None };
    world.refused_after_write("submission_unusable", world.supervisor(by), Command::from(claim))
}

/// Covers: AX-05, AC-30, RV-10, SE-08
#[test]
fn a_submission_that_cannot_be_set_up_goes_back_to_its_coder() {
    let mut world = under_review();
    world.pass(301);
    world.heartbeat(reviewer(2));
    let change = void(&mut world, reviewer(2));
    assert_eq!(change.answer.as_ref().err().map(|refusal| refusal.class()), Some(RefusalClass::Refused));
    assert_eq!((world.status("t"), world.record("t").reviewing_by), (Status::Rejected, None));
    assert_eq!(world.entry(reviewer(1)).current_task, None);
    let metrics = sprint_metrics(&world.state);
    assert_eq!((metrics.review_verdict_count, metrics.review_verdict_rejections), (0, 0));
    assert_eq!(world.record("t").review_cycles_total.unwrap_or(0), 0);
    let reason = world.record("t").rejection_reason.clone().unwrap();
    assert!(reason.starts_with("setup_failed: ") && reason.ends_with(": npm ci exited 3"), "{reason}");
}

/// Covers: CL-06, NT-02
#[test]
fn a_reviewers_notes_are_removed_with_the_review() {
    let notes = HandoffNotes { summary: "half".into(), next_action: "rest".into(), ..Default::default() };
    let handoff = Command::from(WriteHandoff { task: Some(task("t")), notes, dirty: Vec::new() });
    let mut judged = under_review();
    judged.must(judged.agent(reviewer(1)), handoff.clone());
    assert_eq!(judged.record("t").handoff_pending, Some(true));
    judged.must(judged.agent(reviewer(1)), verdict("t", Verdict::Rejected("no".into())));
    let mut unusable = under_review();
    unusable.must(unusable.agent(reviewer(1)), handoff);
    void(&mut unusable, reviewer(1));
    for world in [judged, unusable] {
        assert_eq!(world.record("t").handoff_pending, Some(false));
        assert!(world.state.board.handoff.ready().unwrap().is_empty());
    }
}

/// Covers: AG-08
#[test]
fn a_session_without_a_verdict_loses_the_review() {
    let mut world = under_review();
    let give_up = |by| Command::ReleaseReview(ReleaseReview { task: task("t"), reviewer: by });
    world.refused_with("not_your_review", world.supervisor(reviewer(2)), give_up(reviewer(2)));
    world.refused_with("not_your_agent", world.supervisor(reviewer(2)), give_up(reviewer(1)));
    world.must(world.supervisor(reviewer(1)), give_up(reviewer(1)));
    assert_eq!((world.status("t"), world.record("t").reviewing_by), (Status::ReadyForReview, None));
    world.claim_review("t", reviewer(2));
}

#[test]
fn a_coder_records_a_checkpoint_before_its_work() {
    let mut world = World::with_task(Status::Claimed);
    let intent = Intent {
        intent: "a decorator".into(),
        validation: "cargo test".into(),
        risks: vec!["none".into()],
        ..Intent::default()
    };
    let check = |intent| Command::PreCheck(PreCheck { task: task("t"), intent });
    world.refused_with("not_your_task", world.agent(coder(2)), check(intent.clone()));
    let actor = world.agent(coder(1));
    world.refused_with("missing", actor, check(Intent { intent: String::new(), ..intent.clone() }));
    world.refused_with("missing", actor, check(Intent { validation: String::new(), ..intent.clone() }));
    world.must(actor, check(intent));
    let event = world.last_event("t");
    assert_eq!(event.event, "pre_execution_checkpoint");
    assert_eq!(event.more["validation"].as_text(), Some("cargo test"));
    assert!(!event.more.contains_key("assumptions"));
    assert_eq!(world.status("t"), Status::Claimed);
}

/// A verdict on a change that moved with the integration branch.
fn judge_moved(verdict: Verdict, head: char) -> Command {
    let moved = MovedChange { head: sha(head), what: vec!["src/a.rs".into()] };
    let facts = Some(WorktreeFacts::clean(sha('a')));
    Command::from(SubmitVerdict { task: task("t"), verdict, facts, commit: None, moved: Some(moved) })
}

/// Covers: JU-06
#[test]
fn an_approval_of_a_change_that_moved_is_refused_twice_and_the_review_goes_on() {
    let mut world = World::with_task(Status::ReadyForReview);
    let actor = world.supervisor(reviewer(1));
    let integration = Some(sha('0'));
    let claim =
        ClaimReview { task: task("t"), reviewer: reviewer(1), setup_failure: None, integration, gate: None };
    world.must(actor, Command::from(claim));
    assert_eq!(world.record("t").review_head, Some(sha('0')));
    let approve = || Verdict::Approved(Some("cargo test: passed".into()));
    for (refused, head) in [(1, '1'), (2, '2')] {
        let actor = world.agent(reviewer(1));
        world.refused_after_write("change_moved", actor, judge_moved(approve(), head));
        let record = world.record("t");
        assert_eq!((record.review_head.clone(), record.review_moves), (Some(sha(head)), Some(refused)));
        assert_eq!((world.status("t"), record.reviewing_by), (Status::ReadyForReview, Some(reviewer(1))));
    }
    world.must(world.agent(reviewer(1)), judge_moved(approve(), '3'));
    assert_eq!(world.status("t"), Status::Approved, "the merge decides");
    assert_eq!((world.record("t").review_head.clone(), world.record("t").review_moves), (None, None));
}

/// Covers: JU-06
#[test]
fn a_rejection_and_the_humans_word_count_although_the_change_moved() {
    let mut world = under_review();
    world.must(world.agent(reviewer(1)), judge_moved(Verdict::Rejected("no test".into()), '1'));
    assert_eq!(world.status("t"), Status::Rejected);
    let mut world = under_review();
    world.must(Actor::Human, judge_moved(Verdict::Approved(None), '1'));
    assert_eq!(world.status("t"), Status::Approved);
}

/// Covers: JU-06
#[test]
fn what_a_submission_takes_back_is_known_until_the_next_one() {
    let mut world = World::with_task(Status::Claimed);
    let merges = vec!["1234567 takes back fix.txt".to_owned()];
    let facts = WorktreeFacts { takes_back: merges.clone(), ..WorktreeFacts::clean(sha('a')) };
    world.must(world.agent(coder(1)), submit_facts(sha('a'), facts));
    assert_eq!(world.record("t").takes_back, Some(merges));
}

/// Covers: JU-07
#[test]
fn the_facts_of_a_submission_replace_those_of_the_last_one() {
    let mut world = World::with_task(Status::Claimed);
    world.edit_record("t", |record| record.facts = Some(WorkFacts { files: 9, ..WorkFacts::default() }));
    let mut work = WorkFacts { files: 1, added: 2, removed: 3, ..WorkFacts::default() };
    work.note(FactKind::TestsDeleted, "one in a.rs");
    let facts = WorktreeFacts { work: Some(work.clone()), ..WorktreeFacts::clean(sha('a')) };
    world.must(world.agent(coder(1)), submit_facts(sha('a'), facts));
    assert_eq!(world.record("t").facts, Some(work));
}

/// Covers: RV-01
#[test]
fn an_approval_without_evidence_is_logged_without_it() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.must(Actor::Human, verdict("t", Verdict::Approved(None)));
    let log = world.last_log();
    assert!(!log.detail.contains("none"), "{log:?}");
}

/// Covers: RV-01
#[test]
fn a_review_without_commands_is_logged_as_a_review() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.claim_review("t", reviewer(1));
    assert!(!world.last_log().detail.contains("validation"), "{:?}", world.last_log());
}

/// Covers: RV-01
#[test]
fn a_person_who_names_another_commit_judges_nothing() {
    let mut world = World::with_task(Status::ReadyForReview);
    let judged = |commit| {
        let (task, verdict) = (task("t"), Verdict::Approved(None));
        Command::from(SubmitVerdict { task, verdict, facts: None, commit: Some(commit), moved: None })
    };
    assert!(world.run(Actor::Human, judged(sha('9'))).is_err());
    world.must(Actor::Human, judged(sha('a')));
}
