//! What the screens say after a goal: the next one, which has no plan yet, and one that was aborted.

use liza_core::model::{
    Actor, AgentStatus, GoalStatus, Loaded, Seconds, Sprint, State, Status, StopFileTimes, Usage,
};
use liza_core::protocol::{Answer, apply};
use liza_status::alarms::{AlarmKind, Observations};
use liza_status::view::{View, view};
use liza_status::words::{SprintPart, ended_counts, next_steps, sprint_facts, task_facts, task_status};
use liza_testkit::team::*;

use crate::sprint_words;

fn without_team(mut state: State) -> State {
    agents(&mut state).clear();
    state
}

fn first_step(state: &State) -> String {
    next_steps(&view(state, &Observations::default(), now())).remove(0).0
}

/// Covers: UI-03
#[test]
fn after_a_new_goal_the_next_step_is_not_about_the_tasks_of_the_last_one() {
    let mut state = without_team(state_with(Status::Merged));
    assert!(first_step(&state).starts_with("All tasks have ended"), "{}", first_step(&state));
    let goal = goal(&mut state);
    (goal.id, goal.planned) = ("goal-2".to_owned(), false);
    state.board.sprint = Loaded::Ready(Sprint::begin(2, "goal-2", now()));
    assert_eq!(first_step(&state), "Nothing is planned yet for goal-2, and no team is running. Start it:");
}

fn aborted(status: Status) -> View {
    let mut state = without_team(state_with(status));
    goal(&mut state).status = GoalStatus::Aborted;
    view(&state, &Observations::default(), now())
}

/// Covers: UI-03
#[test]
fn after_an_abort_no_task_continues() {
    for status in
        [Status::Claimed, Status::ReadyForReview, Status::Approved, Status::Unclaimed, Status::Draft]
    {
        let shown = aborted(status);
        let task = &shown.tasks[0];
        assert_eq!(task_facts(task)[0], "dropped with the goal; its work is kept", "{status}");
        assert_eq!(task_status(task), "ENDED", "{status}");
        assert_eq!(
            (task.next.to_string(), &task.command),
            ("nothing: dropped with the goal".to_owned(), &None),
            "{status}"
        );
        assert_eq!(ended_counts(&shown), ["1 dropped with the goal"], "{status}");
        let facts = sprint_words(&shown);
        assert!(facts.contains(&"1 dropped with the goal".to_owned()), "{facts:?}");
        assert!(!facts.iter().any(|fact| fact.ends_with("progress") || fact.ends_with("ready")), "{facts:?}");
    }
    assert_eq!(task_status(&aborted(Status::Merged).tasks[0]), "MERGED");
}

/// Covers: AX-22
#[test]
fn of_the_sprints_line_the_deadline_stays_longer_than_the_counts() {
    let mut state = empty_state();
    let tasks = [Status::Merged, Status::Superseded, Status::Blocked, Status::Claimed, Status::Unclaimed];
    for (number, status) in tasks.into_iter().enumerate() {
        plan(&mut state, record(&format!("t-{number}"), status));
    }
    let sprint = sprint(&mut state);
    sprint.timeline.deadline = Some(now() + Seconds::hours(1));
    sprint.usage = Some(Usage { input: 12_000, ..Usage::default() });
    let shown = view(&state, &Observations::default(), now());
    let mut facts = sprint_facts(shown.sprint.as_ref().unwrap());
    facts.push((SprintPart::Budgets, "budget".to_owned()));
    facts.sort_by_key(|(part, _)| *part);
    let facts: Vec<&str> = facts.iter().map(|(_, words)| words.as_str()).collect();
    let most_important_first = [
        "1 of 5 merged",
        "due in 1h",
        "budget",
        "1 blocked",
        "1 in progress",
        "1 ready",
        "1 waiting",
        "12k tokens, no price",
        "1 replaced",
    ];
    assert_eq!(facts, most_important_first);
}

/// Covers: UI-03
#[test]
fn a_planner_that_may_not_start_does_not_look_at_a_question_now() {
    let mut state = state_with(Status::Blocked);
    edit_task(&mut state, "t", |record| record.blocked_questions = Some(vec!["Which one?".to_owned()]));
    let said = |state: &State, stop_files: StopFileTimes| {
        let seen = Observations { stop_files, last_progress: Some(now()), ..Observations::default() };
        let shown = view(state, &seen, now());
        let blocked = AlarmKind::Blocked;
        let text = shown.needs_you.iter().find(|need| need.kind == blocked).unwrap().text.clone();
        let when = text.split_once("; the planner ").unwrap().1.to_owned();
        assert!(
            shown.tasks[0]
                .next
                .to_string()
                .starts_with(&format!("the planner {}", when.split_once(',').unwrap().0))
        );
        when
    };
    let checkpoint = StopFileTimes { checkpoint: Some(now()), ..StopFileTimes::default() };
    let after = "looks at it after liza resume, and you can answer it yourself";
    assert_eq!(said(&state, checkpoint), after);
    assert_eq!(said(&state, StopFileTimes { pause: Some(now()), ..StopFileTimes::default() }), after);
    entry(&mut state, "planner-1").status = AgentStatus::Planning;
    let now = "looks at it now, and you can answer it yourself";
    assert_eq!(said(&state, checkpoint), now, "its session has begun before");
}

/// Covers: UI-03
#[test]
fn an_aborted_goal_asks_nothing_about_its_tasks() {
    let mut state = state_with(Status::Blocked);
    let goal = goal(&mut state);
    goal.status = GoalStatus::Aborted;
    let shown = view(&state, &Observations::default(), now());
    assert_eq!((shown.needs_you.len(), shown.alerts.len()), (0, 0), "{:?}", shown.alerts);
    assert_eq!(shown.tasks[0].next.to_string(), "nothing: dropped with the goal");
    let answer = Answer { task: task("t"), text: "Yes".to_owned() };
    let refused = apply(&state.board, &request(Actor::Human, answer.into())).unwrap_err();
    assert_eq!(refused.code(), "goal_not_open");
}
