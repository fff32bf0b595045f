//! A task: everything about it, its actions, its history and its sessions.

use liza_core::model::{Fields, HistoryEvent, TaskId, Usage, Value};
use liza_core::text::one_line;
use liza_status::action::{ActionName, ActionSubject};
use liza_status::task_words::{anomaly_name, event_name, facts, validation_words};
use liza_status::view::{TaskDetail, TaskView, task_detail};
use liza_status::words::{approvals_in_words, lease_length};
use maud::{Markup, html};

use crate::region::{ItemTag, Region, Regions};
use crate::seat::SavedSession;

use super::cards::{status_badge, status_text, task_link};
use super::context::PageContext;
use super::forms::action_form;
use super::session::list;

/// The actions of a person on a task, in the order of the page.
const ACTIONS: [ActionName; 6] = [
    ActionName::Approve,
    ActionName::Reject,
    ActionName::Answer,
    ActionName::Note,
    ActionName::Release,
    ActionName::Replan,
];

pub(super) fn regions(page: &PageContext<'_>, id: &TaskId) -> Vec<Region> {
    let found = page.snapshot.task(id).zip(page.snapshot.state());
    let Some((task, state)) = found else {
        return vec![Region::single(
            "task-head",
            &html! { p.problem { (id) " is no longer on the blackboard." } },
        )];
    };
    let Some(detail) = task_detail(state, task) else { return Vec::new() };
    let mut actions = Region::new("task-actions", ItemTag::Div);
    for name in ACTIONS {
        let form = action_form(page, name, ActionSubject::task(task));
        if !form.0.is_empty() {
            let word: &'static str = name.into();
            actions.push(format!("do-{word}"), "", &form);
        }
    }
    let mut history = Region::new("history", ItemTag::Li);
    for (number, event) in detail.record.history.iter().flatten().enumerate() {
        history.push(format!("event-{number}"), event_class(event), &history_event(page, event));
    }
    vec![
        Region::single("task-head", &head(task)),
        Region::single("task-trouble", &trouble(&detail)),
        Region::single("task-facts", &facts_list(page, &detail)),
        Region::single("task-talk", &talk(page, &detail)),
        actions,
        history,
    ]
}

