//! Every alarm condition: silent at its threshold, said beyond it, in the words of the specification.

use liza_core::State;
use liza_core::agent::AgentStatus;
use liza_core::alarm::{Alarm, Episodes, Sightings, alarms};
use liza_core::board::Loaded;
use liza_core::breaker::{BreakerStatus, Trigger};
use liza_core::event::{EventName, HistoryEvent};
use liza_core::ids::DiscoveryId;
use liza_core::notes::{Discovery, Severity, Urgency};
use liza_core::record::{Status, TaskRecord};
use liza_core::time::{Seconds, Timestamp};

use crate::fixture::*;

/// The lines that stand at that moment.
fn lines(state: &State, seen: &Sightings, now: Timestamp) -> Vec<String> {
    alarms(state, seen, now).iter().map(Alarm::line).collect()
}

fn quiet() -> Sightings {
    Sightings { last_progress: Some(now()), ..Sightings::default() }
}

/// A board with one task in that state, changed as the test wants.
fn with(status: Status, change: impl FnOnce(&mut TaskRecord)) -> State {
    let mut state = state_with(status);
    let mut record = state.board.body(&task("t")).unwrap().record.clone();
    change(&mut record);
    state.board.put(task("t"), record);
    state
}

/// What stands `seconds` from now, with nothing else to be said.
fn after(state: &State, seconds: u64) -> Vec<String> {
    let later = now() + Seconds(seconds);
    lines(state, &Sightings { last_progress: Some(later), ..Sightings::default() }, later)
}

/// Covers: SP-05
#[test]
fn an_expired_lease_is_told_after_the_grace() {
    let state = with(Status::Claimed, |_| {});
    assert_eq!(after(&state, 360), Vec::<String>::new());
    assert_eq!(after(&state, 361), ["⚠️ LEASE EXPIRED: coder-1 on t"]);
}

/// Covers: SP-05
#[test]
fn an_expired_review_lease_is_told_at_once() {
    let state = with(Status::ReadyForReview, |_| {});
    assert_eq!(after(&state, 300), Vec::<String>::new());
    let told = ["⚠️ REVIEW LEASE EXPIRED: code-reviewer-1 on t — review can be reclaimed"];
    assert_eq!(after(&state, 301), told);
}

/// Covers: SP-05
#[test]
fn blocked_failed_and_exhausted_tasks_are_told() {
    let blocked = with(Status::Blocked, |_| {});
    assert_eq!(after(&blocked, 0), ["⚠️ BLOCKED: t — spec is silent"]);
    let failed = with(Status::IntegrationFailed, |_| {});
    assert_eq!(after(&failed, 0), ["🚨 INTEGRATION FAILED: t"]);
    let one = with(Status::Unclaimed, |record| record.failed_by = Some(vec![agent("coder-1")]));
    assert_eq!(after(&one, 0), Vec::<String>::new());
    let two =
        with(Status::Unclaimed, |record| record.failed_by = Some(vec![agent("coder-1"), agent("coder-2")]));
    assert_eq!(after(&two, 0), ["🚨 HYPOTHESIS EXHAUSTION: t — requires rescope"]);
}

/// Covers: SP-05
#[test]
fn a_rejected_task_is_orphaned_when_its_coder_is_not_at_work() {
    let rejected = |status| {
        let mut state = with(Status::Rejected, |record| {
            let event = HistoryEvent::new(now(), EventName::Rejected, "code-reviewer-1");
            record.history.get_or_insert_default().push(event);
        });
        if let Loaded::Ready(agents) = &mut state.board.agents {
            agents.get_mut(&agent("coder-1")).unwrap().status = status;
        }
        state
    };
    let waiting = rejected(AgentStatus::Waiting);
    assert_eq!(after(&waiting, 30), Vec::<String>::new());
    let told = ["🚨 ORPHANED REJECTED: t — assigned to coder-1 but agent is WAITING"];
    assert_eq!(after(&waiting, 31), told);
    assert_eq!(after(&rejected(AgentStatus::Working), 31), Vec::<String>::new());
    let gone = "🚨 ORPHANED REJECTED: t — assigned to coder-1 but agent is gone (lease expired)";
    assert_eq!(after(&rejected(AgentStatus::Working), 301), [gone]);
}

/// Covers: SP-05
#[test]
fn a_second_coder_is_a_risk() {
    let claims = |names: &'static [&'static str]| {
        with(Status::Claimed, |record| {
            for name in names {
                let event = HistoryEvent::new(now(), EventName::Claimed, name);
                record.history.get_or_insert_default().push(event);
            }
        })
    };
    assert_eq!(after(&claims(&["coder-1", "coder-1"]), 0), Vec::<String>::new());
    let told = ["⚠️ REASSIGNED: t — hypothesis exhaustion risk"];
    assert_eq!(after(&claims(&["coder-1", "coder-2"]), 0), told);
}

