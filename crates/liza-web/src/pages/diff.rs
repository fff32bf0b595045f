//! The changes of a task: the diff of the commit under review, or of its merge.

use liza_core::model::TaskId;
use maud::{Markup, html};

use super::context::PageContext;
use super::shell::still_page;

/// The most lines of a diff on the page; the command shows all of them.
const LINES: usize = 5_000;

/// The page; none if there is no such task.
pub(crate) fn page(page: &PageContext<'_>, task: &TaskId) -> Option<Markup> {
    page.snapshot.task(task)?;
    let result = page.seat.execute(&["diff".to_owned(), task.to_string()]);
    let content = html! {
        p.crumbs { a href=(page.links.task(task)) { "← " (task) } }
        h2.title { "Changes of " (task) }
        @if result.succeeded { (files(&result.text)) } @else { p.nothing-here { (result.text) } }
    };
    Some(still_page(page, &format!("Changes of {task}"), &content))
}

fn files(patch: &str) -> Markup {
    let lines: Vec<&str> = patch.lines().take(LINES).collect();
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for line in &lines {
        if line.starts_with("diff ") || parts.is_empty() {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(line);
        }
    }
    html! {
        @for part in &parts { (file(part)) }
        @if patch.lines().nth(LINES).is_some() { p { "The diff is longer. All of it: " code { "liza diff TASK" } } }
    }
}

fn file(lines: &[&str]) -> Markup {
    let first = lines.first().copied().unwrap_or_default();
    let name = first.strip_prefix("diff ").and_then(|line| line.rsplit_once(" b/")).map(|(_, name)| name);
    let added = lines.iter().filter(|line| kind(line) == "added").count();
    let removed = lines.iter().filter(|line| kind(line) == "removed").count();
    html! {
        section.file {
            h3 { (name.unwrap_or("Changes")) " " span.added { "+" (added) } " " span.removed { "−" (removed) } }
            pre.diff tabindex="0" aria-label={ "Changes of " (name.unwrap_or("a file")) } {
                @for line in lines { span class=(kind(line)) { (line) "\n" } }
            }
        }
    }
}

/// The kind of a line of a diff.
fn kind(line: &str) -> &'static str {
    match line.as_bytes() {
        [b'@', b'@', ..] => "hunk",
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "names",
        [b'+', ..] => "added",
        [b'-', ..] => "removed",
        _ if line.starts_with("diff ") || line.starts_with("index ") => "names",
        _ => "same",
    }
}
