//! Who is waited for: an agent program, the planner or the human.

use liza_core::model::{
    AgentStatus, ClientHold, ClientRecord, EventName, FaultKind, GoalStatus, HistoryEvent, OpenSession,
    Seconds, SessionSummary, SprintStatus, State, Status, StopFileTimes, Usage,
};
use liza_status::alarms::{AlarmKind, MissingLogin, Observations, RunningMerge};
use liza_status::needs_you::NeedsYou;
use liza_status::view::{AgentView, View, view};
use liza_status::words::{
    agent_activity, agent_doing, is_well, next_steps, stop_waits_for, task_facts, team_does,
};
use liza_testkit::team::*;

use crate::sprint_words;

fn seen() -> Observations {
    Observations { last_progress: Some(now()), ..Observations::default() }
}

fn doing(view: &View, name: &str) -> String {
    agent_doing(view.agents.iter().find(|shown| shown.id == agent(name)).unwrap())
}

fn hold(kind: FaultKind, until: Option<u64>) -> ClientRecord {
    let (until, message) = (until.map(|seconds| now() + Seconds(seconds)), "Overloaded".to_owned());
    let hold = ClientHold { kind, message, repair: None, since: now(), until, probes: 1 };
    ClientRecord { hold: Some(hold), failures: None }
}

/// A task that a coder would take, and a program that is held.
fn held(kind: FaultKind, until: Option<u64>) -> State {
    let mut state = state_with(Status::Unclaimed);
    sprint(&mut state).clients.insert("codex".to_owned(), hold(kind, until));
    entry(&mut state, "coder-1").client = Some("codex".to_owned());
    state
}

/// Covers: UI-03, SE-03
#[test]
fn a_team_whose_programs_all_wait_for_the_human_says_that_it_ends() {
    let mut state = held(FaultKind::Auth, None);
    state.board.put(task("other"), record("other", Status::Claimed));
    let ends = |state: &State| {
        let needs = view(state, &seen(), now()).needs_you;
        let held = needs.into_iter().find(|need| need.kind == AlarmKind::ClientHeld).unwrap();
        held.text.split_once("(Overloaded)").unwrap().1.to_owned()
    };
    assert_eq!(ends(&state), "", "no session is running");
    let record = entry(&mut state, "coder-2");
    (record.status, record.current_task) = (AgentStatus::Working, Some(task("other")));
    record.client = Some("codex".to_owned());
    assert_eq!(ends(&state), ". The team ends by itself after the running session");
    let record = entry(&mut state, "code-reviewer-1");
    (record.status, record.client) = (AgentStatus::Reviewing, Some("codex".to_owned()));
    assert_eq!(ends(&state), ". The team ends by itself after the 2 running sessions");
    // Another program can still be used, or is tried again.
    entry(&mut state, "code-reviewer-1").client = Some("claude".to_owned());
    assert_eq!(ends(&state), "");
    sprint(&mut state).clients.insert("claude".to_owned(), hold(FaultKind::Quota, Some(60)));
    assert_eq!(ends(&state), "");
}

/// Covers: UI-03
#[test]
fn an_agent_whose_program_is_held_is_not_shown_as_waiting_for_work() {
    let mut state = held(FaultKind::Overloaded, Some(60));
    let shown = view(&state, &seen(), now());
    assert_eq!(doing(&shown, "coder-1"), "HELD: codex overloaded, again in 1m");
    assert_eq!(doing(&shown, "coder-2"), "HELD: codex overloaded, again in 1m", "the only known program");
    assert_eq!(doing(&shown, "code-reviewer-1"), "WAITING for a submission", "it needs no session");
    let next = ("codex overloaded, again in 1m. To try it now:".to_owned(), "liza resume");
    assert_eq!(next_steps(&shown), [next]);
    assert!(!is_well(&shown), "a person can try it now");
    let paused = StopFileTimes { pause: Some(now()), ..StopFileTimes::default() };
    let shown = view(&state, &Observations { stop_files: paused, ..seen() }, now());
    assert_eq!(doing(&shown, "coder-1"), "WAITING to begin t", "the pause is why nothing starts");
    let record = entry(&mut state, "coder-2");
    (record.client, record.status) = (Some("claude".to_owned()), AgentStatus::Working);
    let shown = view(&state, &seen(), now());
    assert_eq!((doing(&shown, "coder-2").as_str(), next_steps(&shown).len()), ("WORKING", 0));
    assert_eq!(doing(&shown, "coder-1"), "HELD: codex overloaded, again in 1m");
}

