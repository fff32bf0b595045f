//! The agents: activity, client, lease, confinement and usage of each.

use liza_core::model::Usage;
use liza_status::action::{ActionName, ActionSubject};
use liza_status::view::View;
use liza_status::words::{agent_activity, agent_doing, agent_sign, lease_length};
use maud::{Markup, html};

use crate::region::{ItemTag, Region, Regions};

use super::cards::{liveness, role_name, task_link};
use super::context::PageContext;
use super::forms::action_form;

pub(super) fn regions(page: &PageContext<'_>) -> Vec<Region> {
    let Some(view) = page.snapshot.view() else { return Vec::new() };
    let mut agents = Region::new("team", ItemTag::Li);
    for agent in &view.agents {
        let facts = [
            ("Role", Some(role_name(agent.role).to_owned())),
            ("Agent program", agent.client.clone()),
            ("Heartbeat", agent.heartbeat_age.map(|age| format!("{age} ago"))),
            ("Output", agent.output_age.map(|age| format!("{age} ago"))),
            ("Lease", agent.lease.filter(|_| agent.task.is_some()).map(lease_length)),
            ("Context", agent.context_percent.map(|percent| format!("{percent} % used"))),
            ("Used", agent.usage.as_ref().and_then(Usage::in_words)),
            ("Confinement", agent.confinement.as_ref().map(ToString::to_string)),
            ("Last session", agent.last_session.as_ref().map(|last| last.result.clone())),
        ];
        let body = html! {
            div.card-head {
                span class={ "sign " (liveness(agent.liveness)) } aria-hidden="true" { (agent_sign(agent)) }
                h3 { a.agent-id href=(page.links.agent(agent.id)) { (agent.id) } }
                span.doing { (agent_doing(agent)) }
            }
            @if let Some(activity) = agent_activity(agent) { p.activity { (activity) } }
            dl.facts-list {
                @if let Some(task) = &agent.task { div { dt { "Task" } dd { (task_link(page, task)) } } }
                @for (name, text) in facts.iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
                    div { dt { (name) } dd { (text) } }
                }
            }
            (action_form(page, ActionName::StopAgent, ActionSubject::agent(agent)))
        };
        agents.push(format!("member-{}", agent.id), "card", &body);
    }
    let mut held = Region::new("held", ItemTag::Li);
    for client in &view.held_clients {
        held.push(
            format!("held-{}", client.name),
            "warn",
            &html! { b { (client.name) } " cannot be used now: " (client.text) },
        );
    }
    vec![agents.or(&no_agent(view)), held]
}

pub(super) fn content(page: &PageContext<'_>, regions: &Regions) -> Markup {
    html! {
        h2 { "Agents" }
        div.start-agent { (action_form(page, ActionName::StartAgent, ActionSubject::default())) }
        ul #held.alerts data-region="held" { (regions.inner("held")) }
        ul #team.team data-region="team" { (regions.inner("team")) }
    }
}

/// The text in the place of agents.
pub(super) fn no_agent(view: &View) -> Markup {
    html! { "No agent is registered. Start the team: " code { (view.start.run) } }
}
