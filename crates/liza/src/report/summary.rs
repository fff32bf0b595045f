//! The sprint summary: what a person wants to see at a checkpoint, on one page.
//!
//! Everything on it comes from the blackboard and the log. Texts of agents are not to be trusted: see `markdown`.

use std::io;
use std::path::PathBuf;

use liza_core::model::{
    Anomaly, BreakerStatus, Discovery, EventName, MAX_FAILED_CODERS, Metrics, Sprint, State, Status,
    Timestamp, Urgency,
};
use liza_core::rules::metrics::sprint_metrics;
use liza_store::LogRecord;
use liza_store::durable::replace_file;

use crate::project::Project;
use crate::secrets::Masker;
use crate::text::compact_number;

use super::burn_up::BurnUp;
use super::checklist;
use super::markdown::{Ink, NOTHING, Side, part, table};
use super::tasks::{SprintTask, spent, sprint_tasks, total_usage};

/// The name of the page in `.liza/`.
pub const FILE: &str = "sprint_summary.md";

/// How much of the log's end is looked at.
const TAIL: u64 = 1024 * 1024;
/// How many open tasks the table names, and how many that are over.
const OPEN_MAX: usize = 80;
const OVER_MAX: usize = 30;
/// How many entries of a list are told before the rest is counted.
const LIST_MAX: usize = 20;

/// Writes the page, whole or not at all, and says where it is.
///
/// # Errors
/// When the log cannot be read or the page cannot be written.
pub fn write(project: &Project, state: &State, now: Timestamp) -> io::Result<PathBuf> {
    let log = project.store().log_tail(TAIL).map_err(io::Error::other)?;
    let page = render(state, &log, &super::masker(), now);
    let path = project.folder().join(FILE);
    replace_file(&path, page.as_bytes())?;
    Ok(path)
}

/// The whole page.
pub fn render(state: &State, log: &[LogRecord], masker: &Masker, now: Timestamp) -> String {
    let Some(sprint) = state.board.sprint.ready() else {
        return "# Sprint summary\n\nThere is no sprint, or it cannot be read: `liza validate` says more.\n"
            .to_owned();
    };
    let tasks = sprint_tasks(state, sprint);
    let page =
        SummaryPage { state, sprint, tasks, log, ink: Ink(masker), metrics: sprint_metrics(state), now };
    let parts = [
        page.head(),
        part("Figures", page.figures()),
        part("Burn-up", page.burn_up()),
        part("Needs you", page.needs()),
        part("Tasks", page.task_table()),
        part("Anomalies", page.anomalies()),
        part("Discoveries", page.discoveries()),
        part("Changes of the specification", page.spec_changes()),
        part("Since the last look", page.lately()),
        part("Decisions so far", page.decisions()),
        part("Review checklist", checklist::questions(state)),
        part("Decide", checklist::decisions()),
    ];
    let mut text = parts.concat().join("\n");
    text.push('\n');
    text
}

/// The page in a few lines for a terminal.
pub fn digest(state: &State) -> Vec<String> {
    let Some(sprint) = state.board.sprint.ready() else { return Vec::new() };
    let (tasks, metrics) = (sprint_tasks(state, sprint), sprint_metrics(state));
    let named = |status: Status| {
        let names: Vec<&str> = with(&tasks, status).map(|task| task.id.as_str()).take(5).collect();
        let more = with(&tasks, status).count().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{}{more}", names.join(", ")))
    };
    let mut lines = vec![progress(&tasks, &metrics)];
    lines.extend(named(Status::Blocked).map(|names| format!("blocked: {names}")));
    lines.extend(named(Status::IntegrationFailed).map(|names| format!("could not be merged: {names}")));
    let anomalies = state.journal.anomalies.iter().filter(|anomaly| is_open(state, sprint, anomaly)).count();
    let discoveries = open_discoveries(state).count();
    if anomalies + discoveries > 0 {
        lines.push(format!("{anomalies} unresolved anomalies, {discoveries} open discoveries"));
    }
    lines.extend(total_usage(&tasks).map(|usage| format!("spent: {} tokens", spent(&usage))));
    lines.extend(metrics.looks_rubber_stamped().then(|| rubber_stamp(&metrics)));
    lines
}

