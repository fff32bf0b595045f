//! What a supervisor does next, after a session, and with a session that must end.

use liza_core::model::{
    AgentStatus, ClientFault, ClientHold, ClientRecord, Config, EventName, FaultKind, Generation, GoalStatus,
    HistoryEvent, LimitReset, Loaded, Revision, Seconds, State, Status, StopFile, StopFiles, TaskId,
    TaskRecord,
};
use liza_core::protocol::{Command, CountExit, CountPlannerExit, SetStatus, UnproductiveExit};
use liza_core::rules::found_merges::FoundMerges;
use liza_core::rules::triggers::TriggerKind;
use liza_core::supervise::{
    Backoffs, EndedSession, SessionEnd, SessionFacts, SessionPhase, SessionStep, Shutdown, Situation, Step,
    StopCause, StopReason, WaitReason, Work, WorkKind, WorkSubject, after_session, backoff, can_be_renewed,
    is_done, next_step, renewal_interval, still_owns, still_registered, stops_session,
};
use liza_testkit::team::*;

static NO_MERGES: FoundMerges = FoundMerges::NONE;
static NOTHING_FAILED: Backoffs = Backoffs::NONE;

pub(crate) fn situation<'a>(state: &'a State, name: &str) -> Situation<'a> {
    Situation {
        state,
        agent: agent(name),
        stop_files: StopFiles::default(),
        found_merges: &NO_MERGES,
        now: now(),
        idle_since: now(),
        in_team: false,
        clients: &[],
        backoffs: &NOTHING_FAILED,
    }
}

/// The tasks that an agent would code, or review.
pub(crate) fn each(work: fn(TaskId) -> Work, names: &[&str]) -> Step {
    Step::Work(names.iter().map(|name| work(task(name))).collect())
}

pub(crate) fn step(state: &State, name: &str) -> Step {
    next_step(&situation(state, name))
}

/// Covers: AG-04
#[test]
fn abort_takes_precedence_over_checkpoint_over_pause_over_work() {
    let state = state_with(Status::Unclaimed);
    let with = |pause, checkpoint, abort| {
        next_step(&Situation {
            stop_files: StopFiles { pause, checkpoint, abort },
            ..situation(&state, "coder-1")
        })
    };
    assert_eq!(with(true, true, true), Step::Stop(StopReason::Aborted));
    assert_eq!(with(true, true, false), Step::Hold(StopFile::Checkpoint));
    assert_eq!(with(true, false, false), Step::Hold(StopFile::Pause));
    assert_eq!(with(false, false, false), each(Work::Code, &["t"]));
}

/// Covers: AG-04, RV-09
#[test]
fn a_reviewer_merges_before_it_reviews() {
    let mut state = state_with(Status::Approved);
    let mut open = record("u", Status::ReadyForReview);
    (open.reviewing_by, open.review_lease_expires) = (None, None);
    state.board.put(task("u"), open);
    let both = Step::Work(vec![Work::Merge(task("t")), Work::Review(task("u"))]);
    assert_eq!(step(&state, "code-reviewer-1"), both);
    assert_eq!(step(&state, "code-reviewer-2"), each(Work::Review, &["u"]), "the approver is live");
    agents(&mut state).shift_remove(&agent("code-reviewer-1"));
    assert_eq!(step(&state, "code-reviewer-2"), both, "the approver is gone");
}

/// Covers: AX-01
#[test]
fn a_supervisor_waits_for_work_that_is_only_put_off() {
    let mut state = state_with(Status::Approved);
    let (mut backoffs, until) = (Backoffs::NONE, now() + Seconds(20));
    backoffs.put_off(WorkKind::Merge, WorkSubject::Task(task("t")), until);
    let waits = Step::Wait { why: WaitReason::PutOff, until };
    let step = |state: &State, clients: &[String]| {
        next_step(&Situation { backoffs: &backoffs, clients, ..situation(state, "code-reviewer-1") })
    };
    assert_eq!(step(&state, &[]), waits);
    let mut open = record("u", Status::ReadyForReview);
    (open.reviewing_by, open.review_lease_expires) = (None, None);
    state.board.put(task("u"), open);
    assert_eq!(step(&state, &[]), each(Work::Review, &["u"]));
    // Without a program, a lone one would end.
    if let Loaded::Ready(sprint) = &mut state.board.sprint {
        let (kind, message) = (FaultKind::Auth, "401".to_owned());
        let hold = ClientHold { kind, message, repair: None, since: now(), until: None, probes: 0 };
        sprint.clients.insert("codex".to_owned(), ClientRecord { hold: Some(hold), failures: None });
    }
    assert_eq!(step(&state, &["codex".to_owned()]), waits);
}

