//! The circuit breaker: each pattern at and below its threshold, its window, its record.

use liza_core::model::{
    Actor, Anomaly, BreakerStatus, CircuitBreaker, Effect, Fields, SprintStatus, Status, StopFile, Value,
};
use liza_core::protocol::{Command, RecordAnalysis, Resolve, Resume};
use liza_core::rules::breaker::{Finding, Pattern, analyze};
use liza_testkit::worlds::*;

/// One anomaly per entry, a second apart: its type and its details.
fn observed(entries: &[(&str, &[(&str, Value)])]) -> World {
    let mut world = World::new();
    for (kind, details) in entries {
        world.pass(1);
        observe(&mut world, kind, details);
    }
    world
}

fn observe(world: &mut World, kind: &str, details: &[(&str, Value)]) {
    let details: Fields = details.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    world.state.journal.anomalies.push(Anomaly {
        timestamp: world.now,
        task: Some(task("t")),
        reporter: Some("coder-1".into()),
        kind: kind.to_owned(),
        details,
    });
}

fn text(value: &str) -> Value {
    Value::from(value)
}

fn fired(world: &World) -> Vec<&'static str> {
    analyze(&world.state).iter().map(|finding| finding.pattern.name()).collect()
}

fn breaker(world: &World) -> &CircuitBreaker {
    world.state.board.circuit_breaker.ready().unwrap()
}

fn retry(pattern: &str) -> World {
    let entry: (&str, &[(&str, Value)]) = ("retry_loop", &[("error_pattern", text(pattern))]);
    observed(&[entry, entry, entry])
}

fn analyze_and_record(world: &mut World) -> Vec<Finding> {
    let findings = analyze(&world.state);
    world.must(Actor::Human, Command::from(RecordAnalysis { findings: findings.clone() }));
    findings
}

/// Covers: AX-08
#[test]
fn a_check_that_finds_nothing_is_in_the_history() {
    let mut world = observed(&[]);
    analyze_and_record(&mut world);
    let history = serde_json::to_value(&breaker(&world).history).unwrap();
    let time = world.now.to_string();
    assert_eq!(history, serde_json::json!([{"timestamp": time, "pattern": null, "result": "OK"}]));
    let mut fired = retry("timeout");
    analyze_and_record(&mut fired);
    analyze_and_record(&mut fired);
    assert!(breaker(&fired).history.is_empty(), "its trigger is not resolved");
}

/// Covers: SP-04
#[test]
fn retry_cluster_needs_three_similar_errors() {
    let retry = |text| ("retry_loop", [("error_pattern", Value::from(text))]);
    let texts = ["timeout after 30 s", "Timeout after 45s!", "timeouts after 5 s"];
    let all: Vec<_> = texts.into_iter().map(retry).collect();
    let entries: Vec<(&str, &[(&str, Value)])> = all.iter().map(|(k, d)| (*k, d.as_slice())).collect();
    assert_eq!(fired(&observed(&entries)), ["retry_cluster"]);
    assert!(fired(&observed(&entries[..2])).is_empty());
}

/// Covers: SP-04
#[test]
fn three_errors_of_which_two_are_similar_do_not_fire() {
    let retry = |text| ("retry_loop", [("error_pattern", Value::from(text))]);
    let all = [retry("connection refused"), retry("connection refused"), retry("out of memory")];
    let entries: Vec<(&str, &[(&str, Value)])> = all.iter().map(|(k, d)| (*k, d.as_slice())).collect();
    assert!(fired(&observed(&entries)).is_empty());
}

/// Covers: SP-04
#[test]
fn all_pairs_of_a_group_are_similar_and_other_entries_between_are_ignored() {
    let retry = |text| ("retry_loop", [("error_pattern", Value::from(text))]);
    // a~b, a~c, a~d, c~d; b is similar to neither c nor d.
    let all = [retry("abcdefghij"), retry("xyzdefghij"), retry("abcxyzghij"), retry("abcxyfwhij")];
    let entries: Vec<(&str, &[(&str, Value)])> = all.iter().map(|(k, d)| (*k, d.as_slice())).collect();
    assert!(fired(&observed(&entries[..3])).is_empty(), "b-a-c is a chain");
    let world = observed(&entries);
    assert_eq!(fired(&world), ["retry_cluster"]);
    let shown: Vec<String> = analyze(&world.state)[0].evidence.iter().map(|(_, text)| text.clone()).collect();
    assert_eq!(shown, ["abcdefghij", "abcxyzghij", "abcxyfwhij"]);
}

