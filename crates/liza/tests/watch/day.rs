//! One day of a team, minute by minute with a virtual clock: each alarm once, in order, with any number of watchers.

use std::collections::{BTreeMap, BTreeSet};

use liza_core::model::{Actor, AnomalyType, Fields, Severity, SprintStatus, State, Urgency, Value};
use liza_core::protocol::{
    AddTask, Command, Discover, Heartbeat, LogAnomaly, MarkBlocked, NewTask, Resolve, Resume, SetDeadline,
};
use liza_team::watch::{WatchOptions, Watcher};

use crate::fixture::Clocked;

const DAY: u64 = 13 * 60;

fn options() -> WatchOptions {
    WatchOptions { analyze: true, desktop: false, ..WatchOptions::default() }
}

/// The events by minute.
type Script = BTreeMap<u64, Box<dyn Fn(&Clocked)>>;

fn add_task(id: &str, draft: bool) -> Command {
    let text = |text: &str| Some(text.to_owned());
    let new = NewTask {
        description: "Do it".to_owned(),
        spec_ref: text("specs/vision.md"),
        done_when: text("done"),
        scope: text("all"),
        draft,
        ..NewTask::default()
    };
    Command::from(AddTask { task: id.parse().unwrap(), new })
}

fn anomaly() -> Command {
    let details = [("count", Value::from(3u32)), ("error_pattern", Value::from("connection reset"))];
    let details: Fields = details.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    Command::from(LogAnomaly { kind: AnomalyType::RetryLoop, task: Some("core".parse().unwrap()), details })
}

fn block() -> Command {
    Command::from(MarkBlocked {
        task: "core".parse().unwrap(),
        reason: "spec is silent".to_owned(),
        questions: vec!["Which?".to_owned()],
        attempted: Vec::new(),
    })
}

fn supervisor(state: &State, name: &str) -> Actor {
    let agent = name.parse().unwrap();
    Actor::Supervisor(agent, state.board.agents().unwrap().get(&agent).unwrap().generation.unwrap())
}

fn script() -> Script {
    let mut script: Script = BTreeMap::new();
    let mut at = |minute: u64, what: Box<dyn Fn(&Clocked)>| drop(script.insert(minute, what));
    at(1, Box::new(|day| day.claim("core", supervisor(&day.state(), "coder-1"))));
    // Its lease of five minutes ends at minute 6, and the grace period at minute 7.
    at(
        10,
        Box::new(|day| {
            let agents = vec![("coder-1".parse().unwrap(), None)];
            day.human(Command::from(Heartbeat {
                agents,
                length: Some(liza_core::model::Seconds::hours(24)),
            }));
        }),
    );
    at(15, Box::new(|day| day.edit_file("iteration: 1\n", "iteration: 8\n")));
    at(20, Box::new(|day| day.human(block())));
    at(30, Box::new(|day| day.create_stop_file("PAUSE")));
    at(170, Box::new(|day| day.remove_stop_file("PAUSE")));
    at(
        210,
        Box::new(|day| {
            day.human(Command::from(Discover {
                task: None,
                description: "no timeout".to_owned(),
                severity: Severity::Critical,
                urgency: Urgency::Immediate,
                recommendation: None,
            }));
        }),
    );
    at(211, Box::new(|day| day.human(add_task("idea", true))));
    at(250, Box::new(|day| (0..3).for_each(|_| day.human(anomaly()))));
    at(745, Box::new(|day| day.human(Command::from(Resolve { resolution: "a longer limit".to_owned() }))));
    at(
        750,
        Box::new(|day| {
            let deadline = Some(day.start + liza_core::model::Seconds::minutes(755));
            day.human(Command::from(SetDeadline { deadline }));
        }),
    );
    at(760, Box::new(|day| day.human(Command::from(Resume { decision: None, note: None }))));
    script
}

