//! Every alarm condition: silent at its threshold, reported beyond it, in the words of the specification.

use liza_core::evidence::{Estimate, ReviewerRates};
use liza_core::model::{
    AgentStatus, Anomaly, BreakerStatus, BreakerTrip, Decision, DirectEdit, DirectEditId, Discovery,
    DiscoveryId, EventName, Fields, HistoryEvent, Loaded, Revision, Seconds, Severity, SprintStatus, State,
    Status, StopFileTimes, Timestamp, Urgency, Value,
};
use liza_core::rules::invariants::{Subject, Violation, validate};
use liza_status::alarms::{Alarm, AlarmKind, Episodes, KeptVersion, Observations, alarms};
use liza_status::needs_you::needs_you;
use liza_testkit::team::*;

/// The alarm lines at that moment.
fn lines(state: &State, seen: &Observations, now: Timestamp) -> Vec<String> {
    alarms(state, seen, now).iter().map(Alarm::line).collect()
}

fn quiet() -> Observations {
    Observations { last_progress: Some(now()), ..Observations::default() }
}

/// A board with one task in that status, changed by the test.
/// The alarm lines `seconds` from now, without other observations.
fn after(state: &State, seconds: u64) -> Vec<String> {
    let later = now() + Seconds(seconds);
    lines(state, &Observations { last_progress: Some(later), ..Observations::default() }, later)
}

/// Covers: SP-05, AX-07
#[test]
fn an_expired_lease_is_one_alarm_and_no_invalid_state() {
    let state = with(Status::Claimed, |_| {});
    assert_eq!(after(&state, 300), Vec::<String>::new());
    assert_eq!(after(&state, 301), ["⚠️ LEASE EXPIRED: coder-1 on t"]);
    let later = now() + Seconds(361);
    let violations = validate(&state, &AllThere, later);
    assert_eq!(violations.len(), 1, "validate says that it is gone: {violations:?}");
    let seen = Observations { violations, last_progress: Some(later), ..Observations::default() };
    let kinds: Vec<AlarmKind> = alarms(&state, &seen, later).iter().map(|alarm| alarm.kind).collect();
    assert!(!kinds.contains(&AlarmKind::InvalidState), "{kinds:?}");
    assert!(kinds.contains(&AlarmKind::LeaseExpired), "{kinds:?}");
}

/// Covers: SP-05
#[test]
fn an_expired_review_lease_is_reported_at_once() {
    let state = with(Status::ReadyForReview, |_| {});
    assert_eq!(after(&state, 300), Vec::<String>::new());
    let reported = ["⚠️ REVIEW LEASE EXPIRED: code-reviewer-1 on t — review can be reclaimed"];
    assert_eq!(after(&state, 301), reported);
}

