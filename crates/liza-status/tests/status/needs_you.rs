//! What waits for the human, as every screen lists it.

use liza_core::model::{
    AgentStatus, Anomaly, Config, Discovery, DiscoveryId, EventName, GoalStatus, HistoryEvent, HumanNote,
    Loaded, PlannerExits, Role, Seconds, Severity, State, Status, StopFileTimes, Urgency, Value,
};
use liza_status::alarms::{AlarmKind, AlarmLevel, AlarmText, Observations, Refused, RefusedPlace, VisionGap};
use liza_status::needs_you::NeedsYou;
use liza_status::view::{Liveness, Progress, TaskPhase, View, task_detail, view};
use liza_status::words::next_steps;
use liza_testkit::team::*;

fn seen() -> Observations {
    Observations { last_progress: Some(now()), ..Observations::default() }
}

fn shown(state: &State) -> View {
    view(state, &seen(), now())
}

fn of_kind(view: &View, kind: AlarmKind) -> Vec<&NeedsYou> {
    view.needs_you.iter().filter(|need| need.kind == kind).collect()
}

fn trade_off(about: Option<&str>) -> Anomaly {
    Anomaly {
        timestamp: now(),
        task: about.map(task),
        reporter: Some("coder-1".to_owned()),
        kind: "trade_off".to_owned(),
        details: [("what".to_owned(), Value::from("no cache"))].into_iter().collect(),
    }
}

/// Covers: UI-03
#[test]
fn a_blocked_task_has_its_questions_and_the_command_that_answers_them() {
    let mut state = state_with(Status::Blocked);
    edit_task(&mut state, "t", |record| {
        record.blocked_questions = Some(vec!["Which one?".to_owned(), "Both?".to_owned()])
    });
    agents(&mut state).retain(|id, _| id.to_string() != "planner-1");
    let shown = shown(&state);
    let [need] = of_kind(&shown, AlarmKind::Blocked).try_into().unwrap();
    assert_eq!(need.questions, ["Which one?", "Both?"]);
    assert_eq!(need.command, "liza answer t \"...\"");
    assert_eq!(need.task, Some(task("t")));
}

/// Covers: UI-03
#[test]
fn a_question_about_a_blocked_task_is_part_of_its_entry() {
    let mut state = state_with(Status::Blocked);
    edit_task(&mut state, "t", |record| record.blocked_questions = Some(vec!["Up or down?".to_owned()]));
    let asked = Anomaly {
        reporter: Some("planner-1".to_owned()),
        kind: "spec_gap".to_owned(),
        details: [("question".to_owned(), Value::from("How are totals rounded?"))].into_iter().collect(),
        ..trade_off(Some("t"))
    };
    state.journal.anomalies.push(asked);
    let shown = shown(&state);
    assert!(of_kind(&shown, AlarmKind::Question).is_empty(), "{:#?}", shown.needs_you);
    let [need] = of_kind(&shown, AlarmKind::Blocked).try_into().unwrap();
    assert_eq!(need.questions, ["Up or down?", "planner-1 asks about t: How are totals rounded?"]);
    assert_eq!(need.command, "liza answer t \"...\"");
    assert!(!shown.other_alerts().any(|alert| alert.kind == AlarmKind::Question), "it is listed once");
}

/// Covers: UI-03
#[test]
fn a_vision_that_says_nothing_needs_the_human_while_the_goal_is_open() {
    let mut state = state_with(Status::Unclaimed);
    let with = |gap| Observations { vision_gap: Some(gap), ..seen() };
    let needs = |state: &State, gap| {
        let shown = view(state, &with(gap), now());
        let found = of_kind(&shown, AlarmKind::Vision).into_iter();
        found.map(|need| (need.text.to_string(), need.command.to_string())).collect::<Vec<_>>()
    };
    goal(&mut state).spec_ref = Some("specs/vision.md#goal".to_owned());
    let template =
        "specs/vision.md is still the template: fill it in, or the planner plans from the goal alone";
    let expected = [(template.to_owned(), "${EDITOR:-vi} specs/vision.md".to_owned())];
    assert_eq!(needs(&state, VisionGap::Template), [], "the plan is made");
    assert_eq!(needs(&state, VisionGap::Missing), [], "tasks can do without one");
    let mut unplanned = state.clone();
    unplanned.board.tasks.clear();
    assert_eq!(needs(&unplanned, VisionGap::Template), expected);
    let missing = "specs/vision.md does not exist: the planner plans from the goal alone";
    let expected = [(missing.to_owned(), "liza init --template".to_owned())];
    state.board.put(task("t"), record("t", Status::Draft));
    assert_eq!(needs(&state, VisionGap::Missing), expected, "the plan can still change");
    state.board.tasks.clear();
    assert_eq!(needs(&state, VisionGap::Missing), expected);
    goal(&mut state).status = GoalStatus::Completed;
    assert_eq!(needs(&state, VisionGap::Template), []);
}