/// Covers: SP-05
#[test]
fn limits_are_told_on_the_way_and_at_the_cliff() {
    let at = |iteration, cycles, total| {
        with(Status::Claimed, |record| {
            record.iteration = Some(iteration);
            record.review_cycles_current = Some(cycles);
            record.review_cycles_total = Some(total);
        })
    };
    assert_eq!(after(&at(7, 2, 2), 0), Vec::<String>::new());
    assert_eq!(after(&at(8, 0, 0), 0), ["⚠️ APPROACHING LIMIT: t — iteration 8/10"]);
    assert_eq!(after(&at(1, 3, 3), 0), ["⚠️ APPROACHING LIMIT: t — review cycles 3/5"]);
    assert_eq!(after(&at(1, 5, 5), 0), ["🚨 REVIEW LOOP: t — 5 cycles (at cliff)"]);
    let own = with(Status::Claimed, |record| {
        record.max_iterations = Some(5);
        record.iteration = Some(4);
    });
    assert_eq!(after(&own, 0), ["⚠️ APPROACHING LIMIT: t — iteration 4/5"]);
    let failed = |total| {
        with(Status::Unclaimed, |record| {
            record.failed_by = Some(vec![agent("coder-1")]);
            record.review_cycles_total = Some(total);
        })
    };
    assert_eq!(after(&failed(2), 0), Vec::<String>::new());
    assert_eq!(after(&failed(3), 0), ["⚠️ APPROACHING LIMIT: t — 1 of 2 coders failed, 3 review cycles"]);
}

/// Covers: SP-05
#[test]
fn an_old_draft_is_told() {
    let state = with(Status::Draft, |record| record.created = Some(now()));
    assert_eq!(after(&state, 1800), Vec::<String>::new());
    assert_eq!(after(&state, 1860), ["⚠️ STALE DRAFT: t — created 31min ago (Planner crash?)"]);
}

/// Covers: SP-05, NT-03
#[test]
fn an_immediate_discovery_is_told_until_it_is_converted() {
    let mut state = empty_state();
    let found = |converted| Discovery {
        id: DiscoveryId(1),
        by: None,
        during: None,
        description: "no timeout".to_owned(),
        severity: Severity::Critical,
        urgency: Urgency::Immediate,
        recommendation: None,
        created: None,
        converted_to_task: converted,
    };
    state.board.discovered = Loaded::Ready(vec![found(None)]);
    assert_eq!(after(&state, 0), ["🚨 IMMEDIATE DISCOVERY: disc-1 — no timeout (Planner should wake)"]);
    state.board.discovered = Loaded::Ready(vec![found(Some(task("t")))]);
    assert_eq!(after(&state, 0), Vec::<String>::new());
}

/// Covers: SP-05, SP-06
#[test]
fn a_checkpoint_grows_stale_stuck_and_abandoned() {
    let state = empty_state();
    let told = |seconds: u64| {
        let seen = Sightings { checkpoint_since: Some(now()), ..quiet() };
        lines(&state, &seen, now() + Seconds(seconds))
    };
    assert_eq!(told(1800), Vec::<String>::new());
    assert_eq!(told(1801), ["⚠️ CHECKPOINT STALE: waiting for human for 30m"]);
    assert_eq!(told(7200), ["⚠️ CHECKPOINT STALE: waiting for human for 2h"]);
    assert_eq!(told(7201), ["🚨 CHECKPOINT STUCK: waiting for human for 2h"]);
    let last = told(28_801);
    assert!(last[0].starts_with("🚨 CHECKPOINT ABANDONED?: waiting for human for 8h"), "{last:?}");
}

/// Covers: SP-05
#[test]
fn a_pause_grows_stale_and_forgotten() {
    let state = empty_state();
    let told = |seconds: u64| {
        let seen = Sightings { pause_since: Some(now()), ..quiet() };
        lines(&state, &seen, now() + Seconds(seconds))
    };
    assert_eq!(told(1800), Vec::<String>::new());
    assert_eq!(told(1860), ["⚠️ STALE PAUSE: PAUSE file exists for 31min"]);
    assert_eq!(told(7260), ["🚨 FORGOTTEN PAUSE: PAUSE file exists for 121min"]);
}

/// Covers: SP-05, SP-10
#[test]
fn a_stall_says_why_as_far_as_the_board_tells() {
    let stalled = |state: &State, seconds: u64| {
        let seen = Sightings { last_progress: Some(now()), ..Sightings::default() };
        let mut told = lines(state, &seen, now() + Seconds(seconds));
        told.retain(|line| line.contains("STALLED"));
        told.pop().unwrap_or_default()
    };
    let unclaimed = state_with(Status::Unclaimed);
    assert_eq!(stalled(&unclaimed, 1800), "");
    let nobody = stalled(&unclaimed, 1860);
    let words = "⚠️ STALLED: no progress for 31m — 1 task(s) wait for a coder and none is running";
    assert_eq!(nobody, words);
    let review = stalled(&state_with(Status::Approved), 1860);
    assert!(
        review.ends_with("1 task(s) wait for review or merge and no code reviewer is running"),
        "{review}"
    );
    let plan = stalled(&state_with(Status::Blocked), 1860);
    assert!(plan.ends_with("1 task(s) wait for the planner and none is running"), "{plan}");
    let alive = |mut state: State| {
        if let Loaded::Ready(agents) = &mut state.board.agents {
            agents.values_mut().for_each(|entry| entry.lease_expires = Some(now() + Seconds(9000)));
        }
        state
    };
    assert!(stalled(&alive(state_with(Status::Blocked)), 1860).ends_with("every open task is blocked"));
    assert!(stalled(&empty_state(), 1860).ends_with("no planner is running"));
    assert_eq!(stalled(&state_with(Status::Merged), 1860), "", "nothing is left to do");
    let paused = Sightings { pause_since: Some(now()), ..quiet() };
    let told = lines(&unclaimed, &paused, now() + Seconds(1860));
    assert!(!told.iter().any(|line| line.contains("STALLED")), "{told:?}");
}

