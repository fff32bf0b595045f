//! The sprint summary: the facts for a person at a checkpoint, on one page, from the blackboard and the log.
//! Text from agents is untrusted: see `markdown`.

use std::io;
use std::path::PathBuf;

use liza_core::model::{
    Anomaly, BreakerStatus, Discovery, EventName, MAX_FAILED_CODERS, Metrics, Sprint, State, Status,
    Timestamp, Urgency, Usage,
};
use liza_core::rules::metrics::sprint_metrics;
use liza_core::text::{compact_number, count, one_line};
use liza_host::durable::replace_private_file;
use liza_host::secrets::Masker;
use liza_store::{LogRecord, Store};

use super::burn_up::BurnUp;
use super::checklist;
use super::judging;
use super::markdown::{Align, Escaper, NOTHING, section, table};
use super::tasks::{SprintTask, sprint_tasks};

pub const FILE: &str = "sprint_summary.md";

/// The number of bytes at the end of the log that are read.
const LOG_TAIL: u64 = 1024 * 1024;
/// The most open tasks in the table, and the most finished ones.
const OPEN_MAX: usize = 80;
const FINISHED_MAX: usize = 30;
/// Further entries of a list are counted.
const LIST_MAX: usize = 20;

/// Replaces the page atomically; returns its path. `is_tested` is true if merges run an integration test, `None` if that is
/// not known here.
pub fn write(store: &Store, state: &State, is_tested: Option<bool>, now: Timestamp) -> io::Result<PathBuf> {
    let log = store.log_tail(LOG_TAIL).map_err(io::Error::other)?;
    let page = render(state, &log, is_tested, &super::masker(), now);
    let path = store.folder().join(FILE);
    replace_private_file(&path, page.as_bytes())?;
    Ok(path)
}

pub fn render(
    state: &State,
    log: &[LogRecord],
    is_tested: Option<bool>,
    masker: &Masker,
    now: Timestamp,
) -> String {
    let Some(sprint) = state.board.sprint.ready() else {
        return "# Sprint summary\n\nThere is no sprint, or it cannot be read. Find out why: `liza validate`\n"
            .to_owned();
    };
    let tasks = sprint_tasks(state, sprint);
    let page = SummaryPage {
        state,
        sprint,
        tasks,
        log,
        escaper: Escaper(masker),
        metrics: sprint_metrics(state),
        now,
    };
    let sections = [
        page.header(),
        section("Figures", page.figures()),
        section("Judging", judging::lines(state, is_tested, &page.tasks)),
        section("Burn-up", page.burn_up()),
        section("Needs you", page.needs()),
        section("Tasks", page.task_table()),
        section("Anomalies", page.anomalies()),
        section("Discoveries", page.discoveries()),
        section("Specification changes", page.spec_changes()),
        section("Recent activity", page.recent_activity()),
        section("Decisions", page.decisions()),
        section("Review checklist", checklist::questions(state)),
        section("Decide", checklist::decisions()),
    ];
    let mut text = sections.concat().join("\n");
    text.push('\n');
    text
}

/// A few lines of the page, for a terminal.
pub fn digest(state: &State) -> Vec<String> {
    let Some(sprint) = state.board.sprint.ready() else { return Vec::new() };
    let (tasks, metrics) = (sprint_tasks(state, sprint), sprint_metrics(state));
    let named = |status: Status| {
        let names: Vec<&str> = with_status(&tasks, status).map(|task| task.id.as_str()).take(5).collect();
        let more = with_status(&tasks, status).count().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{}{more}", names.join(", ")))
    };
    let mut lines = vec![progress(&tasks)];
    lines.extend(named(Status::Blocked).map(|names| format!("blocked: {names}")));
    lines.extend(named(Status::IntegrationFailed).map(|names| format!("could not be merged: {names}")));
    lines.extend(judging::validations(&tasks));
    let anomalies =
        state.journal.anomalies.iter().filter(|anomaly| is_unresolved(state, sprint, anomaly)).count();
    let discoveries = open_discoveries(state).count();
    if anomalies + discoveries > 0 {
        let anomalies = count(anomalies, "unresolved anomaly");
        lines.push(format!("{anomalies}, {}", count(discoveries, "open discovery")));
    }
    let used = sprint.usage.as_ref().and_then(Usage::in_words);
    lines.extend(used.map(|words| format!("spent: {words}")));
    lines.extend(metrics.looks_rubber_stamped().then(|| rubber_stamp_warning(&metrics)));
    lines
}

struct SummaryPage<'a> {
    state: &'a State,
    sprint: &'a Sprint,
    tasks: Vec<SprintTask<'a>>,
    log: &'a [LogRecord],
    escaper: Escaper<'a>,
    metrics: Metrics,
    now: Timestamp,
}