/// Covers: UI-03
#[test]
fn after_two_failed_coders_the_planner_comes_first_unless_it_is_dead() {
    let mut state = state_with(Status::Blocked);
    edit_task(&mut state, "t", |record| record.failed_by = Some(vec![agent("coder-1"), agent("coder-2")]));
    assert!(of_kind(&shown(&state), AlarmKind::Blocked).is_empty());
    let shown_first = shown(&state);
    let alert = shown_first.other_alerts().find(|alert| alert.kind == AlarmKind::Blocked).unwrap();
    assert_eq!(alert.command.as_deref(), Some("liza answer t \"...\""), "you may answer before the planner");
    let dead = Observations { dead: [agent("planner-1")].into(), ..seen() };
    let shown = view(&state, &dead, now());
    assert_eq!(of_kind(&shown, AlarmKind::Blocked).len(), 1);
    assert!(!shown.other_alerts().any(|alert| alert.kind == AlarmKind::Blocked), "it is listed once");
}

/// Covers: UI-03
#[test]
fn open_discoveries_are_listed_until_they_are_dismissed() {
    let mut state = state_with(Status::Claimed);
    let found = |number: &str, urgency: Urgency| Discovery {
        id: number.parse().unwrap(),
        by: Some("coder-1".to_owned()),
        during: Some(task("t")),
        description: "The key is public".to_owned(),
        severity: Severity::High,
        urgency,
        recommendation: Some("revoke it".to_owned()),
        created: Some(now()),
        converted_to_task: None,
        dismissed: None,
    };
    let list = vec![found("disc-1", Urgency::Deferred), found("disc-2", Urgency::Immediate)];
    state.board.discovered = Loaded::Ready(list);
    let shown = shown(&state);
    let needs = of_kind(&shown, AlarmKind::Discovery);
    let commands: Vec<&str> = needs.iter().map(|need| need.command.as_str()).collect();
    assert_eq!(commands, ["liza dismiss disc-2", "liza dismiss disc-1"], "the urgent one first");
    assert_eq!(needs[0].level, AlarmLevel::Critical);
    let text = "disc-1 (high, found by coder-1): The key is public. Recommended: revoke it. To make it a task: \
                liza add \"...\", then dismiss it";
    assert_eq!(needs[1].text, text);
    assert!(!shown.other_alerts().any(|alert| alert.kind == AlarmKind::ImmediateDiscovery));
    let Loaded::Ready(list) = &mut state.board.discovered else { panic!() };
    list.iter_mut().for_each(|found| found.dismissed = Some(now()));
    assert!(of_kind(&self::shown(&state), AlarmKind::Discovery).is_empty());
}

/// Covers: UI-03
#[test]
fn an_anomaly_is_listed_until_the_human_comments_on_it_or_its_task_ends() {
    let mut state = state_with(Status::Claimed);
    state.journal.anomalies.extend([trade_off(Some("t")), trade_off(None)]);
    let shown_now = shown(&state);
    let [of_task, of_goal] = of_kind(&shown_now, AlarmKind::Anomaly).try_into().unwrap();
    assert_eq!(of_task.text, "coder-1 reports a trade-off: what: no cache");
    assert_eq!(
        (of_task.command.as_str(), of_goal.command.as_str()),
        ("liza note \"...\" --for t", "liza note \"...\"",)
    );
    let mut noted = state.clone();
    let (timestamp, message) = (now() + Seconds(1), "fine".to_owned());
    noted.journal.human_notes.push(HumanNote { timestamp, message, to: Some(task("t")) });
    assert_eq!(of_kind(&shown(&noted), AlarmKind::Anomaly).len(), 1);
    let mut ended = state_with(Status::Merged);
    ended.journal.anomalies.push(trade_off(Some("t")));
    assert!(of_kind(&shown(&ended), AlarmKind::Anomaly).is_empty());
    let mut by_human = trade_off(None);
    by_human.reporter = Some("human".to_owned());
    ended.journal.anomalies.push(by_human);
    assert!(of_kind(&shown(&ended), AlarmKind::Anomaly).is_empty());
}