/// Covers: SP-04
#[test]
fn similar_means_seven_tenths() {
    let pair = |one, other| {
        let all = [("workaround", [("what", text(one))]), ("workaround", [("what", text(other))])];
        let entries: Vec<(&str, &[(&str, Value)])> = all.iter().map(|(k, d)| (*k, d.as_slice())).collect();
        fired(&observed(&entries))
    };
    assert_eq!(pair("abcdefghij", "abcdefgxyz"), ["workaround_pattern"]);
    assert!(pair("abcdefghij", "abcdefwxyz").is_empty());
    assert_eq!(pair("kitten sitting", "sitten sittin"), ["workaround_pattern"]);
}

/// Covers: SP-04
#[test]
fn debt_accumulation_needs_three_trade_offs_with_debt() {
    let debt = |n: usize, flag: Value| {
        let all: Vec<_> = (0..n)
            .map(|n| [("what", text(&"abcdefgh"[n..n + 1].repeat(9))), ("debt_created", flag.clone())])
            .collect();
        let entries: Vec<(&str, &[(&str, Value)])> =
            all.iter().map(|d| ("trade_off", d.as_slice())).collect();
        fired(&observed(&entries))
    };
    assert_eq!(debt(3, Value::Bool(true)), ["debt_accumulation"]);
    assert!(debt(2, Value::Bool(true)).is_empty());
    assert!(debt(3, Value::Bool(false)).is_empty());
    assert!(debt(3, text("true")).is_empty(), "a text is not a flag");
}

/// Two anomalies of these kinds with these values in one field.
fn two(kinds: [&str; 2], key: &str, one: &str, other: &str) -> Vec<&'static str> {
    let all = [[(key, text(one))], [(key, text(other))]];
    fired(&observed(&[(kinds[0], &all[0]), (kinds[1], &all[1])]))
}

/// Covers: SP-04
#[test]
fn assumption_cascade_needs_the_same_assumption_twice() {
    let kinds = ["assumption_violated", "assumption_violated"];
    assert_eq!(two(kinds, "assumption", "IDs are unique", "ids  are unique."), ["assumption_cascade"]);
    assert_eq!(two(kinds, "assumption", "at most 5 a day", "at most 70 a day"), ["assumption_cascade"]);
    assert!(two(kinds, "assumption", "ids are unique", "ids are unused").is_empty(), "similar is not equal");
    assert!(
        two(kinds, "assumption", "42", "43").is_empty(),
        "texts without letters are compared as they are"
    );
}

/// Covers: SP-04
#[test]
fn spec_gap_cluster_needs_the_same_spec_reference_twice() {
    let kinds = ["spec_ambiguity", "spec_gap"];
    assert_eq!(two(kinds, "spec_ref", "specs/api.md#lists", "specs/API.md#lists"), ["spec_gap_cluster"]);
    assert!(two(kinds, "spec_ref", "specs/api.md#lists", "specs/api.md#auth").is_empty());
}

/// Covers: SP-04
#[test]
fn workaround_pattern_needs_a_similar_root_cause_twice() {
    let kinds = ["workaround", "trade_off"];
    assert_eq!(two(kinds, "root_cause", "slow serializer", "slow serialiser"), ["workaround_pattern"]);
    let by_what = [
        [("what", text("other")), ("root_cause", text("slow serializer"))],
        [("what", text("slow serializer")), ("root_cause", Value::Null)],
    ];
    let world = observed(&[("workaround", &by_what[0]), ("workaround", &by_what[1])]);
    assert_eq!(fired(&world), ["workaround_pattern"], "`what` is used if there is no root cause");
    assert!(two(kinds, "root_cause", "slow serializer", "no idempotency").is_empty());
}

/// Covers: SP-04
#[test]
fn external_service_outage_needs_the_same_service_twice() {
    let kinds = ["external_blocker", "external_blocker"];
    assert_eq!(two(kinds, "blocker_service", "Payment API", "payment-api"), ["external_service_outage"]);
    assert!(two(kinds, "blocker_service", "payments", "payment").is_empty());
}