struct SummaryPage<'a> {
    state: &'a State,
    sprint: &'a Sprint,
    tasks: Vec<SprintTask<'a>>,
    log: &'a [LogRecord],
    ink: Ink<'a>,
    metrics: Metrics,
    now: Timestamp,
}

fn with<'t, 'a>(
    tasks: &'t [SprintTask<'a>],
    status: Status,
) -> impl Iterator<Item = &'t SprintTask<'a>> + use<'t, 'a> {
    tasks.iter().filter(move |task| task.status == Some(status))
}

fn progress(tasks: &[SprintTask<'_>], metrics: &Metrics) -> String {
    match tasks.iter().filter(|task| task.planned).count() {
        0 => "nothing is planned yet".to_owned(),
        planned => format!(
            "{} of {planned} planned tasks are done, {} in progress, {} blocked",
            metrics.tasks_done, metrics.tasks_in_progress, metrics.tasks_blocked
        ),
    }
}

fn rubber_stamp(metrics: &Metrics) -> String {
    format!(
        "{} of {} verdicts are approvals: does anybody read the code?",
        metrics.review_verdict_approvals, metrics.review_verdict_count
    )
}

/// Of this sprint, and after the last time that a human settled what the breaker had found.
fn is_open(state: &State, sprint: &Sprint, anomaly: &Anomaly) -> bool {
    let resolved = state.board.circuit_breaker.ready().and_then(|breaker| breaker.last_resolution());
    of_sprint(sprint, anomaly) && resolved.is_none_or(|resolved| anomaly.timestamp > resolved)
}

pub(super) fn of_sprint(sprint: &Sprint, anomaly: &Anomaly) -> bool {
    sprint.timeline.started.is_none_or(|started| anomaly.timestamp >= started)
}

fn open_discoveries(state: &State) -> impl Iterator<Item = &Discovery> {
    let all = state.board.discovered.ready().into_iter().flatten();
    all.filter(|discovery| discovery.converted_to_task.is_none())
}

/// Why the last merge of a task failed.
pub(super) fn failure(ink: Ink<'_>, task: &SprintTask<'_>) -> String {
    let last = task.events(EventName::IntegrationFailed).last();
    let said = |key: &str| last.and_then(|event| event.more.get(key)).map(ToString::to_string);
    let files = said("files").map(|files| format!(" in {files}")).unwrap_or_default();
    ink.text(&format!("{}{files}", said("reason").unwrap_or_default()), 160)
}

/// The entries, and how many more there are.
pub(super) fn capped(mut lines: Vec<String>, max: usize) -> Vec<String> {
    let more = lines.len().saturating_sub(max);
    lines.truncate(max);
    if more > 0 {
        lines.push(format!("- … and {more} more"));
    }
    lines
}

impl SummaryPage<'_> {
    fn head(&self) -> Vec<String> {
        let sprint = self.sprint;
        let mut lines = vec![format!("# Sprint summary: {}", self.ink.text(&sprint.id, 40)), String::new()];
        if let Some(goal) = self.state.board.goal.ready() {
            let wanted = self.ink.text(&goal.description, 200);
            lines.push(format!("**Goal** {} ({}): {wanted}  ", self.ink.text(&goal.id, 40), goal.status));
        }
        let times = &sprint.timeline;
        let mut facts = vec![sprint.status.to_string()];
        facts.extend(times.started.map(|time| format!("started {time}")));
        facts.extend(times.deadline.map(|time| match time > self.now {
            true => format!("due in {}", time.since(self.now)),
            false => format!("was due {} ago", self.now.since(time)),
        }));
        facts.extend(times.ended.map(|time| format!("ended {time}")));
        lines.push(format!("**Sprint** {}  ", facts.join(", ")));
        lines.push(format!("**Written** {} at revision {}", self.now, self.state.board.revision));
        lines.push(String::new());
        lines.push(format!("{}.", capitalized(&progress(&self.tasks, &self.metrics))));
        lines
    }

    fn figures(&self) -> Vec<String> {
        let metrics = &self.metrics;
        let percent = |rate: Option<u32>| rate.map_or(NOTHING.to_owned(), |rate| format!("{rate} %"));
        let row = |name: &str, figure: String| vec![name.to_owned(), figure];
        let mut rows = vec![
            row("Tasks done", metrics.tasks_done.to_string()),
            row("In progress", metrics.tasks_in_progress.to_string()),
            row("Blocked", metrics.tasks_blocked.to_string()),
            row("Iterations (claims)", metrics.iterations_total.to_string()),
            row("Submissions", metrics.task_submitted_for_review_count.to_string()),
            row("Approved / rejected", {
                format!("{} / {}", metrics.review_verdict_approvals, metrics.review_verdict_rejections)
            }),
            row("Approval rate of verdicts", percent(metrics.review_verdict_approval_rate_percent)),
            row("Approval rate of submissions", percent(metrics.task_outcome_approval_rate_percent)),
        ];
        let drifts: Vec<i64> = self.tasks.iter().filter_map(SprintTask::drift).collect();
        if let Some(most) = drifts.iter().max() {
            let sum: i64 = drifts.iter().sum();
            rows.push(row("Drift at merge (commits)", format!("{sum} in all, {most} at most")));
        }
        if let Some(usage) = total_usage(&self.tasks) {
            let tokens = format!("{} in, {} out", compact_number(usage.input), compact_number(usage.output));
            rows.push(row("Tokens", tokens));
            rows.push(row("Cost", format!("${:.2}", usage.cost_usd)));
        }
        let mut lines = table(&[("Figure", Side::Left), ("This sprint", Side::Right)], &rows);
        if metrics.looks_rubber_stamped() {
            lines.extend([String::new(), format!("**Warning:** {}", rubber_stamp(metrics))]);
        }
        lines
    }

    fn burn_up(&self) -> Vec<String> {
        let Some(burn_up) = BurnUp::of(self.sprint, &self.tasks, self.now) else {
            return vec!["Nothing to draw yet.".to_owned()];
        };
        let mut lines = vec!["```text".to_owned()];
        lines.extend(burn_up.plot());
        lines.extend(
            ["```", "", "<details><summary>As a chart</summary>", "", "```mermaid"].map(str::to_owned),
        );
        lines.extend(burn_up.chart());
        lines.extend(["```", "", "</details>"].map(str::to_owned));
        lines
    }

    /// What does not go on without a person or the planner.
    fn needs(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(breaker) = self.state.board.circuit_breaker.ready()
            && breaker.status == BreakerStatus::Triggered
        {
            let trigger = breaker.current_trigger.as_ref();
            let pattern = trigger.map_or(NOTHING, |trigger| trigger.pattern.as_str());
            let factor = trigger.and_then(|trigger| trigger.common_factor.as_deref()).unwrap_or_default();
            let what = format!("{}: {}", self.ink.text(pattern, 60), self.ink.text(factor, 120));
            lines.push(format!("- **circuit breaker** {what}"));
            lines.push("  See `.liza/circuit_breaker_report.md`, then `liza resolve \"…\"`.".to_owned());
        }
        for task in with(&self.tasks, Status::Blocked).take(LIST_MAX) {
            lines.extend(self.blocked(task));
        }
        let more = with(&self.tasks, Status::Blocked).count().saturating_sub(LIST_MAX);
        if more > 0 {
            lines.push(format!("- … and {more} more that are blocked: `liza status --all`"));
        }
        for task in with(&self.tasks, Status::IntegrationFailed).take(LIST_MAX) {
            lines.push(format!("- **{}** could not be merged: {}", task.id, failure(self.ink, task)));
        }
        for discovery in open_discoveries(self.state).filter(|d| d.is_pressing()).take(LIST_MAX) {
            let text = self.ink.text(&discovery.description, 160);
            lines.push(format!("- **{}** cannot wait: {text}", discovery.id));
        }
        if lines.is_empty() {
            lines.push("Nothing. The agents can go on by themselves.".to_owned());
        }
        lines
    }

    fn blocked(&self, task: &SprintTask<'_>) -> Vec<String> {
        let Some(record) = task.record else { return Vec::new() };
        let reason = self.ink.text(record.blocked_reason.as_deref().unwrap_or_default(), 200);
        let mut lines = vec![format!("- **{}** is blocked: {reason}", task.id)];
        let questions = record.blocked_questions.iter().flatten().take(3);
        lines.extend(questions.map(|question| format!("  - Question: {}", self.ink.text(question, 240))));
        let failed: Vec<String> = record.failed_by.iter().flatten().map(ToString::to_string).collect();
        if !failed.is_empty() {
            lines.push(format!("  - Failed by: {}", failed.join(", ")));
        }
        let id = &task.id;
        if failed.len() >= MAX_FAILED_CODERS {
            lines.push(format!(
                "  - Its framing is presumed wrong: `liza supersede-task {id}` or `liza abandon-task {id}`"
            ));
        }
        lines.push(format!("  - Answer: `liza note \"…\" --for {id}`; decide yourself: `liza show {id}`"));
        lines
    }

    fn task_table(&self) -> Vec<String> {
        let mut open: Vec<&SprintTask<'_>> = self.tasks.iter().filter(|task| !task.is_over()).collect();
        let mut over: Vec<&SprintTask<'_>> = self.tasks.iter().filter(|task| task.is_over()).collect();
        open.sort_by_key(|task| std::cmp::Reverse(task.status.map_or(u8::MAX, attention)));
        over.sort_by_key(|task| std::cmp::Reverse(task.ended()));
        let hidden =
            [(open.len().saturating_sub(OPEN_MAX), "open"), (over.len().saturating_sub(OVER_MAX), "done")];
        open.truncate(OPEN_MAX);
        over.truncate(OVER_MAX);
        let counted = self.tasks.iter().any(|task| task.usage().is_some());
        let rows: Vec<Vec<String>> = open.iter().chain(&over).map(|task| self.row(task, counted)).collect();
        if rows.is_empty() {
            return Vec::new();
        }
        let mut heads = vec![
            ("Task", Side::Left),
            ("Status", Side::Left),
            ("Iter", Side::Right),
            ("Cycles", Side::Right),
            ("Drift", Side::Right),
            ("Time", Side::Right),
        ];
        if counted {
            heads.push(("Spent", Side::Right));
        }
        let mut lines = table(&heads, &rows);
        let mut below = Vec::new();
        for (more, what) in hidden.into_iter().filter(|(more, _)| *more > 0) {
            below.push(format!("{more} more that are {what}: `liza status --all`."));
        }
        if self.tasks.iter().any(|task| task.stretch) {
            below.push("⁺ stretch: may be left out.".to_owned());
        }
        below.push("Iter: claims. Cycles: rejections. Drift: commits that came in between.".to_owned());
        lines.extend([String::new(), below.join(" ")]);
        lines
    }

    fn row(&self, task: &SprintTask<'_>, counted: bool) -> Vec<String> {
        let id = liza_core::text::one_line(task.id.as_str(), 40);
        let some = |figure: Option<String>| figure.unwrap_or_else(|| NOTHING.to_owned());
        let known = task.record.is_some();
        let mut row = vec![
            if task.stretch { format!("{id} ⁺") } else { id },
            task.status.map_or("?".to_owned(), |status| status.to_string()),
            some(known.then(|| task.iterations().to_string())),
            some(known.then(|| task.rejections().to_string())),
            some(task.drift().map(|commits| commits.to_string())),
            some(task.took(self.now).map(|length| length.to_string())),
        ];
        if counted {
            row.push(some(task.usage().map(spent)));
        }
        row
    }

    /// Unresolved ones first, by kind; what was settled is only counted.
    fn anomalies(&self) -> Vec<String> {
        let all = || self.state.journal.anomalies.iter().filter(|anomaly| of_sprint(self.sprint, anomaly));
        let open: Vec<&Anomaly> = all().filter(|anomaly| is_open(self.state, self.sprint, anomaly)).collect();
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for anomaly in &open {
            match kinds.iter_mut().find(|(kind, _)| *kind == anomaly.kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((&anomaly.kind, 1)),
            }
        }
        kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
        let mut lines = Vec::new();
        for (kind, count) in kinds.into_iter().take(LIST_MAX) {
            lines.push(format!("- **{}** {count} unresolved", self.ink.text(kind, 40)));
            let newest = open.iter().rev().filter(|anomaly| anomaly.kind == kind);
            lines.extend(newest.take(3).map(|anomaly| format!("  - {}", self.anomaly(anomaly))));
            if count > 3 {
                lines.push(format!("  - … and {} earlier", count - 3));
            }
        }
        let settled = all().count() - open.len();
        if settled > 0 {
            lines.push(format!("- {settled} resolved"));
        }
        lines
    }

    fn anomaly(&self, anomaly: &Anomaly) -> String {
        let task = anomaly.task.as_ref().map_or("no task".to_owned(), ToString::to_string);
        let who = self.ink.text(anomaly.reporter.as_deref().unwrap_or("somebody"), 30);
        let said = anomaly.details.iter().filter(|(_, value)| !value.is_blank());
        let said: Vec<String> = said.map(|(key, value)| format!("{key}: {value}")).collect();
        format!("{task}, {who}: {}", self.ink.text(&said.join(", "), 160))
    }

    fn discoveries(&self) -> Vec<String> {
        let mut open: Vec<&Discovery> = open_discoveries(self.state).collect();
        open.sort_by_key(|discovery| (discovery.urgency, discovery.severity));
        let line = |discovery: &&Discovery| {
            let urgent = match discovery.urgency {
                Urgency::Immediate => ", immediate",
                Urgency::Deferred => "",
            };
            let severity = format!("{:?}", discovery.severity).to_lowercase();
            let text = self.ink.text(&discovery.description, 160);
            format!("- **{}** ({severity}{urgent}) {text}", discovery.id)
        };
        let lines = open.iter().map(line).collect();
        capped(lines, LIST_MAX)
    }

    fn spec_changes(&self) -> Vec<String> {
        let started = self.sprint.timeline.started;
        let changes = self.state.journal.spec_changes.iter();
        let of_sprint = changes.filter(|change| started.is_none_or(|started| change.timestamp >= started));
        let line = |change: &liza_core::model::SpecChange| {
            format!("- {}: {}", self.ink.text(&change.spec, 80), self.ink.text(&change.change, 160))
        };
        capped(of_sprint.map(line).collect(), LIST_MAX)
    }

    /// What happened since a person last said how to go on.
    fn lately(&self) -> Vec<String> {
        let resumed = self.log.iter().rev().find(|entry| entry.action == "resumed");
        let Some(since) = resumed.map(|entry| entry.timestamp).or(self.sprint.timeline.started) else {
            return Vec::new();
        };
        const TOLD: [(&str, &str); 8] = [
            ("ready_for_review", "submitted"),
            ("approved", "approved"),
            ("rejected", "rejected"),
            ("merged", "merged"),
            ("integration_failed", "could not be merged"),
            ("blocked", "blocked"),
            ("rescoped", "replaced"),
            ("abandoned", "given up"),
        ];
        let count = |action: &str| {
            let new = self.log.iter().filter(|entry| entry.timestamp >= since);
            new.filter(|entry| entry.action == action).count()
        };
        let told: Vec<String> = TOLD
            .iter()
            .map(|(action, word)| (count(action), word))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let cut = self.log.first().is_some_and(|first| first.timestamp > since);
        let least = if cut { " (at least)" } else { "" };
        let what = if told.is_empty() { "nothing".to_owned() } else { told.join(", ") };
        vec![format!("Since {since}, {} ago{least}: {what}.", self.now.since(since))]
    }

    fn decisions(&self) -> Vec<String> {
        let line = |decision: &liza_core::model::Decision| {
            let note = decision.note.as_deref().map(|note| format!(": {}", self.ink.text(note, 200)));
            let what = self.ink.text(&decision.decision, 30);
            format!("- {} {what}{}", decision.timestamp, note.unwrap_or_default())
        };
        capped(self.sprint.decisions.iter().rev().map(line).collect(), LIST_MAX)
    }
}

/// How much a state wants to be looked at.
fn attention(status: Status) -> u8 {
    match status {
        Status::Blocked => 10,
        Status::IntegrationFailed => 9,
        Status::Rejected => 8,
        Status::Claimed => 7,
        Status::ReadyForReview => 6,
        Status::Approved => 5,
        Status::Unclaimed => 4,
        Status::Draft => 3,
        Status::Merged => 2,
        Status::Superseded => 1,
        Status::Abandoned => 0,
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
