//! The planner's prompt, for every trigger.

use insta::assert_snapshot;
use liza_agents::prompts::Job;
use liza_core::model::{
    Alignment, Decision, Discovery, DiscoveryId, EventName, Loaded, Severity, SprintStatus, State, Status,
    TaskRecord, Urgency, Worktree,
};
use liza_core::rules::triggers::planner_triggers;

use crate::fixture::*;

/// The planner's prompt for the triggers that the rules find.
#[track_caller]
fn planner_prompt(state: &State) -> String {
    let triggers = planner_triggers(state, now());
    prompt_of(state, &brief("planner-1"), &Job::Plan { triggers })
}

fn blocked(id: &str, priority: i64, minutes: u64) -> TaskRecord {
    let mut record = record(id, Status::Blocked);
    record.priority = Some(priority);
    record.created = Some(ago(minutes));
    record.blocked_reason = Some("specs/retry.md does not say how often".to_owned());
    record.blocked_questions = Some(vec!["How many attempts?".to_owned(), "Is 429 retried?".to_owned()]);
    record.attempted = Some(vec!["looked for a limit in all specs".to_owned()]);
    record.failed_by = Some(vec![agent("coder-1")]);
    record
}

/// Covers: AG-10, AG-11, AG-20
#[test]
fn initial_planning() {
    let mut state = empty_state();
    note(&mut state, "Orders first", None);
    assert_snapshot!(planner_prompt(&state));
}

/// Covers: AG-11, AG-20
#[test]
fn blocked_tasks_by_priority_then_age() {
    let mut state = state_with([
        blocked("young", 2, 10),
        blocked("old", 2, 90),
        blocked("urgent", 1, 5),
        record("next", Status::Draft),
    ]);
    let summary = "Two of five done".to_owned();
    state.journal.alignment_history =
        vec![Alignment { timestamp: ago(50), event: "alignment".to_owned(), summary }];
    let text = planner_prompt(&state);
    let place = |id: &str| text.find(&format!("TASK: {id} (")).unwrap();
    assert!(place("urgent") < place("old") && place("old") < place("young"), "{text}");
    assert_snapshot!(text);
}

/// Covers: AG-11, LM-07
#[test]
fn review_deadlock() {
    let mut record = blocked(TASK, 2, 90);
    record.blocked_reason = Some("review_deadlock".to_owned());
    record.attempted = None;
    record.failed_by = None;
    record.review_cycles_current = Some(5);
    record.worktree = Some(liza_core::model::Worktree::of(&task(TASK)));
    add(&mut record, [rejected(), rejected()]);
    assert_snapshot!(planner_prompt(&state_with([record])));
}

/// Covers: AG-11, LM-04
#[test]
fn hypothesis_exhausted() {
    let mut record = blocked(TASK, 2, 90);
    record.failed_by = Some(vec![agent("coder-1"), agent("coder-2")]);
    assert_snapshot!(planner_prompt(&state_with([record])));
}

/// A task whose merge failed.
fn failed_merge(id: &str) -> TaskRecord {
    TaskRecord {
        assigned_to: Some(agent("coder-1")),
        worktree: Some(Worktree::of(&task(id))),
        review_commit: Some(sha('b')),
        ..record(id, Status::IntegrationFailed)
    }
}

/// Covers: AG-11
#[test]
fn integration_failed() {
    let mut failing = failed_merge(TASK);
    let failed = event(9, EventName::IntegrationFailed, "code-reviewer-1").with("reason", "conflict");
    add(&mut failing, [failed.clone(), failed.with("files", vec!["src/orders.rs".to_owned()])]);
    assert_snapshot!(planner_prompt(&state_with([failing, record("done", Status::Merged)])));
}

fn discovery(number: u32, urgency: Urgency, severity: Severity) -> Discovery {
    Discovery {
        id: DiscoveryId(number),
        by: Some("coder-1".to_owned()),
        during: Some(task(TASK)),
        description: "The HTTP client has no timeout".to_owned(),
        severity,
        urgency,
        recommendation: Some("Add a configurable timeout".to_owned()),
        created: Some(ago(3)),
        dismissed: None,
        converted_to_task: None,
    }
}

