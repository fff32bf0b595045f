//! The graph of dependencies: layers from left to right, each task below the one before it in its layer.

use std::collections::BTreeMap;

use liza_core::model::{Status, TaskId};
use liza_core::text::one_line;
use liza_status::view::DependencyNode;
use maud::{Markup, html};

use crate::links::Links;

const BOX: (usize, usize) = (190, 50);
const GAP: (usize, usize) = (56, 16);
const EDGE: usize = 8;

/// The most tasks of a picture.
const NODES: usize = 400;

pub(crate) fn graph(nodes: &[DependencyNode], links: &Links) -> Markup {
    if nodes.is_empty() {
        return html! { p.nothing-here { "There are no tasks yet." } };
    }
    let nodes = &nodes[..nodes.len().min(NODES)];
    let places = places(nodes);
    let right = places.values().map(|(x, _)| x + BOX.0).max().unwrap_or(0) + EDGE;
    let bottom = places.values().map(|(_, y)| y + BOX.1).max().unwrap_or(0) + EDGE;
    html! {
        div.scroll.graph-scroll tabindex="0" role="region" aria-label="Graph of dependencies" {
            svg.graph viewBox={ "0 0 " (right) " " (bottom) } width=(right) height=(bottom) {
                @for node in nodes {
                    @for need in &node.needs {
                        @if let (Some(from), Some(to)) = (places.get(need), places.get(&node.id)) {
                            path.edge d=(edge(*from, *to)) {}
                        }
                    }
                }
                @for node in nodes {
                    @if let Some((x, y)) = places.get(&node.id) {
                        a href=(links.task(&node.id)) {
                            title { (node.id) ": " (status_name(node.status)) @if !node.needs.is_empty() { ", after " (names(&node.needs)) } }
                            rect class={ "node " (class(node.status)) } x=(x) y=(y) width=(BOX.0) height=(BOX.1) rx="8" {}
                            text.name x=(x + 12) y=(y + 21) { (one_line(node.id.as_str(), 22)) }
                            text.axis x=(x + 12) y=(y + 39) { (one_line(&status_name(node.status), 24)) }
                        }
                    }
                }
            }
        }
    }
}

fn places(nodes: &[DependencyNode]) -> BTreeMap<&TaskId, (usize, usize)> {
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for node in nodes {
        let row = rows.entry(node.layer).or_default();
        places.insert(&node.id, (EDGE + node.layer * (BOX.0 + GAP.0), EDGE + *row * (BOX.1 + GAP.1)));
        *row += 1;
    }
    places
}

fn edge(from: (usize, usize), to: (usize, usize)) -> String {
    let (x1, y1, x2, y2) = (from.0 + BOX.0, from.1 + BOX.1 / 2, to.0, to.1 + BOX.1 / 2);
    let half = GAP.0 / 2;
    format!("M{x1} {y1} C{} {y1} {} {y2} {x2} {y2}", x1 + half, x2.saturating_sub(half))
}

fn names(all: &[TaskId]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn status_name(status: Option<Status>) -> String {
    status.map_or_else(|| "unknown".to_owned(), |status| status.to_string())
}

fn class(status: Option<Status>) -> &'static str {
    match status {
        Some(Status::Merged) => "merged",
        Some(Status::Claimed | Status::Rejected) => "working",
        Some(Status::ReadyForReview | Status::Approved) => "reviewing",
        Some(Status::Blocked | Status::IntegrationFailed) | None => "blocked",
        Some(Status::Abandoned | Status::Superseded) => "ended",
        Some(Status::Draft | Status::Unclaimed) => "ready",
    }
}
