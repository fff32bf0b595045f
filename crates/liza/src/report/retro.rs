//! The retrospective: a page filled from the data, with room for what only people know.
//!
//! Says what happened, not what it means. What was learned is for the human to write.

use liza_core::model::{EventName, Metrics, Seconds, Sprint, State, Status, Timestamp};
use liza_core::rules::metrics::sprint_metrics;
use liza_store::yaml;

use crate::project::Project;
use crate::secrets::Masker;

use super::markdown::{Ink, NOTHING, Side, part, table};
use super::summary::{capped, failure, of_sprint};
use super::tasks::{SprintTask, spent, sprint_tasks, total_usage};

/// The line by which a page that nobody has rewritten can be told.
pub const FILLED: &str = "(filled from the blackboard; `liza retro --file FILE` keeps your own words)";

/// How many entries of a list are told.
const LIST_MAX: usize = 12;
/// How many of the slowest tasks are named.
const SLOWEST: usize = 5;

/// The sprint before this one, as the archive has it.
pub fn previous(project: &Project, sprint: &Sprint) -> Option<Sprint> {
    let before = sprint.number().checked_sub(1)?;
    let path = project.folder().join(format!("archive/sprint-{before}.yaml"));
    // An archive that cannot be read is no reason not to look back.
    yaml::read(&std::fs::read_to_string(path).ok()?).ok()
}

/// The whole page.
pub fn render(state: &State, previous: Option<&Sprint>, masker: &Masker, now: Timestamp) -> String {
    let Some(sprint) = state.board.sprint.ready() else { return String::new() };
    let tasks = sprint_tasks(state, sprint);
    let page = RetroPage { state, sprint, previous, tasks, ink: Ink(masker), now };
    let mut parts = page.head();
    parts.extend(part("What went well", page.well()));
    parts.extend(part("What took longest", page.longest()));
    parts.extend(part("What was sent back, and why", page.rejections()));
    parts.extend(part("What was blocked or could not be merged", page.blocked()));
    parts.extend(part("What was given up or replaced", page.given_up()));
    parts.extend(part("Anomalies", page.anomalies()));
    parts.extend(part("Changes of the specification", page.spec_changes()));
    parts.extend(part("Discoveries", page.discoveries()));
    parts.extend(part("Decisions at checkpoints", page.decisions()));
    parts.extend(part("Figures", page.figures()));
    let learned = ["- Keep:", "- Change:", "- Try:", "", FILLED];
    parts.extend(part("What we learned", learned.map(str::to_owned).to_vec()));
    let mut text = parts.join("\n");
    text.push('\n');
    text
}

struct RetroPage<'a> {
    state: &'a State,
    sprint: &'a Sprint,
    previous: Option<&'a Sprint>,
    tasks: Vec<SprintTask<'a>>,
    ink: Ink<'a>,
    now: Timestamp,
}

impl<'a> RetroPage<'a> {
    fn head(&self) -> Vec<String> {
        let sprint = self.sprint;
        let mut lines = vec![format!("# Retrospective of {}", self.ink.text(&sprint.id, 40)), String::new()];
        if let Some(goal) = self.state.board.goal.ready() {
            lines.push(format!("Goal: {}  ", self.ink.text(&goal.description, 200)));
        }
        let length = sprint.timeline.started.map(|started| {
            let end = sprint.timeline.ended.unwrap_or(self.now);
            format!(", {} from {started}", end.since(started))
        });
        lines.push(format!("Sprint: {}{}", sprint.status, length.unwrap_or_default()));
        lines
    }