/// Covers: UI-03, AX-02
#[test]
fn a_rejected_task_does_not_wait_for_a_program_that_is_held() {
    let mut state = held(FaultKind::Overloaded, Some(60));
    state.board.put(task("t"), record("t", Status::Rejected));
    let shown = view(&state, &seen(), now());
    assert_eq!(shown.tasks[0].next.to_string(), "a coder takes it; when its program can be used again");
}

/// Covers: UI-03
#[test]
fn a_planner_whose_program_is_held_is_held_too() {
    let mut state = empty_state();
    goal(&mut state).planned = false;
    sprint(&mut state).clients.insert("codex".to_owned(), hold(FaultKind::Quota, Some(60)));
    let record = entry(&mut state, "planner-1");
    (record.client, record.status) = (Some("codex".to_owned()), AgentStatus::Waiting);
    let shown = view(&state, &seen(), now());
    assert_eq!(doing(&shown, "planner-1"), "HELD: codex at its usage limit, again in 1m");
    assert_eq!(next_steps(&shown)[0].1, "liza resume");
}

/// Covers: UI-03
#[test]
fn a_program_that_only_the_human_lets_continue_waits_for_the_human() {
    let shown = view(&held(FaultKind::Auth, None), &seen(), now());
    assert_eq!(doing(&shown, "coder-1"), "HELD: codex has no valid login, waits for you");
    assert!(next_steps(&shown).is_empty(), "it is among what needs the human");
    let kinds: Vec<AlarmKind> = shown.needs_you.iter().map(|need| need.kind).collect();
    assert!(kinds.contains(&AlarmKind::ClientHeld), "{kinds:?}");
}

/// Covers: UI-03
#[test]
fn a_planner_that_judges_the_goal_is_not_planning() {
    let mut state = state_with(Status::Merged);
    entry(&mut state, "planner-1").status = AgentStatus::Planning;
    assert_eq!(doing(&view(&state, &seen(), now()), "planner-1"), "PLANNING");
    sprint(&mut state).status = SprintStatus::Completed;
    let shown = view(&state, &seen(), now());
    assert_eq!(doing(&shown, "planner-1"), "JUDGING the goal");
    let facts = |view: &View| sprint_words(view).join(" · ");
    assert!(facts(&shown).contains("goal not judged yet"), "{}", facts(&shown));
    goal(&mut state).status = GoalStatus::Completed;
    let shown = view(&state, &seen(), now());
    assert!(facts(&shown).contains("COMPLETED"), "{}", facts(&shown));
}

/// Covers: UI-03
#[test]
fn a_program_without_a_login_needs_the_human_before_its_first_session_fails() {
    let mut state = state_with(Status::Unclaimed);
    let login = MissingLogin {
        client: "codex".to_owned(),
        command: "codex login".to_owned(),
        more: Some("or set CODEX_API_KEY".to_owned()),
    };
    let seen = Observations { missing_logins: vec![login], ..seen() };
    let needs = |state: &State| {
        let found = view(state, &seen, now()).needs_you.into_iter();
        let logins = found.filter(|need| need.kind == AlarmKind::Login);
        logins.map(|need| (need.text.to_string(), need.command.to_string())).collect::<Vec<_>>()
    };
    let text = "no login of codex was found; its sessions fail without one (or set CODEX_API_KEY)";
    assert_eq!(needs(&state), [(text.to_owned(), "codex login".to_owned())]);
    // A session that was not refused has a login.
    let session = |failed: bool, fault: Option<FaultKind>| SessionSummary {
        client: "codex".to_owned(),
        task: None,
        started: now(),
        ended: now(),
        result: "codex exited 0".to_owned(),
        failed,
        fault,
        again: None,
    };
    entry(&mut state, "coder-2").last_session = Some(session(false, None));
    assert_eq!(needs(&state), []);
    let record = entry(&mut state, "coder-2");
    record.last_session = Some(session(true, Some(FaultKind::Overloaded)));
    assert_eq!(needs(&state).len(), 1);
    // What the program itself says is listed once.
    sprint(&mut state).clients.insert("codex".to_owned(), hold(FaultKind::Auth, None));
    assert_eq!(needs(&state), []);
    sprint(&mut state).clients.clear();
    agents(&mut state).clear();
    sprint(&mut state).usage = None;
    assert_eq!(needs(&state).len(), 1, "the team has ended, and has used nothing");
    sprint(&mut state).usage = Some(Usage { input: 1, ..Usage::default() });
    assert_eq!(needs(&state), [], "it may have had a login");
}

