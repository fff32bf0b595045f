//! The figures behind the charts, the graph, and what can be done from a screen.

use liza_core::model::{EventName, Generation, HistoryEvent, Revision, Seconds, State, Status, Usage};
use liza_status::action::{Action, ActionLane, ActionName, ActionSubject, AgentSubject};
use liza_status::alarms::Observations;
use liza_status::command_line::CommandLine;
use liza_status::view::{TaskView, charts, dependency_graph, task_detail, view};
use liza_testkit::team::*;

fn suggested(text: &str) -> Action {
    let words = text.split(' ').skip(1).map(|word| word.trim_matches('"'));
    Action::suggested(&CommandLine::liza(words))
}

fn the_task(state: &State) -> TaskView {
    let shown = view(state, &Observations::default(), now());
    shown.tasks.into_iter().find(|shown| shown.id == task("t")).unwrap()
}

/// A task with this history: seconds ago, what, who.
fn with_history(status: Status, events: &[(u64, EventName, &str)]) -> State {
    let mut state = state_with(status);
    edit_task(&mut state, "t", |record| {
        record.created = Some(now() - Seconds(1_000));
        let event =
            |(ago, name, who): &(u64, EventName, &str)| HistoryEvent::new(now() - Seconds(*ago), *name, who);
        record.history = Some(events.iter().map(event).collect());
    });
    state
}

/// Covers: UI-02
#[test]
fn charts_count_what_happened_to_the_tasks() {
    let mut state = with_history(
        Status::Merged,
        &[
            (900, EventName::Claimed, "coder-1"),
            (700, EventName::Rejected, "code-reviewer-1"),
            (690, EventName::ReclaimedAfterRejection, "coder-1"),
            (650, EventName::Rejected, "system"),
            (500, EventName::Approved, "code-reviewer-1"),
            (400, EventName::Merged, "code-reviewer-1"),
        ],
    );
    edit_task(&mut state, "t", |record| {
        record.usage = Some(Usage { input: 10, cost_usd: 0.5, ..Usage::default() })
    });
    let figures = charts(&state, now());
    let cycle = &figures.cycle_times[0];
    assert_eq!((cycle.took, cycle.rejections, figures.merged_at_first_review), (Seconds(500), 1, 0));
    let reviewer = &figures.reviewers[0];
    assert_eq!(
        (reviewer.reviewer.as_str(), reviewer.approvals, reviewer.rejections),
        ("code-reviewer-1", 1, 1)
    );
    assert_eq!(figures.reviewers.len(), 1, "the system is no code reviewer");
    assert_eq!(figures.goal.tasks[0].usage.input, 10);
    let last = figures.burn_up.last().unwrap();
    let total = state.bodies().count();
    assert_eq!((last.time, last.planned, last.merged), (now(), total, 1));
    let merge = figures.burn_up.iter().find(|point| point.merged == 1).unwrap();
    assert_eq!(merge.time, now() - Seconds(400));
}

/// Covers: UI-02
#[test]
fn an_abandoned_task_is_not_planned_any_more() {
    let state = with_history(Status::Abandoned, &[(300, EventName::Abandoned, "planner-1")]);
    let points = charts(&state, now()).burn_up;
    let before = points.iter().rev().find(|point| point.time < now() - Seconds(300)).unwrap();
    let after = points.iter().find(|point| point.time == now() - Seconds(300)).unwrap();
    assert_eq!(after.planned + 1, before.planned, "{points:?}");
}

/// Covers: UI-02
#[test]
fn a_cycle_of_dependencies_has_an_end() {
    let mut state = state_with(Status::Unclaimed);
    edit_task(&mut state, "t", |record| record.depends_on = Some(vec![task("t")]));
    let graph = dependency_graph(&state);
    assert!(graph.iter().any(|node| node.id == task("t") && node.needs == [task("t")]));
    assert!(task_detail(&state, &the_task(&state)).unwrap().needed_by.contains(&&task("t")));
}