/// Covers: RO-06
#[test]
fn a_discovery_without_end_is_cut_and_a_usual_one_is_whole() {
    let long = |length: usize| Discovery {
        description: "word ".repeat(length / 5),
        ..discovery(1, Urgency::Immediate, Severity::High)
    };
    let prompt_with = |found: Discovery| {
        let mut state = state_with([claimed()]);
        state.board.discovered = Loaded::Ready(vec![found]);
        planner_prompt(&state).len()
    };
    let without = prompt_with(long(0));
    assert!(prompt_with(long(8_000)) - without >= 7_999);
    assert!(prompt_with(long(900_000)) - without < 5_000);
}

/// Covers: AG-11, AG-20, NT-03
#[test]
fn immediate_discovery() {
    let mut state = state_with([claimed()]);
    let mut converted = discovery(4, Urgency::Deferred, Severity::Critical);
    converted.converted_to_task = Some(task(TASK));
    state.board.discovered = Loaded::Ready(vec![
        discovery(1, Urgency::Deferred, Severity::Low),
        discovery(2, Urgency::Immediate, Severity::Critical),
        discovery(3, Urgency::Deferred, Severity::High),
        converted,
    ]);
    let text = planner_prompt(&state);
    assert!(!text.contains("disc-4"), "{text}");
    assert!(text.find("disc-3 (high") < text.find("disc-1 (low"), "{text}");
    assert_snapshot!(text);
}

/// Covers: AG-11, LM-08
#[test]
fn dead_dependency() {
    let mut waiting = record(TASK, Status::Unclaimed);
    waiting.depends_on = Some(vec![task("dropped")]);
    assert_snapshot!(planner_prompt(&state_with([waiting, record("dropped", Status::Abandoned)])));
}

/// Covers: AG-11, SP-01
#[test]
fn sprint_completed() {
    let mut state = state_with([record("done", Status::Merged), record("dropped", Status::Abandoned)]);
    if let Loaded::Ready(sprint) = &mut state.board.sprint {
        sprint.status = SprintStatus::Completed;
        let decision = "replan".to_owned();
        sprint.decisions =
            vec![Decision { timestamp: ago(40), decision, note: Some("Payments can wait".to_owned()) }];
    }
    assert_snapshot!(planner_prompt(&state));
}

/// Covers: AG-20
#[test]
fn every_counter_is_present_and_correct() {
    let mut exhausted = blocked("x", 3, 9);
    exhausted.failed_by = Some(vec![agent("coder-1"), agent("coder-2")]);
    let mut state = state_with([
        record("a", Status::Merged),
        record("b", Status::ReadyForReview),
        failed_merge("c"),
        record("d", Status::Unclaimed),
        record("e", Status::Draft),
        record("f", Status::Superseded),
        exhausted,
    ]);
    state.board.discovered = Loaded::Ready(vec![discovery(1, Urgency::Immediate, Severity::High)]);
    let text = planner_prompt(&state);
    let counters = "total: 7\nmerged: 1\nin_progress: 2\nunclaimed: 1\nblocked: 1\nintegration_failed: 1\n\
                    hypothesis_exhausted: 1\nimmediate_discoveries: 1\ndraft: 1\nabandoned_or_superseded: 1\n";
    assert!(text.contains(counters), "{text}");
    let first = "WAKE TRIGGER: HYPOTHESIS_EXHAUSTED\nALSO WAITING: INTEGRATION_FAILED, IMMEDIATE_DISCOVERY, NEW_DRAFT\n";
    assert!(text.contains(first), "{text}");
}

