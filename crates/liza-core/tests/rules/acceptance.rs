//! What the first acceptance test found, rule by rule; `session_budget.rs` has the loops.

use liza_core::model::{
    Actor, AgentStatus, AnomalyType, Approver, DiscoveryId, EventName, Revision, Seconds, Severity, Status,
    TaskStatus, Urgency, Value,
};
use liza_core::protocol::{
    AddTask, Answer, BeginMerge, Checkpoint, CheckpointCause, Command, CompleteGoal, Deregister, Discover,
    DismissDiscovery, Finalize, HandoffNotes, Heartbeat, LogAnomaly, NewTask, RecordSpecChange, Resume,
    SubmitVerdict, TaskEdit, UnblockTask, Verdict, WorktreeFacts, WriteHandoff,
};
use liza_core::rules::approvals::lacks_approval;
use liza_core::rules::claimable::{claimable_for, reviewable_for};
use liza_core::rules::questions::questions;
use liza_core::rules::triggers::{TriggerKind, planner_triggers};
use liza_testkit::worlds::*;

fn keys(world: &World) -> Vec<String> {
    planner_triggers(&world.state, world.now).into_iter().map(|trigger| trigger.key).collect()
}

fn spec_change(spec: &str, triggered_by: &str) -> Command {
    let (spec, change) = (spec.to_owned(), "429 is retried".to_owned());
    Command::from(RecordSpecChange { spec, change, triggered_by: triggered_by.to_owned() })
}

fn human_verdict(verdict: Verdict) -> Command {
    Command::from(SubmitVerdict { task: task("t"), verdict, facts: None, commit: None, moved: None })
}

fn begin() -> Command {
    Command::from(BeginMerge { task: task("t") })
}

/// Covers: AC-04
#[test]
fn a_changed_specification_wakes_the_planner_for_the_tasks_it_concerns() {
    let mut world = World::with_task(Status::Blocked);
    let spec = world.record("t").spec_ref.clone().unwrap();
    let before = keys(&world);
    world.must(Actor::Human, spec_change("specs/other.md", "an idea"));
    assert_eq!(keys(&world), before, "another specification");
    world.must(Actor::Human, spec_change(&spec, "an idea"));
    let by_spec = keys(&world);
    assert_ne!(by_spec, before);
    world.must(Actor::Human, spec_change("specs/other.md", "the questions of t"));
    assert_ne!(keys(&world), by_spec, "it names the task");
}

/// Covers: AC-04
#[test]
fn a_decision_to_replan_wakes_the_planner() {
    let mut world = World::new();
    let decide = |decision: &str| {
        Command::from(Resume { decision: Some(decision.to_owned()), note: Some("smaller tasks".to_owned()) })
    };
    world.must(Actor::Human, Command::from(Checkpoint { cause: CheckpointCause::Human }));
    world.must(Actor::Human, decide("continue"));
    assert!(keys(&world).is_empty());
    for decision in ["replan", "adjust specs"] {
        world.pass(1);
        world.must(Actor::Human, Command::from(Checkpoint { cause: CheckpointCause::Human }));
        world.must(Actor::Human, decide(decision));
        let triggers = planner_triggers(&world.state, world.now);
        assert_eq!(triggers.len(), 1, "{triggers:?}");
        assert_eq!(triggers[0].kind, TriggerKind::HumanDecision);
        assert_eq!(triggers[0].detail, format!("{decision}: smaller tasks"));
    }
}

/// Covers: AC-06
#[test]
fn an_unblocked_task_goes_to_another_coder_while_there_is_one() {
    for keep_worktree in [false, true] {
        let mut world = World::with_task(Status::Claimed);
        world.block("t", coder(1));
        world.edit_record("t", |record| record.failed_by = None);
        let (task_id, assessment) = (task("t"), Some("another view".to_owned()));
        let unblock =
            UnblockTask { task: task_id, reset_cycles: false, same_coder: false, keep_worktree, assessment };
        world.must(world.agent(planner()), Command::from(unblock));
        let may =
            |world: &World, number| !claimable_for(&world.state.board, coder(number), world.now).is_empty();
        assert!(!may(&world, 1) && may(&world, 2));
        let actor = world.supervisor(coder(1));
        world.refused_with("left_to_another", actor, reserve("t", coder(1), base()));
        world.must(Actor::Human, Command::from(Deregister::any(coder(2))));
        assert!(may(&world, 1), "no one else is registered");
    }
}

