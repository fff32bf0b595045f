//! Sessions without a result, questions to the human, and who waits for whom.

use crate::supervise::{session, step};
use liza_core::model::{
    AgentStatus, Anomaly, Approval, EventName, HistoryEvent, HumanNote, Impact, RefusedResult, Revision,
    Role, Seconds, State, Status, Value,
};
use liza_core::protocol::{Command, MarkTriggersSeen, RefundSession, UnproductiveExit};
use liza_core::rules::questions::open_questions;
use liza_core::rules::triggers::{Trigger, TriggerKind, planner_triggers};
use liza_core::supervise::{EndedSession, SessionEnd, Step, after_session, frozen_time};
use liza_status::alarms::{AlarmKind, Observations, alarms};
use liza_status::needs_you::needs_you;
use liza_status::view::view;
use liza_status::words::task_facts;
use liza_testkit::team::*;

/// Covers: AC-10, AX-11
#[test]
fn time_counts_only_as_far_as_a_supervisor_saw_it_pass() {
    let frozen = |passed, ran, intended| frozen_time(Seconds(passed), Seconds(ran), Seconds(intended)).0;
    assert_eq!(frozen(3600, 5, 60), 3595, "suspended");
    assert_eq!(frozen(3600, 3600, 60), 3540, "stopped");
    assert_eq!(frozen(3600, 3600, 3600), 0, "it meant to wait");
    assert_eq!(frozen(65, 60, 60), 0, "a busy machine is not suspended");
    assert_eq!(frozen(0, 60, 60), 0, "the clock was set back");
}

/// Covers: AC-02
#[test]
fn a_session_that_obeys_a_stop_file_is_charged_to_no_one() {
    for (name, of) in [("coder-1", Some("t")), ("planner-1", None)] {
        let ended = EndedSession { halted: true, ..session(name, of) };
        for end in [SessionEnd::Code(0), SessionEnd::Code(42), SessionEnd::Stopped] {
            let next = after_session(&state_with(Status::Claimed), &ended, end);
            let refund = RefundSession { agent: agent(name), task: of.map(task) };
            assert_eq!(next.record, [Command::from(refund)], "{name} {end:?}");
            assert_eq!(next.pause, Seconds(0));
        }
        let crash = after_session(&state_with(Status::Claimed), &ended, SessionEnd::Code(1));
        assert!(!crash.record.iter().any(|command| matches!(command, Command::RefundSession(_))), "{name}");
    }
    let reviewer = EndedSession { halted: true, ..session("code-reviewer-1", Some("t")) };
    let next = after_session(&state_with(Status::ReadyForReview), &reviewer, SessionEnd::Code(0));
    assert!(!next.record.iter().any(|command| matches!(command, Command::CountExit(_))));
}

/// Covers: MM-07
#[test]
fn a_session_whose_work_could_not_leave_the_machine_is_charged_to_no_one() {
    let ended = EndedSession { remote_failed: true, has_commits: true, ..session("coder-1", Some("t")) };
    for end in [SessionEnd::Code(0), SessionEnd::Code(1), SessionEnd::Signal(9)] {
        let next = after_session(&state_with(Status::Claimed), &ended, end);
        let refund = RefundSession { agent: agent("coder-1"), task: Some(task("t")) };
        assert_eq!((next.record, next.progress), (vec![Command::from(refund)], false), "{end:?}");
    }
    let submitted = after_session(&state_with(Status::ReadyForReview), &ended, SessionEnd::Code(0));
    assert!(submitted.progress, "a result counts, whatever happened on the way");
}

/// Covers: AC-09
#[test]
fn new_commits_are_no_idle_exit() {
    let committed = EndedSession { has_commits: true, ..session("coder-1", Some("t")) };
    let next = after_session(&state_with(Status::Claimed), &committed, SessionEnd::Code(0));
    assert_eq!((next.record, next.progress), (Vec::new(), false));
    let crashed = after_session(&state_with(Status::Claimed), &committed, SessionEnd::Signal(9));
    assert!(matches!(crashed.record.as_slice(), [Command::CountExit(_)]), "a crash counts");
}

/// Covers: AX-20
#[test]
fn a_session_whose_result_was_refused_is_no_crash_and_counts_even_with_commits() {
    let refusal = Some(RefusedResult { verb: "submit-for-review", why: "no".to_owned() });
    for has_commits in [false, true] {
        let ended = EndedSession { has_commits, refusal: refusal.clone(), ..session("coder-1", Some("t")) };
        for end in [SessionEnd::Code(0), SessionEnd::Code(1)] {
            let next = after_session(&state_with(Status::Claimed), &ended, end);
            let counted = matches!(next.record.as_slice(),
                [Command::CountExit(count)] if count.exit == UnproductiveExit::Refused);
            assert!(counted, "{has_commits} {end:?}: {:?}", next.record);
        }
        let killed = after_session(&state_with(Status::Claimed), &ended, SessionEnd::Signal(9));
        assert!(
            matches!(killed.record.as_slice(), [Command::CountExit(count)] if count.exit == UnproductiveExit::Crash)
        );
        let done = after_session(&state_with(Status::ReadyForReview), &ended, SessionEnd::Code(1));
        assert!(done.progress, "a result counts, whatever was refused before it");
    }
}

