//! The cards that several pages share: a decision, a task, an agent, an alert, a line of the log.

use liza_core::model::{Role, Status, TaskId};
use liza_core::text::one_line;
use liza_status::alarms::AlarmLevel;
use liza_status::needs_you::NeedsYou;
use liza_status::view::{AgentView, Alert, Liveness, TaskPhase, TaskView};
use liza_status::words::{agent_activity, agent_doing, agent_facts, agent_sign, task_facts, task_status};
use maud::{Markup, html};

use crate::seat::{LogLine, LogTone};

use super::context::PageContext;
use super::forms::need_form;

/// The most characters of a description on a card.
const DESCRIPTION: usize = 240;

pub(super) fn task_link(page: &PageContext<'_>, task: &TaskId) -> Markup {
    html! { a.task-id href=(page.links.task(task)) { (task) } }
}

pub(super) fn need(page: &PageContext<'_>, need: &NeedsYou) -> Markup {
    html! {
        div.need-head {
            span class={ "badge " (level(need.level)) } { (need.kind) }
            @for other in &need.also { span.badge { (other) } }
            @if let Some(task) = &need.task { (task_link(page, task)) }
        }
        p.need-text { (need.text) }
        @if !need.questions.is_empty() {
            ul.questions { @for question in &need.questions { li { (question) } } }
        }
        @if !need.plan.is_empty() {
            ol.questions { @for task in &need.plan {
                li {
                    (task_link(page, &task.task)) " " (task.description)
                    @if let Some(done) = &task.done_when { p.facts { "Done when: " (done) } }
                    @if !task.depends_on.is_empty() {
                        p.facts { "After: " @for before in &task.depends_on { (task_link(page, before)) " " } }
                    }
                }
            } }
        }
        (need_form(page, need))
    }
}

/// The class of a phase's colour.
pub(super) fn phase_class(phase: TaskPhase) -> &'static str {
    match phase {
        TaskPhase::Stuck => "blocked",
        TaskPhase::Working => "working",
        TaskPhase::Reviewing => "reviewing",
        TaskPhase::Stopped | TaskPhase::Ready => "ready",
        TaskPhase::Waiting => "waiting",
        TaskPhase::Draft => "draft",
        TaskPhase::Ended => "ended",
    }
}

pub(super) fn status_text(task: &TaskView) -> String {
    task_status(task)
}

pub(super) fn status_badge(task: &TaskView) -> Markup {
    let merged = task.status == Some(Status::Merged);
    let class = if merged { "good" } else { phase_class(task.phase) };
    html! { span class={ "badge " (class) } { (status_text(task)) } }
}

pub(super) fn task(page: &PageContext<'_>, task: &TaskView) -> Markup {
    let is_said = page.snapshot.view().is_some_and(|view| view.is_in_needs(task));
    let reason = task.reason.as_deref().filter(|_| matches!(task.phase, TaskPhase::Stuck) && !is_said);
    html! {
        div.card-head { (task_link(page, &task.id)) span.priority title="priority" { "P" (task.priority) } }
        p.description { (one_line(&task.description, DESCRIPTION)) }
        @if let Some(reason) = reason { p.reason { (one_line(reason, DESCRIPTION)) } }
        @let priority = format!("P{}", task.priority);
        @let facts: Vec<String> = task_facts(task).into_iter().filter(|fact| *fact != priority).collect();
        @if !facts.is_empty() { p.facts { @for fact in &facts { span { (fact) } " " } } }
    }
}

pub(super) fn agent(page: &PageContext<'_>, agent: &AgentView) -> Markup {
    let facts = agent_facts(agent);
    html! {
        div.card-head {
            span class={ "sign " (liveness(agent.liveness)) } aria-hidden="true" { (agent_sign(agent)) }
            a.agent-id href=(page.links.agent(agent.id)) { (agent.id) }
            span.doing { (agent_doing(agent)) }
        }
        @if let Some(activity) = agent_activity(agent) { p.activity { (one_line(&activity, DESCRIPTION)) } }
        @if !facts.is_empty() { p.facts { @for fact in &facts { span { (fact) } " " } } }
    }
}

/// The class of the colour of an agent's sign.
pub(super) fn liveness(liveness: Liveness) -> &'static str {
    match liveness {
        Liveness::Live => "good",
        Liveness::Grace => "warn",
        Liveness::Gone | Liveness::Dead => "bad",
    }
}

/// The class of a level's colour.
pub(super) fn level(level: AlarmLevel) -> &'static str {
    match level {
        AlarmLevel::Warning => "warn",
        AlarmLevel::Critical => "bad",
    }
}

pub(super) fn alert(page: &PageContext<'_>, alert: &Alert) -> Markup {
    html! {
        div.need-head {
            span class={ "badge " (level(alert.level)) } { (alert.kind) }
            @if let Some(task) = &alert.task { (task_link(page, task)) }
        }
        p.need-text { (alert.text) }
        @if let Some(command) = &alert.command { p.command { code { (command) } } }
    }
}

/// The beginning of a line; its own spaces stay.
fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(super) fn log_line(page: &PageContext<'_>, line: &LogLine, full: bool) -> Markup {
    let seat = &page.seat;
    let time = if full { seat.full_time(line.time) } else { seat.time_of_day(line.time) };
    let longest = if full { usize::MAX } else { DESCRIPTION };
    let [before, after] = &line.sentence;
    let task = line.task.as_deref().and_then(|task| task.parse().ok());
    html! {
        time datetime=(line.time) { (time) }
        span.who { (line.who) }
        span.what {
            span.said {
                (before)
                @if let Some(task) = task { (task_link(page, &task)) } @else if let Some(name) = &line.task { (name) }
                (shortened(after, longest))
            }
            @if let Some(remark) = &line.remark { " " span.detail { (one_line(remark, longest)) } }
        }
    }
}

/// The class of an entry's colour.
pub(super) fn tone_class(tone: LogTone) -> &'static str {
    match tone {
        LogTone::Plain => "",
        LogTone::Strong => "strong",
        LogTone::Good => "good",
        LogTone::Attention => "warn",
        LogTone::Bad => "bad",
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Planner => "planner",
        Role::Coder => "coder",
        Role::CodeReviewer => "code reviewer",
    }
}