/// Covers: AG-05
#[test]
fn a_supervisor_ends_when_its_role_has_no_work_now_or_later() {
    let done = state_with(Status::Merged);
    assert_eq!(step(&done, "coder-1"), Step::Stop(StopReason::RoleComplete));
    assert_eq!(step(&done, "code-reviewer-1"), Step::Stop(StopReason::RoleComplete));
    let in_team = Situation { in_team: true, ..situation(&done, "coder-1") };
    assert!(matches!(next_step(&in_team), Step::Wait { .. }), "a team waits for the planner's judgement");
    assert!(matches!(step(&done, "planner-1"), Step::Wait { .. }), "the goal is not decided");
    let mut decided = done.clone();
    goal(&mut decided).status = GoalStatus::Completed;
    assert_eq!(step(&decided, "planner-1"), Step::Stop(StopReason::RoleComplete));
    let blocked = state_with(Status::Blocked);
    assert!(matches!(step(&blocked, "coder-1"), Step::Wait { .. }), "it may be unblocked");
    assert!(matches!(step(&empty_state(), "coder-1"), Step::Wait { .. }), "nothing is planned yet");
}

/// Covers: AG-05
#[test]
fn a_waiting_supervisor_names_the_reason_and_a_lone_one_ends_in_time() {
    let drafts = state_with(Status::Draft);
    let until = now() + Seconds(30);
    assert_eq!(step(&drafts, "coder-1"), Step::Wait { why: WaitReason::Drafts(1), until });
    let waited = |seconds, in_team| {
        let idle_since = now() - Seconds(seconds);
        next_step(&Situation { idle_since, in_team, ..situation(&drafts, "coder-1") })
    };
    assert!(matches!(waited(299, false), Step::Wait { .. }));
    assert_eq!(waited(300, false), Step::Stop(StopReason::WaitedLongEnough));
    assert!(matches!(waited(9000, true), Step::Wait { .. }));
    let mut no_goal = empty_state();
    goal(&mut no_goal).description = String::new();
    assert_eq!(step(&no_goal, "planner-1"), Step::Wait { why: WaitReason::NoGoal, until });
}

