//! Anomalies, discoveries, handoffs, human notes, changes of the specification.

use liza_core::model::{
    Actor, AgentId, AgentStatus, AnomalyType, DiscoveryId, Fields, Role, Severity, Status, Urgency, Value,
};
use liza_core::protocol::{
    Align, ClaimRole, Command, ConvertDiscovery, Discover, HandoffNotes, LogAnomaly, ReadNotes,
    RecordSpecChange, ReleaseClaim, TakeHandoff, WriteHandoff, WriteNote,
};
use liza_core::rules::notes::{NoteReader, next_readers, notes_for, read_by, unread};
use liza_testkit::worlds::*;

/// Covers: RO-06
#[test]
fn a_discovery_has_some_kilobytes_and_no_more() {
    let mut world = World::with_task(Status::Claimed);
    let discover = |description: usize, advice: usize| {
        Command::from(Discover {
            task: None,
            description: "x".repeat(description),
            severity: Severity::High,
            urgency: Urgency::Deferred,
            recommendation: (advice > 0).then(|| "y".repeat(advice)),
        })
    };
    world.must(Actor::Human, discover(8192, 0));
    world.must(Actor::Human, discover(8000, 192));
    world.refused_with("bad_text", Actor::Human, discover(8193, 0));
    world.refused_with("bad_text", Actor::Human, discover(8000, 193));
}

/// The duty table of the specification, as data.
const DUTIES: [(Role, &[&str]); 3] = [
    (Role::Coder, &["retry_loop", "trade_off", "spec_ambiguity", "external_blocker", "assumption_violated"]),
    (
        Role::CodeReviewer,
        &[
            "retry_loop",
            "scope_deviation",
            "workaround",
            "debt_created",
            "assumption_violated",
            "spec_changed",
        ],
    ),
    (Role::Planner, &["hypothesis_exhaustion", "spec_gap", "review_deadlock"]),
];

/// The required details of the schema.
const REQUIRED: [(&str, &[(&str, &str)]); 5] = [
    ("retry_loop", &[("count", "3"), ("error_pattern", "timeout")]),
    ("trade_off", &[("what", "flat"), ("why", "time"), ("debt_created", "true")]),
    ("external_blocker", &[("blocker_service", "payments")]),
    ("assumption_violated", &[("assumption", "ids are unique"), ("reality", "they are not")]),
    ("system_ambiguity", &[("protocol_section", "leases"), ("question", "who?")]),
];

fn fields(pairs: &[(&str, &str)]) -> Fields {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect()
}

fn required(kind: AnomalyType) -> Fields {
    let row = REQUIRED.iter().find(|(name, _)| *name == kind.name());
    fields(row.map(|(_, pairs)| *pairs).unwrap_or_default())
}

fn anomaly(kind: AnomalyType, details: Fields) -> Command {
    Command::from(LogAnomaly { kind, task: Some(task("t")), details })
}

fn discover(urgency: Urgency) -> Command {
    Command::from(Discover {
        task: Some(task("t")),
        description: "no timeout".into(),
        severity: Severity::High,
        urgency,
        recommendation: None,
    })
}

fn notes() -> HandoffNotes {
    HandoffNotes {
        summary: "core is done".into(),
        next_action: "add backoff".into(),
        context_percent: Some(92),
        ..HandoffNotes::default()
    }
}

fn handoff(notes: HandoffNotes, dirty: &[&str]) -> Command {
    let dirty = dirty.iter().map(|path| (*path).to_owned()).collect();
    Command::from(WriteHandoff { task: Some(task("t")), notes, dirty })
}