/// Covers: AC-07
#[test]
fn a_planner_hands_off_without_a_task_and_no_one_else_does() {
    let mut world = World::new();
    let notes = || HandoffNotes {
        summary: "half the plan".into(),
        next_action: "the rest".into(),
        ..HandoffNotes::default()
    };
    let handoff = || Command::from(WriteHandoff { task: None, notes: notes(), dirty: Vec::new() });
    let revision = world.state.board.revision;
    world.must(world.agent(planner()), handoff());
    let entry = world.entry(planner());
    assert_eq!(entry.status, AgentStatus::Handoff);
    assert!(entry.last_result.is_some_and(|last| last > revision), "it is the session's result");
    let notes = world.state.board.handoffs().unwrap();
    assert_eq!(notes.get(&task("goal-1")).unwrap().summary, "half the plan");
    world.claim("t", coder(1));
    world.refused_with("missing", world.agent(coder(1)), handoff());
}

/// Covers: AC-12, AT-04
#[test]
fn a_status_written_by_hand_is_not_an_approval_until_the_human_gives_one() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.edit_record("t", |record| {
        record.status = Some(Status::Approved);
        record.approved_by = Some(Approver::Agent(reviewer(1)));
    });
    let actor = world.supervisor(reviewer(1));
    world.refused_with("no_approval", actor, begin());
    world.refused_with("no_approval", actor, merged("t", sha('a')));
    world.must(Actor::Human, human_verdict(Verdict::Approved(None)));
    let approval = world.last_event("t").clone();
    assert_eq!(
        (approval.agent.as_deref(), approval.text("commit").as_deref()),
        (Some("human"), Some(sha('a').as_str()))
    );
    world.merge("t");
}

/// Covers: AX-03
#[test]
fn a_merge_written_by_hand_is_none_and_a_verdict_leads_out_of_it() {
    let by_hand = || {
        let mut world = World::with_task(Status::ReadyForReview);
        world.edit_record("t", |record| (record.status, record.worktree) = (Some(Status::Merged), None));
        world
    };
    let mut world = by_hand();
    assert!(lacks_approval(world.record("t")));
    world.must(Actor::Human, human_verdict(Verdict::Rejected("no one has read it".to_owned())));
    assert_eq!((world.status("t"), world.record("t").assigned_to), (Status::Rejected, Some(coder(1))));
    let mut world = by_hand();
    world.must(Actor::Human, human_verdict(Verdict::Approved(None)));
    world.merge("t");
    assert!(!lacks_approval(world.record("t")));
    // The original system leaves the event alone, and some files only the commit.
    world.edit_record("t", |record| record.merge_commit = None);
    assert!(!lacks_approval(world.record("t")));
    world.edit_record("t", |record| (record.merge_commit, record.history) = (Some(sha('d')), None));
    assert!(!lacks_approval(world.record("t")));
}

/// Covers: AC-12
#[test]
fn a_merge_needs_the_approval_of_exactly_its_commit_by_another_agent() {
    let mut other_commit = World::with_task(Status::Approved);
    other_commit.edit_record("t", |record| record.review_commit = Some(sha('b')));
    let actor = other_commit.supervisor(reviewer(1));
    other_commit.refused_with("no_approval", actor, begin());
    let mut own = World::with_task(Status::Approved);
    own.edit_record("t", |record| {
        let events = record.history.as_mut().unwrap();
        events.iter_mut().filter(|event| event.is(EventName::Approved)).for_each(|event| {
            event.agent = Some("coder-1".into());
        });
    });
    let actor = own.supervisor(reviewer(1));
    own.refused_with("no_approval", actor, begin());
}

/// Covers: AC-12
#[test]
fn the_human_judges_and_ends_a_running_review() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.claim_review("t", reviewer(1));
    world.must(Actor::Human, human_verdict(Verdict::Rejected("no tests".into())));
    assert_eq!(world.status("t"), Status::Rejected);
    assert_eq!(world.last_event("t").agent.as_deref(), Some("human"));
    assert_eq!(
        (world.entry(reviewer(1)).status, &world.entry(reviewer(1)).current_task),
        (AgentStatus::Idle, &None)
    );
}

/// Covers: AC-15
#[test]
fn a_rejected_commit_and_an_unfilled_template_are_refused() {
    let mut world = World::with_task(Status::Rejected);
    world.claim("t", coder(1));
    world.refused_with("already_rejected", world.agent(coder(1)), submit("t", sha('a')));
    world.submit("t", coder(1), sha('b'));
    world.claim_review("t", reviewer(1));
    let actor = world.agent(reviewer(1));
    let judge = |verdict| {
        Command::from(SubmitVerdict {
            task: task("t"),
            verdict,
            facts: Some(WorktreeFacts::clean(sha('b'))),
            commit: None,
            moved: None,
        })
    };
    let template = "Blockers: [count]\n- [blocker] src/a.rs:1 — x\nPrior Feedback Status:\n- RESOLVED: all";
    world.refused_with("unfilled_template", actor, judge(Verdict::Rejected(template.into())));
    let template = "Ran: [command and its result]";
    world.refused_with("unfilled_template", actor, judge(Verdict::Approved(Some(template.into()))));
}