fn asking() -> State {
    let mut state = state_with(Status::Blocked);
    edit_task(&mut state, "t", |record| record.blocked_questions = Some(vec!["Which one?".to_owned()]));
    state
}

fn blocked_need(view: &View) -> &NeedsYou {
    let is_blocked = |need: &&NeedsYou| need.kind == AlarmKind::Blocked;
    view.needs_you.iter().find(is_blocked).unwrap()
}

/// Covers: UI-03
#[test]
fn a_question_waits_for_the_human_at_once_also_while_the_planner_looks_at_it() {
    let state = asking();
    let shown = view(&state, &seen(), now());
    let need = blocked_need(&shown);
    assert!(
        need.text.ends_with("; the planner looks at it now, and you can answer it yourself"),
        "{need:#?}"
    );
    assert_eq!(
        (need.questions.as_slice(), need.command.as_str()),
        (&["Which one?".to_owned()][..], "liza answer t \"...\"")
    );
    assert!(!shown.other_alerts().any(|alert| alert.kind == AlarmKind::Blocked), "it is listed once");
    assert_eq!(shown.tasks[0].next.to_string(), "the planner looks at it now; you can answer it yourself");
    let mut ending = state.clone();
    let session =
        OpenSession { began: now() - Seconds(99), result: Some(now() - Seconds(9)), about: Vec::new() };
    let record = entry(&mut ending, "planner-1");
    (record.status, record.session) = (AgentStatus::Planning, Some(session.clone()));
    edit_task(&mut ending, "t", |record| {
        record.history.get_or_insert_default().push(HistoryEvent::new(now(), EventName::Blocked, "coder-1"))
    });
    let shown = view(&ending, &seen(), now());
    assert_eq!(shown.tasks[0].next.to_string(), "the planner looks at it next; you can answer it yourself");
    // The same while the session is still about something else.
    let session = OpenSession { result: None, ..session };
    entry(&mut ending, "planner-1").session = Some(session);
    let shown = view(&ending, &seen(), now());
    assert_eq!(doing(&shown, "planner-1"), "PLANNING");
    assert_eq!(shown.tasks[0].next.to_string(), "the planner looks at it next; you can answer it yourself");
    let mut held = state.clone();
    sprint(&mut held).clients.insert("codex".to_owned(), hold(FaultKind::Quota, Some(60)));
    entry(&mut held, "planner-1").client = Some("codex".to_owned());
    let shown = view(&held, &seen(), now());
    let next = "the planner looks at it when its program can be used again; you can answer it yourself";
    assert_eq!(shown.tasks[0].next.to_string(), next);
    let dead = Observations { dead: [agent("planner-1")].into(), ..seen() };
    let shown = view(&state, &dead, now());
    assert!(!blocked_need(&shown).text.contains("planner"), "{:#?}", shown.needs_you);
    assert_eq!(shown.tasks[0].next.to_string(), "you answer it");
}

fn push_event(state: &mut State, event: EventName) {
    push_event_of(state, event, "coder-1");
}

fn push_event_of(state: &mut State, event: EventName, who: &str) {
    edit_task(state, "t", |record| {
        let commit = record.review_commit.as_ref().map(|commit| commit.to_string());
        let event = HistoryEvent::new(now(), event, agent(who)).with_some("commit", commit);
        record.history.get_or_insert_default().push(event);
    });
}

