//! The complete state machine, row by row, and the forbidden transitions.

use liza_core::model::{Actor, Status};
use liza_core::protocol::{
    AbandonTask, AddTask, BeginMerge, ClaimTask, Command, CountExit, Deregister, Finalize, MarkBlocked,
    NewTask, Operation, TaskEdit, UnproductiveExit, Verdict,
};
use liza_testkit::worlds::*;

/// Covers: TS-01
#[test]
fn the_planner_and_the_human_finalize_a_draft() {
    for by_planner in [true, false] {
        let mut world = World::with_task(Status::Draft);
        let actor = if by_planner { world.agent(planner()) } else { Actor::Human };
        world.must(actor, Command::from(Finalize { tasks: vec![task("t")], unchanged_since: None }));
        assert_eq!(world.status("t"), Status::Unclaimed);
        assert_eq!(world.last_event("t").event, "finalized");
    }
}

const REMOVABLE: [Status; 5] =
    [Status::Draft, Status::Unclaimed, Status::Rejected, Status::IntegrationFailed, Status::Blocked];

/// Covers: TS-01
#[test]
fn only_tasks_without_a_holder_can_be_abandoned_and_superseded() {
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        world.add("other", draft());
        for actor in [world.agent(planner()), Actor::Human] {
            let mut copy = world.clone();
            let mut second = world.clone();
            if REMOVABLE.contains(&status) {
                copy.must(actor, abandon("t"));
                assert_eq!(copy.status("t"), Status::Abandoned, "{status}");
                second.must(actor, supersede("t", &["other"]));
                assert_eq!(second.status("t"), Status::Superseded, "{status}");
            } else {
                copy.refused_with("wrong_status", actor, abandon("t"));
                second.refused_with("wrong_status", actor, supersede("t", &["other"]));
            }
        }
    }
}

/// Covers: TS-01, CL-01
#[test]
fn a_coder_may_claim_unclaimed_rejected_failed_and_its_own_tasks() {
    let claimable = [Status::Unclaimed, Status::Rejected, Status::IntegrationFailed, Status::Claimed];
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        if claimable.contains(&status) {
            world.claim("t", coder(1));
            assert_eq!(world.status("t"), Status::Claimed);
        } else {
            let actor = world.supervisor(coder(1));
            world.refused_with("not_claimable", actor, reserve("t", coder(1), base()));
        }
    }
}

/// Covers: TS-01
#[test]
fn only_a_claimed_task_can_be_submitted_and_blocked_by_its_coder() {
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        let actor = world.agent(coder(1));
        if status == Status::Claimed {
            let mut other = world.clone();
            world.must(actor, submit("t", sha('a')));
            assert_eq!(world.status("t"), Status::ReadyForReview);
            other.must(actor, block("t"));
            assert_eq!(other.status("t"), Status::Blocked);
        } else {
            // An agent that no longer holds the task must stop.
            let code = if status == Status::Merged { "task_lost" } else { "wrong_status" };
            world.refused_with(code, actor, submit("t", sha('a')));
            world.refused_with(code, actor, block("t"));
        }
    }
}

/// Covers: TS-01
#[test]
fn the_system_blocks_a_claimed_task_at_a_limit() {
    let mut world = World::with_task(Status::Claimed);
    let actor = world.supervisor(coder(1));
    world.config().max_crashes = 1;
    let exit = UnproductiveExit::Crash;
    world.must(
        actor,
        Command::from(CountExit {
            task: task("t"),
            agent: coder(1),
            exit,
            last_words: None,
            pause: liza_core::model::Seconds(0),
        }),
    );
    assert_eq!(world.status("t"), Status::Blocked);
    assert_eq!(world.last_event("t").agent.as_deref(), Some("system"));
}

/// Covers: TS-01, CL-11
#[test]
fn only_the_human_releases_a_claim() {
    let mut world = World::with_task(Status::Claimed);
    let release = release("t", true);
    for actor in [world.agent(coder(1)), world.supervisor(coder(1)), world.agent(planner())] {
        world.refused_with("not_permitted", actor, release.clone());
    }
    world.must(Actor::Human, release);
    assert_eq!(world.status("t"), Status::Unclaimed);
}