/// Covers: UI-03
#[test]
fn what_stops_everything_comes_first_and_once() {
    let mut state = state_with(Status::Claimed);
    state.journal.anomalies.push(trade_off(None));
    let stop_files = StopFileTimes { pause: Some(now() - Seconds::hours(3)), ..StopFileTimes::default() };
    let shown = view(&state, &Observations { stop_files, ..seen() }, now());
    assert_eq!(shown.needs_you[0].text, "Paused 3h ago; no new work starts");
    assert_eq!(shown.needs_you[0].command, "liza resume");
    assert!(of_kind(&shown, AlarmKind::ForgottenPause).is_empty());
    assert!(!shown.other_alerts().any(|alert| alert.kind == AlarmKind::ForgottenPause));
    let json = serde_json::to_value(&shown.needs_you).unwrap();
    assert_eq!((&json[0]["kind"], &json[1]["kind"]), (&"PAUSE".into(), &"ANOMALY".into()));
}

/// Covers: UI-03
#[test]
fn a_dead_agent_is_dead_at_once_whatever_its_lease_says() {
    let state = state_with(Status::Claimed);
    let dead = Observations { dead: [agent("coder-1")].into(), ..seen() };
    let shown = view(&state, &dead, now());
    let coder = shown.agents.iter().find(|entry| entry.id == agent("coder-1")).unwrap();
    assert_eq!(coder.liveness, Liveness::Dead);
    assert!(!coder.liveness.is_present());
    assert_eq!(shown.tasks[0].phase, TaskPhase::Stopped);
    assert_eq!(shown.tasks[0].next.to_string(), "stopped; coder-1 continues");
}

/// Covers: UI-03
#[test]
fn the_progress_counts_merged_tasks_and_what_was_dropped_apart() {
    let mut state = state_with(Status::Merged);
    for (name, status) in [("a", Status::Superseded), ("b", Status::Abandoned), ("c", Status::Unclaimed)] {
        state.board.put(task(name), record(name, status));
    }
    sprint(&mut state).scope.planned = ["t", "a", "b", "c"].map(task).into();
    let progress = Progress::of(&state, state.board.sprint.ready().unwrap(), now());
    assert_eq!((progress.merged, progress.to_merge()), (1, 3), "the replacement is to be merged too");
    assert_eq!((progress.replaced, progress.abandoned, progress.in_phases(&[TaskPhase::Ready])), (1, 1, 1));
}

/// Covers: UI-03
#[test]
fn a_team_without_a_goal_needs_the_human_to_state_it() {
    let mut state = state_with(Status::Unclaimed);
    assert!(of_kind(&shown(&state), AlarmKind::Goal).is_empty());
    goal(&mut state).description = " ".to_owned();
    let shown = shown(&state);
    let [need] = of_kind(&shown, AlarmKind::Goal).try_into().unwrap();
    assert_eq!((&*need.text, need.command.as_str()), ("no goal is stated", "liza goal new \"...\""));
    assert_eq!(next_steps(&shown), [], "it is listed once");
}

/// Covers: UI-03
#[test]
fn a_proposed_plan_that_the_planner_works_on_may_change() {
    let mut state = state_with(Status::Draft);
    edit_task(&mut state, "t", |proposed| {
        let created = HistoryEvent::new(now(), EventName::Created, "human");
        let history = proposed.history.get_or_insert_default();
        *history = vec![created, HistoryEvent::new(now(), EventName::Proposed, agent("planner-1"))];
    });
    let texts = |state: &State| {
        let needs = shown(state).needs_you;
        assert!(
            !needs.iter().any(|need| need.kind == AlarmKind::Draft),
            "it is part of the plan: {needs:#?}"
        );
        let plan = needs.into_iter().find(|need| need.kind == AlarmKind::PlanProposed);
        plan.unwrap().text.to_string()
    };
    let waits = "the plan waits for your approval: 1 task. To change it: liza note \"...\"";
    assert_eq!(texts(&state), waits);
    entry(&mut state, "planner-1").status = AgentStatus::Planning;
    let changes = ". The planner is at work and may change it: wait for it, or approve it as it is";
    assert_eq!(texts(&state), format!("{waits}{changes}"));
    let shown = shown(&state);
    let alert = shown.alerts.iter().find(|alert| alert.kind == AlarmKind::PlanProposed).unwrap();
    assert_eq!(alert.command.as_deref(), Some("liza plan --approve"), "it is the same decision");
    assert_eq!(shown.other_alerts().count(), 0, "it is listed once");
}

