//! The top of every page: the goal, the sprint, a stop of the team, and the actions about the whole team.

use liza_core::model::{GoalStatus, StopFile};
use liza_core::text::count;
use liza_status::action::{ActionName, ActionSubject};
use liza_status::view::{SprintView, TaskPhase, View};
use liza_status::words::{budgets, is_held_up, sprint_facts};
use maud::{Markup, html};

use crate::drawing::bar::{Segment, bar};
use crate::region::Region;

use super::context::PageContext;
use super::forms::{action_form, quick_action};

pub(super) fn regions(page: &PageContext<'_>) -> Vec<Region> {
    let Some(view) = page.snapshot.view() else {
        let text = page.snapshot.problem.as_deref().unwrap_or("Reading the blackboard …");
        return vec![Region::single("summary", &html! { p.problem { (text) } })];
    };
    let mut summary = Region::new("summary", crate::region::ItemTag::Div);
    if let Some(problem) = &page.snapshot.problem {
        summary.push(
            "summary-problem".to_owned(),
            "problem",
            &html! { "The blackboard cannot be read now: " (problem) },
        );
    }
    summary.push("summary-goal".to_owned(), "goal", &goal(view));
    if let Some(sprint) = &view.sprint {
        summary.push("summary-sprint".to_owned(), "sprint", &sprint_line(sprint, view));
    }
    summary.push("summary-actions".to_owned(), "team-actions", &team_actions(page, view));
    let waiting = match view.needs_you.len() {
        0 => "Nothing needs you.".to_owned(),
        number => {
            format!("{} for you.", count(number, "decision") + if number == 1 { " waits" } else { " wait" })
        }
    };
    vec![summary, Region::single("announce", &html! { (waiting) })]
}

fn goal(view: &View) -> Markup {
    let text = view.goal.as_ref().map(|goal| goal.description.trim()).unwrap_or_default();
    html! {
        h1 { @if text.is_empty() { "No goal yet" } @else { (text) } }
        @if let Some(state) = team_state(view) { span class={ "state " (state.1) } { (state.0) } }
    }
}

/// The word for a team that is stopped or has reached the goal, with the class of its colour.
fn team_state(view: &View) -> Option<(&'static str, &'static str)> {
    let stopped = view.stopped.first().map(|stop| match stop.file {
        StopFile::Abort => ("aborted", "bad"),
        StopFile::Checkpoint => ("checkpoint", "warn"),
        StopFile::Pause => ("paused", "warn"),
    });
    let goal = view.goal.as_ref().and_then(|goal| match goal.status {
        GoalStatus::InProgress => None,
        GoalStatus::Completed => Some(("goal reached", "good")),
        GoalStatus::Aborted => Some(("goal aborted", "bad")),
    });
    let stopping = view.is_stopping().then_some(("stopping", "warn"));
    let held = is_held_up(view).then_some(("held", "warn"));
    stopped.or(stopping).or(goal).or(held)
}

fn sprint_line(sprint: &SprintView, view: &View) -> Markup {
    let progress = &sprint.progress;
    let segments = [
        Segment { class: "merged", number: progress.merged },
        Segment {
            class: "working",
            number: progress.in_phases(&[TaskPhase::Working, TaskPhase::Stopped, TaskPhase::Reviewing]),
        },
        Segment { class: "blocked", number: progress.in_phases(&[TaskPhase::Stuck]) },
        Segment {
            class: "waiting",
            number: progress.in_phases(&[TaskPhase::Ready, TaskPhase::Waiting, TaskPhase::Draft]),
        },
    ];
    let facts: Vec<String> = sprint_facts(sprint).into_iter().map(|(_, fact)| fact).collect();
    let label = format!("{}: {}", sprint.id, facts.join(", "));
    html! {
        (bar(&segments, &label))
        p.facts { b { (sprint.id) } @for fact in &facts { " " span { (fact) } } @if let Some(budget) = budgets(&view.budgets) { " " span { (budget) } } }
    }
}

fn team_actions(page: &PageContext<'_>, view: &View) -> Markup {
    let stopped = !view.stopped.is_empty();
    html! {
        @if stopped { (quick_action(page, ActionName::Resume, "Resume", "primary")) }
        @else {
            @if view.can_try_now() { (quick_action(page, ActionName::Resume, "Try now", "primary")) }
            (quick_action(page, ActionName::Pause, "Pause", ""))
        }
        details.menu {
            summary { "More" }
            div.menu-content {
                (action_form(page, ActionName::Add, ActionSubject::default()))
                (action_form(page, ActionName::NoteAll, ActionSubject::default()))
                (action_form(page, ActionName::Checkpoint, ActionSubject::default()))
                (action_form(page, ActionName::Abort, ActionSubject::default()))
            }
        }
    }
}
