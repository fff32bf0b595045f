//! Sessions: the prompt that one got, and what it printed, rendered for people.

use liza_core::model::AgentId;
use maud::{Markup, html};

use crate::seat::{OutputKind, OutputLine, SavedSession};

use super::context::PageContext;
use super::shell::still_page;

/// The most sessions of a list.
const SESSIONS: usize = 50;

/// The sessions of a list, each with a link.
pub(super) fn list(page: &PageContext<'_>, sessions: &[SavedSession]) -> Markup {
    html! {
        @if sessions.is_empty() { p.nothing-here { "No session yet." } }
        ul.sessions {
            @for session in sessions.iter().take(SESSIONS) {
                li {
                    a href=(page.links.session(&session.name)) { (page.seat.full_time(session.started)) }
                    " " span.who { (session.agent) } " " span.detail { (session.about) }
                }
            }
        }
    }
}

/// The page of an agent: its last session and the earlier ones.
pub(crate) fn agent_page(page: &PageContext<'_>, agent: AgentId) -> Option<Markup> {
    let known = page.snapshot.view()?.agents.iter().any(|entry| entry.id == agent);
    let all: Vec<SavedSession> =
        page.seat.sessions().into_iter().filter(|session| session.agent == agent).collect();
    if !known && all.is_empty() {
        return None;
    }
    let content = html! {
        p.crumbs { a href=(page.links.to("agents")) { "← Agents" } }
        h2 { (agent) }
        @if let Some(last) = all.first() { (both(page, last)) }
        section { h3 { "Sessions" } (list(page, &all)) }
    };
    Some(still_page(page, &agent.to_string(), &content))
}

/// The page of one session; none if there is none of that name.
pub(crate) fn page(page: &PageContext<'_>, name: &str) -> Option<Markup> {
    // The name is only compared; the seat finds the files.
    let session = page.seat.sessions().into_iter().find(|session| session.name == name)?;
    let content = html! {
        p.crumbs {
            a href=(page.links.agent(session.agent)) { "← " (session.agent) }
            @if let Ok(task) = session.about.parse() { " · " a href=(page.links.task(&task)) { (task) } }
        }
        h2 { "Session of " (session.agent) ", " (page.seat.full_time(session.started)) }
        (both(page, &session))
    };
    Some(still_page(page, "Session", &content))
}

/// The output and the prompt of a session.
fn both(page: &PageContext<'_>, session: &SavedSession) -> Markup {
    let output = page.seat.output(session);
    html! {
        section {
            h3 { "Output" }
            @if output.is_empty() { p.nothing-here { "Nothing was printed yet." } }
            @else { div.output tabindex="0" role="region" aria-label="Output of the session" { @for line in &output { (output_line(line)) } } }
        }
        section {
            details.prompt {
                summary { "Prompt" }
                @match page.seat.prompt(session) {
                    Some(text) => pre tabindex="0" { (text) },
                    None => p { "The prompt was not kept." },
                }
            }
        }
    }
}

fn output_line(line: &OutputLine) -> Markup {
    let class = match line.kind {
        OutputKind::Text => "said",
        OutputKind::Tool => "tool",
        OutputKind::Note => "note",
        OutputKind::Fault => "fault",
    };
    html! { p class=(class) { (line.text) } }
}