/// Covers: SP-05
#[test]
fn blocked_failed_and_exhausted_tasks_are_reported() {
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
fn a_rejected_task_is_orphaned_if_its_coder_is_not_working() {
    let rejected = |status| {
        let mut state = with(Status::Rejected, |record| {
            let event = HistoryEvent::new(now(), EventName::Rejected, "code-reviewer-1");
            record.history.get_or_insert_default().push(event);
        });
        entry(&mut state, "coder-1").status = status;
        state
    };
    let waiting = rejected(AgentStatus::Waiting);
    assert_eq!(after(&waiting, 30), Vec::<String>::new());
    let reported = ["🚨 ORPHANED REJECTED: t — assigned to coder-1 but agent is WAITING"];
    assert_eq!(after(&waiting, 31), reported);
    assert_eq!(after(&rejected(AgentStatus::Working), 31), Vec::<String>::new());
    let gone = "🚨 ORPHANED REJECTED: t — assigned to coder-1 but agent is gone (lease expired)";
    assert_eq!(after(&rejected(AgentStatus::Working), 301), [gone]);
}

/// Covers: SP-05
#[test]
fn a_coder_that_just_ended_another_task_leaves_no_orphan() {
    let mut state = with(Status::Rejected, |record| {
        let event = HistoryEvent::new(now() - Seconds(600), EventName::Rejected, "code-reviewer-1");
        record.history.get_or_insert_default().push(event);
    });
    place(&mut state, "other", Status::ReadyForReview);
    edit_task(&mut state, "other", |other| {
        other.reviewing_by = None;
        other.review_lease_expires = None;
        let submitted = HistoryEvent::new(now(), EventName::ReadyForReview, "coder-1");
        other.history.get_or_insert_default().push(submitted);
    });
    assert_eq!(after(&state, 30), Vec::<String>::new(), "it submitted the other task just now");
    assert_eq!(after(&state, 31).len(), 1);
}

/// Covers: SP-05
#[test]
fn a_second_coder_is_reported_as_a_risk() {
    let claims = |names: &'static [&'static str]| {
        with(Status::Claimed, |record| {
            for name in names {
                let event = HistoryEvent::new(now(), EventName::Claimed, name);
                record.history.get_or_insert_default().push(event);
            }
        })
    };
    assert_eq!(after(&claims(&["coder-1", "coder-1"]), 0), Vec::<String>::new());
    let reported = ["⚠️ REASSIGNED: t — hypothesis exhaustion risk"];
    assert_eq!(after(&claims(&["coder-1", "coder-2"]), 0), reported);
    let repaired = with(Status::Claimed, |record| {
        let claim = |event, name: &str| HistoryEvent::new(now(), event, name);
        let claims =
            [claim(EventName::Claimed, "coder-1"), claim(EventName::ClaimedForIntegrationFix, "coder-2")];
        record.history.get_or_insert_default().extend(claims);
    });
    assert_eq!(after(&repaired, 0), Vec::<String>::new(), "an integration fix is not a reassignment");
}

/// Covers: SP-05
#[test]
fn limits_are_reported_when_near_and_when_reached() {
    let at = |iteration, cycles, total| {
        with(Status::Claimed, |record| {
            record.iteration = Some(iteration);
            record.review_cycles_current = Some(cycles);
            record.review_cycles_total = Some(total);
        })
    };
    assert_eq!(after(&at(7, 2, 2), 0), Vec::<String>::new());
    assert_eq!(after(&at(8, 0, 0), 0), ["⚠️ APPROACHING LIMIT: t — iteration 8/10"]);
    let blocked = with(Status::Blocked, |record| record.iteration = Some(8));
    let blocked = after(&blocked, 0);
    assert!(!blocked.iter().any(|line| line.contains("APPROACHING")), "it is reached: {blocked:?}");
    assert_eq!(after(&at(1, 3, 3), 0), ["⚠️ APPROACHING LIMIT: t — review cycles 3/5"]);
    assert_eq!(after(&at(1, 5, 5), 0), ["🚨 REVIEW LOOP: t — 5 cycles (at cliff)"]);
    let own = with(Status::Claimed, |record| {
        record.max_iterations = Some(5);
        record.iteration = Some(4);
    });
    assert_eq!(after(&own, 0), ["⚠️ APPROACHING LIMIT: t — iteration 4/5"]);
    let two_of_three = with(Status::Claimed, |record| {
        record.max_review_cycles = Some(3);
        record.review_cycles_current = Some(2);
    });
    assert_eq!(after(&two_of_three, 0), ["⚠️ APPROACHING LIMIT: t — review cycles 2/3"]);
    assert_eq!(after(&at(u32::MAX, u32::MAX, 0), 0).len(), 2, "for any number in the file");
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
fn an_old_draft_is_reported() {
    let state = with(Status::Draft, |record| record.created = Some(now()));
    assert_eq!(after(&state, 1800), Vec::<String>::new());
    assert_eq!(after(&state, 1860), ["⚠️ STALE DRAFT: t — created 31min ago (Planner crash?)"]);
}

/// Covers: SP-05, NT-03
#[test]
fn an_immediate_discovery_is_reported_until_it_is_converted() {
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
        dismissed: None,
    };
    state.board.discovered = Loaded::Ready(vec![found(None)]);
    assert_eq!(after(&state, 0), ["🚨 IMMEDIATE DISCOVERY: disc-1 — no timeout (Planner should wake)"]);
    state.board.discovered = Loaded::Ready(vec![found(Some(task("t")))]);
    assert_eq!(after(&state, 0), Vec::<String>::new());
}