/// Covers: TS-01
#[test]
fn only_a_submitted_task_gets_a_verdict() {
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        let actor = world.agent(reviewer(1));
        if status == Status::ReadyForReview {
            world.claim_review("t", reviewer(1));
            let mut other = world.clone();
            world.must(actor, verdict("t", approved()));
            assert_eq!(world.status("t"), Status::Approved);
            other.must(actor, verdict("t", Verdict::Rejected("no tests".into())));
            assert_eq!(other.status("t"), Status::Rejected);
        } else {
            world.refused_with("wrong_status", actor, verdict("t", approved()));
            let supervisor = world.supervisor(reviewer(1));
            world.refused_with("wrong_status", supervisor, claim_review("t", reviewer(1)));
        }
    }
}

/// Covers: TS-01, RV-04, RV-05
#[test]
fn only_an_approved_task_is_merged_or_fails_to_merge() {
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        let actor = world.supervisor(reviewer(1));
        if status == Status::Approved {
            let mut other = world.clone();
            world.must(actor, merged("t", sha('a')));
            assert_eq!(world.status("t"), Status::Merged);
            other.must(actor, conflict("t", sha('a')));
            assert_eq!(other.status("t"), Status::IntegrationFailed);
        } else {
            world.refused_with("wrong_status", actor, Command::from(BeginMerge { task: task("t") }));
            world.refused_with("wrong_status", actor, merged("t", sha('a')));
            world.refused_with("wrong_status", actor, conflict("t", sha('a')));
        }
    }
}

/// Covers: TS-01
#[test]
fn only_a_blocked_task_is_unblocked() {
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        for actor in [world.agent(planner()), Actor::Human] {
            let mut copy = world.clone();
            if status == Status::Blocked {
                copy.must(actor, unblock("t"));
                assert_eq!(copy.status("t"), Status::Unclaimed);
            } else {
                copy.refused_with("wrong_status", actor, unblock("t"));
            }
        }
        world.pass(1);
    }
}

/// Covers: TS-01, SP-07
#[test]
fn the_human_may_block_any_task_that_is_not_terminal() {
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        let replan = Command::from(MarkBlocked {
            task: task("t"),
            reason: " ".into(),
            questions: Vec::new(),
            attempted: Vec::new(),
        });
        if status.is_terminal() || status == Status::Blocked {
            world.refused_with("wrong_status", Actor::Human, replan);
            continue;
        }
        world.must(Actor::Human, replan);
        assert_eq!(world.status("t"), Status::Blocked, "{status}");
        let record = world.record("t");
        assert_eq!(record.blocked_reason.as_deref(), Some("human override"));
        assert_eq!(record.blocked_questions.as_ref().map(Vec::len), Some(1));
        assert_eq!(record.failed_by, None, "a person's override is not a failure of the coder");
    }
}

/// Covers: TS-01
#[test]
fn a_refused_transition_names_the_status_and_what_is_possible() {
    let mut world = World::with_task(Status::Blocked);
    let actor = world.supervisor(coder(1));
    let refusal = world.refused_with("not_claimable", actor, reserve("t", coder(1), base()));
    let message = refusal.to_string();
    assert!(
        message.contains("t is BLOCKED") && message.contains("unblock-task, supersede-task"),
        "{message}"
    );
    assert!(refusal.hint().is_some_and(|hint| hint.contains("unblock-task t")));
}

/// Covers: TS-01
#[test]
fn a_task_that_cannot_be_abandoned_yet_names_the_way_to_drop_it() {
    for status in [Status::Claimed, Status::ReadyForReview, Status::Approved] {
        let mut world = World::with_task(status);
        let drop = Command::from(AbandonTask { task: task("t"), reason: "not wanted".to_owned() });
        let refusal = world.refused_with("wrong_status", Actor::Human, drop.clone());
        let way = "to drop it, a person blocks it first: liza mark-blocked t, then: liza abandon-task t --reason TEXT";
        assert_eq!(refusal.hint().as_deref(), Some(way), "{status}");
        let (reason, questions, attempted) = Default::default();
        let block = MarkBlocked { task: task("t"), reason, questions, attempted };
        world.must(Actor::Human, Command::from(block));
        world.must(Actor::Human, drop);
        assert_eq!(world.status("t"), Status::Abandoned, "{status}");
    }
}

/// Covers: TS-02
#[test]
fn forbidden_draft_to_claimed() {
    let mut world = World::with_task(Status::Draft);
    let actor = world.supervisor(coder(1));
    world.refused_with("not_claimable", actor, reserve("t", coder(1), base()));
    world.refused_with(
        "no_reservation",
        actor,
        Command::from(ClaimTask { task: task("t"), coder: coder(1) }),
    );
}

/// Covers: TS-02
#[test]
fn forbidden_claimed_to_merged() {
    let mut world = World::with_task(Status::Claimed);
    let actor = world.supervisor(reviewer(1));
    world.refused_with("wrong_status", actor, merged("t", sha('a')));
}