/// Covers: NT-01, AG-12
#[test]
fn each_role_may_log_what_the_duty_table_lists() {
    let mut world = World::new();
    assert_eq!(AnomalyType::ALL.len(), 13);
    for (role, duties) in DUTIES {
        let id = AgentId::new(role, 1);
        for kind in AnomalyType::ALL {
            let its_own = duties.contains(&kind.name()) || kind.name() == "system_ambiguity";
            for actor in [world.agent(id), Actor::Operator(id)] {
                if its_own {
                    world.must(actor, anomaly(*kind, required(*kind)));
                } else {
                    world.refused_with("not_your_duty", actor, anomaly(*kind, required(*kind)));
                }
            }
        }
    }
    for kind in AnomalyType::ALL {
        world.must(Actor::Human, anomaly(*kind, required(*kind)));
        world.must(world.supervisor(coder(1)), anomaly(*kind, required(*kind)));
    }
}

/// Covers: NT-01, IV-12
#[test]
fn each_required_detail_is_checked() {
    let mut world = World::new();
    for kind in AnomalyType::ALL {
        let all = required(*kind);
        let names: Vec<&str> = kind.required().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, all.keys().map(String::as_str).collect::<Vec<_>>(), "{kind}");
        for missing in names {
            let mut some = all.clone();
            some.shift_remove(missing);
            let refusal = world.refused_with("bad_details", Actor::Human, anomaly(*kind, some.clone()));
            assert!(refusal.to_string().contains(missing), "{refusal}");
            some.insert(missing.to_owned(), Value::from(" "));
            world.refused_with("bad_details", Actor::Human, anomaly(*kind, some));
        }
    }
}

/// Covers: NT-01
#[test]
fn details_get_the_type_of_their_field() {
    let mut world = World::new();
    world.must(Actor::Human, anomaly(AnomalyType::RetryLoop, required(AnomalyType::RetryLoop)));
    world.must(Actor::Human, anomaly(AnomalyType::TradeOff, required(AnomalyType::TradeOff)));
    let extra = fields(&[("count", "2"), ("debt_created", "no"), ("note", "7")]);
    world.must(Actor::Human, anomaly(AnomalyType::Workaround, extra));
    let of = |n: usize| &world.state.journal.anomalies[n].details;
    assert_eq!(of(0)["count"], Value::Int(3));
    assert_eq!(of(1)["debt_created"], Value::Bool(true));
    assert_eq!((&of(2)["count"], &of(2)["debt_created"]), (&Value::Int(2), &Value::Bool(false)));
    assert_eq!(of(2)["note"], Value::from("7"), "an unknown detail stays a text");
}

/// Covers: NT-01
#[test]
fn a_detail_of_the_wrong_type_is_refused() {
    let mut world = World::new();
    let bad = [
        (AnomalyType::RetryLoop, fields(&[("count", "many"), ("error_pattern", "x")])),
        (AnomalyType::RetryLoop, fields(&[("count", "-1"), ("error_pattern", "x")])),
        (AnomalyType::TradeOff, fields(&[("what", "x"), ("why", "y"), ("debt_created", "perhaps")])),
    ];
    for (kind, details) in bad {
        world.refused_with("bad_details", Actor::Human, anomaly(kind, details));
    }
}

/// Covers: NT-01
#[test]
fn an_anomaly_has_time_reporter_and_task() {
    let mut world = World::new();
    world.pass(5);
    world.must(world.agent(coder(1)), anomaly(AnomalyType::SpecAmbiguity, Fields::new()));
    let entry = &world.state.journal.anomalies[0];
    assert_eq!((entry.timestamp, entry.task.clone()), (world.now, Some(task("t"))));
    assert_eq!((entry.reporter.as_deref(), entry.kind.as_str()), (Some("coder-1"), "spec_ambiguity"));
    let unknown = Command::from(LogAnomaly {
        kind: AnomalyType::SpecGap,
        task: Some(task("nowhere")),
        details: Fields::new(),
    });
    world.refused_with("unknown_task", Actor::Human, unknown);
}

