//! The read model: what a screen shows at a given moment.

use liza_core::model::{AgentStatus, Reservation, Role, Seconds, State, Status, StopFileTimes, Timestamp};
use liza_core::rules::claimable::{claimable, claimable_for, reviewable};
use liza_status::alarms::{AlarmLevel, Observations};
use liza_status::view::{Liveness, TaskPhase, TaskView, View, view};
use liza_status::words::{PHASES, agent_doing, agent_facts, task_facts};
use liza_testkit::team::*;

fn shown(state: &State, now: Timestamp) -> View {
    view(state, &Observations { last_progress: Some(now), ..Observations::default() }, now)
}

fn the_task(state: &State, now: Timestamp) -> TaskView {
    shown(state, now).tasks.into_iter().find(|shown| shown.id == task("t")).unwrap()
}

/// Covers: CL-01, TS-01
#[test]
fn every_status_has_a_phase_and_a_next_step() {
    let expected = [
        (Status::Draft, TaskPhase::Draft, Some("liza finalize t")),
        (Status::Unclaimed, TaskPhase::Ready, Some("liza claim-task t coder-1")),
        (Status::Claimed, TaskPhase::Working, Some("liza submit-for-review t COMMIT")),
        (Status::ReadyForReview, TaskPhase::Reviewing, Some("liza submit-verdict t APPROVED")),
        (Status::Rejected, TaskPhase::Working, Some("liza claim-task t coder-1")),
        (Status::Approved, TaskPhase::Reviewing, Some("liza wt-merge t")),
        (Status::IntegrationFailed, TaskPhase::Ready, Some("liza claim-task t coder-1")),
        (Status::Blocked, TaskPhase::Stuck, Some("liza unblock-task t")),
        (Status::Merged, TaskPhase::Ended, None),
        (Status::Superseded, TaskPhase::Ended, None),
        (Status::Abandoned, TaskPhase::Ended, None),
    ];
    assert_eq!(expected.map(|(status, ..)| status), Status::ALL);
    for (status, phase, command) in expected {
        let shown = the_task(&state_with(status), now());
        assert_eq!((shown.phase, shown.command.as_deref()), (phase, command), "{status}: {shown:#?}");
        assert!(!shown.next.to_string().is_empty() && shown.broken.is_empty(), "{status}: {shown:#?}");
    }
}

/// Covers: UI-03
#[test]
fn a_worktree_that_is_set_up_is_a_step_of_its_task_and_its_coder() {
    let mut state = state_with(Status::Unclaimed);
    let coder = agent("coder-1");
    let generation = agents(&mut state)[&coder].generation.unwrap();
    let expires = now() + Seconds(120);
    let reservation = Reservation { by: coder, generation, expires, base_commit: sha('a') };
    edit_task(&mut state, "t", |record| record.reservation = Some(reservation));
    let shown = shown(&state, now());
    let of_coder = shown.agents.iter().find(|agent| agent.id == coder).unwrap();
    assert_eq!((agent_doing(of_coder).as_str(), of_coder.is_at_work()), ("SETTING UP t", true));
    let of_task = the_task(&state, now());
    assert_eq!(of_task.next.to_string(), "coder-1 sets up its worktree");
    assert!(task_facts(&of_task).contains(&of_task.next.to_string()), "{of_task:#?}");
    let later = the_task(&state, expires + Seconds(1));
    assert_eq!(later.next.to_string(), "a coder claims it", "the reservation has expired");
}

/// Covers: CL-07, CL-09
#[test]
fn an_agent_that_is_gone_is_not_shown_as_working() {
    let state = state_with(Status::Claimed);
    let alive = |seconds: u64| shown(&state, now() + Seconds(seconds)).agents[1].liveness;
    assert_eq!(alive(300), Liveness::Live);
    assert_eq!(alive(301), Liveness::Grace);
    assert_eq!(alive(360), Liveness::Grace);
    assert_eq!(alive(361), Liveness::Gone);
    let later = the_task(&state, now() + Seconds(361));
    assert_eq!(later.phase, TaskPhase::Ready);
    assert_eq!(later.lease.unwrap().left, -61);
    assert!(later.next.to_string().contains("coder-1 is gone"), "{later:#?}");
    let mut without_lease = state_with(Status::Claimed);
    agents(&mut without_lease)[1].lease_expires = None;
    assert_eq!(shown(&without_lease, now()).agents[1].liveness, Liveness::Gone);
}