/// The expected alarms and their minutes.
const HEARD: [(u64, &str); 15] = [
    (7, "⚠️ LEASE EXPIRED: coder-1 on core"),
    (8, "🚨 ROLE MISSING: no Coder is running, and 1 task waits for one"),
    (15, "⚠️ APPROACHING LIMIT: core — iteration 8/10"),
    (20, "⚠️ BLOCKED: core — spec is silent"),
    (61, "⚠️ STALE PAUSE: PAUSE file exists for 31min"),
    (151, "🚨 FORGOTTEN PAUSE: PAUSE file exists for 121min"),
    (202, "⚠️ STALLED: no progress for 31m — every open task is blocked"),
    (210, "🚨 IMMEDIATE DISCOVERY: disc-1 — no timeout (Planner should wake)"),
    (242, "⚠️ STALE DRAFT: idea — created 31min ago (Planner crash?)"),
    (242, "⚠️ STALLED: no progress for 31m — 2 tasks wait for the planner"),
    (250, "🚨 CIRCUIT BREAKER: retry_cluster; see .liza/circuit_breaker_report.md, then liza resolve"),
    (281, "⚠️ CHECKPOINT STALE: waiting for human for 31m"),
    (371, "🚨 CHECKPOINT STUCK: waiting for human for 2h 1m"),
    (731, "🚨 CHECKPOINT ABANDONED?: waiting for human for 8h 1m"),
    (755, "⚠️ SPRINT DEADLINE: sprint-1 was due at"),
];

/// Runs the day; the watcher is replaced at the given minutes.
fn run_day(restarts: &[u64]) -> (Clocked, Vec<(u64, String)>) {
    let mut day = Clocked::new();
    day.human(add_task("core", false));
    for name in ["planner-1", "coder-1", "code-reviewer-1"] {
        day.register(name);
    }
    let script = script();
    // Every fifth minute, and the minutes around each event and each expected alarm.
    let turns = script.keys().copied().chain(HEARD.map(|(minute, _)| minute)).chain(restarts.iter().copied());
    let around = turns.flat_map(|minute| minute.saturating_sub(1)..=minute + 1);
    let looks: BTreeSet<u64> = around.chain((0..=DAY).step_by(5)).collect();
    let mut watcher: Watcher = day.watcher(options());
    let mut heard = Vec::new();
    for minute in looks {
        day.at_minute(minute);
        if restarts.contains(&minute) {
            drop(watcher);
            watcher = day.watcher(options());
        }
        if let Some(happens) = script.get(&minute) {
            happens(&day);
        }
        let report = watcher.check(day.now);
        heard.extend(report.new.iter().map(|alert| (minute, alert.line())));
        check_escalation(&day, minute);
    }
    (day, heard)
}

/// The escalation is written after two hours, suggests abort after eight, and is removed with the checkpoint.
fn check_escalation(day: &Clocked, minute: u64) {
    let text = day.has_file("ESCALATION").then(|| day.test.read(".liza/ESCALATION"));
    match minute {
        371..745 => {
            let text = text.unwrap_or_else(|| panic!("no ESCALATION at minute {minute}"));
            assert!(text.contains("sprint-1 has been waiting for you since"), "{text}");
            assert!(text.contains("  core  BLOCKED\n") && text.contains("  idea  DRAFT\n"), "{text}");
            assert!(text.contains("liza resume") && text.contains("liza abort"), "{text}");
            assert_eq!(text.contains("eight hours"), minute >= 731, "minute {minute}: {text}");
        }
        _ => assert_eq!(text, None, "minute {minute}"),
    }
}

#[track_caller]
fn is_as_expected(day: &Clocked, heard: &[(u64, String)]) {
    let shown: Vec<String> = heard.iter().map(|(minute, line)| format!("{minute} {line}")).collect();
    assert_eq!(heard.len(), HEARD.len(), "{shown:#?}");
    for ((minute, line), (wanted, start)) in heard.iter().zip(HEARD) {
        assert!(
            *minute == wanted && line.starts_with(start),
            "{minute} {line}, not {wanted} {start}: {shown:#?}"
        );
    }
    let log = day.test.read(".liza/alerts.log");
    assert_eq!(log.lines().count(), HEARD.len(), "{log}");
}

/// Covers: SP-01, SP-04, SP-05, SP-06, SP-07, SP-10
#[test]
fn every_alarm_of_a_day_is_reported_once_and_in_order() {
    let (day, heard) = run_day(&[]);
    is_as_expected(&day, &heard);
    let state = day.state();
    let sprint = state.board.sprint.ready().unwrap();
    assert_eq!(sprint.status, SprintStatus::InProgress, "only the human resumed it");
    let log = day.test.log();
    for (detail, times) in
        [("PAUSE was created by hand", 1), ("PAUSE was removed by hand", 1), ("deadline has passed", 1)]
    {
        assert_eq!(log.matches(detail).count(), times, "{detail}");
    }
}

/// Covers: SP-05
#[test]
fn a_watcher_that_is_replaced_every_hour_reports_nothing_twice() {
    let restarts: Vec<u64> = (0..DAY).step_by(60).chain([9, 152, 372, 732]).collect();
    let (day, heard) = run_day(&restarts);
    is_as_expected(&day, &heard);
}
