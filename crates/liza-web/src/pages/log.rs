//! The log, with filters.

use maud::{Markup, html};
use serde::Deserialize;

use crate::seat::LogLine;

use super::cards::{log_line, tone_class};
use super::context::PageContext;
use super::shell::still_page;

const ENTRIES: usize = 500;

/// The part of the log that is shown.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct LogFilter {
    #[serde(default)]
    task: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    text: String,
}

impl LogFilter {
    pub(crate) fn shows(&self, line: &LogLine) -> bool {
        let (task, agent, text) = (self.task.trim(), self.agent.trim(), self.text.trim().to_lowercase());
        // A write that changed several tasks names them in its detail.
        let mut words = line.detail.split(|c: char| !(c.is_alphanumeric() || c == '-'));
        let about = task.is_empty() || line.task.as_deref() == Some(task) || words.any(|word| word == task);
        let has = |field: &str| field.to_lowercase().contains(&text);
        about
            && (agent.is_empty() || line.who == agent)
            && (text.is_empty()
                || has(&line.action)
                || line.sentence.iter().any(|part| has(part))
                || has(&line.detail))
    }
}

pub(crate) fn page(page: &PageContext<'_>, filter: &LogFilter) -> Markup {
    let log = page.seat.log();
    let mut names: Vec<&str> = log.iter().map(|line| line.who.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let shown: Vec<&LogLine> = log.iter().rev().filter(|line| filter.shows(line)).collect();
    let content = html! {
        h2 { "Log" }
        form.filters method="get" action=(page.links.to("log")) role="search" {
            div { label for="log-task" { "Task" } input #log-task name="task" value=(filter.task) autocomplete="off" spellcheck="false"; }
            div {
                label for="log-agent" { "Who" }
                select #log-agent name="agent" {
                    option value="" { "everyone" }
                    @for name in &names { option value=(name) selected[*name == filter.agent] { (name) } }
                }
            }
            div { label for="log-text" { "Text" } input #log-text name="text" value=(filter.text) autocomplete="off"; }
            button.primary { "Filter" }
        }
        p.counts { (shown.len()) " of " (log.len()) " entries" @if shown.len() > ENTRIES { ", the last " (ENTRIES) " of them" } ", the newest first" }
        ol.log.full { @for line in shown.iter().take(ENTRIES) { li class=(tone_class(line.tone)) { (log_line(page, line, true)) } } }
    };
    still_page(page, "Log", &content)
}
