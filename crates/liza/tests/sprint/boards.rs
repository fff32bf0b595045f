//! Blackboards in memory with a fixed clock: an empty sprint, one with everything, a large one.

use liza_core::model::{
    Anomaly, BreakerStatus, BreakerTrip, CircuitBreaker, Decision, Discovery, DiscoveryId, EventName, Fields,
    HistoryEvent, Loaded, Revision, Seconds, Severity, SpecChange, Sprint, SprintStatus, State, Status,
    TaskRecord, Urgency, Usage, Value,
};
use liza_store::LogRecord;
use liza_testkit::boards;
pub(crate) use liza_testkit::boards::{ago, event, now, sprint, task};

/// A second sprint, of five hours, without planned tasks.
pub(crate) fn empty() -> State {
    let mut state = boards::empty("Every API call retries", ago(300));
    state.board.revision = Revision(7);
    *sprint(&mut state) = Sprint::begin(2, "goal-1", ago(300));
    state
}

/// Puts a planned task with that history on the board.
pub(crate) fn add(
    state: &mut State,
    id: &str,
    status: Status,
    created: u64,
    history: Vec<HistoryEvent>,
    change: impl FnOnce(&mut TaskRecord),
) {
    let rejections = history.iter().filter(|event| event.is(EventName::Rejected)).count();
    let mut record = TaskRecord {
        id: Some(task(id)),
        description: Some("Do it".to_owned()),
        status: Some(status),
        created: Some(ago(created)),
        review_cycles_total: u32::try_from(rejections).ok(),
        history: Some(history),
        ..TaskRecord::default()
    };
    change(&mut record);
    boards::plan(state, record);
}

fn claimed(minutes: u64) -> HistoryEvent {
    event(minutes, EventName::Claimed, "coder-1")
}

fn submitted(minutes: u64) -> HistoryEvent {
    event(minutes, EventName::ReadyForReview, "coder-1")
}

fn approved(minutes: u64) -> HistoryEvent {
    event(minutes, EventName::Approved, "code-reviewer-1")
}

fn rejected(minutes: u64, reason: &str) -> HistoryEvent {
    event(minutes, EventName::Rejected, "code-reviewer-1").with("reason", reason)
}

fn merged(minutes: u64, drift: u32) -> HistoryEvent {
    event(minutes, EventName::Merged, "code-reviewer-1").with("drift_commits", drift)
}

fn used(input: u64, output: u64, cost_usd: f64) -> Option<Usage> {
    Some(Usage { input, output, cost_usd, ..Usage::default() })
}

/// A text as a hostile agent writes it.
pub(crate) const HOSTILE: &str = "# Heading\n| a | b |\n<script>alert(1)</script> ![x](http://evil) `rm -rf ~` \
                                [merged](file:///) key ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

/// One task in each status, and an example of everything else.
pub(crate) fn full() -> State {
    let mut state = empty();
    states(&mut state);
    add(&mut state, "nice-to-have", Status::Unclaimed, 200, Vec::new(), |_| {});
    let sprint = sprint(&mut state);
    sprint.scope.planned.pop();
    sprint.scope.stretch.push(task("nice-to-have"));
    sprint.status = SprintStatus::Checkpoint;
    sprint.usage = used(950_000, 60_000, 9.5);
    sprint.timeline.checkpoint_at = Some(now());
    sprint.timeline.deadline = Some(now() + Seconds::hours(3));
    let (timestamp, decision) = (ago(130), "adjust specs".to_owned());
    sprint.decisions.push(Decision {
        timestamp,
        decision,
        note: Some("429 is not an error | really".into()),
    });
    notes(&mut state);
    state
}

fn states(state: &mut State) {
    use Status::*;
    add(
        state,
        "retry-core",
        Merged,
        290,
        vec![claimed(280), submitted(250), approved(240), merged(239, 0)],
        |r| {
            r.usage = used(120_000, 8_000, 1.25);
        },
    );
    let sent_back = "Blockers: 1\n- the last error is swallowed | see src/x.rs";
    let twice = vec![
        claimed(230),
        submitted(200),
        rejected(190, sent_back),
        event(185, EventName::ReclaimedAfterRejection, "coder-1"),
        submitted(150),
        approved(140),
        merged(139, 3),
    ];
    add(state, "retry-orders", Merged, 290, twice, |r| r.usage = used(800_000, 41_000, 7.5));
    let failed = event(60, EventName::IntegrationFailed, "code-reviewer-1").with("reason", "conflict");
    let failed = failed.with("files", vec!["src/api.rs".to_owned(), "src/lib.rs".to_owned()]);
    add(
        state,
        "retry-users",
        IntegrationFailed,
        290,
        vec![claimed(120), submitted(80), approved(70), failed],
        |_| {},
    );
    let blocked = event(40, EventName::Blocked, "coder-2").with("reason", HOSTILE);
    add(state, "retry-ftp", Blocked, 290, vec![claimed(100), blocked], |r| {
        r.blocked_reason = Some(HOSTILE.to_owned());
        r.blocked_questions = Some(vec!["Is FTP still used?".to_owned(), "Who | owns it?".to_owned()]);
        r.failed_by = Some(vec!["coder-1".parse().unwrap(), "coder-2".parse().unwrap()]);
    });
    add(state, "retry-mail", Claimed, 290, vec![claimed(30)], |_| {});
    add(state, "retry-sms", ReadyForReview, 290, vec![claimed(90), submitted(20)], |_| {});
    add(
        state,
        "retry-push",
        Rejected,
        290,
        vec![claimed(90), submitted(50), rejected(45, "no tests")],
        |_| {},
    );
    add(state, "retry-log", Approved, 290, vec![claimed(90), submitted(50), approved(10)], |_| {});
    add(state, "retry-docs", Unclaimed, 150, Vec::new(), |_| {});
    add(state, "retry-idea", Draft, 100, Vec::new(), |_| {});
    let replaced = event(160, EventName::Superseded, "planner-1").with("reason", "too large");
    add(state, "retry-all", Superseded, 290, vec![replaced], |r| {
        r.superseded_by = Some(vec![task("retry-docs")]);
        r.rescope_reason = Some("too large".to_owned());
    });
    let abandoned = event(110, EventName::Abandoned, "human").with("reason", "nobody uses it");
    add(state, "retry-fax", Abandoned, 290, vec![abandoned], |_| {});
}

