//! All alerts, the worst first; the matters for the planner; discoveries that are no tasks yet.

use maud::{Markup, html};

use crate::region::{ItemTag, Region, Regions, hash};

use super::cards::{alert, level, task_link};
use super::context::PageContext;

pub(super) fn regions(page: &PageContext<'_>) -> Vec<Region> {
    let Some(view) = page.snapshot.view() else { return Vec::new() };
    let mut alerts = Region::new("all-alerts", ItemTag::Li);
    for (number, entry) in view.alerts.iter().enumerate() {
        alerts.push(format!("any-alert-{number}"), level(entry.level), &alert(page, entry));
    }
    let mut triggers = Region::new("triggers", ItemTag::Li);
    for trigger in &view.planner_triggers {
        let id = hash(&[&trigger.kind, &trigger.subject]);
        let seen = if trigger.seen { "the planner was woken" } else { "the planner will be woken" };
        triggers.push(format!("trigger-{id}"), "", &html! {
            span.badge { (trigger.kind) } " " b { (trigger.subject) } " " (trigger.detail) " " span.optional { (seen) }
        });
    }
    let mut discoveries = Region::new("discoveries", ItemTag::Li);
    for found in &view.discoveries {
        discoveries.push(format!("found-{}", found.id), "", &html! {
            b { (found.id) } " " @if let Some(task) = &found.during { (task_link(page, task)) " " } (found.description)
            @if let Some(advice) = &found.recommendation { p { "Recommended: " (advice) } }
        });
    }
    vec![
        alerts.or(&html! { "No alerts." }),
        triggers.or(&html! { "Nothing is waiting for the planner." }),
        discoveries.or(&html! { "No open discoveries." }),
    ]
}

pub(super) fn content(regions: &Regions) -> Markup {
    html! {
        h2 { "Alerts" }
        ul #all-alerts.alerts data-region="all-alerts" { (regions.inner("all-alerts")) }
        section.plain-list aria-labelledby="triggers-title" {
            h2 #triggers-title { "For the planner" }
            ul #triggers data-region="triggers" { (regions.inner("triggers")) }
        }
        section.plain-list aria-labelledby="found-title" {
            h2 #found-title { "Discoveries" }
            ul #discoveries data-region="discoveries" { (regions.inner("discoveries")) }
        }
    }
}
