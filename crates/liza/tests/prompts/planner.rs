//! The planner's prompt, for every trigger.

use insta::assert_snapshot;
use liza::prompts::Job;
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
    let first = "WAKE TRIGGER: HYPOTHESIS_EXHAUSTED\nALSO WAITING: INTEGRATION_FAILED, IMMEDIATE_DISCOVERY\n";
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