/// Covers: AX-24
#[test]
fn a_plan_is_read_where_it_is_approved_in_the_order_of_its_work() {
    let mut state = empty_state();
    for (id, after) in [("last", vec!["first", "second"]), ("second", vec!["first"]), ("first", vec![])] {
        let mut draft = record(id, Status::Draft);
        draft.depends_on = Some(after.into_iter().map(task).collect());
        let proposed = HistoryEvent::new(now(), EventName::Proposed, agent("planner-1"));
        draft.history.get_or_insert_default().push(proposed);
        plan(&mut state, draft);
    }
    let shown = shown(&state);
    let [need] = of_kind(&shown, AlarmKind::PlanProposed).try_into().unwrap();
    let lines: Vec<String> = need.plan.iter().map(|task| task.line()).collect();
    assert_eq!(
        lines,
        [
            "first: Add retry. Done when: it retries.",
            "second: Add retry. Done when: it retries. After: first",
            "last: Add retry. Done when: it retries. After: first, second",
        ]
    );
    assert!(shown.tasks.iter().all(|task| shown.is_in_needs(task)), "the list stands for the rows");
    edit_task(&mut state, "last", |draft| draft.history = None);
    let shown = self::shown(&state);
    let listed =
        |id: &str| shown.is_in_needs(shown.tasks.iter().find(|task| task.id == self::task(id)).unwrap());
    assert!(listed("first") && !listed("last"), "a draft of its own");
}

/// Covers: UI-03, AX-20
#[test]
fn a_stopped_planner_is_one_matter_with_one_command() {
    let mut state = state_with(Status::Blocked);
    sprint(&mut state).planner_exits = PlannerExits { count: 5, ..PlannerExits::default() };
    agents(&mut state).retain(|id, _| id.role() != Role::Planner);
    let commands = |shown: &View| -> Vec<String> {
        let needs = shown.needs_you.iter().filter(|need| need.kind != AlarmKind::Blocked);
        let needs = needs.map(|need| need.command.to_string());
        needs.chain(next_steps(shown).into_iter().map(|(_, command)| command.to_owned())).collect()
    };
    assert_eq!(commands(&shown(&state)), ["liza agent planner"]);
    agents(&mut state).clear();
    assert_eq!(commands(&shown(&state)), ["liza run"], "without a team");
}

/// Covers: UI-03
#[test]
fn what_is_said_once_is_not_an_alert_beside_it() {
    let mut state = empty_state();
    goal(&mut state).description = String::new();
    goal(&mut state).created = Some(now() - Seconds::hours(2));
    let seen = Observations::default();
    let shown = view(&state, &seen, now());
    assert!(shown.alerts.iter().any(|alert| alert.kind == AlarmKind::Stalled), "{:#?}", shown.alerts);
    assert_eq!(of_kind(&shown, AlarmKind::Goal).len(), 1);
    assert!(
        !shown.other_alerts().any(|alert| alert.kind == AlarmKind::Stalled),
        "without a goal nothing moves"
    );
    goal(&mut state).description = "Retry".to_owned();
    let shown = view(&state, &seen, now());
    assert!(shown.other_alerts().any(|alert| alert.kind == AlarmKind::Stalled));
}

/// Covers: UI-03
#[test]
fn after_an_abort_nothing_asks_to_resume() {
    let state = state_with(Status::Unclaimed);
    let stop_files = StopFileTimes { pause: Some(now()), checkpoint: Some(now()), abort: Some(now()) };
    let shown = view(&state, &Observations { stop_files, ..seen() }, now());
    let commands: Vec<&str> = shown.needs_you.iter().map(|need| need.command.as_str()).collect();
    assert_eq!(commands, ["liza goal new \"...\""]);
}

/// Covers: RO-06
#[test]
fn a_text_without_end_is_cut_before_a_screen_lays_it_out() {
    let long = "word ".repeat(180_000);
    let text = AlarmText::from(format!("{long}. To make it a task: liza add"));
    assert!(text.len() < 4_000 && text.starts_with("word") && text.ends_with("liza add"), "{}", text.len());
    assert_eq!(AlarmText::from("ä".repeat(4_000)).chars().filter(|c| *c == '…').count(), 1);
    assert_eq!(AlarmText::from("short"), "short");
}