/// Covers: UI-01, UI-02
#[test]
fn only_what_makes_sense_is_offered_and_a_verdict_is_about_what_was_seen() {
    let offered = |status: Status| {
        let shown = the_task(&state_with(status));
        let names = [ActionName::Approve, ActionName::Release, ActionName::Answer, ActionName::Note];
        names.map(|name| Action::new(name, ActionSubject::task(&shown)).is_ok())
    };
    assert_eq!(offered(Status::ReadyForReview), [true, true, true, true]);
    assert_eq!(offered(Status::Claimed), [false, true, true, true]);
    assert_eq!(offered(Status::Merged), [false, false, false, true]);
    assert!(Action::new(ActionName::Answer, ActionSubject::default()).is_err());
    let shown = the_task(&state_with(Status::ReadyForReview));
    let subject = ActionSubject::task(&shown);
    let reject = Action::requested(ActionName::Reject, subject, Some(Revision(7))).unwrap();
    assert_eq!(reject.words(&["-no"]), ["submit-verdict", "--if-revision", "7", "t", "REJECTED", " -no"]);
}

/// Covers: UI-01, UI-02
#[test]
fn an_agent_is_started_by_its_role_and_stopped_by_its_name_and_registration() {
    let start = Action::new(ActionName::StartAgent, ActionSubject::default()).unwrap();
    assert_eq!(start.fields[0].choices, ["planner", "coder", "code-reviewer"]);
    assert_eq!(start.words(&[" coder "]), ["agent", "coder", "--detach"]);
    assert_eq!(start.words(&["--explain"]), ["agent", "explain", "--detach"], "never an option");
    assert!(Action::new(ActionName::StopAgent, ActionSubject::default()).is_err());
    let stop = |generation: Option<Generation>| {
        let agent = Some(AgentSubject { id: "coder-2".parse().unwrap(), generation });
        Action::new(ActionName::StopAgent, ActionSubject { task: None, agent }).unwrap().words(&[])
    };
    assert_eq!(stop(Some(Generation(12))), ["deregister", "coder-2", "--if-generation", "12"]);
    assert_eq!(stop(None), ["deregister", "coder-2"], "an old file has no registrations");
}

/// Covers: UI-01, UI-02
#[test]
fn what_stops_something_waits_for_nothing_slow() {
    let lane = |action: Action| ActionLane::of(&action.words(&["coder"]));
    let shown = the_task(&state_with(Status::Claimed));
    let agent = AgentSubject { id: "coder-2".parse().unwrap(), generation: None };
    let subject = ActionSubject { task: Some(&shown), agent: Some(agent) };
    let action = |name: ActionName| Action::new(name, subject).unwrap();
    let team = [ActionName::Pause, ActionName::Resume, ActionName::Checkpoint, ActionName::Abort];
    for name in team {
        assert_eq!(lane(action(name)), ActionLane::Team);
    }
    // Resume is in the lane of pause: the last key decides.
    assert_eq!(lane(suggested("liza resume")), ActionLane::Team);
    for name in [ActionName::StopAgent, ActionName::Release, ActionName::Replan] {
        assert_eq!(lane(action(name)), ActionLane::Stop);
    }
    for action in
        [action(ActionName::StartAgent), action(ActionName::Add), suggested("liza accept-integration")]
    {
        assert_eq!(lane(action), ActionLane::Other);
    }
}

/// Covers: UI-01, UI-02, UI-03
#[test]
fn of_what_needs_the_human_only_what_loses_nothing_runs_without_a_question() {
    let asks = |command: &str| suggested(command).warning.is_some();
    for command in
        ["liza resume", "liza validate", "liza status", "liza answer t \"...\"", "liza note \"...\""]
    {
        assert!(!asks(command), "{command}");
    }
    for command in ["liza dismiss disc-1", "liza accept-integration", "liza sync", "liza of-tomorrow"] {
        assert!(asks(command), "{command}");
    }
    // Only a terminal shows what would be accepted.
    assert!(suggested("liza config --trust").needs_terminal());
    assert!(!suggested("liza config budget.day.tokens \"...\"").needs_terminal());
}

/// Covers: UI-01, UI-02
#[test]
fn what_is_typed_for_a_suggested_command_has_a_name() {
    let labels =
        |command: &str| -> Vec<&str> { suggested(command).fields.iter().map(|field| field.label).collect() };
    assert_eq!(labels("liza edit-task t --done \"...\" --scope \"...\""), ["Done when", "Scope"]);
    assert_eq!(labels("liza abandon-task t --reason \"...\""), ["Reason"]);
    assert_eq!(labels("liza plan --approve"), [""; 0]);
    assert_eq!(suggested("liza plan --approve").title, "Approve the plan");
}
