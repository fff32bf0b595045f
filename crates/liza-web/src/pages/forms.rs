//! The forms of actions. A form names an action and carries the person's text; the server makes the command.

use liza_status::action::{Action, ActionField, ActionName, ActionSubject};
use liza_status::needs_you::NeedsYou;
use maud::{Markup, html};

use crate::actions::need_key;

use super::context::PageContext;

/// A button that does something at once.
pub(super) fn quick_action(page: &PageContext<'_>, name: ActionName, label: &str, class: &str) -> Markup {
    let action: &'static str = name.into();
    html! {
        form method="post" action=(page.links.to("act")) {
            input type="hidden" name="action" value=(action);
            button class=(class) { (label) }
        }
    }
}

/// An action that asks for something first; nothing where it makes no sense now.
pub(super) fn action_form(page: &PageContext<'_>, name: ActionName, subject: ActionSubject<'_>) -> Markup {
    let Ok(action) = Action::new(name, subject) else { return html! {} };
    let word: &'static str = name.into();
    let id = subject.task.map(|task| task.id.as_str()).unwrap_or("team");
    let class = if is_dangerous(name) { "danger" } else { "primary" };
    html! {
        details.action {
            summary { (short_title(name)) }
            form method="post" action=(page.links.to("act")) {
                input type="hidden" name="action" value=(word);
                @if let Some(agent) = subject.agent {
                    input type="hidden" name="agent" value=(agent.id);
                    @if let Some(seen) = agent.generation { input type="hidden" name="generation" value=(seen); }
                }
                @if let Some(task) = subject.task {
                    input type="hidden" name="task" value=(task.id);
                    input type="hidden" name="seen" value=(task.revision);
                }
                @if let Some(warning) = action.warning { p.warning { (warning) } }
                @for (at, field) in action.fields.iter().enumerate() {
                    (text_field(&format!("{word}-{id}-{at}"), *field, field.label))
                }
                p.command { code { (example(&action)) } }
                button class=(class) { (short_title(name)) }
            }
        }
    }
}

/// The box that answers a decision, or the button that runs its command.
pub(super) fn need_form(page: &PageContext<'_>, need: &NeedsYou) -> Markup {
    let action = Action::answering(need);
    let key = need_key(need);
    let label = need.command.words().first().map_or("", String::as_str);
    html! {
        @if action.needs_terminal() {
            p.command { "In a terminal: " code { (need.command) } }
        } @else {
            form.answer method="post" action=(page.links.to("act")) {
                input type="hidden" name="need" value=(key);
                @for (at, field) in action.fields.iter().copied().enumerate() {
                    (text_field(&format!("need-{key}-{at}"), field, &need_label(page, &action, &field, label)))
                }
                @if let Some(warning) = action.warning { p.warning { (warning) } }
                div.row {
                    button.primary { (button(&action, label)) }
                    p.command { code { (need.command) } }
                }
            }
        }
    }
}

/// The words on the button: the title of the action, or the verb of its command.
fn button(action: &Action, verb: &str) -> String {
    if action.has_own_title { action.title.clone() } else { capitalized(verb) }
}

/// The label of a command's text.
fn need_label(page: &PageContext<'_>, action: &Action, field: &ActionField, verb: &str) -> String {
    let budgets = page.snapshot.view().map(|view| view.budgets.as_slice()).unwrap_or_default();
    match verb {
        "answer" => "Your answer".to_owned(),
        "note" => "Your note".to_owned(),
        "goal" => "The next goal".to_owned(),
        "resolve" => "How you fixed it".to_owned(),
        _ => action.label(field, budgets),
    }
}

fn text_field(id: &str, field: ActionField, label: &str) -> Markup {
    let id = format!("text-{id}");
    html! {
        label for=(id) { (label) @if field.optional { span.optional { " (optional)" } } }
        @if !field.choices.is_empty() {
            select #(id) name="text" { @for choice in field.choices { option { (choice) } } }
        } @else {
            textarea #(id) name="text" rows="2" required[!field.optional] maxlength="20000" {}
        }
    }
}

/// The command of an action, with a place for the text.
fn example(action: &Action) -> String {
    let is_choice = action.fields.iter().any(|field| !field.choices.is_empty());
    let open = if is_choice { "ROLE" } else { "\"…\"" };
    let words = action.words(&["…"]);
    let words: Vec<String> =
        words.into_iter().map(|word| if word == "…" { open.to_owned() } else { word }).collect();
    format!("liza {}", words.join(" "))
}

fn short_title(name: ActionName) -> &'static str {
    match name {
        ActionName::Pause => "Pause",
        ActionName::Resume => "Resume",
        ActionName::Checkpoint => "Checkpoint",
        ActionName::Abort => "Abort the goal",
        ActionName::Note => "Note",
        ActionName::NoteAll => "Note for all agents",
        ActionName::Answer => "Answer",
        ActionName::Approve => "Approve",
        ActionName::Reject => "Reject",
        ActionName::Release => "Release the claim",
        ActionName::Replan => "Block",
        ActionName::Add => "Add a task",
        ActionName::StartAgent => "Start an agent",
        ActionName::StopAgent => "Stop",
    }
}

fn is_dangerous(name: ActionName) -> bool {
    matches!(
        name,
        ActionName::Abort
            | ActionName::Checkpoint
            | ActionName::Release
            | ActionName::Replan
            | ActionName::Reject
            | ActionName::StopAgent
    )
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