/// Covers: SP-04
#[test]
fn one_anomaly_never_fires() {
    let one = [
        ("assumption_violated", "assumption"),
        ("spec_gap", "spec_ref"),
        ("workaround", "what"),
        ("external_blocker", "blocker_service"),
    ];
    for (kind, key) in one {
        assert!(fired(&observed(&[(kind, &[(key, text("x"))])])).is_empty(), "{kind}");
    }
}

/// Covers: SP-04
#[test]
fn a_missing_field_matches_nothing() {
    let kinds = ["retry_loop", "assumption_violated", "spec_gap", "workaround", "external_blocker"];
    let keys = ["error_pattern", "assumption", "spec_ref", "root_cause", "blocker_service"];
    for (kind, key) in kinds.into_iter().zip(keys) {
        let absent: (&str, &[(&str, Value)]) = (kind, &[]);
        assert!(fired(&observed(&[absent, absent, absent])).is_empty(), "{kind}");
        let blank = [(key, text("  "))];
        let null = [(key, Value::Null)];
        assert!(fired(&observed(&[(kind, &blank), (kind, &null), (kind, &blank)])).is_empty(), "{kind}");
    }
}

/// Covers: SP-04
#[test]
fn only_the_current_sprint_counts() {
    let mut world = retry("timeout");
    let started = world.state.journal.anomalies[0].timestamp;
    world.edit_sprint().timeline.started = Some(started);
    assert_eq!(fired(&world), ["retry_cluster"], "from its first second on");
    world.edit_sprint().timeline.started = Some(world.state.journal.anomalies[1].timestamp);
    assert!(fired(&world).is_empty());
}

/// Covers: SP-04
#[test]
fn anomalies_that_a_human_resolved_do_not_fire_again() {
    let mut world = retry("timeout");
    analyze_and_record(&mut world);
    world.must(Actor::Human, Command::from(Resolve { resolution: "raised the limit".into() }));
    assert!(fired(&world).is_empty());
    for _ in 0..2 {
        world.pass(1);
        observe(&mut world, "retry_loop", &[("error_pattern", text("timeout"))]);
    }
    assert!(fired(&world).is_empty(), "the three resolved ones do not count");
    world.pass(1);
    observe(&mut world, "retry_loop", &[("error_pattern", text("timeout"))]);
    assert_eq!(fired(&world), ["retry_cluster"]);
}

/// Covers: SP-04
#[test]
fn severities_and_order_match_the_table() {
    let table = [
        ("retry_cluster", "ARCHITECTURE_FLAW"),
        ("debt_accumulation", "SCOPE_FLAW"),
        ("assumption_cascade", "SPEC_FLAW"),
        ("spec_gap_cluster", "SPEC_FLAW"),
        ("workaround_pattern", "ARCHITECTURE_FLAW"),
        ("external_service_outage", "EXTERNAL_DEPENDENCY"),
    ];
    let all: Vec<_> = Pattern::ALL.iter().map(|pattern| (pattern.name(), pattern.severity())).collect();
    assert_eq!(all, table);
    let mut world = retry("timeout");
    for _ in 0..2 {
        observe(&mut world, "external_blocker", &[("blocker_service", text("payments"))]);
    }
    assert_eq!(fired(&world), ["retry_cluster", "external_service_outage"]);
}

/// Covers: SP-04
#[test]
fn a_trigger_is_recorded_and_starts_a_checkpoint_but_changes_no_task() {
    let mut world = retry("timeout");
    let change = world.must(Actor::Human, Command::from(RecordAnalysis { findings: analyze(&world.state) }));
    assert!(change.tasks.is_empty());
    assert_eq!(change.stop_files, [StopFile::Checkpoint]);
    assert_eq!(change.effects, [Effect::WriteSprintSummary]);
    let kept = breaker(&world);
    assert_eq!((kept.status, kept.last_check), (BreakerStatus::Triggered, Some(world.now)));
    let trigger = kept.current_trigger.as_ref().unwrap();
    assert_eq!(
        (trigger.pattern.as_str(), trigger.severity.as_deref()),
        ("retry_cluster", Some("ARCHITECTURE_FLAW"))
    );
    assert_eq!((trigger.common_factor.as_deref(), trigger.tasks.clone()), (Some("timeout"), vec![task("t")]));
    assert_eq!(world.sprint().status, SprintStatus::Checkpoint, "not ABORTED");
    assert_eq!(world.last_log().action, "circuit_breaker");
    assert_eq!(world.status("t"), Status::Unclaimed);
}