/// Covers: SP-05, SP-06
#[test]
fn a_checkpoint_becomes_stale_stuck_and_abandoned() {
    let state = empty_state();
    let reported = |seconds: u64| {
        let seen = Observations {
            stop_files: StopFileTimes { checkpoint: Some(now()), ..StopFileTimes::default() },
            ..quiet()
        };
        lines(&state, &seen, now() + Seconds(seconds))
    };
    assert_eq!(reported(1800), Vec::<String>::new());
    assert_eq!(reported(1801), ["⚠️ CHECKPOINT STALE: waiting for human for 30m"]);
    assert_eq!(reported(7200), ["⚠️ CHECKPOINT STALE: waiting for human for 2h"]);
    assert_eq!(reported(7201), ["🚨 CHECKPOINT STUCK: waiting for human for 2h"]);
    let last = reported(28_801);
    assert!(last[0].starts_with("🚨 CHECKPOINT ABANDONED?: waiting for human for 8h"), "{last:?}");
}

/// Covers: SP-05
#[test]
fn a_pause_becomes_stale_and_forgotten() {
    let state = empty_state();
    let reported = |seconds: u64| {
        let seen = Observations {
            stop_files: StopFileTimes { pause: Some(now()), ..StopFileTimes::default() },
            ..quiet()
        };
        lines(&state, &seen, now() + Seconds(seconds))
    };
    assert_eq!(reported(1800), Vec::<String>::new());
    assert_eq!(reported(1860), ["⚠️ STALE PAUSE: PAUSE file exists for 31min"]);
    assert_eq!(reported(7260), ["🚨 FORGOTTEN PAUSE: PAUSE file exists for 121min"]);
}

/// Covers: SP-05, SP-10
#[test]
fn a_stall_names_its_cause_if_the_board_shows_it() {
    let stalled = |state: &State, seconds: u64| {
        let seen = Observations { last_progress: Some(now()), ..Observations::default() };
        let mut reported = lines(state, &seen, now() + Seconds(seconds));
        reported.retain(|line| line.contains("STALLED"));
        reported.pop().unwrap_or_default()
    };
    let unclaimed = state_with(Status::Unclaimed);
    assert_eq!(stalled(&unclaimed, 1800), "");
    let no_agent = stalled(&unclaimed, 1860);
    let words = "⚠️ STALLED: no progress for 31m — 1 task waits for a coder, and none is running";
    assert_eq!(no_agent, words);
    let review = stalled(&state_with(Status::Approved), 1860);
    assert!(
        review.ends_with("1 task waits for review or merge, and no code reviewer is running"),
        "{review}"
    );
    let plan = stalled(&state_with(Status::Blocked), 1860);
    assert!(plan.ends_with("1 task waits for the planner, and none is running"), "{plan}");
    let alive = |mut state: State| {
        agents(&mut state).values_mut().for_each(|entry| entry.lease_expires = Some(now() + Seconds(9000)));
        state
    };
    let says = |state: State, words: &str| {
        let reported = stalled(&state, 1860);
        assert!(reported.contains(words), "{reported:?} does not contain {words:?}");
    };
    says(alive(state_with(Status::Blocked)), "every open task is blocked; the planner or you must decide");
    says(empty_state(), "nothing is planned and no planner is running");
    says(alive(empty_state()), "the planner has not planned yet");
    says(state_with(Status::Merged), "waiting for a human: every task has ended, no planner is running");
    says(alive(state_with(Status::Merged)), "every task has ended and the planner has not judged the goal");
    says(alive(state_with(Status::Unclaimed)), "1 task waits to be claimed, and no coder takes it");
    says(alive(state_with(Status::Approved)), "1 task waits for review or merge");
    says(alive(state_with(Status::Draft)), "1 task waits for the planner");
    let mut two = state_with(Status::Unclaimed);
    place(&mut two, "u", Status::Approved);
    says(two, "no code reviewer is running; 1 task waits for a coder, and none is running");
    let mut unstated = empty_state();
    goal(&mut unstated).description.clear();
    says(unstated, "waiting for a human: there is no goal");
    let mut held = alive(state_with(Status::Claimed));
    edit_task(&mut held, "t", |claimed| claimed.lease_expires = Some(now() + Seconds(9000)));
    says(held, "in progress without a result: t by coder-1");
    let mut waits = alive(with(Status::Unclaimed, |record| record.depends_on = Some(vec![task("gone")])));
    waits.board.put(task("gone"), record("gone", Status::Abandoned));
    says(waits, "1 task waits for others that are not merged");
    let mut ending = state_with(Status::Unclaimed);
    sprint(&mut ending).timeline.paused_at = Some(now());
    assert_eq!(stalled(&ending, 1860), "", "the file is gone, and its removal will be logged soon");
    let paused = Observations {
        stop_files: StopFileTimes { pause: Some(now()), ..StopFileTimes::default() },
        ..quiet()
    };
    let reported = lines(&unclaimed, &paused, now() + Seconds(1860));
    assert!(!reported.iter().any(|line| line.contains("STALLED")), "{reported:?}");
}

