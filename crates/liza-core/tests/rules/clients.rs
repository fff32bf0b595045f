//! Clients that fail: who is held, for how long, and that no task is blamed for it.

use liza_core::model::{
    Actor, ClientFault, ClientHold, ClientRecord, FaultKind, LimitReset, ModelEnd, ModelPart, RefusedResult,
    Repair, Seconds, Status, Timestamp, Usage,
};
use liza_core::protocol::{Command, RecordSession, Resume, UseClient};
use liza_core::rules::clients::{
    ClientChoice, ClientEnd, Continuation, MAX_PROBES, after_end, choose_client, describe_hold,
    no_client_left, probe_pause, repair_command, session_line,
};
use liza_core::rules::found_merges::FoundMerges;
use liza_core::supervise::{
    Backoffs, EndedSession, SessionEnd, Situation, Step, StopReason, WaitReason, after_session, next_step,
};
use liza_status::alarms::{AlarmKind, Observations, alarms};
use liza_status::needs_you::needs_you;
use liza_testkit::worlds::*;

fn fault(kind: FaultKind, reset: Option<LimitReset>) -> ClientFault {
    ClientFault { kind, message: "no".into(), reset }
}

fn ended(of: &str, number: u32, fault: Option<ClientFault>) -> RecordSession {
    RecordSession {
        end: "exited 1".into(),
        said: Some("Something broke at 0x70".into()),
        fault,
        repair: Some(Repair::Run("claude /login".to_owned())),
        failed: true,
        usage: Usage { input: 10, output: 5, cached: 900, cost_usd: 0.5, ..Usage::default() },
        ..RecordSession::new(coder(number), Some(task(of)), "claude", World::new().now)
    }
}

fn record(world: &mut World, session: RecordSession) -> bool {
    let supervisor = world.supervisor(session.agent);
    world.must(supervisor, Command::from(session)).reply("is_clients_fault") == true
}

/// Whether the session reports that its client is held.
fn reports_hold(world: &mut World, session: RecordSession) -> bool {
    let supervisor = world.supervisor(session.agent);
    !world.must(supervisor, Command::from(session)).reply("new_hold").is_null()
}

/// Covers: SE-04, UI-03
#[test]
fn a_hold_is_reported_by_one_session_and_by_each_try() {
    let mut world = team();
    let overloaded = || Some(fault(FaultKind::Overloaded, None));
    assert!(reports_hold(&mut world, ended("t", 1, overloaded())));
    assert!(!reports_hold(&mut world, ended("u", 2, overloaded())), "it began before the hold");
    let decided_before = RecordSession { started: world.now + Seconds(1), ..ended("u", 2, overloaded()) };
    world.now = world.now + Seconds(2);
    assert!(!reports_hold(&mut world, decided_before), "nobody has tried it again");
    world.now = world.now + Seconds(600);
    world.must(world.supervisor(coder(1)), use_client(1));
    let tried = RecordSession { started: world.now, ..ended("t", 1, overloaded()) };
    assert!(reports_hold(&mut world, tried));
    let worse = ended("u", 2, Some(fault(FaultKind::Auth, None)));
    assert!(reports_hold(&mut world, worse), "for another reason");
}

fn session(world: &World) -> EndedSession {
    EndedSession::new(coder(1), Some(task("t")), world.state.board.revision)
}

fn hold(world: &World) -> Option<ClientHold> {
    world.sprint().clients.get("claude").and_then(|client| client.hold.clone())
}

fn step(world: &World, number: u32, in_team: bool, clients: &[&str]) -> Step {
    let clients: Vec<String> = clients.iter().map(|name| (*name).to_owned()).collect();
    next_step(&Situation {
        state: &world.state,
        agent: coder(number),
        stop_files: world.stop_files,
        found_merges: &FoundMerges::NONE,
        now: world.now,
        idle_since: world.now,
        in_team,
        clients: &clients,
        backoffs: &Backoffs::NONE,
    })
}

/// Two coders with a task each.
fn team() -> World {
    let mut world = World::new();
    world.add("u", ready());
    world.claim("t", coder(1));
    world.claim("u", coder(2));
    world
}

fn use_client(number: u32) -> Command {
    Command::from(UseClient { agent: coder(number), client: "claude".into() })
}

/// Covers: SE-02
#[test]
fn one_line_says_what_happened_and_what_to_do() {
    let login = Repair::Run("claude /login".to_owned());
    let line = session_line("claude", "exited 1", Some("Invalid API key"), Some(&login));
    assert_eq!(line, "claude exited 1: Invalid API key. Run claude /login");
    assert_eq!(
        session_line("codex", "exited 0", Some("All done. "), Some(&login)),
        "codex exited 0: All done. Run claude /login"
    );
    assert_eq!(session_line("goose", "killed by signal 9", None, None), "goose killed by signal 9");
}