/// Covers: TS-02
#[test]
fn forbidden_claimed_to_approved() {
    let mut world = World::with_task(Status::Claimed);
    let coder = world.agent(coder(1));
    world.refused_with("not_permitted", coder, verdict("t", approved()));
    let reviewer = world.agent(reviewer(1));
    world.refused_with("wrong_status", reviewer, verdict("t", approved()));
}

/// Covers: TS-02
#[test]
fn forbidden_rejected_to_approved() {
    let mut world = World::with_task(Status::Rejected);
    let reviewer = world.agent(reviewer(1));
    world.refused_with("wrong_status", reviewer, verdict("t", approved()));
}

/// Covers: TS-02
#[test]
fn forbidden_terminal_to_anything() {
    for status in [Status::Merged, Status::Superseded, Status::Abandoned] {
        let mut world = World::with_task(status);
        world.add("other", draft());
        let by_planner = world.agent(planner());
        let by_coder = world.supervisor(coder(1));
        let by_reviewer = world.supervisor(reviewer(1));
        let tries = [
            (Actor::Human, abandon("t")),
            (Actor::Human, supersede("t", &["other"])),
            (Actor::Human, block("t")),
            (Actor::Human, release("t", true)),
            (by_planner, unblock("t")),
            (by_planner, Command::from(Finalize { tasks: vec![task("t")], unchanged_since: None })),
            (by_planner, edit("t", TaskEdit { priority: Some(1), ..TaskEdit::default() })),
            (by_coder, reserve("t", coder(1), base())),
            (world.agent(coder(1)), submit("t", sha('a'))),
            (by_reviewer, claim_review("t", reviewer(1))),
            (world.agent(reviewer(1)), verdict("t", approved())),
            (by_reviewer, merged("t", sha('a'))),
            (by_reviewer, conflict("t", sha('a'))),
        ];
        for (actor, command) in tries {
            let verb = command.verb();
            assert!(world.run(actor, command).is_err(), "{verb} on {status}");
            assert_eq!(world.status("t"), status);
        }
    }
}

/// Covers: TS-04
#[test]
fn every_step_of_a_task_is_in_its_history_and_in_the_log() {
    let mut world = World::with_task(Status::IntegrationFailed);
    world.claim("t", coder(2));
    world.submit("t", coder(2), sha('b'));
    world.verdict("t", reviewer(2), approved());
    let supervisor = world.supervisor(reviewer(2));
    world.must(supervisor, merged("t", sha('b')));
    let life = [
        "created",
        "claimed",
        "ready_for_review",
        "approved",
        "integration_failed",
        "claimed_for_integration_fix",
        "ready_for_review",
        "approved",
        "merged",
    ];
    assert_eq!(world.events("t"), life);
    let about_it = |entry: &&liza_core::model::LogEntry| entry.task == Some(task("t"));
    let logged: Vec<&str> = world.log.iter().filter(about_it).map(|entry| entry.action.as_str()).collect();
    let with_reviews: Vec<&str> = logged.into_iter().filter(|action| *action != "review_claimed").collect();
    assert_eq!(with_reviews, life);
    let merged = world.last_event("t");
    assert_eq!((merged.time, merged.agent.as_deref()), (world.now, Some("code-reviewer-2")));
    assert_eq!(merged.more["commit"].as_text(), Some(sha('b').as_str()));
}

/// Covers: TS-04
#[test]
fn events_carry_commit_reason_and_previous_coder() {
    let mut world = World::with_task(Status::Rejected);
    let rejected = world.last_event("t");
    assert_eq!(rejected.more["commit"].as_text(), Some(sha('a').as_str()));
    assert_eq!(rejected.more["reason"].as_text(), Some(FEEDBACK));
    world.must(Actor::Human, Command::from(Deregister::any(coder(1))));
    world.claim("t", coder(2));
    let claimed = world.last_event("t");
    assert_eq!(claimed.event, "reassigned_after_rejection");
    assert_eq!(claimed.agent.as_deref(), Some("coder-2"));
    assert_eq!(claimed.more["previous"].as_text(), Some("coder-1"));
}