/// The page; none if there is no such task.
pub(super) fn content(page: &PageContext<'_>, id: &TaskId, regions: &Regions) -> Option<Markup> {
    page.snapshot.task(id)?;
    let all = page.seat.sessions();
    let own: Vec<SavedSession> = all.into_iter().filter(|session| session.about == id.as_str()).collect();
    let log = page.links.to(&format!("log?task={id}"));
    Some(html! {
        div #task-head.task-head data-region="task-head" { (regions.inner("task-head")) }
        div.task-page {
            div.task-main {
                div #task-trouble data-region="task-trouble" { (regions.inner("task-trouble")) }
                section aria-labelledby="actions-title" {
                    h2 #actions-title { "Actions" }
                    div #task-actions.task-actions data-region="task-actions" { (regions.inner("task-actions")) }
                }
                section aria-labelledby="history-title" {
                    h2 #history-title { "History" }
                    ol #history.history data-region="history" { (regions.inner("history")) }
                }
            }
            div.task-side {
                p.links { a.button href=(page.links.diff(id)) { "Changes" } " " a.button href=(log) { "Log" } }
                div #task-facts data-region="task-facts" { (regions.inner("task-facts")) }
                div #task-talk data-region="task-talk" { (regions.inner("task-talk")) }
                section aria-labelledby="sessions-title" { h2 #sessions-title { "Sessions" } (list(page, &own)) }
            }
        }
    })
}

fn head(task: &TaskView) -> Markup {
    html! {
        div.card-head {
            h2 { (task.id) }
            (status_badge(task))
            span.priority { "P" (task.priority) }
        }
        p.lead { (task.description) }
        p.next { "Next: " (task.next) @if let Some(command) = &task.human_command { " " code { (command) } } }
    }
}

/// The reason why it is blocked or was rejected.
fn trouble(detail: &TaskDetail<'_>) -> Markup {
    let record = detail.record;
    html! {
        @for fault in &detail.task.broken { p.problem { (fault) } }
        @if let Some(reason) = &record.blocked_reason { (quote("Blocked", reason)) }
        @if let Some(questions) = record.blocked_questions.as_ref().filter(|all| !all.is_empty()) {
            section.quote { h3 { "Questions" } ul { @for question in questions { li { (question) } } } }
        }
        @if let Some(attempted) = record.attempted.as_ref().filter(|all| !all.is_empty()) {
            section.quote { h3 { "Attempted" } ul { @for entry in attempted { li { (entry) } } } }
        }
        @if let Some(reason) = &record.rejection_reason { (quote("Rejected", reason)) }
    }
}

fn quote(title: &str, text: &str) -> Markup {
    html! { section.quote { h3 { (title) } p.text { (text) } } }
}

fn facts_list(page: &PageContext<'_>, detail: &TaskDetail<'_>) -> Markup {
    let (record, task) = (detail.record, detail.task);
    let commit = |sha: &Option<liza_core::model::Sha>| sha.as_ref().map(|sha| sha.short().to_owned());
    let of = |limit: Option<u32>| limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    let texts = [
        ("Done when", record.done_when.clone()),
        ("Validated by", record.validation.as_ref().map(|lines| lines.join("; "))),
        ("Validation", record.validated.as_ref().map(validation_words)),
        ("Scope", record.scope.clone()),
        ("Specification", record.spec_ref.clone()),
        ("Coder", task.assigned_to.map(|coder| coder.to_string())),
        ("Code reviewer", task.reviewing_by.map(|reviewer| reviewer.to_string())),
        ("Attempt", task.iteration.map(|n| format!("{n}{}", of(task.max_iterations)))),
        (
            "Rejections",
            record
                .review_cycles_total
                .filter(|n| *n > 0)
                .map(|n| format!("{} with this coder, {n} in total", task.review_cycles)),
        ),
        ("Lease", task.lease.filter(|_| !task.stopped).map(lease_length)),
        ("Submitted", commit(&record.review_commit)),
        ("Impact", approvals_in_words(task).map(|words| format!("{words}: {}", task.high_impact.join(", ")))),
        ("Facts", record.facts.as_ref().map(|facts| facts.lines().join("; "))),
        ("Approved by", record.approved_by.map(|by| by.to_string())),
        ("Merged as", commit(&record.merge_commit)),
        ("Used", record.usage.as_ref().and_then(Usage::in_words)),
        ("Replaced by", record.superseded_by.as_ref().map(|all| names(all))),
        ("Replaces", record.supersedes.as_ref().map(|all| names(all))),
        ("Rescoped", record.rescope_reason.clone()),
    ];
    let said = texts
        .iter()
        .filter_map(|(name, text)| Some((name, text.as_deref()?.trim())))
        .filter(|(_, text)| !text.is_empty());
    html! {
        dl.facts-list.tall {
            @for (name, text) in said { div { dt { (name) } dd { (text) } } }
            @if !task.depends_on.is_empty() {
                div { dt { "Depends on" } dd { @for id in &task.depends_on { (linked(page, id)) " " } } }
            }
            @if !detail.needed_by.is_empty() {
                div { dt { "Needed by" } dd { @for id in &detail.needed_by { (linked(page, id)) " " } } }
            }
        }
    }
}

/// A link to a task with its status.
fn linked(page: &PageContext<'_>, id: &TaskId) -> Markup {
    match page.snapshot.task(id) {
        Some(task) => html! { (task_link(page, id)) " (" (status_text(task)) ")" },
        None => html! { (id) },
    }
}

fn names(all: &[TaskId]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Handoff, notes, anomalies and discoveries.
fn talk(page: &PageContext<'_>, detail: &TaskDetail<'_>) -> Markup {
    let time = |time| page.seat.full_time(time);
    html! {
        @if let Some(notes) = detail.handoff {
            section.quote { h3 { "Handoff of " (notes.agent) } p.text { (notes.summary) } p { b { "Next: " } (notes.next_action) } }
        }
        @for note in &detail.notes {
            section.quote { h3 { "Note, " (time(note.note.timestamp)) ", " (note.readers()) } p.text { (note.note.message) } }
        }
        @for anomaly in &detail.anomalies {
            section.quote { h3 { (anomaly.reporter.as_deref().unwrap_or("unknown")) " reports " (anomaly_name(&anomaly.kind)) } p.text { (fields(&anomaly.details)) } }
        }
        @for found in &detail.discoveries {
            section.quote { h3 { "Discovered: " (found.id) } p.text { (found.description) } }
        }
    }
}

fn event_class(event: &HistoryEvent) -> &'static str {
    match event.event.as_str() {
        "merged" | "approved" => "good",
        "rejected" | "blocked" | "integration_failed" | "abandoned" => "bad",
        "ready_for_review" => "info",
        _ => "",
    }
}

fn history_event(page: &PageContext<'_>, event: &HistoryEvent) -> Markup {
    let facts: Vec<(String, &Value)> = facts(&event.more).collect();
    html! {
        div.event-head {
            b { (event_name(&event.event)) }
            @if let Some(agent) = &event.agent { " " span.who { (agent) } }
            " " time datetime=(event.time) { (page.seat.full_time(event.time)) }
        }
        @if !facts.is_empty() {
            dl.event-facts { @for (name, value) in facts { div { dt { (name) } dd { (fact(value)) } } } }
        }
    }
}

/// A fact as text; commit IDs are shortened.
fn fact(value: &Value) -> String {
    let text = value.to_string();
    let is_commit = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_commit { text.chars().take(8).collect() } else { text }
}

fn fields(fields: &Fields) -> String {
    facts(fields)
        .map(|(key, value)| format!("{key}: {}", one_line(&value.to_string(), usize::MAX)))
        .collect::<Vec<_>>()
        .join("\n")
}