/// Covers: SE-02, SE-05, AX-22
#[test]
fn a_session_is_recorded_on_its_agent_its_task_and_in_the_log() {
    let mut world = team();
    assert!(!record(&mut world, ended("t", 1, None)));
    let last = world.entry(coder(1)).last_session.clone().unwrap();
    assert_eq!(last.result, "claude exited 1: Something broke at 0x70");
    assert_eq!((last.task, last.fault), (Some(task("t")), None));
    let event = world.last_event("t");
    assert_eq!((event.event.as_str(), event.agent.as_deref()), ("session_ended", Some("coder-1")));
    let fact = |key: &str| event.text(key).unwrap_or_default();
    assert_eq!(
        [fact("client"), fact("end"), fact("tokens"), fact("cached"), fact("cost_usd")],
        ["claude", "exited 1", "15", "900", "0.5"]
    );
    assert_eq!(world.last_log().action, "session_ended");
    assert_eq!(world.status("t"), Status::Claimed);
}

/// Covers: SE-03
#[test]
fn an_auth_error_stops_the_client_for_the_whole_team_until_the_human_continues() {
    let mut world = team();
    let used = world.sprint().sessions.clone();
    assert!(record(&mut world, ended("t", 1, Some(fault(FaultKind::Auth, None)))));
    world.pass(100_000);
    world.heartbeat(coder(1));
    world.heartbeat(coder(2));
    world.claim("t", coder(1));
    for number in [1, 2] {
        let waits = step(&world, number, true, &["claude"]);
        assert!(
            matches!(&waits, Step::Wait { why: WaitReason::ClientHeld { client, .. }, .. } if client == "claude"),
            "{waits:?}"
        );
        let stops = step(&world, number, false, &["claude"]);
        let why = "no. Run claude /login".to_owned();
        assert_eq!(stops, Step::Stop(StopReason::ClientHeld { client: "claude".into(), why }));
        world.refused_with("client_held", world.supervisor(coder(number)), use_client(number));
    }
    let found = alarms(&world.state, &Observations::default(), world.now);
    let needs = needs_you(&world.state, &Observations::default(), &found, world.now);
    let need = needs.iter().find(|need| need.kind == AlarmKind::ClientHeld).unwrap();
    assert_eq!(need.text, "claude: no valid login. Run claude /login, then continue: liza resume (no)");
    assert_eq!(need.command, "liza resume");
    let gone = world.now + Seconds(100_000);
    let found = alarms(&world.state, &Observations::default(), gone);
    let needs = needs_you(&world.state, &Observations::default(), &found, gone);
    let need = needs.iter().find(|need| need.kind == AlarmKind::ClientHeld).unwrap();
    assert_eq!(need.text, "claude: no valid login. Run claude /login, then continue: liza run (no)");
    assert_eq!(need.command, "liza run", "without a team, its start continues");
    world.must(Actor::Human, Command::from(Resume { decision: None, note: None }));
    assert_eq!(hold(&world), None);
    assert!(matches!(step(&world, 1, true, &["claude"]), Step::Work(_)));
    assert!(!used.tasks.is_empty());
}

/// Covers: SE-03
#[test]
fn an_agent_that_is_started_again_tries_the_client_again() {
    let mut world = team();
    record(&mut world, ended("t", 1, Some(fault(FaultKind::Auth, None))));
    world.register(coder(3));
    assert_eq!(hold(&world), None);
    let limit = fault(FaultKind::Quota, Some(LimitReset::In(Seconds::hours(3))));
    record(&mut world, ended("t", 1, Some(limit)));
    world.register(coder(4));
    assert!(hold(&world).is_some(), "a limit ends by itself");
}

/// Covers: SE-03
#[test]
fn a_key_that_is_not_set_has_one_way_forward() {
    let mut world = team();
    let message = "Missing environment variable: `MY_KEY`.".to_owned();
    let missing = ClientFault { kind: FaultKind::Auth, message, reset: None };
    record(&mut world, ended("t", 1, Some(missing)));
    let need = |now: Timestamp| {
        let found = alarms(&world.state, &Observations::default(), now);
        let needs = needs_you(&world.state, &Observations::default(), &found, now);
        let need = needs.into_iter().find(|need| need.kind == AlarmKind::ClientHeld).unwrap();
        (need.text.to_string(), need.command.to_string())
    };
    let said = "(Missing environment variable: `MY_KEY`.)";
    // A running team has the variables with which it was started.
    let text = format!("claude: no valid login. Stop the team, set MY_KEY, then continue: liza run {said}");
    assert_eq!(need(world.now), (text, "liza stop".to_owned()));
    let text = format!("claude: no valid login. Set MY_KEY, then continue: liza run {said}");
    assert_eq!(need(world.now + Seconds(100_000)), (text, "liza run".to_owned()));
}