fn trigger(kind: TriggerKind, key: &str) -> Trigger {
    Trigger { kind, subject: "x".to_owned(), detail: String::new(), key: key.to_owned() }
}

/// Covers: AC-01, AC-07
#[test]
fn a_trigger_is_used_up_by_a_result_and_what_needs_a_decision_by_the_decision_only() {
    let triggers = [
        trigger(TriggerKind::InitialPlanning, "plan"),
        trigger(TriggerKind::BlockedTasks, "blocked"),
        trigger(TriggerKind::SprintCompleted, "goal"),
    ];
    let planner = EndedSession { triggers: triggers.into(), ..session("planner-1", None) };
    let mut state = state_with(Status::Unclaimed);
    entry(&mut state, "planner-1").last_result = Some(Revision(61));
    let seen = |state: &State| match after_session(state, &planner, SessionEnd::Code(0)).record.as_slice() {
        [Command::MarkTriggersSeen(MarkTriggersSeen { keys })] => keys.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(seen(&state), ["blocked"]);
    let mut asked = state.clone();
    asked.journal.anomalies.push(question(None, "Which database?"));
    assert_eq!(seen(&asked), ["plan", "blocked", "goal"], "it waits for the human");
    entry(&mut state, "planner-1").status = AgentStatus::Handoff;
    assert!(seen(&state).is_empty(), "the next session goes on with all of them");
}

fn question(about: Option<&str>, text: &str) -> Anomaly {
    Anomaly {
        timestamp: now(),
        task: about.map(task),
        reporter: Some("planner-1".to_owned()),
        kind: "spec_gap".to_owned(),
        details: [("question".to_owned(), Value::from(text))].into_iter().collect(),
    }
}

/// Covers: AC-03
#[test]
fn a_question_is_shown_until_the_human_answers_and_then_wakes_the_planner() {
    let mut state = state_with(Status::Unclaimed);
    state.journal.anomalies.push(question(None, "Which database?"));
    let [open] = open_questions(&state).try_into().unwrap();
    assert_eq!((open.by.as_str(), open.text.as_str()), ("planner-1", "Which database?"));
    let found = alarms(&state, &Observations::default(), now());
    let asked = found.iter().find(|alarm| alarm.kind == AlarmKind::Question).unwrap();
    assert_eq!(asked.text, "planner-1 asks about the goal: Which database?");
    let needs = needs_you(&state, &Observations::default(), &found, now());
    assert!(
        needs.iter().any(|need| need.command == "liza note \"...\"" && need.text.contains("Which database?"))
    );
    let mut planned = state.clone();
    edit_task(&mut planned, "t", |record| record.created = Some(now() + Seconds(60)));
    assert!(open_questions(&planned).is_empty(), "the planner has made the first plan without an answer");
    edit_task(&mut planned, "t", |record| {
        let created = HistoryEvent::new(now(), EventName::Created, "human");
        record.history = Some(vec![created]);
    });
    assert_eq!(open_questions(&planned).len(), 1, "a person's task is no plan");
    let (timestamp, message) = (now() + Seconds(5), "SQLite".to_owned());
    state.journal.human_notes.push(HumanNote { timestamp, message, to: None });
    assert!(open_questions(&state).is_empty());
    let triggers = planner_triggers(&state, now() + Seconds(6));
    let answered = triggers.iter().find(|trigger| trigger.kind == TriggerKind::QuestionAnswered).unwrap();
    assert!(
        answered.detail.contains("Which database?") && answered.detail.contains("SQLite"),
        "{answered:?}"
    );
}

/// Covers: AC-08
#[test]
fn a_review_that_every_running_reviewer_dropped_needs_the_human() {
    let mut state = state_with(Status::ReadyForReview);
    let kinds = |state: &State| -> Vec<AlarmKind> {
        alarms(state, &Observations::default(), now()).iter().map(|alarm| alarm.kind).collect()
    };
    let mut dropped = record("t", Status::ReadyForReview);
    dropped.review_dropped_by = Some(vec![agent("code-reviewer-1")]);
    state.board.put(task("t"), dropped.clone());
    assert!(!kinds(&state).contains(&AlarmKind::ReviewDropped), "code-reviewer-2 can take it");
    assert!(matches!(step(&state, "code-reviewer-1"), Step::Wait { .. }));
    dropped.review_dropped_by = Some(vec![agent("code-reviewer-1"), agent("code-reviewer-2")]);
    state.board.put(task("t"), dropped);
    assert!(kinds(&state).contains(&AlarmKind::ReviewDropped));
    let shown = view(&state, &Observations::default(), now());
    let need = shown.needs_you.iter().find(|need| need.kind == AlarmKind::ReviewDropped).unwrap();
    assert_eq!(need.command, "liza submit-verdict t APPROVED", "nobody has asked anything");
    assert!(need.text.contains("liza diff t") && need.text.contains("t REJECTED"), "{}", need.text);
}

/// Covers: JU-09
#[test]
fn a_second_reviewer_that_is_missing_for_longer_than_a_lease_needs_the_human() {
    let mut state = state_with(Status::ReadyForReview);
    let mut once = record("t", Status::ReadyForReview);
    once.impact = Some(Impact::High);
    let (commit, first) = (once.review_commit.clone().unwrap(), agent("code-reviewer-1"));
    let approval = Approval { agent: first, program: None, model: None, commit, head: None };
    once.approvals = Some(vec![approval]);
    let event = HistoryEvent::new(now(), EventName::Approved, first).with("first_of", "2");
    once.history.get_or_insert_default().push(event);
    (once.reviewing_by, once.review_lease_expires) = (None, None);
    state.board.put(task("t"), once);
    let seen = Observations::default();
    let found = |state: &State, seconds| {
        let later = now() + Seconds(seconds);
        let mut alive = state.clone();
        agents(&mut alive).values_mut().for_each(|entry| entry.lease_expires = Some(later + Seconds(60)));
        let shown = view(&alive, &seen, later);
        let mut needs = shown.needs_you.into_iter();
        let need = needs.find(|need| need.kind == AlarmKind::SecondReviewer);
        (need, task_facts(&shown.tasks[0]).join("; "), shown.tasks[0].next.to_string())
    };
    let (need, words, _) = found(&state, 1000);
    assert!(need.is_none(), "code-reviewer-2 can take it");
    assert!(words.contains("high impact, 1 of 2 approvals (code-reviewer-1)"), "{words}");
    agents(&mut state).shift_remove(&agent("code-reviewer-2"));
    assert!(matches!(step(&state, "code-reviewer-1"), Step::Wait { .. }), "it is not offered again");
    assert!(found(&state, 299).0.is_none(), "another one may come");
    let (need, _, next) = found(&state, 300);
    let need = need.unwrap();
    assert_eq!(need.command, "liza submit-verdict t APPROVED");
    assert!(need.text.contains("the plan says so") && need.text.contains("liza diff t"), "{}", need.text);
    assert!(need.text.contains("liza agent code-reviewer"), "{}", need.text);
    assert!(next.contains("you"), "{next}");
}

/// Covers: JU-06
#[test]
fn work_that_takes_back_what_others_merged_is_shown_to_the_human_until_it_is_judged() {
    let mut state = state_with(Status::ReadyForReview);
    let mut taking = record("t", Status::ReadyForReview);
    taking.takes_back = Some(vec!["merge 1234567: fix.txt".to_owned()]);
    state.board.put(task("t"), taking.clone());
    let seen = Observations::default();
    let found = alarms(&state, &seen, now());
    let needs = needs_you(&state, &seen, &found, now());
    let need = needs.iter().find(|need| need.kind == AlarmKind::TakesBack).unwrap();
    assert_eq!((need.kind.to_string().as_str(), need.command.as_str()), ("TAKES BACK", "liza diff t"));
    assert!(need.text.contains("merge 1234567: fix.txt"), "{}", need.text);
    taking.status = Some(Status::Claimed);
    state.board.put(task("t"), taking);
    let kinds: Vec<AlarmKind> = alarms(&state, &seen, now()).iter().map(|alarm| alarm.kind).collect();
    assert!(!kinds.contains(&AlarmKind::TakesBack), "{kinds:?}");
}

/// Covers: AX-03
#[test]
fn a_person_sends_back_what_is_merged_by_its_status_alone() {
    let state = with(Status::ReadyForReview, |record| record.status = Some(Status::Merged));
    let found = alarms(&state, &Observations::default(), now());
    let needs = needs_you(&state, &Observations::default(), &found, now());
    let need = needs.iter().find(|need| need.kind == AlarmKind::NoApproval).unwrap();
    assert_eq!(need.command, "liza submit-verdict t REJECTED \"...\"", "a merge of it is unknown to git");
}

/// Covers: AC-08
#[test]
fn work_without_a_running_agent_of_its_role_needs_the_human() {
    let mut state = state_with(Status::ReadyForReview);
    agents(&mut state).retain(|id, _| id.role() != Role::CodeReviewer);
    let later = now() + Seconds(200);
    let found = alarms(&state, &Observations::default(), later);
    let missing = found.iter().find(|alarm| alarm.kind == AlarmKind::RoleMissing).unwrap();
    assert!(missing.text.contains("no Code Reviewer is running"), "{missing:?}");
    let needs = needs_you(&state, &Observations::default(), &found, later);
    assert!(needs.iter().any(|need| need.command == "liza agent code-reviewer"), "{needs:?}");
}