/// Covers: SP-05
#[test]
fn the_breaker_the_deadline_and_manual_edits_are_reported() {
    let mut state = empty_state();
    if let Loaded::Ready(breaker) = &mut state.board.circuit_breaker {
        breaker.status = BreakerStatus::Triggered;
        breaker.current_trigger = Some(BreakerTrip {
            timestamp: now(),
            pattern: "retry_cluster".to_owned(),
            severity: None,
            common_factor: None,
            tasks: Vec::new(),
        });
    }
    sprint(&mut state).timeline.deadline = Some(now());
    let seen = Observations {
        kept_versions: vec![KeptVersion { file: ".liza/x".to_owned(), is_before_rewrite: false }],
        unreadable: None,
        ..quiet()
    };
    let reported = lines(&state, &seen, now());
    assert!(
        reported[0].starts_with("🚨 CIRCUIT BREAKER: retry_cluster; see .liza/circuit_breaker_report.md")
    );
    assert_eq!(reported[1], format!("⚠️ SPRINT DEADLINE: sprint-1 was due at {}", now()));
    assert!(
        reported[2].starts_with("⚠️ STALE EDIT: your save was based on an older revision"),
        "{reported:?}"
    );
    assert_eq!(reported.len(), 3);
    let early = lines(&state, &quiet(), now() - Seconds(1));
    assert!(!early.iter().any(|line| line.contains("DEADLINE")), "{early:?}");
}

/// Covers: AX-08, SP-02, SP-05
#[test]
fn a_high_approval_rate_warns_of_rubber_stamps() {
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
    let seen = "⚠️ RUBBER STAMP: 5 of 5 verdicts are approvals: is the code being read?";
    let reported = [format!("{seen} To measure it: liza drill")];
    assert_eq!(after(&verdicts(5, 0), 0), reported);
    let mut ended = verdicts(5, 0);
    sprint(&mut ended).status = SprintStatus::Completed;
    assert_eq!(after(&ended, 0), reported, "the first look may come after the sprint");
}

/// Covers: TR-03
#[test]
fn the_warning_of_rubber_stamps_has_the_evidence_of_drills() {
    let state = with(Status::Claimed, |record| {
        let approved = HistoryEvent::new(now(), EventName::Approved, "code-reviewer-1");
        record.history.get_or_insert_default().extend(vec![approved; 5]);
    });
    let drilled = vec![ReviewerRates {
        program: "claude".to_owned(),
        model: None,
        caught: Estimate::new(1, 10),
        false_alarms: Estimate::new(0, 10),
        without_verdict: 0,
    }];
    let seen = Observations { drilled, ..quiet() };
    let reported = lines(&state, &seen, now());
    let evidence =
        "is the code being read? Of the defects planted in drills claude caught 1 of 10: 10 % (2 to 40 %)";
    assert!(
        reported.iter().any(|line| line.contains("RUBBER STAMP") && line.ends_with(evidence)),
        "{reported:?}"
    );
}