/// Covers: RO-06
#[test]
fn discoveries_without_end_leave_the_page_short_and_say_what_to_do() {
    let endless = |number: u32| Discovery {
        id: DiscoveryId(number),
        by: Some("coder-1".to_owned()),
        during: Some(task("t")),
        description: format!("Wörter {}", "word ".repeat(180_000)),
        severity: Severity::High,
        urgency: Urgency::Immediate,
        recommendation: Some("x".repeat(900_000)),
        created: Some(now()),
        converted_to_task: None,
        dismissed: None,
    };
    let mut state = state_with(Status::Claimed);
    state.board.discovered = Loaded::Ready((1..10).map(endless).collect());
    let shown = shown(&state);
    let needs = of_kind(&shown, AlarmKind::Discovery);
    assert_eq!(needs.len(), 9);
    for need in needs {
        assert!(need.text.chars().count() < 1_000, "{}", need.text.len());
        assert!(
            need.text.contains("): Wörter word") && need.text.ends_with("then dismiss it"),
            "{}",
            need.text
        );
    }
    let all = serde_json::to_string(&shown).unwrap();
    assert!(all.len() < 200_000, "{}", all.len());
    let about = shown.tasks.iter().find(|shown| shown.id == task("t")).unwrap();
    let detail = serde_json::to_string(&task_detail(&state, about).unwrap()).unwrap();
    assert!(detail.len() < 100_000, "{}", detail.len());
}

/// Covers: RO-04, IS-03, IS-06, IS-12
#[test]
fn a_refused_place_is_listed_with_the_setting_until_it_is_listed_or_its_task_has_ended() {
    use RefusedPlace::{Host, Port, Read, Socket, Write};
    let list = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    type Change<'c> = &'c dyn Fn(&mut Config);
    let set = |state: &mut State, change: Change<'_>| {
        let Loaded::Ready(config) = &mut state.board.config else { panic!() };
        change(config);
    };
    let readable = |config: &mut Config| config.sandbox_readable = list(&["~/data"]);
    let writable = |config: &mut Config| config.sandbox_writable = list(&["/home/me/data"]);
    let sockets = |config: &mut Config| config.sandbox_sockets = list(&["/run/postgresql"]);
    let hosts = |config: &mut Config| config.model_hosts = list(&["mirror.example"]);
    let cases: [(_, _, Change<'_>); 6] = [
        (Port(5432), "network_ports '[80, 5432]'", &|config| config.network_ports = vec![5432]),
        (Socket("/run/postgresql/s".to_owned()), "sandbox_sockets '[/run/postgresql/s]'", &sockets),
        (Read("/home/me/data/x".to_owned()), "sandbox_readable '[/home/me/data/x]'", &readable),
        (Read("/home/me/data/x".to_owned()), "sandbox_readable '[/home/me/data/x]'", &writable),
        (Write("/home/me/data/x".to_owned()), "sandbox_writable '[/home/me/data/x]'", &writable),
        (Host("mirror.example".to_owned()), "model_hosts '[mirror.example]'", &hosts),
    ];
    for (place, expected, answer) in cases {
        let refused = Refused { place, agent: "coder-1".parse().ok(), task: Some(task("t")) };
        let seen = Observations { refused_places: vec![refused], ..seen() };
        let commands = |state: &State| {
            let shown = view(state, &seen, now());
            let kinds = [AlarmKind::PortRefused, AlarmKind::PathRefused, AlarmKind::HostRefused];
            let needs = shown.needs_you.iter().filter(|need| kinds.contains(&need.kind));
            needs.map(|need| need.command.as_str().to_owned()).collect::<Vec<_>>()
        };
        let mut state = state_with(Status::Claimed);
        set(&mut state, &|config| config.network_ports = vec![80]);
        assert_eq!(commands(&state), [format!("liza config {expected}")]);
        let mut ended = state_with(Status::Merged);
        assert_eq!(commands(&ended), [""; 0]);
        ended.board.tasks.clear();
        assert_eq!(commands(&ended), [""; 0], "the task is gone");
        set(&mut state, answer);
        assert_eq!(commands(&state), [""; 0], "{expected}");
    }
    // What may be read may not be written yet.
    let refused = Refused { place: Write("/home/me/data/x".to_owned()), agent: None, task: None };
    let seen = Observations { refused_places: vec![refused], ..seen() };
    let mut state = state_with(Status::Claimed);
    set(&mut state, &readable);
    assert_eq!(of_kind(&view(&state, &seen, now()), AlarmKind::PathRefused).len(), 1);
}