/// Covers: AG-11
#[test]
fn a_planner_is_woken_once_per_change() {
    let mut state = state_with(Status::Blocked);
    let triggers = match step(&state, "planner-1") {
        Step::Work(work) => match work.as_slice() {
            [Work::Plan(triggers)] => triggers.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("the planner sleeps: {other:?}"),
    };
    assert_eq!(triggers[0].kind, TriggerKind::BlockedTasks);
    sprint(&mut state).seen_triggers = triggers.iter().map(|trigger| trigger.key.clone()).collect();
    assert!(matches!(step(&state, "planner-1"), Step::Wait { .. }), "nothing has changed");
    let mut tidied = record("t", Status::Blocked);
    tidied.revision = Some(Revision(51));
    state.board.put(task("t"), tidied);
    assert!(matches!(step(&state, "planner-1"), Step::Wait { .. }), "its own changes are not a new trigger");
    let mut again = record("t", Status::Blocked);
    again.blocked_reason = Some("now the API is down".to_owned());
    state.board.put(task("t"), again);
    assert!(matches!(step(&state, "planner-1"), Step::Work(_)), "it is blocked for another reason");
}

pub(crate) fn session(name: &str, of: Option<&str>) -> EndedSession {
    EndedSession::new(agent(name), of.map(task), Revision(60))
}

/// Covers: AG-05, AG-08
#[test]
fn a_session_is_judged_by_the_blackboard_first() {
    let coder = session("coder-1", Some("t"));
    let submitted = after_session(&state_with(Status::ReadyForReview), &coder, SessionEnd::Code(137));
    assert!(submitted.progress && submitted.record.is_empty() && submitted.pause == Seconds(0));
    let mut handed_over = state_with(Status::Claimed);
    let mut record = record("t", Status::Claimed);
    record.handoff_pending = Some(true);
    handed_over.board.put(task("t"), record);
    assert!(after_session(&handed_over, &coder, SessionEnd::Code(42)).progress);

    let idle = after_session(&state_with(Status::Claimed), &coder, SessionEnd::Code(0));
    assert!(!idle.progress);
    let count = |exit, pause| {
        let (task, agent, pause) = (task("t"), agent("coder-1"), Seconds(pause));
        Command::CountExit(CountExit { task, agent, exit, last_words: None, pause })
    };
    assert_eq!((idle.record, idle.pause), (vec![count(UnproductiveExit::Idle, 2)], Seconds(2)));
    let crash = after_session(&state_with(Status::Claimed), &coder, SessionEnd::Signal(9));
    assert_eq!((crash.record, crash.pause), (vec![count(UnproductiveExit::Crash, 5)], Seconds(5)));
}

/// Covers: AX-08, AG-05
#[test]
fn after_exit_42_the_next_session_starts_after_two_seconds() {
    let pause = |status, session: &EndedSession| {
        after_session(&state_with(status), session, SessionEnd::Code(42)).pause
    };
    let coder = session("coder-1", Some("t"));
    assert_eq!(pause(Status::ReadyForReview, &coder), Seconds(2), "with a result");
    assert_eq!(pause(Status::Claimed, &coder), Seconds(2), "without");
    assert_eq!(pause(Status::Unclaimed, &session("planner-1", None)), Seconds(2));
}

/// Covers: AG-07, AG-08
#[test]
fn a_stopped_session_is_no_failure_and_a_reviewer_without_verdict_loses_the_review() {
    let coder = session("coder-1", Some("t"));
    let stopped = after_session(&state_with(Status::Claimed), &coder, SessionEnd::Stopped);
    assert!(stopped.record.is_empty() && !stopped.progress);
    let reviewer = session("code-reviewer-1", Some("t"));
    let next = after_session(&state_with(Status::ReadyForReview), &reviewer, SessionEnd::Code(0));
    // One write counts it and gives the review back.
    let (task, agent) = (task("t"), agent("code-reviewer-1"));
    let count = CountExit { task, agent, exit: UnproductiveExit::Idle, last_words: None, pause: Seconds(2) };
    assert_eq!(next.record, [Command::from(count)]);
}

/// Covers: AG-05
#[test]
fn retry_delays_grow_with_crashes_up_to_five_minutes() {
    let pauses: Vec<u64> = (1..=8).map(|crashes| backoff(crashes).0).collect();
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 300, 300]);
    assert_eq!(backoff(u32::MAX).0, 300);
    let mut state = state_with(Status::Claimed);
    let mut record = record("t", Status::Claimed);
    record.crashes = Some(2);
    state.board.put(task("t"), record);
    let next = after_session(&state, &session("coder-1", Some("t")), SessionEnd::OverTime);
    assert_eq!(next.pause, Seconds(20), "earlier crashes are on the task");
    edit_task(&mut state, "t", |record| record.crashes = Some(4));
    let last = after_session(&state, &session("coder-1", Some("t")), SessionEnd::OverTime);
    assert_eq!(last.pause, Seconds(5), "the task is blocked, and goes on at once when it is answered");
}

/// Covers: AG-08, AC-01
#[test]
fn a_planner_has_a_result_when_it_recorded_one() {
    let planner = session("planner-1", None);
    let mut state = state_with(Status::Unclaimed);
    let nothing = after_session(&state, &planner, SessionEnd::Code(0));
    let count = CountPlannerExit {
        agent: agent("planner-1"),
        last_words: None,
        woken_because: None,
        woken_for: Vec::new(),
        pause: Seconds(5),
    };
    assert_eq!((nothing.record, nothing.pause), (vec![Command::from(count)], Seconds(5)));
    assert!(!nothing.progress);
    let mut decided = state.clone();
    goal(&mut decided).status = GoalStatus::Completed;
    assert!(after_session(&decided, &planner, SessionEnd::Code(0)).progress, "it judged the goal");
    let mut recorded = |revision: u64| {
        entry(&mut state, "planner-1").last_result = Some(Revision(revision));
        after_session(&state, &planner, SessionEnd::Code(1)).progress
    };
    assert!(recorded(61));
    assert!(!recorded(60), "that was an earlier session's");
}

fn facts() -> SessionFacts {
    SessionFacts {
        started: now(),
        lease_expires: now() + Seconds(300),
        lease: Seconds(300),
        frozen: (Seconds(0), Seconds(0)),
        owns_task: true,
        is_done: false,
        stop_files: StopFiles::default(),
        shutdown: None,
        client_failed: false,
    }
}