/// Covers: SP-05
#[test]
fn each_alarm_is_reported_once_per_episode() {
    let mut episodes = Episodes::default();
    let blocked = with(Status::Blocked, |_| {});
    let free = with(Status::Unclaimed, |_| {});
    let current = |state: &State| alarms(state, &quiet(), now());
    assert_eq!(episodes.advance(&current(&blocked)).len(), 1);
    assert_eq!(episodes.advance(&current(&blocked)).len(), 0, "it was already reported");
    let mut remembered = episodes.clone();
    assert_eq!(episodes.advance(&current(&free)).len(), 0);
    assert_eq!(episodes.advance(&current(&blocked)).len(), 1, "a new episode");
    assert_eq!(remembered.advance(&current(&blocked)).len(), 0, "also after a restart of the watcher");
}

/// Covers: SP-05
#[test]
fn a_condition_that_ended_and_returned_is_a_new_episode_even_if_unobserved() {
    let blocked_at = |time: Timestamp| {
        let state = with(Status::Blocked, |record| {
            let event = HistoryEvent::new(time, EventName::Blocked, "coder-1");
            record.history.get_or_insert_default().push(event);
        });
        alarms(&state, &quiet(), now() + Seconds(60))
    };
    let mut episodes = Episodes::default();
    assert_eq!(episodes.advance(&blocked_at(now())).len(), 1);
    assert_eq!(episodes.advance(&blocked_at(now())).len(), 0);
    assert_eq!(episodes.advance(&blocked_at(now() + Seconds(30))).len(), 1);
    let stale = |file: fn(Timestamp) -> Observations, hours: u64| {
        let since = now() - Seconds::minutes(31) + Seconds::hours(hours);
        alarms(&empty_state(), &file(since), now() + Seconds::hours(hours))
    };
    let files: [fn(Timestamp) -> Observations; 2] = [
        |since| Observations {
            stop_files: StopFileTimes { checkpoint: Some(since), ..StopFileTimes::default() },
            ..quiet()
        },
        |since| Observations {
            stop_files: StopFileTimes { pause: Some(since), ..StopFileTimes::default() },
            ..quiet()
        },
    ];
    for file in files {
        let mut episodes = Episodes::default();
        assert_eq!(episodes.advance(&stale(file, 0)).len(), 1);
        assert_eq!(episodes.advance(&stale(file, 3)).len(), 1, "another stop, three hours later");
    }
}

/// Covers: SP-05, IV-16
#[test]
fn an_unreadable_file_is_reported_and_clears_no_alarm() {
    let mut episodes = Episodes::default();
    let blocked = with(Status::Blocked, |_| {});
    assert_eq!(episodes.advance(&alarms(&blocked, &quiet(), now())).len(), 1);
    let unreadable = Observations { unreadable: Some("line 3: what?".to_owned()), ..Observations::default() };
    let blind = alarms(&State::default(), &unreadable, now());
    assert_eq!(blind.iter().map(Alarm::line).collect::<Vec<_>>(), ["🚨 INVALID STATE: line 3: what?"]);
    assert_eq!(episodes.advance_blind(&blind).len(), 1);
    assert_eq!(episodes.advance_blind(&blind).len(), 0);
    assert_eq!(episodes.advance(&alarms(&blocked, &quiet(), now())).len(), 0, "it was reported before");
    assert_eq!(episodes.advance(&blind).len(), 1, "unreadable again is another episode");
}