/// Covers: CL-07, UI-01
#[test]
fn a_task_whose_agent_has_left_is_not_shown_as_worked_on() {
    let coder = agent("coder-1");
    let mut left = state_with(Status::Claimed);
    agents(&mut left).shift_remove(&coder);
    let dead = state_with(Status::Claimed);
    let seen = Observations { dead: [coder].into(), ..Observations::default() };
    let of_dead = view(&dead, &seen, now()).tasks.remove(0);
    for shown in [the_task(&left, now()), of_dead] {
        let heading = PHASES.iter().find(|(phase, _)| *phase == shown.phase).map(|(_, heading)| *heading);
        assert_eq!((heading, shown.stopped), (Some("STOPPED"), true), "{shown:#?}");
        assert_eq!(shown.next.to_string(), "stopped; coder-1 continues");
        assert_eq!(task_facts(&shown)[0], "stopped; coder-1 continues");
    }
    agents(&mut left).clear();
    assert_eq!(the_task(&left, now()).human_command.as_deref(), Some("liza run"));
    let mut review = state_with(Status::ReadyForReview);
    agents(&mut review).shift_remove(&agent("code-reviewer-1"));
    let shown = the_task(&review, now());
    assert_eq!(shown.next.to_string(), "a code reviewer takes it");
    assert_eq!(task_facts(&shown)[0], "waiting for a code reviewer");
}

/// Covers: MM-11, UI-02
#[test]
fn an_agent_says_on_which_machine_it_runs_if_there_is_more_than_one() {
    let mut state = state_with(Status::Claimed);
    let machines = |state: &State| -> Vec<Option<String>> {
        shown(state, now()).agents.into_iter().map(|agent| agent.machine).collect()
    };
    agents(&mut state).values_mut().for_each(|entry| entry.machine = Some("forge-1".to_owned()));
    assert!(machines(&state).iter().all(Option::is_none));
    agents(&mut state)[1].machine = Some("forge-2".to_owned());
    assert_eq!(machines(&state)[..2], [Some("forge-1".to_owned()), Some("forge-2".to_owned())]);
    let shown = shown(&state, now());
    assert!(agent_facts(&shown.agents[1]).contains(&"on forge-2".to_owned()));
}

/// Covers: CL-01
#[test]
fn a_task_is_claimable_if_some_coder_may_claim_it() {
    for &status in Status::ALL {
        let state = state_with(status);
        let open = matches!(status, Status::Unclaimed | Status::IntegrationFailed);
        assert_eq!(claimable(&state.board, now()) == [task("t")], open, "{status}");
        assert_eq!(claimable(&state.board, now()), shown(&state, now()).claimable);
        // What is sent back waits for its coder.
        let only = (status == Status::Rejected).then(|| agent("coder-1"));
        assert_eq!(the_task(&state, now()).reserved_for, only, "{status}");
        if open || only.is_some() {
            assert_eq!(claimable_for(&state.board, agent("coder-1"), now()), [task("t")], "{status}");
        }
    }
    let claimed = state_with(Status::Claimed);
    assert!(claimable(&claimed.board, now() + Seconds(360)).is_empty());
    assert_eq!(claimable(&claimed.board, now() + Seconds(361)), [task("t")]);
    let mut waiting = state_with(Status::Unclaimed);
    edit_task(&mut waiting, "t", |record| record.depends_on = Some(vec![task("first")]));
    assert!(claimable(&waiting.board, now()).is_empty());
}

/// Covers: CL-09
#[test]
fn a_task_is_reviewable_if_no_reviewer_holds_it() {
    let state = state_with(Status::ReadyForReview);
    assert!(reviewable(&state.board, now()).is_empty());
    assert_eq!(reviewable(&state.board, now() + Seconds(301)), [task("t")]);
    assert_eq!(
        the_task(&state, now() + Seconds(301)).command.unwrap(),
        "liza claim-review t code-reviewer-1"
    );
}