fn with_status<'t, 'a>(
    tasks: &'t [SprintTask<'a>],
    status: Status,
) -> impl Iterator<Item = &'t SprintTask<'a>> + use<'t, 'a> {
    tasks.iter().filter(move |task| task.status == Some(status))
}

/// The planned tasks: merged, as on every screen, and what became of the others.
fn progress(tasks: &[SprintTask<'_>]) -> String {
    let number = |status: Status| with_status(tasks, status).filter(|task| task.planned).count();
    let (merged, replaced, abandoned) =
        (number(Status::Merged), number(Status::Superseded), number(Status::Abandoned));
    let all = tasks.iter().filter(|task| task.planned).count();
    if all == 0 {
        return "no tasks are planned yet".to_owned();
    }
    let to_merge = all - replaced - abandoned;
    let mut text = format!("{merged} of {} merged", count(to_merge, "planned task"));
    for (number, what) in [(replaced, "replaced"), (abandoned, "abandoned")] {
        text.push_str(&if number > 0 { format!(", {number} {what}") } else { String::new() });
    }
    text
}

fn rubber_stamp_warning(metrics: &Metrics) -> String {
    format!(
        "{} of {} verdicts are approvals; check that the reviews are thorough",
        metrics.review_verdict_approvals, metrics.review_verdict_count
    )
}

/// True if an anomaly is of this sprint and newer than the last `liza resolve`.
fn is_unresolved(state: &State, sprint: &Sprint, anomaly: &Anomaly) -> bool {
    let resolved = state.board.circuit_breaker.ready().and_then(|breaker| breaker.last_resolution());
    of_sprint(sprint, anomaly) && resolved.is_none_or(|resolved| anomaly.timestamp > resolved)
}

pub(crate) fn of_sprint(sprint: &Sprint, anomaly: &Anomaly) -> bool {
    sprint.timeline.started.is_none_or(|started| anomaly.timestamp >= started)
}

fn open_discoveries(state: &State) -> impl Iterator<Item = &Discovery> {
    let all = state.board.discovered.ready().into_iter().flatten();
    all.filter(|discovery| discovery.is_open())
}

pub(crate) fn merge_failure(escaper: Escaper<'_>, task: &SprintTask<'_>) -> String {
    let last = task.events(EventName::IntegrationFailed).last();
    let field = |key: &str| last.and_then(|event| event.more.get(key)).map(ToString::to_string);
    let files = field("files").map(|files| format!(" in {files}")).unwrap_or_default();
    escaper.text(&format!("{}{files}", field("reason").unwrap_or_default()), 160)
}

/// The first `max` entries, and a line that counts the rest.
pub(crate) fn capped(mut lines: Vec<String>, max: usize) -> Vec<String> {
    let more = lines.len().saturating_sub(max);
    lines.truncate(max);
    if more > 0 {
        lines.push(format!("- … and {more} more"));
    }
    lines
}

impl SummaryPage<'_> {
    fn header(&self) -> Vec<String> {
        let sprint = self.sprint;
        let mut lines =
            vec![format!("# Sprint summary: {}", self.escaper.text(&sprint.id, 40)), String::new()];
        if let Some(goal) = self.state.board.goal.ready() {
            let text = self.escaper.text(&goal.description, 200);
            lines.push(format!("**Goal** {} ({}): {text}  ", self.escaper.text(&goal.id, 40), goal.status));
        }
        let times = &sprint.timeline;
        let mut facts = vec![sprint.status.to_string()];
        facts.extend(times.started.map(|time| format!("started {time}")));
        facts.extend(times.deadline.map(|time| match time > self.now {
            true => format!("due in {}", time.since(self.now)),
            false => format!("overdue by {}", self.now.since(time)),
        }));
        facts.extend(times.ended.map(|time| format!("ended {time}")));
        lines.push(format!("**Sprint** {}  ", facts.join(", ")));
        lines.push(format!("**Written** {} at revision {}", self.now, self.state.board.revision));
        lines.push(String::new());
        lines.push(format!("{}.", capitalized(&progress(&self.tasks))));
        lines
    }

    fn figures(&self) -> Vec<String> {
        let metrics = &self.metrics;
        let percent = |rate: Option<u32>| rate.map_or(NOTHING.to_owned(), |rate| format!("{rate} %"));
        let row = |name: &str, figure: String| vec![name.to_owned(), figure];
        let mut rows = vec![
            row("Tasks ended", metrics.tasks_done.to_string()),
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
            rows.push(row("Drift at merge (commits)", format!("{sum} total, {most} max")));
        }
        if let Some(usage) = &self.sprint.usage {
            rows.push(row("Tokens, planning included", compact_number(usage.tokens())));
            rows.push(row("Tokens from the cache", compact_number(usage.cached)));
            rows.push(row("Cost", usage.cost_in_words().unwrap_or_else(|| NOTHING.to_owned())));
        }
        let mut lines = table(&[("Figure", Align::Left), ("This sprint", Align::Right)], &rows);
        if metrics.looks_rubber_stamped() {
            lines.extend([String::new(), format!("**Warning:** {}.", rubber_stamp_warning(metrics))]);
        }
        lines
    }

    fn burn_up(&self) -> Vec<String> {
        let Some(burn_up) = BurnUp::of(self.sprint, &self.tasks, self.now) else {
            return vec!["No data yet.".to_owned()];
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

    /// Work that cannot continue without a person or the planner.
    fn needs(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(breaker) = self.state.board.circuit_breaker.ready()
            && breaker.status == BreakerStatus::Triggered
        {
            let trigger = breaker.current_trigger.as_ref();
            let pattern = trigger.map_or(NOTHING, |trigger| trigger.pattern.as_str());
            let factor = trigger.and_then(|trigger| trigger.common_factor.as_deref()).unwrap_or_default();
            let what = format!("{}: {}", self.escaper.text(pattern, 60), self.escaper.text(factor, 120));
            lines.push(format!("- **circuit breaker** {what}"));
            lines.push(
                "  Read `.liza/circuit_breaker_report.md`, fix the cause, then run `liza resolve \"…\"`."
                    .to_owned(),
            );
        }
        for task in with_status(&self.tasks, Status::Blocked).take(LIST_MAX) {
            lines.extend(self.blocked(task));
        }
        let more = with_status(&self.tasks, Status::Blocked).count().saturating_sub(LIST_MAX);
        if more > 0 {
            lines.push(format!("- … and {more} more blocked: `liza status --all`"));
        }
        for task in with_status(&self.tasks, Status::IntegrationFailed).take(LIST_MAX) {
            lines.push(format!(
                "- **{}** could not be merged: {}",
                task.id,
                merge_failure(self.escaper, task)
            ));
        }
        for discovery in open_discoveries(self.state).filter(|d| d.is_pressing()).take(LIST_MAX) {
            let text = self.escaper.text(&discovery.description, 160);
            lines.push(format!("- **{}** is urgent: {text}", discovery.id));
        }
        if lines.is_empty() {
            lines.push("Nothing. The agents can continue on their own.".to_owned());
        }
        lines
    }

    fn blocked(&self, task: &SprintTask<'_>) -> Vec<String> {
        let Some(record) = task.record else { return Vec::new() };
        let reason = self.escaper.text(record.blocked_reason.as_deref().unwrap_or_default(), 200);
        let mut lines = vec![format!("- **{}** is blocked: {reason}", task.id)];
        let questions = record.blocked_questions.iter().flatten().take(3);
        lines.extend(questions.map(|question| format!("  - Question: {}", self.escaper.text(question, 240))));
        let failed: Vec<String> = record.failed_by.iter().flatten().map(ToString::to_string).collect();
        if !failed.is_empty() {
            lines.push(format!("  - Failed by: {}", failed.join(", ")));
        }
        let id = &task.id;
        if failed.len() >= MAX_FAILED_CODERS {
            lines.push(format!(
                "  - {} coders failed at it. Replace it: \
                 `liza supersede-task {id} --by TASK --reason \"…\" --root-cause \"…\"`. \
                 Or drop it: `liza abandon-task {id} --reason \"…\"`",
                failed.len()
            ));
        }
        lines.push(format!("  - Answer: `liza answer {id} \"…\"`. Details: `liza show {id}`"));
        lines
    }

    fn task_table(&self) -> Vec<String> {
        let mut open: Vec<&SprintTask<'_>> = self.tasks.iter().filter(|task| !task.is_finished()).collect();
        let mut finished: Vec<&SprintTask<'_>> =
            self.tasks.iter().filter(|task| task.is_finished()).collect();
        open.sort_by_key(|task| std::cmp::Reverse(task.status.map_or(u8::MAX, attention)));
        finished.sort_by_key(|task| std::cmp::Reverse(task.ended()));
        let hidden = [
            (open.len().saturating_sub(OPEN_MAX), "more open task"),
            (finished.len().saturating_sub(FINISHED_MAX), "more finished task"),
        ];
        open.truncate(OPEN_MAX);
        finished.truncate(FINISHED_MAX);
        let counted = self.tasks.iter().any(|task| task.usage().is_some());
        let rows: Vec<Vec<String>> =
            open.iter().chain(&finished).map(|task| self.row(task, counted)).collect();
        if rows.is_empty() {
            return Vec::new();
        }
        let mut headers = vec![
            ("Task", Align::Left),
            ("Status", Align::Left),
            ("Claims", Align::Right),
            ("Rejected", Align::Right),
            ("Drift", Align::Right),
            ("Time", Align::Right),
        ];
        if counted {
            headers.push(("Spent", Align::Right));
        }
        let mut lines = table(&headers, &rows);
        let mut below = Vec::new();
        for (number, noun) in hidden.into_iter().filter(|(number, _)| *number > 0) {
            below.push(format!("{}: `liza status --all`.", count(number, noun)));
        }
        if self.tasks.iter().any(|task| task.stretch) {
            below.push("⁺ stretch task: optional.".to_owned());
        }
        below.push("Drift: commits on the integration branch between claim and merge.".to_owned());
        lines.extend([String::new(), below.join(" ")]);
        lines
    }

    fn row(&self, task: &SprintTask<'_>, counted: bool) -> Vec<String> {
        let id = one_line(task.id.as_str(), 40);
        let some = |figure: Option<String>| figure.unwrap_or_else(|| NOTHING.to_owned());
        let has_record = task.record.is_some();
        let mut row = vec![
            if task.stretch { format!("{id} ⁺") } else { id },
            task.status.map_or("?".to_owned(), |status| status.to_string()),
            some(has_record.then(|| task.iterations().to_string())),
            some(has_record.then(|| task.rejections().to_string())),
            some(task.drift().map(|commits| commits.to_string())),
            some(task.duration(self.now).map(|length| length.to_string())),
        ];
        if counted {
            row.push(some(task.usage().and_then(Usage::in_words)));
        }
        row
    }

    /// Unresolved anomalies by kind; resolved ones are only counted.
    fn anomalies(&self) -> Vec<String> {
        let all = || self.state.journal.anomalies.iter().filter(|anomaly| of_sprint(self.sprint, anomaly));
        let open: Vec<&Anomaly> =
            all().filter(|anomaly| is_unresolved(self.state, self.sprint, anomaly)).collect();
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
            lines.push(format!("- **{}**: {count} unresolved", self.escaper.text(kind, 40)));
            let newest = open.iter().rev().filter(|anomaly| anomaly.kind == kind);
            lines.extend(newest.take(3).map(|anomaly| format!("  - {}", self.anomaly(anomaly))));
            if count > 3 {
                lines.push(format!("  - … and {} earlier", count - 3));
            }
        }
        let resolved = all().count() - open.len();
        if resolved > 0 {
            lines.push(format!("- {resolved} resolved"));
        }
        lines
    }

    fn anomaly(&self, anomaly: &Anomaly) -> String {
        let task = anomaly.task.as_ref().map_or("no task".to_owned(), ToString::to_string);
        let who = self.escaper.text(anomaly.reporter.as_deref().unwrap_or("unknown"), 30);
        let details = anomaly.details.iter().filter(|(_, value)| !value.is_blank());
        let details: Vec<String> = details.map(|(key, value)| format!("{key}: {value}")).collect();
        format!("{task}, {who}: {}", self.escaper.text(&details.join(", "), 160))
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
            let text = self.escaper.text(&discovery.description, 160);
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
            format!("- {}: {}", self.escaper.text(&change.spec, 80), self.escaper.text(&change.change, 160))
        };
        capped(of_sprint.map(line).collect(), LIST_MAX)
    }

    /// Events since work was last resumed.
    fn recent_activity(&self) -> Vec<String> {
        let resumed = self.log.iter().rev().find(|entry| entry.action == "resumed");
        let Some(since) = resumed.map(|entry| entry.timestamp).or(self.sprint.timeline.started) else {
            return Vec::new();
        };
        const ACTIONS: [(&str, &str); 8] = [
            ("ready_for_review", "submitted"),
            ("approved", "approved"),
            ("rejected", "rejected"),
            ("merged", "merged"),
            ("integration_failed", "could not be merged"),
            ("blocked", "blocked"),
            ("rescoped", "replaced"),
            ("abandoned", "abandoned"),
        ];
        let count = |action: &str| {
            let new = self.log.iter().filter(|entry| entry.timestamp >= since);
            new.filter(|entry| entry.action == action).count()
        };
        let counted: Vec<String> = ACTIONS
            .iter()
            .map(|(action, word)| (count(action), word))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let cut = self.log.first().is_some_and(|first| first.timestamp > since);
        let least = if cut { ", at least" } else { "" };
        let what = if counted.is_empty() { "no activity".to_owned() } else { counted.join(", ") };
        vec![format!("Since {since} ({} ago{least}): {what}.", self.now.since(since))]
    }

    fn decisions(&self) -> Vec<String> {
        let line = |decision: &liza_core::model::Decision| {
            let note = decision.note.as_deref().map(|note| format!(": {}", self.escaper.text(note, 200)));
            let what = self.escaper.text(&decision.decision, 30);
            format!("- {} {what}{}", decision.timestamp, note.unwrap_or_default())
        };
        capped(self.sprint.decisions.iter().rev().map(line).collect(), LIST_MAX)
    }
}

/// The higher, the more a task in this status needs attention.
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