/// Covers: NT-01
#[test]
fn notes_spec_changes_and_alignments_are_appended_and_must_not_be_empty() {
    let mut world = World::new();
    let note = |message: &str, to| Command::WriteNote(WriteNote { message: message.into(), to });
    world.refused_with("missing", Actor::Human, note(" ", None));
    world.refused_with("unknown_task", Actor::Human, note("hi", Some(task("nowhere"))));
    world.must(Actor::Human, note("use the util", Some(task("t"))));
    world.must(Actor::Human, note("for all", None));
    let to: Vec<_> = world.state.journal.human_notes.iter().map(|note| note.to.clone()).collect();
    assert_eq!(to, [Some(task("t")), None]);

    let change = |spec: &str, change: &str, by: &str| {
        Command::RecordSpecChange(RecordSpecChange {
            spec: spec.into(),
            change: change.into(),
            triggered_by: by.into(),
        })
    };
    for blank in [change("", "b", "c"), change("a", " ", "c"), change("a", "b", "")] {
        world.refused_with("missing", Actor::Human, blank);
    }
    world.must(Actor::Human, change("specs/a.md", "clearer", "t"));
    assert_eq!(world.last_log().action, "spec_updated");
    assert_eq!(world.state.journal.spec_changes.len(), 1);

    let align = |summary: &str| Command::Align(Align { summary: summary.into() });
    world.refused_with("missing", world.agent(planner()), align("\n"));
    world.must(world.agent(planner()), align("2 of 5"));
    assert_eq!(world.state.journal.alignment_history.last().unwrap().event, "alignment");
}

/// Covers: NT-02
#[test]
fn a_handoff_needs_two_phrases_and_a_clean_worktree() {
    let mut world = World::with_task(Status::Claimed);
    let actor = world.agent(coder(1));
    let without = |summary: &str, next_action: &str| HandoffNotes {
        summary: summary.into(),
        next_action: next_action.into(),
        ..notes()
    };
    world.refused_with("missing", actor, handoff(without("", "b"), &[]));
    world.refused_with("missing", actor, handoff(without("a", " "), &[]));
    world.refused_with("bad_text", actor, handoff(without("a\nb", "c"), &[]));
    world.refused_with("bad_text", actor, handoff(without("a", &"x".repeat(301)), &[]));
    world.refused_with("dirty_worktree", actor, handoff(notes(), &["src/a.rs"]));
    world.must(actor, handoff(without("a", &"x".repeat(300)), &[]));
}

/// Covers: NT-02
#[test]
fn a_handoff_records_agent_role_context_and_time() {
    let mut world = World::with_task(Status::Claimed);
    world.pass(7);
    world.must(world.agent(coder(1)), handoff(notes(), &[]));
    let kept = &world.state.board.handoff.ready().unwrap()[&task("t")];
    assert_eq!((kept.agent, kept.role), (coder(1), Some(Role::Coder)));
    assert_eq!((kept.context_used.as_deref(), kept.timestamp), (Some("92%"), Some(world.now)));
    assert_eq!((kept.summary.as_str(), kept.next_action.as_str()), ("core is done", "add backoff"));
    assert_eq!(world.record("t").handoff_pending, Some(true));
    assert_eq!((world.status("t"), world.last_event("t").event.as_str()), (Status::Claimed, "handoff"));
    let entry = world.entry(coder(1));
    assert_eq!((entry.status, entry.current_task.clone()), (AgentStatus::Handoff, Some(task("t"))));
}

/// Covers: NT-02
#[test]
fn handoff_notes_are_removed_with_their_worktree() {
    let mut world = World::with_task(Status::Claimed);
    world.must(world.agent(coder(1)), handoff(notes(), &[]));
    let (role, reason) = (ClaimRole::Coder, None);
    world.must(Actor::Human, Command::from(ReleaseClaim { task: task("t"), role, force: true, reason }));
    assert!(world.state.board.handoff.ready().unwrap().is_empty());
    assert_eq!(world.record("t").handoff_pending, Some(false));
}

