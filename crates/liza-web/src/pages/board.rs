//! The board: the human's decisions, the open tasks by state, the agents, the last lines of the log.

use liza_status::view::{TaskPhase, TaskView};
use liza_status::words::{PHASES, ended_counts, next_steps};
use maud::{Markup, html};

use crate::actions::need_key;
use crate::region::{ItemTag, Region, Regions};

use super::agents::no_agent;
use super::cards::{agent, alert, level, log_line, need, phase_class, task, tone_class};
use super::context::PageContext;

/// The most tasks of one state on the board; the page of tasks has all of them.
const COLUMN_MAX: usize = 40;

/// The most lines of the log.
const LOG_LINES: usize = 12;

/// The IDs of the columns, in the order of the phases.
const COLUMNS: [&str; PHASES.len()] = [
    "column-stuck",
    "column-working",
    "column-stopped",
    "column-reviewing",
    "column-ready",
    "column-waiting",
    "column-draft",
];

pub(super) fn regions(page: &PageContext<'_>) -> Vec<Region> {
    let Some(view) = page.snapshot.view() else { return Vec::new() };
    let mut needs = Region::new("needs", ItemTag::Li);
    for entry in &view.needs_you {
        needs.push(format!("need-{}", need_key(entry)), level(entry.level), &need(page, entry));
    }
    let mut alerts = Region::new("alerts", ItemTag::Li);
    for (number, entry) in view.other_alerts().enumerate() {
        alerts.push(format!("alert-{number}"), level(entry.level), &alert(page, entry));
    }
    let mut agents = Region::new("agents", ItemTag::Li);
    for entry in &view.agents {
        agents.push(format!("agent-{}", entry.id), "", &agent(page, entry));
    }
    let mut log = Region::new("log", ItemTag::Li);
    // Lines have no name of their own; their place from the oldest on is stable while they are shown.
    for line in page.snapshot.log.iter().take(LOG_LINES) {
        let id = crate::region::hash(&[&line.time.to_string(), &line.who, &line.action, &line.detail]);
        log.push(format!("log-{id}"), tone_class(line.tone), &log_line(page, line, false));
    }
    let steps = Region::single(
        "steps",
        &html! {
            @for (what, command) in next_steps(view) { p { (what) " " code { (command) } } }
        },
    );
    let done = Region::single(
        "done",
        &html! {
            @let counts = ended_counts(view);
            @if !counts.is_empty() { "Done: " (counts.join(", ")) ". " a href=(page.links.to("tasks")) { "All tasks" } }
        },
    );
    let columns =
        PHASES.iter().zip(COLUMNS).map(|((phase, name), id)| column(page, &view.tasks, *phase, name, id));
    let needs = needs.or(&html! { "Nothing needs you now." });
    let agents = agents.or(&no_agent(view));
    [needs, alerts, agents, log, steps, done].into_iter().chain(columns).collect()
}

/// The tasks of one state, with a heading.
fn column(
    page: &PageContext<'_>,
    tasks: &[TaskView],
    phase: TaskPhase,
    name: &str,
    id: &'static str,
) -> Region {
    let mut region = Region::new(id, ItemTag::Div);
    let own: Vec<&TaskView> = tasks.iter().filter(|task| task.phase == phase).collect();
    if own.is_empty() {
        return region;
    }
    region.push(
        format!("{id}-head"),
        "column-head",
        &html! { h3 { (capitalized(name)) } span.count { (own.len()) } },
    );
    for entry in own.iter().take(COLUMN_MAX) {
        let class = format!("card {}", phase_class(phase));
        region.push(format!("task-{}", entry.id), &class, &task(page, entry));
    }
    if let Some(more) = own.len().checked_sub(COLUMN_MAX).filter(|more| *more > 0) {
        let link = html! { a href=(page.links.to("tasks")) { (more) " more" } };
        region.push(format!("{id}-more"), "more", &link);
    }
    region
}

/// `IN PROGRESS` as a heading.
fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_string() + &letters.as_str().to_lowercase())
}

pub(super) fn content(regions: &Regions) -> Markup {
    html! {
        section.needs aria-labelledby="needs-title" {
            h2 #needs-title { "Needs you" }
            ul #needs data-region="needs" { (regions.inner("needs")) }
        }
        div #steps.steps data-region="steps" { (regions.inner("steps")) }
        div.board {
            section.tasks aria-labelledby="tasks-title" {
                h2 #tasks-title { "Tasks" }
                div.columns {
                    @for id in COLUMNS { div.column #(id) data-region=(id) { (regions.inner(id)) } }
                }
                p #done.done data-region="done" { (regions.inner("done")) }
            }
            div.side {
                section aria-labelledby="agents-title" {
                    h2 #agents-title { "Agents" }
                    ul #agents.agents data-region="agents" { (regions.inner("agents")) }
                }
                section.alert-list aria-labelledby="alerts-title" {
                    h2 #alerts-title { "Alerts" }
                    ul #alerts.alerts data-region="alerts" { (regions.inner("alerts")) }
                }
                section aria-labelledby="log-title" {
                    h2 #log-title { "Log" }
                    ol #log.log data-region="log" { (regions.inner("log")) }
                }
            }
        }
    }
}