/// Covers: IV-06, LM-08
#[test]
fn a_task_names_what_it_waits_for_and_dead_dependencies() {
    let mut state = state_with(Status::Unclaimed);
    state.board.put(task("first"), record("first", Status::Claimed));
    edit_task(&mut state, "t", |record| record.depends_on = Some(vec![task("first")]));
    let shown = the_task(&state, now());
    assert_eq!(shown.phase, TaskPhase::Waiting);
    assert_eq!(shown.waits_for[0].status, Some(Status::Claimed));
    assert!(shown.next.to_string().contains("first must be merged first"), "{shown:#?}");
    state.board.put(task("first"), record("first", Status::Abandoned));
    let shown = the_task(&state, now());
    assert!(shown.next.to_string().contains("never be merged"), "{shown:#?}");
    state.board.put(task("alive"), record("alive", Status::Claimed));
    edit_task(&mut state, "t", |record| record.depends_on = Some(vec![task("alive"), task("first")]));
    let shown = the_task(&state, now());
    assert_eq!(shown.next.to_string(), "the planner decides: first will never be merged");
    assert_eq!(task_facts(&shown), ["after first (ABANDONED), alive"], "a narrow screen cuts the end");
}

/// Covers: LM-04
#[test]
fn after_two_failures_only_rescoping_is_possible() {
    let mut state = state_with(Status::Blocked);
    edit_task(&mut state, "t", |record| record.failed_by = Some(vec![agent("coder-1"), agent("coder-2")]));
    let shown = shown(&state, now());
    assert!(shown.tasks[0].command.as_deref().unwrap().starts_with("liza supersede-task t"));
    let kinds: Vec<String> = shown.alerts.iter().map(|alert| alert.kind.to_string()).collect();
    assert_eq!(kinds, ["HYPOTHESIS EXHAUSTION", "BLOCKED"]);
    assert!(shown.alerts[0].level == AlarmLevel::Critical && shown.alerts[0].task == Some(task("t")));
    assert_eq!(shown.planner_triggers[0].kind, "HYPOTHESIS_EXHAUSTED");
}

/// Covers: IV-16
#[test]
fn a_broken_record_is_shown_with_its_repair() {
    let mut state = state_with(Status::ReadyForReview);
    edit_task(&mut state, "t", |record| record.review_commit = None);
    let shown = the_task(&state, now());
    assert_eq!((shown.phase, shown.command.as_deref()), (TaskPhase::Stuck, Some("liza edit t")));
    assert_eq!(shown.broken.len(), 1);
}

#[test]
fn stopped_work_is_shown_with_its_start_time() {
    let seen = Observations {
        stop_files: StopFileTimes { pause: Some(now()), abort: Some(now()), ..StopFileTimes::default() },
        ..Observations::default()
    };
    let shown = view(&empty_state(), &seen, now());
    let files: Vec<&str> = shown.stopped.iter().map(|stop| stop.file.name()).collect();
    assert_eq!(files, ["ABORT", "PAUSE"]);
}

/// Covers: UI-03
#[test]
fn a_planner_that_waits_for_its_next_try_is_shown_as_failed() {
    let mut state = state_with(Status::Blocked);
    sprint(&mut state).planner_exits.count = 2;
    let mut planner = agents(&mut state)[1].clone();
    planner.role = liza_core::model::Role::Planner;
    planner.status = liza_core::model::AgentStatus::Waiting;
    planner.current_task = None;
    planner.last_session = Some(liza_core::model::SessionSummary {
        client: "codex".to_owned(),
        task: None,
        started: now(),
        ended: now(),
        result: "codex exited 1: no route".to_owned(),
        failed: true,
        fault: None,
        again: Some(now() + Seconds(10)),
    });
    agents(&mut state).insert("planner-7".parse().unwrap(), planner);
    let doing = |state: &State, seconds: u64| {
        let view = shown(state, now() + Seconds(seconds));
        let planner = view.agents.iter().find(|agent| agent.id.to_string() == "planner-7").unwrap();
        liza_status::words::agent_doing(planner)
    };
    assert_eq!(doing(&state, 2), "FAILED 2 of 5, again in 8s");
    assert_eq!(doing(&state, 10), "FAILED 2 of 5, again now");
    // One that asked to be started again.
    let mut brief = state.clone();
    let entry =
        agents(&mut brief).get_mut(&"planner-7".parse::<liza_core::model::AgentId>().unwrap()).unwrap();
    entry.last_session.as_mut().unwrap().again = Some(now() + Seconds(2));
    agents(&mut brief).retain(|id, _| id.role() != Role::Planner || id.to_string() == "planner-7");
    assert_eq!(doing(&brief, 0), "FAILED 2 of 5, again in 2s");
    let need = shown(&brief, now()).needs_you;
    assert!(
        need.iter().any(|need| need
            .text
            .ends_with("; the planner looks at it in 2s, and you can answer it yourself"))
    );
    state.board.put(task("t"), record("t", Status::Claimed));
    assert_eq!(doing(&state, 10), "WAITING until needed", "what it failed at is settled");
}