fn renewed() -> SessionFacts {
    SessionFacts { lease_expires: now() + Seconds(90_000), ..facts() }
}

fn advance(phase: SessionPhase, facts: &SessionFacts, seconds: u64) -> SessionStep {
    phase.advance(facts, &Config::default(), now() + Seconds(seconds))
}

fn terminating(cause: StopCause, seconds: u64) -> SessionPhase {
    SessionPhase::Terminating { cause, since: now() + Seconds(seconds) }
}

/// Covers: AG-07, CL-07
#[test]
fn a_running_session_is_stopped_for_each_reason_in_time() {
    let working = SessionPhase::Working;
    let step = advance(working, &facts(), 0);
    assert_eq!(step, SessionStep { phase: working, check_again: now() + Seconds(285) }, "the lease is next");
    assert_eq!(advance(working, &facts(), 285).phase, terminating(StopCause::LeaseEnding, 285));
    let abort = SessionFacts { stop_files: StopFiles { abort: true, ..StopFiles::default() }, ..facts() };
    assert_eq!(advance(working, &abort, 0).phase, terminating(StopCause::Abort, 0), "at once");
    let lost = SessionFacts { owns_task: false, ..facts() };
    assert_eq!(advance(working, &lost, 0).phase, terminating(StopCause::TaskLost, 0));
    assert_eq!(advance(working, &renewed(), 7200).phase, terminating(StopCause::OverTime, 7200));
    let asked = terminating(StopCause::OverTime, 0);
    let step = advance(asked, &renewed(), 9);
    assert_eq!(step, SessionStep { phase: asked, check_again: now() + Seconds(10) });
    let killed = SessionPhase::Killed { cause: StopCause::OverTime };
    assert_eq!(advance(asked, &renewed(), 10).phase, killed);
    assert_eq!(advance(killed, &renewed(), 11).phase, killed);
}

/// Covers: AG-07
#[test]
fn a_stop_file_starts_the_grace_period_and_its_removal_cancels_it() {
    let pause = StopFiles { pause: true, ..StopFiles::default() };
    let halted = SessionFacts { stop_files: pause, ..renewed() };
    let ending = SessionPhase::Ending { cause: StopCause::Halt, since: now() };
    let step = advance(SessionPhase::Working, &halted, 0);
    assert_eq!(step, SessionStep { phase: ending, check_again: now() + Seconds(120) });
    assert_eq!(advance(ending, &halted, 119).phase, ending);
    assert_eq!(advance(ending, &halted, 120).phase, terminating(StopCause::Halt, 120));
    assert_eq!(advance(ending, &renewed(), 119).phase, SessionPhase::Working, "resumed in time");
}

/// Covers: AX-11
#[test]
fn a_session_is_not_ended_because_of_time_in_which_nothing_ran() {
    let night = Seconds(30_000);
    let frozen = SessionFacts { frozen: (night, night), ..facts() };
    let after = |seconds: u64| night.0 + seconds;
    let step = advance(SessionPhase::Working, &frozen, after(5));
    let check_again = now() + Seconds(after(285));
    assert_eq!(step, SessionStep { phase: SessionPhase::Working, check_again }, "the rest of its lease");
    let ended = advance(SessionPhase::Working, &frozen, after(285)).phase.stop_cause();
    assert_eq!(ended, Some(StopCause::LeaseEnding));
    let renewed = now() + Seconds(after(7500));
    let frozen = SessionFacts { frozen: (night, Seconds(0)), lease_expires: renewed, ..facts() };
    assert_eq!(advance(SessionPhase::Working, &frozen, after(7199)).phase, SessionPhase::Working);
    let ended = advance(SessionPhase::Working, &frozen, after(7200)).phase.stop_cause();
    assert_eq!(ended, Some(StopCause::OverTime), "the time that it ran counts");
    let ending = SessionPhase::Ending { cause: StopCause::Done, since: now() };
    let done = SessionFacts { is_done: true, ..frozen };
    assert_eq!(advance(ending, &done, after(119)).phase, ending);
    let lost = SessionFacts { owns_task: false, ..frozen };
    let ended = advance(SessionPhase::Working, &lost, after(1)).phase.stop_cause();
    assert_eq!(ended, Some(StopCause::TaskLost), "another agent has taken its lease");
}

