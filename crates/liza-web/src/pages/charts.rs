//! The charts: burn-up, cycle time, cost, review quality, and the graph of dependencies.

use liza_core::model::Usage;
use liza_core::text::count;
use liza_status::view::{Charts, View, charts, dependency_graph};
use maud::{Markup, html};

use crate::drawing::bars::{Bar, bars};
use crate::drawing::burn_up::burn_up;
use crate::drawing::graph::graph;
use crate::region::{Region, Regions};

use super::context::PageContext;

/// The most bars of a chart.
const BARS: usize = 20;

pub(super) fn regions(page: &PageContext<'_>) -> Vec<Region> {
    let Some((view, state)) = page.snapshot.view().zip(page.snapshot.state()) else { return Vec::new() };
    let figures = charts(state, view.now);
    let time = |time| page.seat.full_time(time);
    vec![
        Region::single("chart-burn-up", &burn_up(&figures.burn_up, time)),
        Region::single("chart-cycle", &cycle_times(&figures)),
        Region::single("chart-cost", &costs(&figures)),
        Region::single("chart-review", &reviews(&figures, view)),
        Region::single("chart-graph", &graph(&dependency_graph(state), page.links)),
    ]
}

fn cycle_times(figures: &Charts) -> Markup {
    let skipped = figures.cycle_times.len().saturating_sub(BARS);
    let rows: Vec<Bar> = figures.cycle_times[skipped..]
        .iter()
        .map(|cycle| Bar {
            label: cycle.task.to_string(),
            parts: vec![("reviewing", cycle.took.0 as f64)],
            text: match cycle.rejections {
                0 => cycle.took.to_string(),
                n => format!("{}, {}", cycle.took, count(n as usize, "rejection")),
            },
        })
        .collect();
    let mut all: Vec<u64> = figures.cycle_times.iter().map(|cycle| cycle.took.0).collect();
    all.sort_unstable();
    let median = all.get(all.len() / 2).map(|seconds| liza_core::model::Seconds(*seconds));
    html! {
        @if let Some(median) = median { p.figure { b { (median) } " median from the first claim to the merge, " (count(all.len(), "task")) } }
        (bars("How long each merged task took", &rows))
    }
}

fn costs(figures: &Charts) -> Markup {
    let goal = &figures.goal;
    let paid = goal.total.dollars().is_some();
    let bar = |label: String, class: &'static str, usage: &Usage| Bar {
        label,
        parts: vec![(class, if paid { usage.cost_usd } else { usage.tokens() as f64 })],
        text: usage.in_words().unwrap_or_default(),
    };
    let tasks = goal.tasks.iter().map(|task| (task.task.to_string(), &task.usage));
    let all = tasks.take(BARS).chain([("planning".to_owned(), &goal.other)]);
    let used = all.filter(|(_, usage)| !usage.is_none());
    let by_task: Vec<Bar> = used.map(|(label, usage)| bar(label, "working", usage)).collect();
    let by_agent: Vec<Bar> = figures
        .agent_costs
        .iter()
        .map(|cost| bar(cost.agent.to_string(), "reviewing", &cost.usage))
        .collect();
    html! {
        @if let Some(total) = goal.total.in_words() { p.figure { b { (total) } " for the goal, planning included" } }
        (bars("What each task cost", &by_task))
        @if !by_agent.is_empty() { h3 { "By agent" } (bars("What each agent used", &by_agent)) }
    }
}

fn reviews(figures: &Charts, view: &View) -> Markup {
    let merged = figures.cycle_times.len();
    let rows: Vec<Bar> = figures
        .reviewers
        .iter()
        .map(|reviewer| Bar {
            label: reviewer.reviewer.clone(),
            parts: vec![("merged", reviewer.approvals as f64), ("blocked", reviewer.rejections as f64)],
            text: format!("{} approved, {} rejected", reviewer.approvals, reviewer.rejections),
        })
        .collect();
    html! {
        @if let Some(percent) = (figures.merged_at_first_review * 100).checked_div(merged) {
            p.figure { b { (percent) " %" } " of the merged tasks were approved at the first review" }
        }
        (bars("How reviews ended", &rows))
        @if !view.drilled.is_empty() { h3 { "In drills" } (bars("Planted defects that were caught", &drills(view))) }
    }
}

/// The planted defects that each reviewer caught, and those that it missed.
fn drills(view: &View) -> Vec<Bar> {
    let drilled = view.drilled.iter().map(|one| {
        let (caught, alarms) = (&one.caught, &one.false_alarms);
        let missed = caught.n.saturating_sub(caught.hits);
        Bar {
            label: one.name(),
            parts: vec![("merged", caught.hits as f64), ("blocked", missed as f64)],
            text: format!("caught {}, false alarms {}", caught.in_words(), alarms.in_words()),
        }
    });
    drilled.collect()
}

pub(super) fn content(regions: &Regions) -> Markup {
    let panels = [
        ("chart-burn-up", "Burn-up"),
        ("chart-cycle", "Cycle time"),
        ("chart-cost", "Cost"),
        ("chart-review", "Review quality"),
        ("chart-graph", "Dependencies"),
    ];
    html! {
        div.charts {
            @for (id, name) in panels {
                section class={ "panel " (id) } {
                    h2 { (name) }
                    div #(id) data-region=(id) { (regions.inner(id)) }
                }
            }
        }
    }
}