fn failed_session(fault: Option<FaultKind>) -> SessionSummary {
    SessionSummary {
        client: "codex".to_owned(),
        task: Some(task("t")),
        started: now(),
        ended: now(),
        result: "codex exited 1: Overloaded".to_owned(),
        failed: true,
        fault,
        again: Some(now() + Seconds(10)),
    }
}

/// A coder that holds its task after a session that failed.
fn between_sessions(fault: Option<FaultKind>) -> State {
    let mut state = state_with(Status::Claimed);
    push_event(&mut state, EventName::Claimed);
    push_event(&mut state, EventName::SessionEnded);
    let record = entry(&mut state, "coder-1");
    record.client = Some("codex".to_owned());
    record.last_session = Some(failed_session(fault));
    state
}

/// Covers: UI-03
#[test]
fn a_coder_that_holds_a_task_is_held_with_its_program() {
    let mut state = between_sessions(Some(FaultKind::Overloaded));
    sprint(&mut state).clients.insert("codex".to_owned(), hold(FaultKind::Overloaded, Some(60)));
    let shown = view(&state, &seen(), now());
    assert_eq!(doing(&shown, "coder-1"), "HELD: codex overloaded, again in 1m");
    let next = ("codex overloaded, again in 1m. To try it now:".to_owned(), "liza resume");
    assert_eq!(next_steps(&shown), [next]);
    assert_eq!(shown.tasks[0].next.to_string(), "coder-1 continues: codex overloaded, again in 1m");
    let coder = shown.agents.iter().find(|shown| shown.id == agent("coder-1")).unwrap();
    assert_eq!(agent_activity(coder).as_deref(), Some("codex exited 1: Overloaded"));
    push_event(&mut state, EventName::Resumed);
    let shown = view(&state, &seen(), now());
    assert_eq!(doing(&shown, "coder-1"), "WORKING t", "its session tries the program");
    assert_eq!(shown.tasks[0].next.to_string(), "coder-1 submits it for review");
}

/// Covers: UI-03
#[test]
fn a_team_that_was_started_again_is_still_held() {
    let mut state = held(FaultKind::Quota, Some(60));
    entry(&mut state, "coder-1").client = None;
    let shown = view(&state, &seen(), now());
    assert_eq!(doing(&shown, "coder-1"), "HELD: codex at its usage limit, again in 1m");
    assert_eq!(next_steps(&shown)[0].1, "liza resume");
    let record = entry(&mut state, "coder-2");
    (record.client, record.status) = (Some("claude".to_owned()), AgentStatus::Working);
    let shown = view(&state, &seen(), now());
    assert_eq!(doing(&shown, "coder-1"), "WAITING to begin t", "its program is probably another one");
}

/// Covers: UI-03
#[test]
fn a_coder_whose_session_failed_says_when_it_tries_again() {
    let mut state = between_sessions(None);
    edit_task(&mut state, "t", |record| record.crashes = Some(2));
    let shown = view(&state, &seen(), now());
    assert_eq!(doing(&shown, "coder-1"), "FAILED 2 of 5, again in 10s");
    assert_eq!(shown.tasks[0].next.to_string(), "coder-1 tries again in 10s: its last session failed");
    push_event(&mut state, EventName::Resumed);
    assert_eq!(doing(&view(&state, &seen(), now()), "coder-1"), "WORKING t");
}

fn merging(is_testing: bool, team_leaves: bool) -> Observations {
    let (task, by) = (task("t"), Some(agent("code-reviewer-1")));
    let merge = RunningMerge { task, by, since: now(), is_testing, team_leaves };
    Observations { merge: Some(merge), ..seen() }
}

/// Covers: UI-03
#[test]
fn a_merge_that_runs_is_shown_with_its_test() {
    let state = state_with(Status::Approved);
    let later = now() + Seconds(23);
    let shown = view(&state, &merging(true, false), later);
    assert_eq!(doing(&shown, "code-reviewer-1"), "MERGING t: integration test, 23s");
    assert_eq!(task_facts(&shown.tasks[0])[0], "approved; merging: integration test, 23s");
    assert_eq!(shown.tasks[0].next.to_string(), "code-reviewer-1 merges it: integration test, 23s");
    let shown = view(&state, &merging(false, false), later);
    assert_eq!(doing(&shown, "code-reviewer-1"), "MERGING t, 23s");
    assert!(!shown.is_stopping());
    let merged = view(&state_with(Status::Merged), &merging(true, false), later);
    assert_eq!(doing(&merged, "code-reviewer-1"), "WAITING for a submission", "it is done");
}

