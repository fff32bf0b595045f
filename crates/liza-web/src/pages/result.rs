//! The result of an action.

use maud::{Markup, html};

use crate::actions::{ActionOutcome, ActionResult};

use super::context::PageContext;
use super::shell::still_page;

/// For the page that asked for it.
pub(crate) fn fragment(result: &ActionResult) -> Markup {
    let text = result.text.trim();
    let (class, title) = match result.outcome {
        ActionOutcome::Done => ("done", "Done"),
        ActionOutcome::Running => ("done", "Still running"),
        ActionOutcome::NotDone => ("failed", "Not done"),
        ActionOutcome::Failed => ("failed", "Failed"),
    };
    html! {
        div class={ "outcome " (class) } {
            p { b { (title) } " " code { (result.command) } }
            @if !text.is_empty() { pre tabindex="0" { (text) } }
        }
    }
}

/// As a page of its own, for a browser without scripts.
pub(crate) fn page(page: &PageContext<'_>, result: &ActionResult) -> Markup {
    let content =
        html! { h2 { "Result" } (fragment(result)) p { a href=(page.links.to("")) { "Back to the board" } } };
    still_page(page, "Result", &content)
}