/// Covers: AG-07
#[test]
fn a_supervisor_that_ends_stops_its_sessions() {
    let graceful = SessionFacts { shutdown: Some(Shutdown::Graceful), ..renewed() };
    let asked = terminating(StopCause::Shutdown, 0);
    assert_eq!(advance(SessionPhase::Working, &graceful, 0).phase, asked);
    let immediate = SessionFacts { shutdown: Some(Shutdown::Immediate), ..renewed() };
    let killed = SessionPhase::Killed { cause: StopCause::Shutdown };
    assert_eq!(advance(SessionPhase::Working, &immediate, 0).phase, killed);
    assert_eq!(advance(asked, &immediate, 1).phase, killed);
}

/// Covers: AG-08
#[test]
fn a_session_that_is_done_and_does_not_end_has_a_grace_period() {
    let done = SessionFacts { is_done: true, ..renewed() };
    let ending = SessionPhase::Ending { cause: StopCause::Done, since: now() };
    let step = advance(SessionPhase::Working, &done, 0);
    assert_eq!(step, SessionStep { phase: ending, check_again: now() + Seconds(120) });
    assert_eq!(advance(ending, &done, 119).phase, ending);
    assert_eq!(advance(ending, &done, 120).phase, terminating(StopCause::Done, 120));
    let coder = session("coder-1", Some("t"));
    let next = after_session(&state_with(Status::ReadyForReview), &coder, SessionEnd::Stopped);
    assert!(next.progress && next.record.is_empty(), "it is no failure");
}

/// A board whose task `t` is changed by the test.
fn happened(record: &mut TaskRecord, event: EventName, by: &str) {
    record.history.get_or_insert_default().push(HistoryEvent::new(now(), event, by));
}

/// Covers: AG-08
#[test]
fn a_session_is_done_when_it_no_longer_holds_its_task() {
    let done = |state: &State, name: &str| is_done(state, agent(name), Some(&task("t")));
    for &status in Status::ALL {
        let state = state_with(status);
        assert_eq!(done(&state, "coder-1"), status != Status::Claimed, "{status}");
        assert_eq!(done(&state, "code-reviewer-1"), status != Status::ReadyForReview, "{status}");
    }
    let handed_over = with(Status::Claimed, |record| record.handoff_pending = Some(true));
    assert!(done(&handed_over, "coder-1"));
    assert!(!is_done(&handed_over, agent("planner-1"), None), "a planner has no task");
    let broken = with(Status::Claimed, |record| record.lease_expires = None);
    assert!(!done(&broken, "coder-1"), "an unreadable task is not done");
}

/// Covers: CL-10
#[test]
fn a_registration_is_valid_while_its_generation_is_current() {
    let mut state = empty_state();
    let coder = agent("coder-1");
    let mine = generation(coder);
    assert!(still_registered(&state, coder, mine));
    assert!(!still_registered(&state, coder, Generation(mine.0 + 1)));
    assert!(!still_registered(&state, agent("coder-9"), mine), "no agent has that ID");
    state.board.agents = Loaded::Absent;
    assert!(still_registered(&state, coder, mine), "an unreadable registration is not lost");
}

/// Covers: AG-07
#[test]
fn a_coders_task_is_lost_when_another_agent_or_a_person_took_it() {
    let owns = |state: &State| still_owns(state, agent("coder-1"), Some(&task("t")));
    let own = [
        Status::Claimed,
        Status::ReadyForReview,
        Status::Rejected,
        Status::Approved,
        Status::IntegrationFailed,
    ];
    for &status in Status::ALL.iter().filter(|status| **status != Status::Blocked) {
        assert_eq!(owns(&state_with(status)), own.contains(&status), "{status}");
    }
    let others = with(Status::Claimed, |record| record.assigned_to = Some(agent("coder-2")));
    assert!(!owns(&others));
    let merged = with(Status::Merged, |record| record.assigned_to = Some(agent("coder-1")));
    assert!(owns(&merged), "its own success");
    assert!(
        owns(&with(Status::Claimed, |record| record.status = None)),
        "an unreadable registration is not lost"
    );
    assert!(still_owns(&empty_state(), agent("coder-1"), Some(&task("t"))));
    assert!(still_owns(&state_with(Status::Abandoned), agent("planner-1"), None));
}

