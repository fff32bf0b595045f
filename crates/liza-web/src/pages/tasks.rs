//! All tasks, by state.

use liza_status::view::TaskPhase;
use liza_status::words::PHASES;
use maud::{Markup, html};

use crate::region::{ItemTag, Region, Regions};

use super::cards::{phase_class, status_badge, task_link};
use super::context::PageContext;

pub(super) fn regions(page: &PageContext<'_>) -> Vec<Region> {
    let Some(view) = page.snapshot.view() else { return Vec::new() };
    let mut rows = Region::new("rows", ItemTag::Li);
    for task in &view.tasks {
        let row = html! {
            (task_link(page, &task.id))
            span.status { (status_badge(task)) }
            p.what { (task.description) }
            p.next {
                @if let Some(owner) = task.owner.or(task.assigned_to) {
                    a.agent-id href=(page.links.agent(owner)) { (owner) } " · "
                }
                (task.next)
            }
        };
        rows.push(format!("row-{}", task.id), phase_class(task.phase), &row);
    }
    let counts = PHASES.iter().map(|(phase, name)| (*phase, *name)).chain([(TaskPhase::Ended, "DONE")]);
    let counts = counts
        .map(|(phase, name)| (name, phase, view.tasks.iter().filter(|task| task.phase == phase).count()));
    let summary = html! {
        @for (name, phase, number) in counts.filter(|(.., number)| *number > 0) {
            span class={ "badge " (phase_class(phase)) } { (number) " " (name.to_lowercase()) } " "
        }
        @if view.archived > 0 { span.badge { (view.archived) " in the archive" } }
    };
    vec![Region::single("counts", &summary), rows.or(&html! { "There are no tasks yet." })]
}

pub(super) fn content(regions: &Regions) -> Markup {
    html! {
        h2 { "Tasks" }
        p #counts.counts data-region="counts" { (regions.inner("counts")) }
        ul #rows.task-list data-region="rows" { (regions.inner("rows")) }
    }
}
