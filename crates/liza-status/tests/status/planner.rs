//! The planner: when it fails, what it was woken for, and what it does.

use crate::supervise::session;
use liza_core::model::{
    Actor, AgentStatus, Alignment, Anomaly, EventName, HistoryEvent, Loaded, OpenSession, PlannerExits,
    Revision, Seconds, State, Status, TaskRecord, Value,
};
use liza_core::protocol::{AbandonTask, Command, apply};
use liza_core::rules::triggers::planner_triggers;
use liza_core::supervise::{EndedSession, SessionEnd, after_session, unseen_triggers};
use liza_status::alarms::{AlarmKind, Observations, alarms};
use liza_status::view::view;
use liza_status::words::{agent_doing, task_facts};
use liza_testkit::team::*;

/// A draft that the human has added in one line.
fn with_draft() -> State {
    let mut state = state_with(Status::Unclaimed);
    let created = HistoryEvent::new(now(), EventName::Created, "human");
    let (done_when, scope, history) = (None, None, Some(vec![created]));
    let draft = TaskRecord { done_when, scope, history, ..record("a-page", Status::Draft) };
    state.board.put(task("a-page"), draft);
    state
}

/// Covers: AC-01, UI-03
#[test]
fn a_stopped_planner_says_what_it_was_woken_for() {
    let mut state = with_draft();
    let sprint = sprint(&mut state);
    let last_words = Some("Done. The turn ends here.".to_owned());
    sprint.planner_exits = PlannerExits { count: 5, last_words, ..PlannerExits::default() };
    let found = alarms(&state, &Observations::default(), now());
    let stopped = found.iter().find(|alarm| alarm.kind == AlarmKind::PlannerStopped).unwrap();
    assert_eq!(
        stopped.text,
        "5 planning sessions in a row ended without a result; woken because a-page is a draft to complete; \
         the last one ended with: Done. The turn ends here. If it asks something, answer first: liza note \"...\"; \
         or drop the draft: liza abandon-task a-page --reason TEXT"
    );
}

fn do_it(state: &mut State, actor: Actor, command: Command) {
    let change = apply(&state.board, &request(actor, command)).unwrap().change;
    state.board.sprint = Loaded::Ready(change.sprint.unwrap());
}

fn stopped_text(state: &State) -> Option<String> {
    let found = alarms(state, &Observations::default(), now()).into_iter();
    found.filter(|alarm| alarm.kind == AlarmKind::PlannerStopped).map(|alarm| alarm.text.to_string()).next()
}

/// Covers: AC-01, UI-03
#[test]
fn a_stopped_planner_keeps_the_reason_of_its_stop() {
    let state = with_draft();
    let triggers = planner_triggers(&state, now());
    let ended = EndedSession { triggers, ..session("planner-1", None) };
    let next = after_session(&state, &ended, SessionEnd::Code(0));
    let Some(Command::CountPlannerExit(count)) = next.record.into_iter().next() else {
        panic!("not counted")
    };
    assert_eq!(count.woken_because.as_deref(), Some("a-page is a draft to complete"));
    let mut state = state;
    for _ in 0..5 {
        let planner = Actor::Supervisor(agent("planner-1"), generation(agent("planner-1")));
        do_it(&mut state, planner, count.clone().into());
    }
    // Something else wakes it later; what it failed at does not change.
    state.board.put(task("t"), record("t", Status::Blocked));
    let text = stopped_text(&state).unwrap();
    assert!(text.contains("woken because a-page is a draft to complete;"), "{text}");
    let drop = AbandonTask { task: task("a-page"), reason: "not needed".to_owned() };
    do_it(&mut state, Actor::Human, drop.into());
    assert_eq!(stopped_text(&state), None, "its cause is gone");
}

/// Covers: AC-01, UI-03
#[test]
fn a_planner_goes_on_when_the_cause_of_its_stop_is_gone_however_it_ended() {
    let planner = Actor::Supervisor(agent("planner-1"), generation(agent("planner-1")));
    let fails = |state: &mut State, times: usize| {
        for _ in 0..times {
            let ended =
                EndedSession { triggers: unseen_triggers(state, now()), ..session("planner-1", None) };
            let next = after_session(state, &ended, SessionEnd::Code(0));
            let count =
                next.record.into_iter().find(|command| matches!(command, Command::CountPlannerExit(_)));
            do_it(state, planner, count.unwrap());
        }
    };
    let shown = |state: &State| {
        let view = view(state, &Observations::default(), now());
        view.agents
            .into_iter()
            .find(|shown| shown.id == agent("planner-1"))
            .and_then(|shown| shown.next.retry())
    };
    for ended in [Status::Superseded, Status::Abandoned, Status::Unclaimed] {
        let mut state = empty_state();
        state.board.put(task("t"), record("t", Status::Blocked));
        fails(&mut state, 5);
        assert!(stopped_text(&state).unwrap().contains("t is blocked"), "{:?}", stopped_text(&state));
        // Another matter does not end it; the end of its own does.
        state.board.put(task("u"), record("u", Status::Blocked));
        assert!(stopped_text(&state).is_some());
        state.board.put(task("t"), record("t", ended));
        assert_eq!((stopped_text(&state), shown(&state)), (None, None), "{ended:?}");
        // The next matter has all its tries.
        fails(&mut state, 4);
        assert_eq!(stopped_text(&state), None);
        fails(&mut state, 1);
        assert!(stopped_text(&state).unwrap().contains("woken because u is blocked"));
    }
}