/// Covers: UI-03
#[test]
fn a_team_that_waits_for_its_last_merge_is_stopping() {
    let mut state = state_with(Status::Approved);
    place(&mut state, "other", Status::Unclaimed);
    assert!(!view(&state, &merging(true, true), now()).is_stopping(), "the others are still here");
    agents(&mut state).retain(|id, _| *id == agent("code-reviewer-1"));
    let shown = view(&state, &merging(true, true), now());
    assert!(shown.is_stopping());
    assert_eq!(next_steps(&shown), [], "no agent is to be started now");
    assert_eq!(team_does(&shown), "the team is stopping; it waits for the merge of t");
    assert_eq!(stop_waits_for(Some(&task("t"))), "it waits for the merge of t");
    let shown = view(&state, &merging(true, false), now());
    let missing = shown.needs_you.iter().find(|need| need.kind == AlarmKind::RoleMissing).unwrap();
    assert_eq!(missing.command, "liza agent coder", "a code reviewer on its own");
    assert_eq!(next_steps(&shown), [], "NEEDS YOU has it");
}

/// Covers: UI-01, UI-03
#[test]
fn a_reviewer_whose_approval_is_not_merged_yet_does_not_wait_for_a_submission() {
    let state = state_with(Status::Approved);
    let shown = view(&state, &seen(), now());
    assert_eq!(doing(&shown, "code-reviewer-1"), "WAITING to merge t");
    assert_eq!(doing(&shown, "code-reviewer-2"), "WAITING for a submission");
    let stop_files = StopFileTimes { pause: Some(now()), ..StopFileTimes::default() };
    let paused = view(&state, &Observations { stop_files, ..seen() }, now());
    assert_eq!(doing(&paused, "code-reviewer-1"), "WAITING to merge t", "after the pause");
}

/// An agent whose session has just recorded that on the task; its program failed the time before.
fn ending(status: Status, event: EventName, who: &str) -> State {
    let mut state = state_with(status);
    push_event_of(&mut state, event, who);
    let record = entry(&mut state, who);
    (record.client, record.current_task) = (Some("codex".to_owned()), None);
    record.status = AgentStatus::Waiting;
    record.last_session = Some(failed_session(Some(FaultKind::Quota)));
    state
}

fn shown_agent<'a>(view: &'a View, name: &str) -> &'a AgentView {
    view.agents.iter().find(|shown| shown.id == agent(name)).unwrap()
}

/// Covers: UI-01, UI-03
#[test]
fn a_session_that_has_submitted_is_shown_until_it_ends() {
    let mut state = ending(Status::ReadyForReview, EventName::ReadyForReview, "coder-1");
    let later = now() + Seconds(12);
    let shown = view(&state, &seen(), later);
    assert_eq!(doing(&shown, "coder-1"), "ENDING its work on t, 12s");
    let coder = shown_agent(&shown, "coder-1");
    assert!(coder.is_in_session() && coder.is_at_work());
    assert_eq!(agent_activity(coder), None, "the error of the session before");
    push_event(&mut state, EventName::SessionEnded);
    let shown = view(&state, &seen(), later);
    assert_eq!(doing(&shown, "coder-1"), "WAITING for a verdict");
    assert!(!shown_agent(&shown, "coder-1").is_in_session());
}