/// Covers: NT-02
#[test]
fn only_the_holder_of_a_task_hands_off() {
    let mut world = World::with_task(Status::Claimed);
    world.refused_with("not_your_task", world.agent(coder(2)), handoff(notes(), &[]));
    world.refused_with("not_your_review", world.agent(reviewer(1)), handoff(notes(), &[]));
    world.refused_with("not_permitted", Actor::Human, handoff(notes(), &[]));
    world.submit("t", coder(1), sha('a'));
    world.claim_review("t", reviewer(1));
    world.refused_with("not_your_review", world.agent(reviewer(2)), handoff(notes(), &[]));
    world.must(world.agent(reviewer(1)), handoff(notes(), &["what the tests left"]));
    assert_eq!(world.state.board.handoff.ready().unwrap()[&task("t")].reader(), Role::CodeReviewer);
}

/// Covers: NT-02
#[test]
fn a_planners_handoff_does_not_change_the_coders_flag() {
    let mut world = World::with_task(Status::Blocked);
    world.must(world.agent(planner()), handoff(notes(), &[]));
    assert_eq!(world.record("t").handoff_pending, None);
    assert_eq!(world.entry(planner()).status, AgentStatus::Handoff);
    world.abandon("t");
    world.refused_with("wrong_status", world.agent(planner()), handoff(notes(), &[]));
}

/// Covers: NT-02
#[test]
fn the_next_session_takes_the_notes_and_clears_the_flag() {
    let mut world = World::with_task(Status::Claimed);
    let take = Command::from(TakeHandoff { task: task("t") });
    world.refused_with("nothing_to_do", world.supervisor(coder(1)), take.clone());
    world.must(world.agent(coder(1)), handoff(notes(), &[]));
    world.claim("t", coder(1));
    assert_eq!(world.entry(coder(1)).status, AgentStatus::Working);
    world.refused_with("not_your_task", world.supervisor(coder(2)), take.clone());
    world.must(world.supervisor(coder(1)), take);
    assert_eq!(world.record("t").handoff_pending, Some(false));
    assert!(world.state.board.handoff.ready().unwrap().contains_key(&task("t")), "the notes stay");
}

/// Covers: NT-03
#[test]
fn discoveries_have_number_finder_task_and_time() {
    assert_eq!(Urgency::default(), Urgency::Deferred);
    let mut world = World::new();
    world.pass(3);
    world.must(world.agent(coder(1)), discover(Urgency::default()));
    world.must(world.agent(reviewer(1)), discover(Urgency::Immediate));
    let found = world.state.board.discovered.ready().unwrap();
    assert_eq!((found[0].id, found[1].id), (DiscoveryId(1), DiscoveryId(2)));
    assert_eq!((found[0].by.as_deref(), found[0].during.clone()), (Some("coder-1"), Some(task("t"))));
    assert_eq!((found[0].created, found[0].converted_to_task.clone()), (Some(world.now), None));
    assert_eq!((found[0].is_pressing(), found[1].is_pressing()), (false, true));
}

/// Covers: NT-03
#[test]
fn a_discovery_is_converted_to_one_existing_task() {
    let mut world = World::new();
    world.must(world.agent(coder(1)), discover(Urgency::Immediate));
    let convert =
        |n, id| Command::ConvertDiscovery(ConvertDiscovery { discovery: DiscoveryId(n), task: task(id) });
    let actor = world.agent(planner());
    world.refused_with("unknown_task", actor, convert(1, "nowhere"));
    world.refused_with("unknown_discovery", actor, convert(2, "t"));
    world.must(actor, convert(1, "t"));
    let found = &world.state.board.discovered.ready().unwrap()[0];
    assert_eq!((found.converted_to_task.clone(), found.is_pressing()), (Some(task("t")), false));
    world.refused_with("already_converted", actor, convert(1, "t"));
}