/// Covers: AG-07, SP-07
#[test]
fn a_block_by_the_agent_differs_from_a_block_by_others() {
    let blocked = |by: &[(EventName, &str)]| {
        with(Status::Blocked, |record| {
            by.iter().for_each(|(event, by)| happened(record, *event, by));
        })
    };
    let owns = |name: &str, by: &[(EventName, &str)]| still_owns(&blocked(by), agent(name), Some(&task("t")));
    let claimed = (EventName::Claimed, "coder-1");
    for name in ["coder-1", "code-reviewer-1"] {
        assert!(owns(name, &[claimed, (EventName::Blocked, "system")]), "a limit was reached");
        assert!(owns(name, &[claimed, (EventName::Blocked, name)]));
        assert!(!owns(name, &[claimed, (EventName::Blocked, "human")]), "a person forces a replan");
        assert!(!owns(name, &[claimed]), "a person wrote it into the file");
        let before = [claimed, (EventName::Blocked, name), (EventName::Unblocked, "planner-1")];
        assert!(
            !owns(name, &[&before[..], &[(EventName::Resumed, "coder-1")]].concat()),
            "the block was before the last claim"
        );
    }
}

/// Covers: AG-07
#[test]
fn a_review_is_lost_when_another_reviewer_has_it() {
    let owns = |state: &State| still_owns(state, agent("code-reviewer-1"), Some(&task("t")));
    assert!(owns(&state_with(Status::ReadyForReview)));
    for other in [None, Some(agent("code-reviewer-2"))] {
        assert!(!owns(&with(Status::ReadyForReview, |record| record.reviewing_by = other)));
    }
    for status in [Status::Approved, Status::Rejected, Status::Merged, Status::Claimed] {
        assert!(owns(&state_with(status)), "{status}: its verdict is submitted");
    }
    let verdict = |by: &str| {
        with(Status::Approved, |record| {
            happened(record, EventName::Rejected, "code-reviewer-2");
            happened(record, EventName::Approved, by);
        })
    };
    assert!(owns(&verdict("code-reviewer-1")));
    assert!(!owns(&verdict("human")), "a person decided instead");
}

/// Covers: SP-07
#[test]
fn an_agent_whose_task_was_removed_manually_becomes_idle() {
    let mut state = state_with(Status::Claimed);
    let coder = session("coder-1", Some("t"));
    assert_eq!(
        after_session(&state, &coder, SessionEnd::Stopped).record,
        Vec::new(),
        "it still holds the task"
    );
    state.board.put(task("t"), record("t", Status::Blocked));
    let free = Command::from(SetStatus::new(agent("coder-1"), AgentStatus::Idle));
    assert_eq!(after_session(&state, &coder, SessionEnd::Stopped).record, vec![free]);
}

/// Covers: AC-11
#[test]
fn a_short_lease_is_renewed_in_time_and_no_session_starts_under_one_that_is_ending() {
    let config = Config { lease_duration: Seconds(10), ..Config::default() };
    let short = SessionFacts { lease_expires: now() + Seconds(10), lease: Seconds(10), ..facts() };
    let renewal = renewal_interval(&config, Seconds(10));
    assert_eq!(renewal, Seconds(3), "not the sixty seconds of heartbeat_interval");
    let working = SessionPhase::Working;
    assert_eq!(working.advance(&short, &config, now() + renewal).phase, working, "renewed before it ends");
    assert!(can_be_renewed(now() + Seconds(10), Seconds(10), now() + renewal));
    assert!(!can_be_renewed(now() + Seconds(3), Seconds(10), now()), "too late");
    assert!(!can_be_renewed(now() + Seconds(15), Seconds(300), now()));
}

/// Covers: SE-03
#[test]
fn a_session_whose_client_cannot_work_is_stopped() {
    let failed = SessionFacts { client_failed: true, ..facts() };
    let step = advance(SessionPhase::Working, &failed, 1);
    assert_eq!(step.phase.stop_cause(), Some(StopCause::ClientFault));
    let fault = |kind, reset| ClientFault { kind, message: String::new(), reset };
    let soon = Some(LimitReset::In(Seconds(5)));
    assert!(stops_session(&fault(FaultKind::Auth, None)) && stops_session(&fault(FaultKind::Quota, soon)));
    assert!(!stops_session(&fault(FaultKind::Quota, None)), "the client tries again by itself");
    assert!(!stops_session(&fault(FaultKind::Overloaded, None)));
}