/// Covers: SP-05
#[test]
fn the_breaker_the_deadline_and_hand_edits_are_told() {
    let mut state = empty_state();
    if let Loaded::Ready(breaker) = &mut state.board.circuit_breaker {
        breaker.status = BreakerStatus::Triggered;
        breaker.current_trigger = Some(Trigger {
            timestamp: now(),
            pattern: "retry_cluster".to_owned(),
            severity: None,
            common_factor: None,
            tasks: Vec::new(),
        });
    }
    if let Loaded::Ready(sprint) = &mut state.board.sprint {
        sprint.timeline.deadline = Some(now());
    }
    let seen = Sightings { stale_edits: vec![".liza/x".to_owned()], unreadable: None, ..quiet() };
    let told = lines(&state, &seen, now());
    assert!(told[0].starts_with("🚨 CIRCUIT BREAKER: retry_cluster; see .liza/circuit_breaker_report.md"));
    assert_eq!(told[1], format!("⚠️ SPRINT DEADLINE: sprint-1 was due at {}", now()));
    assert!(told[2].starts_with("⚠️ STALE EDIT: your save was based on an older revision"), "{told:?}");
    assert_eq!(told.len(), 3);
    let early = lines(&state, &quiet(), now() - Seconds(1));
    assert!(!early.iter().any(|line| line.contains("DEADLINE")), "{early:?}");
}

/// Covers: SP-02, SP-05
#[test]
fn verdicts_that_are_all_approvals_warn_of_rubber_stamps() {
    let verdicts = |approvals: usize, rejections: usize| {
        with(Status::Claimed, |record| {
            let history = record.history.get_or_insert_default();
            let by = "code-reviewer-1";
            history.extend((0..approvals).map(|_| HistoryEvent::new(now(), EventName::Approved, by)));
            history.extend((0..rejections).map(|_| HistoryEvent::new(now(), EventName::Rejected, by)));
        })
    };
    assert_eq!(after(&verdicts(4, 0), 0), Vec::<String>::new());
    assert_eq!(after(&verdicts(19, 1), 0), Vec::<String>::new(), "95 % is not over 95 %");
    let told = ["⚠️ RUBBER STAMP: 5 of 5 verdicts are approvals: does anybody read the code?"];
    assert_eq!(after(&verdicts(5, 0), 0), told);
}

/// Covers: SP-05
#[test]
fn each_alarm_is_said_once_per_episode() {
    let mut episodes = Episodes::default();
    let blocked = with(Status::Blocked, |_| {});
    let free = with(Status::Unclaimed, |_| {});
    let stands = |state: &State| alarms(state, &quiet(), now());
    assert_eq!(episodes.advance(&stands(&blocked)).len(), 1);
    assert_eq!(episodes.advance(&stands(&blocked)).len(), 0, "it stands, and was said");
    let mut remembered = episodes.clone();
    assert_eq!(episodes.advance(&stands(&free)).len(), 0);
    assert_eq!(episodes.advance(&stands(&blocked)).len(), 1, "a new episode");
    assert_eq!(remembered.advance(&stands(&blocked)).len(), 0, "also after a restart of the watcher");
}

/// Covers: AG-14
#[test]
fn a_session_whose_context_is_nearly_used_up_is_told_while_it_works() {
    let measured = |percent, status| {
        let mut state = with(Status::Claimed, |_| {});
        if let Loaded::Ready(agents) = &mut state.board.agents {
            let entry = agents.get_mut(&agent("coder-1")).unwrap();
            (entry.context_percent, entry.status) = (Some(percent), status);
        }
        state
    };
    assert_eq!(after(&measured(89, AgentStatus::Working), 0), Vec::<String>::new());
    let told = ["⚠️ CONTEXT FULL: coder-1 on t — 90 % of its context is used, it should hand over"];
    assert_eq!(after(&measured(90, AgentStatus::Working), 0), told);
    assert_eq!(after(&measured(97, AgentStatus::Waiting), 0), Vec::<String>::new(), "no session runs");
    let gone = ["⚠️ CONTEXT FULL"];
    assert!(!after(&measured(97, AgentStatus::Working), 301).iter().any(|line| line.starts_with(gone[0])));
}
