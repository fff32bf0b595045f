//! An agent: its activity, the output of its last session as it is printed, and its earlier sessions.

use std::collections::BTreeMap;

use liza_core::model::AgentId;
use liza_status::action::{ActionName, ActionSubject};
use maud::{Markup, html};

use crate::region::{ItemTag, Region, Regions, hash};
use crate::seat::{OutputLine, SavedSession};

use super::cards::agent;
use super::context::PageContext;
use super::forms::action_form;
use super::session::{line_class, list, prompt};

/// The most entries of the output that follow live.
const LINES: usize = 300;

pub(super) fn regions(page: &PageContext<'_>, id: AgentId) -> Vec<Region> {
    let mut doing = Region::new("agent-doing", ItemTag::Div);
    if let Some(entry) = page.snapshot.agent(id) {
        let stop = action_form(page, ActionName::StopAgent, ActionSubject::agent(entry));
        doing.push("agent-doing-0".to_owned(), "card", &html! { (agent(page, entry)) (stop) });
    }
    let last = sessions(page, id).into_iter().next();
    let lines = last.map(|session| page.seat.output(&session)).unwrap_or_default();
    vec![doing, output(&lines)]
}

fn output(lines: &[OutputLine]) -> Region {
    let mut region = Region::new("agent-output", ItemTag::Div);
    // A line is known by its text, and by the number of equal lines before it.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        let name = hash(&[line_class(line.kind), &line.text]);
        let number = seen.entry(name.clone()).or_default();
        *number += 1;
        region.push(format!("line-{name}-{number}"), line_class(line.kind), &html! { (line.text) });
    }
    region
}

fn sessions(page: &PageContext<'_>, id: AgentId) -> Vec<SavedSession> {
    page.seat.sessions().into_iter().filter(|session| session.agent == id).collect()
}

/// The page; none if there was never such an agent.
pub(super) fn content(page: &PageContext<'_>, id: AgentId, regions: &Regions) -> Option<Markup> {
    let sessions = sessions(page, id);
    if page.snapshot.agent(id).is_none() && sessions.is_empty() {
        return None;
    }
    Some(html! {
        p.crumbs { a href=(page.links.to("agents")) { "← Agents" } }
        h2.title { (id) }
        div #agent-doing data-region="agent-doing" { (regions.inner("agent-doing")) }
        section aria-labelledby="output-title" {
            h3 #output-title { "Output of its last session" }
            div #agent-output.output data-region="agent-output" data-follow tabindex="0" role="log" aria-live="off" aria-labelledby="output-title" {
                (regions.inner("agent-output"))
            }
        }
        @if let Some(last) = sessions.first() { section { (prompt(page, last)) } }
        section { h3 { "Sessions" } (list(page, &sessions)) }
    })
}