/// Covers: SP-04
#[test]
fn it_fires_once_and_a_check_without_a_pattern_clears_nothing() {
    let mut world = retry("timeout");
    analyze_and_record(&mut world);
    let first = breaker(&world).current_trigger.clone();
    world.must(Actor::Human, Command::from(Resume { decision: None, note: None }));
    world.pass(60);
    let findings = analyze(&world.state);
    for findings in [findings, Vec::new()] {
        let change = world.must(Actor::Human, Command::from(RecordAnalysis { findings }));
        assert!(change.log.is_none() && change.effects.is_empty());
        assert_eq!(change.reply("fired"), false);
    }
    assert_eq!(breaker(&world).current_trigger, first);
    assert_eq!(
        (breaker(&world).status, breaker(&world).last_check),
        (BreakerStatus::Triggered, Some(world.now))
    );
    assert_eq!(world.sprint().status, SprintStatus::InProgress);
}

/// Covers: SP-04
#[test]
fn resolving_moves_the_trigger_to_the_history_and_ends_the_checkpoint() {
    let mut world = retry("timeout");
    let resolve = |text: &str| Command::Resolve(Resolve { resolution: text.into() });
    world.refused_with("nothing_to_resolve", Actor::Human, resolve("x"));
    analyze_and_record(&mut world);
    world.refused_with("missing", Actor::Human, resolve(" "));
    world.pass(30);
    let change = world.must(Actor::Human, resolve("raised the limit"));
    assert_eq!(change.effects, [Effect::RemoveStopFile(StopFile::Checkpoint)]);
    let kept = breaker(&world);
    assert_eq!((kept.status, kept.current_trigger.clone()), (BreakerStatus::Ok, None));
    let entry = kept.history.last().unwrap();
    assert_eq!(entry["pattern"], text("retry_cluster"));
    assert_eq!(entry["resolution"], text("raised the limit"));
    assert_eq!(entry["resolved_at"], Value::Time(world.now));
    assert_eq!(world.sprint().status, SprintStatus::InProgress);
}

/// Covers: SP-04
#[test]
fn a_trigger_does_not_reopen_a_finished_sprint() {
    let mut world = retry("timeout");
    world.edit_sprint().status = SprintStatus::Completed;
    analyze_and_record(&mut world);
    assert_eq!(breaker(&world).status, BreakerStatus::Triggered);
    assert_eq!(world.sprint().status, SprintStatus::Completed);
}

/// Covers: SP-04
#[test]
fn anomalies_resolved_during_the_analysis_do_not_fire_again() {
    let mut world = retry("timeout");
    let late = analyze(&world.state);
    analyze_and_record(&mut world);
    world.must(Actor::Human, Command::from(Resolve { resolution: "raised the limit".into() }));
    let change = world.must(Actor::Human, Command::from(RecordAnalysis { findings: late }));
    assert_eq!(change.reply("fired"), false);
    assert_eq!(breaker(&world).status, BreakerStatus::Ok);
    assert_eq!(world.sprint().status, SprintStatus::InProgress);
}

/// Covers: SP-04
#[test]
fn unknown_kinds_and_anomalies_without_a_task_are_harmless() {
    let mut world = retry("timeout");
    for anomaly in &mut world.state.journal.anomalies {
        anomaly.task = None;
    }
    observe(&mut world, "made_up", &[("error_pattern", text("timeout"))]);
    let findings = analyze(&world.state);
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].evidence.len(), findings[0].tasks()), (3, Vec::new()));
}

/// Covers: SP-04, SP-01
#[test]
fn resolving_is_a_decision_at_the_checkpoint() {
    let mut world = retry("timeout");
    analyze_and_record(&mut world);
    world.must(Actor::Human, Command::from(Resolve { resolution: "raised the limit".into() }));
    let kept = world.sprint().decisions.last().unwrap();
    assert_eq!((kept.decision.as_str(), kept.note.as_deref()), ("continue", Some("raised the limit")));
}