/// Covers: AG-11, NT-02
#[test]
fn without_a_trigger_the_planner_changes_nothing_and_reads_its_handoff() {
    let mut state = state_with([claimed()]);
    handoff(&mut state, "planner-1");
    let text = planner_prompt(&state);
    assert!(text.contains("WAKE TRIGGER: NONE") && text.contains("change nothing"), "{text}");
    assert!(text.contains("HANDOFF NOTES (from planner-1,"), "{text}");
}

/// Covers: AC-17, AG-11
#[test]
fn an_exhausted_task_shows_all_failed_attempts() {
    let mut record = blocked(TASK, 2, 90);
    record.failed_by = Some(vec![agent("coder-1"), agent("coder-2")]);
    let first = event(60, EventName::Blocked, "coder-1")
        .with("reason", "no limit in the spec")
        .with("questions", vec!["How many?".to_owned()])
        .with("attempted", vec!["three".to_owned()]);
    let handed =
        event(50, EventName::Handoff, "coder-2").with("summary", "half done").with("next_action", "go on");
    let current =
        event(10, EventName::Blocked, "coder-2").with("reason", "specs/retry.md does not say how often");
    add(&mut record, [first, handed, rejected(), current]);
    let text = planner_prompt(&state_with([record]));
    for expected in [
        "EARLIER ATTEMPTS, oldest first",
        "coder-1 blocked: no limit in the spec",
        ">   Questions: How many?",
        ">   Tried: three",
        "coder-2 handed off: half done",
        ">   Next: go on",
        "code-reviewer-1 rejected: Blockers: 1",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("coder-2 blocked: specs/retry.md"), "shown as `Blocked by`: {text}");
}

/// Covers: SP-07
#[test]
fn a_task_that_the_human_blocked_has_its_own_instructions() {
    let mut by_hand = blocked(TASK, 2, 90);
    by_hand.blocked_reason = Some("human override".to_owned());
    let mut by_command = blocked(TASK, 2, 90);
    by_command.worktree = Some(Worktree::of(&task(TASK)));
    add(&mut by_command, [event(10, EventName::Blocked, "human").with("reason", "wrong direction")]);
    for (record, command) in [
        (by_hand, "liza unblock-task retry-orders --assessment"),
        (by_command, "liza unblock-task retry-orders --keep-worktree --assessment"),
    ] {
        let text = planner_prompt(&state_with([record]));
        assert!(text.contains("HUMAN OVERRIDE: the human blocked retry-orders"), "{text}");
        assert!(text.contains(command), "{text}");
    }
    assert!(!planner_prompt(&state_with([blocked(TASK, 2, 90)])).contains("HUMAN OVERRIDE"));
}

/// Covers: AG-20
#[test]
fn the_planner_judges_the_goal_in_a_copy_of_the_integration_branch() {
    let mut state = state_with([record("done", Status::Merged)]);
    if let Loaded::Ready(sprint) = &mut state.board.sprint {
        sprint.status = SprintStatus::Completed;
    }
    let mut brief = brief("planner-1");
    brief.integration_copy = Some("/home/dev/shop/.worktrees/.integration-test-7-0".into());
    let triggers = planner_triggers(&state, now());
    let text = prompt_of(&state, &brief, &Job::Plan { triggers });
    assert!(text.contains("INTEGRATION COPY: /home/dev/shop/.worktrees/.integration-test-7-0\n"), "{text}");
    assert!(text.contains("by running them in the INTEGRATION COPY"), "{text}");
}

/// Covers: AC-07, NT-02
#[test]
fn a_planner_reads_the_notes_that_it_left_under_the_goal() {
    let mut state = state_with([claimed()]);
    let goal = liza_core::protocol::goal_key(state.board.goal.ready().unwrap()).unwrap();
    handoff(&mut state, "planner-1");
    if let Loaded::Ready(all) = &mut state.board.handoff {
        let notes = all.shift_remove(&task(TASK)).unwrap();
        all.insert(goal, notes);
    }
    let text = planner_prompt(&state);
    assert!(text.contains("HANDOFF NOTES (from planner-1,"), "{text}");
    assert!(text.contains("\n/usr/local/bin/liza handoff --summary"), "{text}");
}