/// Covers: SP-05
#[test]
fn changes_outside_a_task_are_reported_until_a_decision() {
    let mut state = empty_state();
    let details = Fields::from_iter([("deviation".to_owned(), Value::from("the checkout changed"))]);
    let anomaly = |kind: &str, on: Option<&str>| Anomaly {
        timestamp: now(),
        task: on.map(task),
        reporter: Some("planner-1".to_owned()),
        kind: kind.to_owned(),
        details: details.clone(),
    };
    state.journal.anomalies = vec![anomaly("workaround", None), anomaly("scope_deviation", Some("t"))];
    assert_eq!(lines(&state, &quiet(), now()), Vec::<String>::new(), "those are for the code reviewer");
    state.journal.anomalies.push(anomaly("scope_deviation", None));
    let reported = ["🚨 STRAY CHANGES: planner-1 — the checkout changed"];
    assert_eq!(lines(&state, &quiet(), now()), reported);
    if let Loaded::Ready(sprint) = &mut state.board.sprint {
        let (timestamp, decision) = (now(), "continue".to_owned());
        sprint.decisions.push(Decision { timestamp, decision, note: None });
    }
    assert_eq!(lines(&state, &quiet(), now()), Vec::<String>::new());
}

/// Covers: SP-05, IV-16, AX-22
#[test]
fn every_violation_is_reported() {
    let wrong = |message: &str| Violation {
        subject: Subject::Task(task("t")),
        message: message.to_owned(),
        has_alarm: false,
    };
    let seen = Observations { violations: vec![wrong("no done_when"), wrong("no spec_ref")], ..quiet() };
    let reported = lines(&empty_state(), &seen, now());
    assert_eq!(reported, ["🚨 INVALID STATE: t: no done_when", "🚨 INVALID STATE: t: no spec_ref"]);
    let lapse = Violation { has_alarm: true, ..wrong("lease ended") };
    let seen = Observations { violations: [seen.violations, vec![lapse]].concat(), ..quiet() };
    let found = alarms(&empty_state(), &seen, now());
    assert_eq!(found.len(), 2, "a lapse has another alarm");
    let needs = needs_you(&empty_state(), &seen, &found, now());
    let text = "3 violations, 1 of them with an alarm of its own, the first: t: no done_when";
    assert_eq!(needs[0].text, text, "as many as validate lists");
}

/// Covers: AG-14
#[test]
fn a_session_with_a_nearly_full_context_is_reported_while_it_works() {
    let measured = |percent, status| {
        let mut state = with(Status::Claimed, |_| {});
        if let Loaded::Ready(agents) = &mut state.board.agents {
            let entry = agents.get_mut(&agent("coder-1")).unwrap();
            (entry.context_percent, entry.status) = (Some(percent), status);
        }
        state
    };
    assert_eq!(after(&measured(89, AgentStatus::Working), 0), Vec::<String>::new());
    let reported = ["⚠️ CONTEXT FULL: coder-1 on t — 90 % of its context is used, it should hand off"];
    assert_eq!(after(&measured(90, AgentStatus::Working), 0), reported);
    assert_eq!(after(&measured(97, AgentStatus::Waiting), 0), Vec::<String>::new(), "no session runs");
    let gone = ["⚠️ CONTEXT FULL"];
    assert!(!after(&measured(97, AgentStatus::Working), 301).iter().any(|line| line.starts_with(gone[0])));
}

/// Covers: AT-04
#[test]
fn a_direct_edit_is_reported_until_it_is_dismissed() {
    let mut state = empty_state();
    let edit = |revision: u64, places: &[&str]| DirectEdit {
        id: DirectEditId(Revision(revision)),
        timestamp: now(),
        places: places.iter().map(|place| (*place).to_owned()).collect(),
    };
    state.board.direct_edits =
        Loaded::Ready(vec![edit(4, &["tasks.t.status", "config.providers.x"]), edit(9, &[])]);
    assert_eq!(
        lines(&state, &quiet(), now()),
        [
            "🚨 DIRECT EDIT: edited by hand, although only commands should change it: tasks.t.status, config.providers.x",
            "🚨 DIRECT EDIT: state.yaml differs from the version that was last written, and what differs is not known",
        ]
    );
    let found = alarms(&state, &quiet(), now());
    let needed = needs_you(&state, &quiet(), &found, now());
    let commands: Vec<&str> = needed.iter().map(|entry| entry.command.as_str()).collect();
    assert_eq!(commands, ["liza dismiss edit-4", "liza dismiss edit-9"]);
}