/// Covers: UI-01, UI-03
#[test]
fn a_pause_says_what_still_runs_and_what_waits_for_its_end() {
    let pause = StopFileTimes { pause: Some(now()), ..StopFileTimes::default() };
    let seen = Observations { stop_files: pause, ..Observations::default() };
    let text = |state: &State| view(state, &seen, now()).needs_you.remove(0).text;
    let mut state = state_with(Status::Claimed);
    let one = "Paused just now; no new work starts; 1 session may end its work (up to 2m)";
    assert_eq!(text(&state), one);
    assert_eq!(text(&state_with(Status::Unclaimed)), "Paused just now; no new work starts");
    for entry in agents(&mut state).values_mut().filter(|entry| entry.role == Role::Coder) {
        entry.status = AgentStatus::Working;
    }
    let coders = agents(&mut state).values().filter(|entry| entry.role == Role::Coder).count();
    let running =
        format!("Paused just now; no new work starts; {coders} sessions may end their work (up to 2m)");
    assert_eq!(text(&state), running);
    let approved = view(&state_with(Status::Approved), &seen, now()).tasks.remove(0);
    assert_eq!(task_facts(&approved)[0], "approved; its merge waits for liza resume");
    assert_eq!(approved.human_command.as_deref(), Some("liza resume"));
    let going = the_task(&state_with(Status::Approved), now());
    assert_eq!(task_facts(&going)[0], "approved, waiting for its merge");
}

/// Covers: UI-01
#[test]
fn a_rejection_comes_before_the_attempt() {
    let mut state = state_with(Status::Claimed);
    edit_task(&mut state, "t", |record| record.review_cycles_current = Some(1));
    let facts = task_facts(&the_task(&state, now()));
    assert_eq!(facts[..3], ["coder-1", "rejection 1 of 5", "attempt 1 of 10"]);
}

/// Covers: UI-01, UI-03
#[test]
fn the_rest_of_a_pause_is_not_rounded_down() {
    let pause = StopFileTimes { pause: Some(now()), ..StopFileTimes::default() };
    let seen = Observations { stop_files: pause, ..Observations::default() };
    let text = |after: u64| {
        let mut state = state_with(Status::Claimed);
        for entry in agents(&mut state).values_mut() {
            entry.lease_expires = Some(now() + Seconds(600));
        }
        view(&state, &seen, now() + Seconds(after)).needs_you.remove(0).text
    };
    assert!(text(3).ends_with("(up to 2m)"), "{}", text(3));
    assert!(text(65).ends_with("(up to 55s)"), "{}", text(65));
}

/// Covers: UI-01, UI-03
#[test]
fn while_the_team_is_stopped_nothing_is_taken_next() {
    let stop_files = StopFileTimes { checkpoint: Some(now()), ..StopFileTimes::default() };
    let seen = Observations { stop_files, ..Observations::default() };
    for (status, next) in [
        (Status::Unclaimed, "a coder claims it, after liza resume"),
        (Status::Draft, "the planner finalizes it, after liza resume"),
    ] {
        let shown = view(&state_with(status), &seen, now());
        assert_eq!(shown.tasks[0].next.to_string(), next);
        let facts = task_facts(&shown.tasks[0]).join(" · ");
        assert!(facts.contains("after liza resume"), "{facts}");
        let facts =
            task_facts(&view(&state_with(status), &Observations::default(), now()).tasks[0]).join(" · ");
        assert!(!facts.contains("resume"), "{facts}");
    }
    let mut state = state_with(Status::ReadyForReview);
    let mut submitted = record("t", Status::ReadyForReview);
    (submitted.reviewing_by, submitted.review_lease_expires) = (None, None);
    state.board.put(task("t"), submitted);
    let shown = view(&state, &seen, now());
    assert_eq!(shown.tasks[0].next.to_string(), "a code reviewer takes it, after liza resume");
    assert_eq!(task_facts(&shown.tasks[0])[0], "reviewed after liza resume");
}