/// Covers: NT-03
#[test]
fn a_discovery_needs_a_description() {
    let mut world = World::new();
    let Command::Discover(Discover { task, severity, urgency, recommendation, .. }) =
        discover(Urgency::Deferred)
    else {
        panic!("a discovery");
    };
    let blank = Command::from(Discover { task, description: " ".into(), severity, urgency, recommendation });
    world.refused_with("missing", world.agent(coder(1)), blank);
}

/// Covers: NT-02
#[test]
fn a_handoff_records_the_measured_context() {
    let mut world = World::with_task(Status::Claimed);
    world.edit_agent(coder(1), |entry| entry.context_percent = Some(88));
    let unmeasured = HandoffNotes { context_percent: None, ..notes() };
    world.must(world.agent(coder(1)), handoff(unmeasured, &[]));
    let kept = &world.state.board.handoff.ready().unwrap()[&task("t")];
    assert_eq!(kept.context_used.as_deref(), Some("88%"));
}

fn note(to: Option<&str>) -> Command {
    Command::from(WriteNote { message: "use the helper".into(), to: to.map(task) })
}

/// Covers: AX-23
#[test]
fn the_answer_to_a_note_says_who_reads_it_when() {
    use NoteReader::{InSession, Next, NextOf};
    let readers =
        |world: &World, to: Option<&str>| next_readers(&world.state.board, to.map(task).as_ref(), world.now);
    let (coding, reviewing) = (NextOf(Role::Coder), NextOf(Role::CodeReviewer));
    let of = |status: Status| readers(&World::with_task(status), Some("t"));
    let planner = Next(planner());
    assert_eq!(of(Status::Claimed), [InSession(coder(1)), reviewing, planner]);
    assert_eq!(of(Status::ReadyForReview), [reviewing, planner]);
    assert_eq!(of(Status::Unclaimed), [coding, reviewing, planner]);
    assert_eq!(of(Status::Blocked), [planner, coding, reviewing], "it wakes the planner");
    assert_eq!(of(Status::Rejected), [Next(coder(1)), reviewing, planner]);
    for status in [Status::Approved, Status::Merged, Status::Abandoned] {
        assert_eq!(of(status), [], "{status}");
    }
    assert_eq!(of(Status::Superseded), [coding, reviewing, planner], "those of its replacement");
    let mut world = World::with_task(Status::Claimed);
    let all = readers(&world, None);
    assert!(all.contains(&InSession(coder(1))) && all.contains(&Next(coder(2))), "{all:?}");
    world.add("u", ready());
    world.edit_record("u", |record| {
        (record.status, record.assigned_to) = (Some(Status::Rejected), Some(coder(1)));
    });
    assert_eq!(readers(&world, Some("u"))[0], Next(coder(1)), "its session is about another task");
    world.pass(10_000);
    assert_eq!(readers(&world, Some("t"))[0], coding, "its coder has gone");
    assert_eq!(readers(&world, None), [NextOf(Role::Planner), coding, reviewing]);
}

