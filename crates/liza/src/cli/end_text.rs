//! What a team says at its end: what waits for the person, and what to do next.

use liza_core::model::{GoalStatus, State, Status};
use liza_core::rules::clients::no_client_left;
use liza_core::text::{count, one_line};
use liza_core::watch::needs_you::NeedsYou;
use liza_core::watch::view::{HeldClient, TaskView, view};
use liza_host::local_time::LocalTime;
use liza_team::observe::observe;
use liza_team::project::{Project, now};

/// How many decisions are listed when a team ends; `liza status` has all.
const MOST_NEEDS: usize = 3;

/// How much of a text of an agent is printed when a team ends.
const LONGEST_TEXT: usize = 500;

/// What waits for the person when a team ends before its goal, and which agent programs are held: the screen that showed
/// it is gone.
pub(crate) fn what_waits(project: &Project, state: &State, times: &LocalTime) -> String {
    if state.board.goal.ready().is_none_or(|goal| goal.status != GoalStatus::InProgress) {
        return String::new();
    }
    let view = view(state, &observe(project, state, now()), now());
    // On one line each: with line breaks, an agent's text could pass for a line of the program.
    let line = |need: &NeedsYou| {
        let questions =
            need.questions.iter().map(|question| format!("\n  ? {}", one_line(question, LONGEST_TEXT)));
        let (kind, text) = (need.kind, one_line(&need.text, LONGEST_TEXT));
        format!("\nneeds you: {kind}: {text}{}\n  → {}", questions.collect::<String>(), need.command)
    };
    let needs = view.needs_you.iter().take(MOST_NEEDS).map(line);
    let held = view.held_clients.iter().filter_map(|held| until(held, times));
    needs.chain(held).chain(to_merge(&view.tasks)).collect()
}

/// Approved tasks whose merge was stopped, or has not begun.
fn to_merge(tasks: &[TaskView]) -> Option<String> {
    let waits = |task: &&TaskView| task.status == Some(Status::Approved) && task.reason.is_none();
    let approved: Vec<&TaskView> = tasks.iter().filter(waits).collect();
    Some(match approved.as_slice() {
        [] => return None,
        [one] => format!("\n{} is approved; the next liza run merges it", one.id),
        more => format!("\n{} are approved; the next liza run merges them", count(more.len(), "task")),
    })
}

/// Until when a program is held that is tried again by itself; of others, what needs the human says it.
fn until(held: &HeldClient, times: &LocalTime) -> Option<String> {
    let until = times.short(held.until.filter(|until| *until > now())?);
    Some(format!("\n{} is held until {until}; to try it at once: liza resume, then liza run", held.name))
}

/// Why a team has ended by itself that no agent program is left for; on the first line, since no key was pressed.
pub(crate) fn why_it_ended(state: &State) -> String {
    let why = state.board.sprint.ready().map(no_client_left).unwrap_or_default();
    format!("the team has ended: {why}\n")
}

/// What a person does after a team has ended.
pub(crate) fn next_steps(state: &State, again: &str) -> String {
    match state.board.goal.ready().map(|goal| goal.status) {
        Some(GoalStatus::InProgress) => {
            format!("\nwhere it stopped  liza status\nto continue       {again}")
        }
        Some(GoalStatus::Aborted) => "\nNothing was deleted. Start over: liza goal new \"GOAL\"".to_owned(),
        Some(GoalStatus::Completed) => {
            "\nreview it  liza diff\ntake it    liza finish\nnext goal  liza goal new \"GOAL\"".to_owned()
        }
        None => String::new(),
    }
}
