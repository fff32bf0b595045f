//! Sessions: the prompt and the output of each, rendered for people.

use maud::{Markup, html};

use crate::seat::{OutputKind, SavedSession};

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

/// The page of one session; none if there is none of that name.
pub(crate) fn page(page: &PageContext<'_>, name: &str) -> Option<Markup> {
    // The name is only compared; the seat finds the files.
    let session = page.seat.sessions().into_iter().find(|session| session.name == name)?;
    let content = html! {
        p.crumbs {
            a href=(page.links.agent(session.agent)) { "← " (session.agent) }
            @if let Ok(task) = session.about.parse() { " · " a href=(page.links.task(&task)) { (task) } }
        }
        h2.title { "Session of " (session.agent) ", " (page.seat.full_time(session.started)) }
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
            @if output.is_empty() { p.nothing-here { "Nothing was printed." } } @else {
                div.output tabindex="0" role="region" aria-label="Output of the session" {
                    @for line in &output { p class=(line_class(line.kind)) { (line.text) } }
                }
            }
        }
        section { (prompt(page, session)) }
    }
}

/// The prompt of a session, closed at first.
pub(super) fn prompt(page: &PageContext<'_>, session: &SavedSession) -> Markup {
    html! {
        details.prompt {
            summary { "Prompt" }
            @match page.seat.prompt(session) {
                Some(text) => pre tabindex="0" { (text) },
                None => p { "The prompt was not kept." },
            }
        }
    }
}

pub(super) fn line_class(kind: OutputKind) -> &'static str {
    match kind {
        OutputKind::Text => "said",
        OutputKind::Tool => "tool",
        OutputKind::Answer => "answer",
        OutputKind::Refusal => "refusal",
        OutputKind::Note => "note",
        OutputKind::Fault => "fault",
    }
}