/// Covers: UI-01, UI-03
#[test]
fn a_task_is_merged_when_the_session_that_approved_it_has_ended() {
    let mut state = ending(Status::Approved, EventName::Approved, "code-reviewer-1");
    let shown = view(&state, &seen(), now() + Seconds(12));
    assert_eq!(doing(&shown, "code-reviewer-1"), "ENDING its review of t, 12s");
    assert_eq!(task_facts(&shown.tasks[0])[0], "approved; merged when code-reviewer-1's session ends");
    assert_eq!(shown.tasks[0].next.to_string(), "code-reviewer-1 merges it when its session ends");
    // A team that was started again has no session yet.
    entry(&mut state, "code-reviewer-1").client = None;
    let again = view(&state, &seen(), now() + Seconds(12));
    assert_eq!(doing(&again, "code-reviewer-1"), "WAITING to merge t");
    // What another session has done since is newer.
    let record = entry(&mut state, "code-reviewer-1");
    record.client = Some("codex".to_owned());
    record.last_session.as_mut().unwrap().ended = now() + Seconds(5);
    assert_eq!(doing(&view(&state, &seen(), now() + Seconds(12)), "code-reviewer-1"), "WAITING to merge t");
    let rejected = ending(Status::Rejected, EventName::Rejected, "code-reviewer-1");
    assert_eq!(doing(&view(&rejected, &seen(), now()), "code-reviewer-1"), "ENDING its review of t, 0s");
}

/// Covers: UI-01, UI-03
#[test]
fn an_agent_that_merges_is_at_work_and_the_next_merge_waits_for_it() {
    let mut state = state_with(Status::Approved);
    place(&mut state, "other", Status::Approved);
    let shown = view(&state, &merging(true, false), now() + Seconds(8));
    let merger = shown_agent(&shown, "code-reviewer-1");
    assert!(merger.is_at_work() && !merger.is_in_session());
    let other = shown.tasks.iter().find(|shown| shown.id == task("other")).unwrap();
    assert_eq!(task_facts(other)[0], "approved; merged after t");
}

/// Covers: UI-03
#[test]
fn what_waits_for_an_agent_with_another_task_says_so() {
    let mut state = state_with(Status::Claimed);
    state.board.put(task("back"), record("back", Status::Rejected));
    let coder = entry(&mut state, "coder-1");
    (coder.status, coder.current_task) = (AgentStatus::Working, Some(task("t")));
    state.board.put(task("done"), record("done", Status::Approved));
    state.board.put(task("new"), record("new", Status::ReadyForReview));
    let record = entry(&mut state, "code-reviewer-1");
    (record.status, record.current_task) = (AgentStatus::Reviewing, Some(task("new")));
    let shown = view(&state, &seen(), now());
    let next = |id: &str| shown.tasks.iter().find(|shown| shown.id == task(id)).unwrap().next.to_string();
    assert_eq!(next("back"), "coder-1 continues with it after t");
    assert_eq!(next("done"), "code-reviewer-1 merges it after its review of new");
    let back = shown.tasks.iter().find(|shown| shown.id == task("back")).unwrap();
    assert_eq!(task_facts(back)[..2], ["coder-1 after t", "rejected"]);
}

/// Covers: UI-03
#[test]
fn what_an_agent_continues_waits_for_the_end_of_a_pause() {
    let mut state = state_with(Status::Claimed);
    state.board.put(task("back"), record("back", Status::Rejected));
    let row = |state: &State| {
        let seen = Observations {
            stop_files: StopFileTimes { checkpoint: Some(now()), ..StopFileTimes::default() },
            ..seen()
        };
        let shown = view(state, &seen, now() + Seconds(300));
        let found = |id: &str| shown.tasks.iter().find(|shown| shown.id == task(id)).unwrap().clone();
        ["t", "back"].map(|id| (task_facts(&found(id))[0].clone(), found(id).next.to_string()))
    };
    let texts = |texts: [(&str, &str); 2]| texts.map(|(row, next)| (row.to_owned(), next.to_owned()));
    let record = entry(&mut state, "coder-1");
    (record.status, record.current_task) = (AgentStatus::Working, Some(task("t")));
    let [running, _] = row(&state);
    assert_eq!(running.0, "coder-1");
    // Its session was stopped.
    entry(&mut state, "coder-1").session = None;
    entry(&mut state, "coder-1").status = AgentStatus::Waiting;
    let resumed = [
        ("coder-1, after liza resume", "coder-1 continues with it, after liza resume"),
        ("coder-1 after t, after liza resume", "coder-1 continues with it after t, after liza resume"),
    ];
    assert_eq!(row(&state), texts(resumed));
}