/// Covers: SE-03
#[test]
fn a_key_that_is_refused_has_one_way_forward() {
    let mut world = team();
    let message = "401 Unauthorized: Incorrect API key provided".to_owned();
    let refused = ClientFault { kind: FaultKind::Auth, message, reset: None };
    let meaning = Some("the env_key of the provider in config.toml".to_owned());
    let repair = Some(Repair::Set { variable: "MY_KEY".to_owned(), meaning });
    record(&mut world, RecordSession { repair, ..ended("t", 1, Some(refused)) });
    let found = alarms(&world.state, &Observations::default(), world.now);
    let needs = needs_you(&world.state, &Observations::default(), &found, world.now);
    let need = needs.into_iter().find(|need| need.kind == AlarmKind::ClientHeld).unwrap();
    // A running team has the variables with which it was started.
    let text = "claude: no valid login. Stop the team, set MY_KEY, then continue: liza run \
                (401 Unauthorized: Incorrect API key provided)";
    assert_eq!((&*need.text, need.command.as_str()), (text, "liza stop"));
}

/// Covers: SE-03, SE-04
#[test]
fn a_clients_fault_counts_against_no_one() {
    let mut world = team();
    let session = EndedSession { is_clients_fault: true, ..session(&world) };
    let next = after_session(&world.state, &session, SessionEnd::Code(1));
    let before = world.sprint().sessions.tasks[&task("t")];
    for command in next.record {
        world.must(world.supervisor(coder(1)), command);
    }
    assert_eq!(world.sprint().sessions.tasks.get(&task("t")).copied().unwrap_or(0), before - 1);
    assert_eq!((world.record("t").crashes, world.record("t").idle_exits), (None, None));
    assert_eq!(world.status("t"), Status::Claimed);
}

/// Covers: SE-03
#[test]
fn a_team_without_a_client_says_what_is_wrong_with_each() {
    let mut world = team();
    let says = |world: &mut World, message: &str, repair: &Repair| {
        let auth = ClientFault { message: message.to_owned(), ..fault(FaultKind::Auth, None) };
        record(world, RecordSession { repair: Some(repair.clone()), ..ended("t", 1, Some(auth)) });
        no_client_left(world.sprint())
    };
    let key =
        &Repair::Set { variable: "CODEX_KEY".to_owned(), meaning: Some("or run codex login".to_owned()) };
    let login = &Repair::Run("claude /login".to_owned());
    let text = |why: &str| format!("no agent program can be used (claude{why})");
    assert_eq!(says(&mut world, "401 Unauthorized", key), text(" refuses the key in CODEX_KEY"));
    assert_eq!(says(&mut world, "Missing environment variable: `KEY`.", key), text(": KEY is not set"));
    assert_eq!(says(&mut world, "Invalid API key", login), text(" has no valid login"));
}

/// Covers: SE-04
#[test]
fn a_limit_waits_for_its_end_and_the_next_client_takes_over() {
    let mut world = team();
    let limit = fault(FaultKind::Quota, Some(LimitReset::In(Seconds(3600))));
    assert!(record(&mut world, ended("t", 1, Some(limit))));
    let held = hold(&world).unwrap();
    assert_eq!(held.until, Some(world.now + Seconds(3600)));
    let then = Continuation { has_team: true, run: "liza run" };
    assert_eq!(
        describe_hold(&held, then, world.now + Seconds(600)),
        "usage limit reached; tried again in 50m (no)"
    );
    let both = ["claude".to_owned(), "codex".to_owned()];
    assert_eq!(choose_client(world.sprint(), &both, world.now), ClientChoice::Use(1));
    assert!(matches!(step(&world, 1, true, &["claude", "codex"]), Step::Work(_)));
    assert_eq!(choose_client(world.sprint(), &both, world.now + Seconds(3600)), ClientChoice::Probe(0));
    let past = fault(FaultKind::Quota, Some(LimitReset::At(world.now)));
    record(&mut world, ended("t", 1, Some(past)));
    assert_eq!(hold(&world).unwrap().until, Some(world.now + probe_pause(0)), "its end has passed");
}