/// Covers: AX-23
#[test]
fn a_note_is_unread_until_a_session_on_its_task_was_given_it() {
    let mut world = World::with_task(Status::Claimed);
    world.add("u", ready());
    world.must(Actor::Human, note(Some("t")));
    world.must(Actor::Human, note(None));
    let (t, u) = (task("t"), task("u"));
    let open = |world: &World, agent: AgentId, about: Option<&str>| {
        unread(&world.state, agent, about.map(task).as_ref()).len()
    };
    let read = |world: &mut World, agent: AgentId, about: Option<&str>| {
        let (number, supervisor) = (world.state.journal.human_notes.len(), world.supervisor(agent));
        world.must(supervisor, Command::from(ReadNotes { agent, task: about.map(task), number }));
    };
    assert_eq!([Some("t"), Some("u")].map(|about| open(&world, coder(1), about)), [2, 1]);
    assert_eq!((open(&world, planner(), None), read_by(&world.state, 0, Some(&t))), (2, vec![]));
    read(&mut world, coder(1), Some("u"));
    assert_eq!(read_by(&world.state, 0, Some(&t)), [], "a session on another task has not seen it");
    assert_eq!(read_by(&world.state, 1, None), [coder(1)]);
    read(&mut world, coder(1), Some("t"));
    read(&mut world, planner(), None);
    assert_eq!(read_by(&world.state, 0, Some(&t)), [planner(), coder(1)]);
    assert_eq!((open(&world, coder(1), Some("t")), open(&world, reviewer(1), Some("t"))), (0, 2));
    // In the same second.
    world.must(Actor::Human, note(Some("t")));
    assert_eq!((open(&world, coder(1), Some("t")), read_by(&world.state, 2, Some(&t))), (1, vec![]));
    assert_eq!(notes_for(&world.state, coder(1), Some(&u)).len(), 1);
    world.edit_record("t", |record| record.status = Some(Status::Merged));
    assert_eq!(notes_for(&world.state, planner(), None).len(), 1, "a planner needs none of ended tasks");
}

/// Covers: AX-23
#[test]
fn a_note_for_a_task_is_for_its_replacements() {
    let mut world = World::with_task(Status::Blocked);
    world.must(Actor::Human, note(Some("t")));
    for (old, new) in [("t", "t-v2"), ("t-v2", "t-v3")] {
        world.add(new, ready());
        world.edit_record(old, |record| {
            record.status = Some(Status::Superseded);
            record.superseded_by = Some(vec![task(new)]);
            record.rescope_reason = Some("another plan".to_owned());
        });
    }
    let (t, last) = (task("t"), task("t-v3"));
    assert_eq!(unread(&world.state, coder(1), Some(&last)).len(), 1);
    assert_eq!(unread(&world.state, planner(), None).len(), 1);
    let number = world.state.journal.human_notes.len();
    let read = Command::from(ReadNotes { agent: coder(1), task: Some(last.clone()), number });
    world.must(world.supervisor(coder(1)), read);
    assert_eq!(read_by(&world.state, 0, Some(&t)), [coder(1)]);
    let readers = next_readers(&world.state.board, Some(&t), world.now);
    assert_eq!(readers, next_readers(&world.state.board, Some(&last), world.now));
    assert!(!readers.is_empty());
}

/// Covers: RO-06
#[test]
fn a_discovery_is_about_a_task_that_exists() {
    let mut world = World::new();
    let Command::Discover(mut found) = discover(Urgency::Deferred) else { panic!() };
    found.task = Some(task("nobody"));
    world.refused_with("unknown_task", Actor::Human, Command::from(found));
    world.must(Actor::Human, discover(Urgency::Deferred));
    assert_eq!(world.last_log().detail, "disc-1: no timeout");
}

/// Covers: NT-01
#[test]
fn a_question_is_the_result_of_a_session_and_no_other_anomaly_is() {
    for (kind, is_result) in [(AnomalyType::SystemAmbiguity, true), (AnomalyType::RetryLoop, false)] {
        let mut world = World::with_task(Status::Claimed);
        let before = world.entry(coder(1)).last_result;
        world.must(world.agent(coder(1)), anomaly(kind, required(kind)));
        assert_eq!(world.entry(coder(1)).last_result != before, is_result, "{kind}");
    }
}

/// Covers: NT-01
#[test]
fn only_a_planners_question_without_a_task_is_about_the_blocked_one() {
    let kind = AnomalyType::SystemAmbiguity;
    let question = || Command::from(LogAnomaly { kind, task: None, details: required(kind) });
    let mut world = World::with_task(Status::Blocked);
    world.must(Actor::Human, question());
    assert_eq!(world.last_log().task, None);
    world.must(world.agent(planner()), question());
    assert_eq!(world.last_log().task, Some(task("t")));
}