/// Covers: AC-16
#[test]
fn an_approval_carries_its_evidence() {
    let mut world = World::with_task(Status::ReadyForReview);
    world.claim_review("t", reviewer(1));
    let judge = |evidence: Option<&str>| {
        let verdict = Verdict::Approved(evidence.map(str::to_owned));
        Command::from(SubmitVerdict {
            task: task("t"),
            verdict,
            facts: Some(WorktreeFacts::clean(sha('a'))),
            commit: None,
            moved: None,
        })
    };
    world.refused_with("missing", world.agent(reviewer(1)), judge(None));
    world.refused_with("missing", world.agent(reviewer(1)), judge(Some("  ")));
    let mut operated = world.clone();
    operated.must(Actor::Operator(reviewer(1)), judge(None));
    assert_eq!(operated.last_event("t").text("evidence").as_deref(), Some("none"));
    world.must(world.agent(reviewer(1)), judge(Some("cargo test: 12 passed")));
    assert_eq!(world.last_event("t").text("evidence").as_deref(), Some("cargo test: 12 passed"));
    assert!(world.last_log().detail.contains("12 passed"), "{:?}", world.last_log());
}

/// Covers: AC-17
#[test]
fn the_history_keeps_what_was_learned() {
    let mut world = World::with_task(Status::Blocked);
    world.must(world.agent(planner()), unblock("t"));
    let blocked = world.record("t").last_event(EventName::Blocked).unwrap();
    let list = |key: &str| blocked.more.get(key).map(ToString::to_string).unwrap_or_default();
    assert_eq!(blocked.text("reason").as_deref(), Some("the spec is silent"));
    assert!(list("questions").contains("429") && list("attempted").contains("read the spec"), "{blocked:?}");
}

/// Covers: AC-30
#[test]
fn a_coder_waits_only_until_the_verdict() {
    for verdict in [approved(), Verdict::Rejected(FEEDBACK.into())] {
        let mut world = World::with_task(Status::ReadyForReview);
        assert_eq!(world.entry(coder(1)).status, AgentStatus::Waiting);
        world.verdict("t", reviewer(1), verdict);
        assert_eq!(world.entry(coder(1)).status, AgentStatus::Idle);
    }
}

/// Covers: AC-31
#[test]
fn a_heartbeat_never_shortens_a_lease() {
    let mut world = World::new();
    let actor = world.supervisor(coder(1));
    let beat = |length| Command::from(Heartbeat { agents: vec![(coder(1), None)], length });
    world.must(actor, beat(Some(Seconds(7200))));
    let long = world.entry(coder(1)).lease_expires;
    world.must(actor, beat(None));
    assert_eq!(world.entry(coder(1)).lease_expires, long);
}

/// Covers: AC-31
#[test]
fn a_deregistered_owners_task_is_free_at_once() {
    let mut world = World::with_task(Status::Claimed);
    world.must(Actor::Human, Command::from(Deregister::any(coder(1))));
    if let Ok(TaskStatus::Claimed { .. }) = world.state.board.body(&task("t")).unwrap().status() {
        assert_eq!(claimable_for(&world.state.board, coder(2), world.now), [task("t")]);
    }
    world.claim("t", coder(2));
}

/// Covers: AC-31
#[test]
fn only_the_human_completes_a_goal_without_a_task() {
    let mut world = World::empty();
    world.register(planner());
    world.refused_with("nothing_planned", world.agent(planner()), Command::from(CompleteGoal));
    world.must(Actor::Human, Command::from(CompleteGoal));
}

/// Covers: AC-31
#[test]
fn the_planner_plans_although_the_human_added_a_task_first() {
    let mut world = World::empty();
    world.register(planner());
    world.edit_goal().planned = false;
    world.must(Actor::Human, Command::from(AddTask { task: task("mine"), new: ready() }));
    let kinds = |world: &World| -> Vec<TriggerKind> {
        planner_triggers(&world.state, world.now).iter().map(|trigger| trigger.kind).collect()
    };
    assert_eq!(kinds(&world), [TriggerKind::InitialPlanning]);
    world.must(world.agent(planner()), Command::from(AddTask { task: task("more"), new: ready() }));
    assert!(kinds(&world).is_empty());
}

/// Covers: AC-31
#[test]
fn an_injected_task_is_in_the_figures_of_the_sprint() {
    let mut world = World::with_task(Status::Claimed);
    let mut injected = world.record("t").clone();
    injected.id = Some(task("injected"));
    injected.status = Some(Status::Unclaimed);
    (injected.assigned_to, injected.worktree, injected.lease_expires) = (None, None, None);
    (injected.base_commit, injected.iteration) = (None, None);
    world.state.board.put(task("injected"), injected);
    world.recount();
    world.claim("injected", coder(2));
    assert!(world.sprint().scope.planned.contains(&task("injected")));
}