/// Covers: SE-12
#[test]
fn a_held_client_is_tried_by_one_session_at_a_time_with_growing_pauses() {
    let mut world = team();
    record(&mut world, ended("t", 1, Some(fault(FaultKind::Overloaded, None))));
    for probe in 1..=MAX_PROBES {
        let until = hold(&world).unwrap().until.unwrap();
        assert_eq!(until.since(world.now), probe_pause(probe - 1));
        world.now = until;
        world.must(world.supervisor(coder(1)), use_client(1));
        world.refused_with("client_held", world.supervisor(coder(2)), use_client(2));
        record(&mut world, ended("t", 1, Some(fault(FaultKind::Overloaded, None))));
    }
    assert_eq!(hold(&world).unwrap().until, None, "now the human decides");
    assert_eq!([probe_pause(0), probe_pause(1), probe_pause(60)], [Seconds(30), Seconds(60), Seconds(1800)]);
}

/// Covers: SE-12
#[test]
fn sessions_that_fail_alike_on_several_tasks_hold_the_client_and_not_the_tasks() {
    let mut world = team();
    let other = |digits: &str| Some(format!("Something broke at {digits}"));
    assert!(!record(&mut world, ended("t", 1, None)));
    assert!(!record(&mut world, RecordSession { said: other("0x11"), ..ended("t", 1, None) }));
    assert!(
        !record(&mut world, RecordSession { said: other("0x12"), ..ended("t", 1, None) }),
        "one task only"
    );
    assert!(record(&mut world, RecordSession { said: other("0x13"), ..ended("u", 2, None) }));
    assert_eq!(hold(&world).unwrap().kind, FaultKind::Crashed);
    assert!(record(&mut world, ended("u", 2, None)), "and so it stays");
    assert!(
        !record(&mut world, RecordSession { failed: false, ..ended("u", 2, None) }),
        "one that works ends it"
    );
    assert!(world.sprint().clients.is_empty());
    assert!(!record(&mut world, ended("t", 1, None)));
    assert!(!record(&mut world, RecordSession { said: Some("Another".into()), ..ended("u", 2, None) }));
    assert!(!record(&mut world, ended("t", 1, None)), "not alike");
}

/// Covers: AX-20
#[test]
fn sessions_whose_results_were_refused_hold_no_client() {
    let mut world = team();
    let why = "t has no submission".to_owned();
    let refused = |of: &str, number: u32| RecordSession {
        refusal: Some(RefusedResult { verb: "submit-for-review", why: why.clone() }),
        ..ended(of, number, None)
    };
    for _ in 0..3 {
        assert!(!record(&mut world, refused("t", 1)) && !record(&mut world, refused("u", 2)));
        assert_eq!(hold(&world), None, "one agent's refusals hold no other");
    }
    let last = world.entry(coder(1)).last_session.clone().unwrap();
    assert_eq!(last.result, "claude exited 1: Liza refused submit-for-review: t has no submission");
    assert!(last.failed && last.fault.is_none());
    let event = world.record("t").events().next_back().unwrap().text("refused");
    assert_eq!(event.as_deref(), Some("Liza refused submit-for-review: t has no submission"));
    // An error of its program is one all the same.
    let auth = RecordSession { fault: Some(fault(FaultKind::Auth, None)), ..refused("t", 1) };
    assert!(record(&mut world, auth) && hold(&world).is_some());
}

/// Covers: AX-30
#[test]
fn a_session_without_a_model_is_its_clients_fault_and_what_the_model_did_holds_no_client() {
    let mut world = team();
    let silent = |of, number| RecordSession {
        model: ModelPart::Silent,
        end: "exited 0".into(),
        said: None,
        ..ended(of, number, None)
    };
    assert!(record(&mut world, silent("t", 1)));
    let held = hold(&world).unwrap();
    assert_eq!((held.kind, held.until), (FaultKind::Crashed, Some(world.now + Seconds(30))));
    assert_eq!(held.message, "exited 0 without an answer of the model: it printed nothing");
    for end in [ModelEnd::NoToolCall, ModelEnd::Refused, ModelEnd::ContextFull, ModelEnd::NothingRecorded] {
        for (of, number) in [("t", 1), ("u", 2)] {
            let fault = Some(fault(FaultKind::ContextFull, None));
            let left = RecordSession { by_model: Some(end), ..ended(of, number, fault) };
            assert!(!record(&mut world, left));
            assert_eq!(hold(&world), None, "its client works");
        }
    }
}