/// Covers: UI-01, UI-03
#[test]
fn an_agent_that_has_asked_or_was_stopped_waits_for_the_human_and_not_for_work() {
    let mut state = empty_state();
    state.board.put(task("u"), record("u", Status::Unclaimed));
    let shown = |state: &State, id: &str| {
        let view = view(state, &Observations::default(), now());
        let shown = view.agents.into_iter().find(|shown| shown.id == agent(id)).unwrap();
        (shown.next.to_string(), agent_doing(&shown))
    };
    let words = |next: &str, doing: &str| (next.to_owned(), doing.to_owned());
    entry(&mut state, "planner-1").status = AgentStatus::Waiting;
    assert_eq!(shown(&state, "planner-1"), words("planner-1 waits for work", "WAITING until needed"));
    let asked = Anomaly {
        timestamp: now(),
        task: None,
        reporter: Some("planner-1".to_owned()),
        kind: "system_ambiguity".to_owned(),
        details: [("question".to_owned(), Value::from("Which unit?"))].into_iter().collect(),
    };
    state.journal.anomalies.push(asked);
    assert_eq!(
        shown(&state, "planner-1"),
        words("planner-1 waits for your answer", "WAITING for your answer")
    );
    state.journal.anomalies.clear();
    state.board.put(task("t"), record("t", Status::Blocked));
    sprint(&mut state).planner_exits = PlannerExits { count: 5, ..PlannerExits::default() };
    let stopped = words("planner-1 waits for you; it has stopped", "WAITING for you");
    assert_eq!(shown(&state, "planner-1"), stopped);
}

/// Covers: UI-01, UI-03
#[test]
fn a_draft_says_who_completes_it() {
    let state = with_draft();
    let shown = view(&state, &Observations::default(), now());
    let draft = shown.tasks.iter().find(|shown| shown.id == task("a-page")).unwrap();
    assert_eq!(task_facts(draft)[0], "the planner completes it");
}

/// Covers: AC-01
#[test]
fn a_planner_that_leaves_the_goal_without_any_plan_has_no_result() {
    let mut state = empty_state();
    goal(&mut state).planned = false;
    let triggers = planner_triggers(&state, now());
    assert_eq!(triggers.len(), 1, "{triggers:?}");
    // It has aligned, which is a result for every other trigger.
    let entry = entry(&mut state, "planner-1");
    (entry.last_result, entry.status) = (Some(Revision(9)), AgentStatus::Planning);
    let ended = EndedSession { began_at: Revision(5), triggers, ..session("planner-1", None) };
    let next = after_session(&state, &ended, SessionEnd::Code(0));
    assert!(!next.progress && next.pause.0 > 0, "{next:?}");
    // With a draft, it has begun to plan.
    state.board.put(task("d"), TaskRecord { revision: Some(Revision(8)), ..record("d", Status::Draft) });
    assert!(after_session(&state, &ended, SessionEnd::Code(0)).progress);
    let other = EndedSession { triggers: Vec::new(), ..ended };
    assert!(after_session(&state, &other, SessionEnd::Code(0)).progress);
}

fn planner_does(state: &State) -> String {
    let shown = view(state, &Observations::default(), now());
    agent_doing(shown.agents.iter().find(|shown| shown.id == agent("planner-1")).unwrap())
}

/// Covers: UI-01, UI-03
#[test]
fn a_planner_that_looks_at_a_blocked_task_is_not_planning() {
    let mut state = state_with(Status::Blocked);
    entry(&mut state, "planner-1").status = AgentStatus::Planning;
    assert_eq!(planner_does(&state), "LOOKING at t");
    goal(&mut state).planned = false;
    state.board.put(task("t"), record("t", Status::Draft));
    assert_eq!(planner_does(&state), "PLANNING");
}

/// Covers: UI-01, UI-03
#[test]
fn a_planner_that_tries_again_says_which_try_it_is() {
    let mut state = with_draft();
    sprint(&mut state).planner_exits.count = 4;
    entry(&mut state, "planner-1").status = AgentStatus::Planning;
    assert_eq!(planner_does(&state), "PLANNING, try 5 of 5");
    sprint(&mut state).planner_exits.count = 0;
    assert_eq!(planner_does(&state), "PLANNING");
}