/// Covers: TS-07
#[test]
fn each_missing_gate_keeps_a_task_a_draft() {
    type Gap = (&'static str, fn(&mut NewTask));
    let gaps: [Gap; 3] = [
        ("spec_ref", |new| new.spec_ref = None),
        ("done_when", |new| new.done_when = Some("  ".into())),
        ("scope", |new| new.scope = None),
    ];
    for (gate, gap) in gaps {
        let mut world = World::new();
        let mut new = draft();
        gap(&mut new);
        world.add("d", new.clone());
        let refusal = world.refused_with(
            "gates_missing",
            Actor::Human,
            Command::from(Finalize { tasks: vec![], unchanged_since: None }),
        );
        assert!(refusal.to_string().contains(gate), "{refusal}");
        new.draft = false;
        let straight = Command::from(AddTask { task: task("e"), new });
        world.refused_with("gates_missing", Actor::Human, straight);
        assert_eq!(world.status("d"), Status::Draft);
    }
}

/// Covers: TS-07
#[test]
fn drafts_are_finalized_all_together_or_not_at_all() {
    let mut world = World::new();
    world.add("a", draft());
    world.add("b", NewTask { scope: None, ..draft() });
    world.refused_with(
        "gates_missing",
        Actor::Human,
        Command::from(Finalize { tasks: vec![], unchanged_since: None }),
    );
    assert_eq!(world.status("a"), Status::Draft);
    world.edit_record("b", |record| record.scope = Some("the server".into()));
    world.must(Actor::Human, Command::from(Finalize { tasks: vec![], unchanged_since: None }));
    assert_eq!((world.status("a"), world.status("b")), (Status::Unclaimed, Status::Unclaimed));
    assert_eq!(world.last_log().action, "tasks_finalized");
    assert!(world.last_log().detail.contains("a, b"));
    world.refused_with(
        "nothing_to_do",
        Actor::Human,
        Command::from(Finalize { tasks: vec![], unchanged_since: None }),
    );
}

/// Covers: TS-07, IV-06
#[test]
fn a_task_cannot_depend_on_an_unknown_task() {
    let mut world = World::new();
    let on_nothing = |depends_on| NewTask { depends_on, ..ready() };
    let unknown = Command::from(AddTask { task: task("d"), new: on_nothing(vec![task("nowhere")]) });
    world.refused_with("unknown_dependency", Actor::Human, unknown);
    let itself = Command::from(AddTask { task: task("d"), new: on_nothing(vec![task("d")]) });
    world.refused_with("bad_text", Actor::Human, itself);
    world.add("d", NewTask { depends_on: vec![task("t")], ..draft() });
    world.edit_record("d", |record| record.depends_on = Some(vec![task("nowhere")]));
    world.refused_with(
        "unknown_dependency",
        Actor::Human,
        Command::from(Finalize { tasks: vec![task("d")], unchanged_since: None }),
    );
    world.add("s", draft());
    world.refused_with("unknown_dependency", Actor::Human, supersede("s", &["d"]));
}

/// Covers: TS-07
#[test]
fn only_tasks_that_are_not_started_can_be_edited() {
    for &status in Status::ALL {
        let mut world = World::with_task(status);
        let change = TaskEdit { done_when: Some("it retries twice".into()), ..TaskEdit::default() };
        if matches!(status, Status::Draft | Status::Unclaimed) {
            world.edit("t", change);
            assert_eq!(world.record("t").done_when.as_deref(), Some("it retries twice"));
            assert_eq!(world.record("t").scope.as_deref(), Some("the client"), "the rest stays");
            assert_eq!(world.status("t"), status);
        } else {
            world.refused_with("wrong_status", Actor::Human, edit("t", change));
        }
    }
}

/// Covers: TS-07
#[test]
fn an_edit_needs_at_least_one_change() {
    let mut world = World::new();
    world.refused_with("nothing_to_do", Actor::Human, edit("t", TaskEdit::default()));
    let blank = TaskEdit { scope: Some(" ".into()), ..TaskEdit::default() };
    world.refused_with("missing", Actor::Human, edit("t", blank));
    world.reserve("t", coder(1), base());
    let change = TaskEdit { priority: Some(1), ..TaskEdit::default() };
    world.refused_with("reserved", Actor::Human, edit("t", change));
}

/// Covers: AX-09, TS-07
#[test]
fn a_human_override_does_not_bypass_the_gates_of_a_draft() {
    let mut world = World::new();
    for (id, new) in [("d", NewTask { scope: None, ..draft() }), ("whole", draft())] {
        world.add(id, new);
        world.must(Actor::Human, block(id));
        assert_eq!(world.status(id), Status::Blocked);
        world.must(Actor::Human, unblock(id));
    }
    assert_eq!((world.status("d"), world.status("whole")), (Status::Draft, Status::Unclaimed));
}