/// Covers: AC-33
#[test]
fn a_discovery_can_be_dismissed() {
    let mut world = World::new();
    let (description, severity) = ("no timeout".to_owned(), Severity::Critical);
    let urgency = Urgency::Immediate;
    world.must(
        Actor::Human,
        Command::from(Discover { task: None, description, severity, urgency, recommendation: None }),
    );
    assert_eq!(planner_triggers(&world.state, world.now).len(), 1);
    world.must(Actor::Human, Command::from(DismissDiscovery { discovery: DiscoveryId(1) }));
    assert!(planner_triggers(&world.state, world.now).is_empty());
}

/// Covers: AC-03, AC-05
#[test]
fn an_answer_unblocks_the_task_unless_two_coders_failed() {
    let mut world = World::with_task(Status::Blocked);
    let answer = || Command::from(Answer { task: task("t"), text: "retry three times".into() });
    let details = [("spec_ref", "specs/vision.md"), ("question", "How often?")];
    let details = details.map(|(key, value)| (key.to_owned(), Value::from(value))).into_iter().collect();
    let question = LogAnomaly { kind: AnomalyType::SpecGap, task: None, details };
    world.must(world.agent(planner()), Command::from(question));
    let [asked] = questions(&world.state).try_into().unwrap();
    assert_eq!(
        (asked.task.clone(), asked.is_open()),
        (Some(task("t")), true),
        "it is about the blocked task"
    );
    let done = world.must(Actor::Human, answer());
    assert_eq!((done.reply("unblocked"), done.reply("coder")), (true.into(), "coder-1".into()));
    assert_eq!(
        (done.reply("coder_is_present"), done.reply("coder_works_on")),
        (true.into(), serde_json::Value::Null)
    );
    let log = world.last_log();
    assert_eq!((log.action.as_str(), log.detail.as_str()), ("answered", "retry three times"));
    let [asked] = questions(&world.state).try_into().unwrap();
    assert_eq!(asked.answer.unwrap().1, "retry three times", "one answer settles both");
    assert_eq!(world.status("t"), Status::Unclaimed);
    assert_eq!(
        claimable_for(&world.state.board, coder(1), world.now),
        [task("t")],
        "it goes back to its coder"
    );

    let mut world = World::with_task(Status::Blocked);
    world.edit_agent(coder(1), |entry| entry.current_task = Some(task("other")));
    let done = world.must(Actor::Human, answer());
    assert_eq!((done.reply("coder_is_present"), done.reply("coder_works_on")), (true.into(), "other".into()));

    let mut world = World::with_task(Status::Blocked);
    world.edit_record("t", |record| record.failed_by = Some(vec![coder(1), coder(2)]));
    let done = world.must(Actor::Human, answer());
    assert_eq!((done.reply("unblocked"), world.status("t")), (false.into(), Status::Blocked));
    assert_eq!(world.state.journal.human_notes.len(), 1);
}

/// Covers: AC-08
#[test]
fn a_code_reviewer_that_starts_again_takes_again_what_it_dropped() {
    let mut world = World::with_task(Status::ReadyForReview);
    for _ in 0..3 {
        world.claim_review("t", reviewer(1));
        world.must(world.supervisor(reviewer(1)), idle_exit("t", reviewer(1)));
    }
    let takes = |world: &World| reviewable_for(&world.state.board, reviewer(1), world.now);
    assert!(takes(&world).is_empty());
    world.must(Actor::Human, Command::from(Deregister::any(reviewer(1))));
    world.register(reviewer(1));
    assert_eq!(takes(&world), [task("t")]);
}

/// Covers: SP-07
#[test]
fn a_person_who_completes_a_draft_finalizes_it_and_a_planner_does_not() {
    for (by_human, status) in [(true, Status::Unclaimed), (false, Status::Draft)] {
        let mut world = World::new();
        world.add("d", NewTask { done_when: None, ..draft() });
        let completed = TaskEdit { done_when: Some("it does".into()), ..TaskEdit::default() };
        let actor = if by_human { Actor::Human } else { world.agent(planner()) };
        world.must(actor, edit("d", completed));
        assert_eq!(world.status("d"), status);
    }
}

/// Covers: SP-07
#[test]
fn a_plan_that_was_not_changed_since_it_was_seen_is_finalized() {
    let mut world = World::new();
    world.add("d", draft());
    let seen = world.record("d").revision;
    let finalize = |unchanged_since| Command::from(Finalize { tasks: vec![task("d")], unchanged_since });
    let earlier = seen.map(|seen| Revision(seen.0 - 1));
    world.refused_with("stale_revision", Actor::Human, finalize(earlier));
    world.must(Actor::Human, finalize(seen));
}