/// Covers: UI-01, UI-03
#[test]
fn a_planner_without_a_goal_waits_for_one() {
    let mut state = empty_state();
    assert_eq!(planner_does(&state), "WAITING to plan");
    let goal = goal(&mut state);
    goal.description.clear();
    assert_eq!(planner_does(&state), "WAITING for a goal");
}

fn needs(state: &State) -> Vec<(String, String)> {
    let needs = view(state, &Observations::default(), now()).needs_you;
    needs.into_iter().map(|need| (need.kind.to_string(), need.command.to_string())).collect()
}

/// The planner has looked at everything, and has left it.
fn look(state: &mut State) {
    let keys: Vec<String> = planner_triggers(state, now()).into_iter().map(|trigger| trigger.key).collect();
    sprint(state).seen_triggers = keys;
}

/// Covers: UI-03, UI-12
#[test]
fn a_draft_that_the_planner_has_left_waits_for_the_human() {
    let mut state = with_draft();
    assert_eq!(needs(&state), [], "the planner looks at it");
    look(&mut state);
    let complete = "liza edit-task a-page --done \"...\" --scope \"...\"";
    assert_eq!(needs(&state), [("DRAFT".to_owned(), complete.to_owned())]);
    let shown = view(&state, &Observations::default(), now());
    let draft = shown.tasks.iter().find(|shown| shown.id == task("a-page")).unwrap();
    assert_eq!((draft.next.to_string().as_str(), draft.command.as_deref()), ("you decide", Some(complete)));
    assert_eq!(task_facts(draft), ["you decide"]);
    entry(&mut state, "planner-1").status = AgentStatus::Planning;
    assert_eq!(needs(&state), [], "a session runs that may be about it");
    let session =
        OpenSession { began: now() - Seconds(99), result: Some(now() - Seconds(9)), about: Vec::new() };
    entry(&mut state, "planner-1").session = Some(session);
    let aligned =
        Alignment { timestamp: now() - Seconds(9), event: "alignment".into(), summary: "as planned".into() };
    state.journal.alignment_history = vec![aligned];
    sprint(&mut state).seen_triggers.clear();
    assert_eq!(needs(&state).len(), 1, "it has decided about the rest, and ends");
}

/// A planning session may finalize some of its drafts and end: the rest must not keep the sprint open for ever.
///
/// Covers: UI-03, SP-01, AG-11
#[test]
fn a_draft_that_a_planning_session_forgot_wakes_the_planner_once_more() {
    let mut state = state_with(Status::Merged);
    state.board.put(task("rest"), record("rest", Status::Draft));
    let kinds: Vec<String> =
        planner_triggers(&state, now()).into_iter().map(|one| one.kind.to_string()).collect();
    assert_eq!(kinds, ["NEW_DRAFT"]);
    look(&mut state);
    assert_eq!(needs(&state), [("DRAFT".to_owned(), "liza finalize rest".to_owned())]);
}

/// Covers: UI-03, UI-12
#[test]
fn a_complete_draft_of_the_human_is_left_to_the_human() {
    let mut state = state_with(Status::Unclaimed);
    let history = Some(vec![HistoryEvent::new(now(), EventName::Created, "human")]);
    state.board.put(task("mine"), TaskRecord { history, ..record("mine", Status::Draft) });
    assert_eq!(planner_triggers(&state, now()), []);
    assert_eq!(needs(&state), [("DRAFT".to_owned(), "liza finalize mine".to_owned())]);
}

/// Covers: UI-03
#[test]
fn a_task_that_waits_for_an_abandoned_one_waits_for_the_human_once_the_planner_has_left_it() {
    let mut state = state_with(Status::Abandoned);
    let waiting = TaskRecord { depends_on: Some(vec![task("t")]), ..record("next", Status::Unclaimed) };
    state.board.put(task("next"), waiting.clone());
    assert_eq!(needs(&state), [], "the planner looks at it");
    look(&mut state);
    let free = "liza edit-task next --depends \"\"".to_owned();
    assert_eq!(needs(&state), [("DEAD DEPENDENCY".to_owned(), free)]);
    state.board.put(task("other"), record("other", Status::Claimed));
    let both = Some(vec![task("other"), task("t")]);
    state.board.put(task("next"), TaskRecord { depends_on: both, ..waiting.clone() });
    assert_eq!(needs(&state)[0].1, "liza edit-task next --depends other", "what lives is kept");
    let status = Some(Status::Rejected);
    let rejected = TaskRecord { depends_on: waiting.depends_on, status, ..record("next", Status::Rejected) };
    state.board.put(task("next"), rejected);
    look(&mut state);
    assert_eq!(needs(&state)[0].1, "liza abandon-task next --reason \"...\"", "it cannot be edited");
}