/// Covers: AX-30
#[test]
fn a_model_that_leaves_no_result_is_asked_once_and_then_the_task_is_blocked_with_the_reason() {
    let mut world = World::with_task(Status::Claimed);
    let before = session(&world);
    let said_no = |fault, model| EndedSession { fault, model, ..before.clone() };
    let cases = [
        (None, ModelPart::Words, SessionEnd::Code(0), Some(ModelEnd::NoToolCall)),
        (None, ModelPart::Tools, SessionEnd::Code(0), Some(ModelEnd::NothingRecorded)),
        (Some(FaultKind::ContextFull), ModelPart::Tools, SessionEnd::Code(1), Some(ModelEnd::ContextFull)),
        (Some(FaultKind::Refused), ModelPart::Silent, SessionEnd::Code(1), Some(ModelEnd::Refused)),
        (None, ModelPart::Tools, SessionEnd::Code(1), None),
        (None, ModelPart::Unknown, SessionEnd::Code(0), None),
        (Some(FaultKind::Crashed), ModelPart::Words, SessionEnd::Code(0), None),
    ];
    for (fault, model, end, expected) in cases {
        assert_eq!(said_no(fault, model).model_end(end), expected, "{fault:?} {model:?}");
    }
    for expected in [Status::Claimed, Status::Blocked] {
        let next = after_session(&world.state, &said_no(None, ModelPart::Words), SessionEnd::Code(0));
        assert_eq!(next.pause, Seconds(2));
        for command in next.record {
            world.must(world.supervisor(coder(1)), command);
        }
        assert_eq!(world.record("t").status, Some(expected));
    }
    let reason = "coder-1 ended without a result 2 times in a row: the model called no tool";
    assert_eq!(world.record("t").blocked_reason.as_deref(), Some(reason));
}

/// Covers: SE-04
#[test]
fn of_held_clients_the_one_that_is_tried_first_is_named() {
    let mut world = World::new();
    let (since, kind) = (world.now, FaultKind::Overloaded);
    for (name, seconds) in [("never", None), ("late", Some(60)), ("soon", Some(30))] {
        let until = seconds.map(|seconds| since + Seconds(seconds));
        let hold = Some(ClientHold { kind, message: "no".into(), repair: None, since, until, probes: 0 });
        world.edit_sprint().clients.insert(name.into(), ClientRecord { hold, failures: None });
    }
    let named = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        match choose_client(world.sprint(), &names, world.now) {
            ClientChoice::Held { client, .. } => client,
            ClientChoice::Use(_) | ClientChoice::Probe(_) => panic!("all are held"),
        }
    };
    assert_eq!(named(&["never", "late", "soon"]), "soon");
    assert_eq!(named(&["soon", "late", "never"]), "soon");
    assert_eq!(named(&["never", "late"]), "late");
    assert_eq!(named(&["late", "never"]), "late");
}

/// Covers: SE-04
#[test]
fn a_running_team_is_stopped_before_its_key_is_set() {
    let repair = Repair::Set { variable: "KEY".into(), meaning: None };
    let (since, kind) = (World::new().now, FaultKind::Auth);
    let hold = ClientHold { kind, message: "no".into(), repair: Some(repair), since, until: None, probes: 0 };
    let command = |has_team| repair_command(&hold, Continuation { has_team, run: "liza run" });
    assert_eq!(command(true), "liza stop, export KEY=KEY, then: liza run");
    assert_eq!(command(false), "export KEY=KEY, then: liza run");
}

/// Covers: SE-04
#[test]
fn failures_name_only_as_many_subjects_as_they_need() {
    let mut client = ClientRecord::default();
    for subject in ["t", "u", "v", "w", "x"] {
        let (end, subject) = ("exited 1".to_owned(), subject.to_owned());
        let end =
            ClientEnd { fault: None, failed: true, is_silent: false, end, said: None, subject, repair: None };
        client = after_end(&client, &end, World::new().now).0;
        client.hold = None;
    }
    assert_eq!(client.failures.unwrap().subjects, ["t", "u"]);
}

/// Covers: SE-04
#[test]
fn a_try_of_a_held_client_sets_the_time_of_the_next() {
    let mut world = World::new();
    let (now, kind) = (world.now, FaultKind::Overloaded);
    let hold =
        ClientHold { kind, message: "no".into(), repair: None, since: now, until: Some(now), probes: 0 };
    let client = ClientRecord { hold: Some(hold), failures: None };
    world.edit_sprint().clients.insert("claude".into(), client);
    let agent = coder(1);
    world.must(world.supervisor(agent), Command::from(UseClient { agent, client: "claude".into() }));
    let hold = world.sprint().clients["claude"].hold.clone().unwrap();
    assert_eq!((hold.until, hold.probes), (Some(now + probe_pause(1)), 1));
    assert_eq!(world.entry(agent).client.as_deref(), Some("claude"));
}