    fn merged(&self) -> impl Iterator<Item = &SprintTask<'a>> {
        self.tasks.iter().filter(|task| task.status == Some(Status::Merged))
    }

    fn well(&self) -> Vec<String> {
        let first = |task: &&SprintTask<'_>| task.rejections() == 0 && task.iterations() <= 1;
        let first: Vec<String> = self.merged().filter(first).map(|task| task.id.to_string()).collect();
        let merged = self.merged().count();
        if merged == 0 {
            return vec!["Nothing was merged.".to_owned()];
        }
        let mut lines = vec![format!("- {merged} merged, {} of them at the first attempt", first.len())];
        if !first.is_empty() {
            let more = first.len().saturating_sub(LIST_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named: Vec<String> = first.into_iter().take(LIST_MAX).collect();
            lines.push(format!("- At the first attempt: {}{more}", named.join(", ")));
        }
        lines
    }

    fn longest(&self) -> Vec<String> {
        let timed = self.tasks.iter().filter_map(|task| Some((task.took(self.now)?, task)));
        let mut timed: Vec<(Seconds, &SprintTask<'_>)> = timed.collect();
        timed.sort_by_key(|(took, task)| (std::cmp::Reverse(*took), task.id.clone()));
        let line = |(took, task): &(Seconds, &SprintTask<'_>)| {
            let (claims, sent_back) = (task.iterations(), task.rejections());
            let open = if task.is_over() { "" } else { ", still open" };
            format!("- {} {took}{open}: {claims} claim(s), {sent_back} rejection(s)", task.id)
        };
        timed.iter().take(SLOWEST).map(line).collect()
    }

    fn rejections(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for task in &self.tasks {
            for event in task.events(EventName::Rejected) {
                let reason = event.more.get("reason").map(ToString::to_string).unwrap_or_default();
                lines.push(format!("- {}: {}", task.id, self.ink.text(&reason, 200)));
            }
        }
        capped(lines, LIST_MAX)
    }

    fn blocked(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for task in &self.tasks {
            for event in task.events(EventName::Blocked) {
                let reason = event.more.get("reason").map(ToString::to_string);
                let reason = reason.or_else(|| task.record?.blocked_reason.clone()).unwrap_or_default();
                lines.push(format!("- {} was blocked: {}", task.id, self.ink.text(&reason, 160)));
            }
            if task.events(EventName::IntegrationFailed).next().is_some() {
                lines.push(format!("- {} could not be merged: {}", task.id, failure(self.ink, task)));
            }
        }
        capped(lines, LIST_MAX)
    }

    fn given_up(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for task in &self.tasks {
            let said = |name: EventName| {
                let last = task.events(name).last()?;
                let reason = last.more.get("reason").map(ToString::to_string);
                let reason = reason.or_else(|| task.record?.rescope_reason.clone()).unwrap_or_default();
                Some(self.ink.text(&reason, 160))
            };
            let abandoned =
                said(EventName::Abandoned).map(|why| format!("- {} was given up: {why}", task.id));
            let replaced =
                said(EventName::Superseded).map(|why| format!("- {} was replaced: {why}", task.id));
            lines.extend(abandoned.into_iter().chain(replaced));
        }
        capped(lines, LIST_MAX)
    }

    fn anomalies(&self) -> Vec<String> {
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for anomaly in self.state.journal.anomalies.iter().filter(|a| of_sprint(self.sprint, a)) {
            match kinds.iter_mut().find(|(kind, _)| *kind == anomaly.kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((&anomaly.kind, 1)),
            }
        }
        kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
        let line = |(kind, count): &(&str, usize)| format!("- {count} {}", self.ink.text(kind, 40));
        capped(kinds.iter().map(line).collect(), LIST_MAX)
    }

    /// Whether it happened in this sprint.
    fn lately(&self, time: Timestamp) -> bool {
        self.sprint.timeline.started.is_none_or(|started| time >= started)
    }

    fn spec_changes(&self) -> Vec<String> {
        let changes = self.state.journal.spec_changes.iter().filter(|change| self.lately(change.timestamp));
        let line = |change: &liza_core::model::SpecChange| {
            let why =
                change.triggered_by.as_deref().map(|why| format!(" (because of {})", self.ink.text(why, 60)));
            let what = self.ink.text(&change.change, 160);
            format!("- {}: {what}{}", self.ink.text(&change.spec, 80), why.unwrap_or_default())
        };
        capped(changes.map(line).collect(), LIST_MAX)
    }

    fn discoveries(&self) -> Vec<String> {
        let all = self.state.board.discovered.ready().into_iter().flatten();
        let new = all.filter(|discovery| discovery.created.is_none_or(|created| self.lately(created)));
        let line = |discovery: &liza_core::model::Discovery| {
            let end = discovery
                .converted_to_task
                .as_ref()
                .map_or("open".to_owned(), |task| format!("became {task}"));
            format!("- {}, {end}: {}", discovery.id, self.ink.text(&discovery.description, 160))
        };
        capped(new.map(line).collect(), LIST_MAX)
    }

    fn decisions(&self) -> Vec<String> {
        let line = |decision: &liza_core::model::Decision| {
            let note = decision.note.as_deref().map(|note| format!(": {}", self.ink.text(note, 200)));
            let what = self.ink.text(&decision.decision, 30);
            format!("- {} {what}{}", decision.timestamp, note.unwrap_or_default())
        };
        capped(self.sprint.decisions.iter().map(line).collect(), LIST_MAX)
    }

    /// This sprint beside the one before it.
    fn figures(&self) -> Vec<String> {
        let now = sprint_metrics(self.state);
        let before = self.previous.map(|sprint| &sprint.metrics);
        let mut rows: Vec<Vec<String>> =
            COMPARED.iter().map(|(name, figure)| compared(name, figure(&now), before.map(figure))).collect();
        let lengths = (length(self.sprint, self.now), self.previous.and_then(|last| length(last, self.now)));
        let said = |length: Option<Seconds>| length.map_or(NOTHING.to_owned(), |length| length.to_string());
        let mut row = vec!["Length".to_owned(), said(lengths.0)];
        if before.is_some() {
            row.extend([said(lengths.1), String::new()]);
        }
        rows.push(row);
        let mut heads = vec![("Figure", Side::Left), ("This sprint", Side::Right)];
        let last = self.previous.map(|sprint| self.ink.text(&sprint.id, 20));
        if let Some(last) = &last {
            heads.extend([(last.as_str(), Side::Right), ("Change", Side::Right)]);
        }
        let mut lines = table(&heads, &rows);
        if let Some(usage) = total_usage(&self.tasks) {
            lines.extend([String::new(), format!("Spent: {} tokens.", spent(&usage))]);
        }
        lines
    }
}

/// A figure of a sprint; nothing where there was nothing to divide by.
type Figure = fn(&Metrics) -> Option<u32>;

const COMPARED: [(&str, Figure); 8] = [
    ("Tasks done", |metrics| Some(metrics.tasks_done)),
    ("Iterations (claims)", |metrics| Some(metrics.iterations_total)),
    ("Submissions", |metrics| Some(metrics.task_submitted_for_review_count)),
    ("Approved", |metrics| Some(metrics.review_verdict_approvals)),
    ("Rejected", |metrics| Some(metrics.review_verdict_rejections)),
    ("Review cycles", |metrics| Some(metrics.review_cycles_total)),
    ("Approval rate of verdicts, %", |metrics| metrics.review_verdict_approval_rate_percent),
    ("Approval rate of submissions, %", |metrics| metrics.task_outcome_approval_rate_percent),
];

fn compared(name: &str, now: Option<u32>, before: Option<Option<u32>>) -> Vec<String> {
    let said = |figure: Option<u32>| figure.map_or(NOTHING.to_owned(), |figure| figure.to_string());
    let mut row = vec![name.to_owned(), said(now)];
    if let Some(before) = before {
        let change = match (now, before) {
            (Some(now), Some(before)) => format!("{:+}", i64::from(now) - i64::from(before)),
            (None, _) | (_, None) => String::new(),
        };
        row.extend([said(before), change]);
    }
    row
}

fn length(sprint: &Sprint, now: Timestamp) -> Option<Seconds> {
    Some(sprint.timeline.ended.unwrap_or(now).since(sprint.timeline.started?))
}