fn notes(state: &mut State) {
    let anomaly = |minutes: u64, kind: &str, of: &str, details: &[(&str, &str)]| Anomaly {
        timestamp: ago(minutes),
        task: Some(task(of)),
        reporter: Some("coder-1".to_owned()),
        kind: kind.to_owned(),
        details: details.iter().map(|(key, text)| ((*key).to_owned(), Value::from(*text))).collect(),
    };
    let all = [
        anomaly(5000, "workaround", "retry-core", &[("what", "of an earlier sprint")]),
        anomaly(250, "workaround", "retry-core", &[("what", "settled by now")]),
        anomaly(90, "retry_loop", "retry-ftp", &[("error_pattern", "ECONNRESET"), ("count", "4")]),
        anomaly(80, "retry_loop", "retry-ftp", &[("error_pattern", "ECONNRESET")]),
        anomaly(70, "spec_ambiguity", "retry-push", &[("question", HOSTILE)]),
    ];
    state.journal.anomalies.extend(all);
    state.journal.spec_changes.push(SpecChange {
        timestamp: ago(130),
        spec: "specs/retry.md#limits".to_owned(),
        change: "429 waits for Retry-After".to_owned(),
        triggered_by: Some("retry-orders".to_owned()),
    });
    let found = |number: u32, urgency, severity, description: &str, converted: Option<&str>| Discovery {
        id: format!("disc-{number}").parse::<DiscoveryId>().unwrap(),
        by: Some("coder-1".to_owned()),
        during: Some(task("retry-core")),
        description: description.to_owned(),
        severity,
        urgency,
        recommendation: None,
        created: Some(ago(60)),
        dismissed: None,
        converted_to_task: converted.map(task),
    };
    state.board.discovered = Loaded::Ready(vec![
        found(1, Urgency::Deferred, Severity::Low, "The README is old", None),
        found(2, Urgency::Immediate, Severity::Critical, "Orders are placed twice", None),
        found(3, Urgency::Deferred, Severity::High, "No time-out", Some("retry-docs")),
    ]);
    let resolved = Fields::from_iter([("resolved_at".to_owned(), Value::Time(ago(200)))]);
    state.board.circuit_breaker = Loaded::Ready(CircuitBreaker {
        last_check: Some(ago(60)),
        status: BreakerStatus::Triggered,
        current_trigger: Some(BreakerTrip {
            timestamp: ago(60),
            pattern: "retry_cluster".to_owned(),
            severity: Some("ARCHITECTURE_FLAW".to_owned()),
            common_factor: Some("ECONNRESET".to_owned()),
            tasks: vec![task("retry-ftp")],
        }),
        history: vec![resolved],
    });
}

/// The log of the full sprint since the last checkpoint.
pub(crate) fn log() -> Vec<LogRecord> {
    let entry = |minutes: u64, action: &str| LogRecord {
        timestamp: ago(minutes),
        agent: "coder-1".to_owned(),
        action: action.to_owned(),
        task: None,
        detail: "x".to_owned(),
        revision: None,
    };
    [(299, "goal_created"), (239, "merged"), (139, "merged"), (129, "resumed"), (60, "integration_failed")]
        .into_iter()
        .chain([(50, "ready_for_review"), (45, "rejected"), (40, "blocked"), (20, "ready_for_review")])
        .map(|(minutes, action)| entry(minutes, action))
        .collect()
}

/// Two hundred tasks: most are merged, the rest have other statuses.
pub(crate) fn large() -> State {
    let mut state = empty();
    for number in 0..200u64 {
        let id = format!("task-{number:03}");
        let at = 290 - number;
        match number {
            0..150 => {
                let life = vec![claimed(at), submitted(at - 5), approved(at - 10), merged(at - 11, 1)];
                add(&mut state, &id, Status::Merged, 290, life, |_| {});
            }
            150..155 => add(&mut state, &id, Status::Blocked, 290, vec![claimed(at)], |record| {
                record.blocked_reason = Some("unclear ".repeat(200));
                record.blocked_questions = Some(vec!["What now? ".repeat(100)]);
            }),
            _ => add(&mut state, &id, Status::Unclaimed, 100, Vec::new(), |_| {}),
        }
    }
    state
}
