//! The retrospective: a page generated from the blackboard, with room for people's additions. States facts
//! and draws no conclusions: those are for a person to write.

use liza_core::model::{EventName, Metrics, Seconds, Sprint, State, Status, Timestamp, Usage};
use liza_core::rules::metrics::sprint_metrics;
use liza_core::text::count;
use liza_host::secrets::Masker;
use liza_store::{Store, yaml};

use super::markdown::{Align, Escaper, NOTHING, section, table};
use super::summary::{capped, merge_failure, of_sprint};
use super::tasks::{SprintTask, sprint_tasks};

/// The line that marks a generated page; a page without it was written by a person.
pub const FILLED: &str = "(Generated from the blackboard. To replace it: `liza retro --file FILE`)";

/// Further entries of a list are counted.
const LIST_MAX: usize = 12;
const SLOWEST: usize = 5;

pub fn previous(store: &Store, sprint: &Sprint) -> Option<Sprint> {
    let before = sprint.number().checked_sub(1)?;
    // The page is useful without it, so an unreadable archive is ignored.
    let text = store.archived_sprint(&format!("sprint-{before}")).ok()??;
    yaml::read(&text).ok()
}

/// `drills` are the lines about reviewers that were drilled, which are on no blackboard.
pub fn render(
    state: &State,
    previous: Option<&Sprint>,
    drills: Vec<String>,
    masker: &Masker,
    now: Timestamp,
) -> String {
    let Some(sprint) = state.board.sprint.ready() else { return String::new() };
    let tasks = sprint_tasks(state, sprint);
    let page = RetroPage { state, sprint, previous, tasks, escaper: Escaper(masker), now };
    let mut lines = page.header();
    lines.extend(section("What went well", page.went_well()));
    lines.extend(section("What took longest", page.longest()));
    lines.extend(section("What was rejected or sent back, and why", page.rejections()));
    lines.extend(section("What was blocked or could not be merged", page.blocked()));
    lines.extend(section("What was abandoned or replaced", page.dropped()));
    lines.extend(section("Anomalies", page.anomalies()));
    lines.extend(section("Specification changes", page.spec_changes()));
    lines.extend(section("Discoveries", page.discoveries()));
    lines.extend(section("Decisions at checkpoints", page.decisions()));
    lines.extend(section("Figures", page.figures()));
    lines.extend(section("Reviewers in drills", drills));
    let learned = ["- Keep:", "- Change:", "- Try:", "", FILLED];
    lines.extend(section("What we learned", learned.map(str::to_owned).to_vec()));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

struct RetroPage<'a> {
    state: &'a State,
    sprint: &'a Sprint,
    previous: Option<&'a Sprint>,
    tasks: Vec<SprintTask<'a>>,
    escaper: Escaper<'a>,
    now: Timestamp,
}

impl<'a> RetroPage<'a> {
    fn header(&self) -> Vec<String> {
        let sprint = self.sprint;
        let mut lines =
            vec![format!("# Retrospective: {}", self.escaper.text(&sprint.id, 40)), String::new()];
        if let Some(goal) = self.state.board.goal.ready() {
            lines.push(format!("Goal: {}  ", self.escaper.text(&goal.description, 200)));
        }
        let length = sprint.timeline.started.map(|started| {
            let length = match sprint.timeline.ended {
                Some(ended) => format!("lasted {}", ended.since(started)),
                None => format!("running for {}", self.now.since(started)),
            };
            format!(", started {started}, {length}")
        });
        lines.push(format!("Sprint: {}{}", sprint.status, length.unwrap_or_default()));
        lines
    }

    fn merged(&self) -> impl Iterator<Item = &SprintTask<'a>> {
        self.tasks.iter().filter(|task| task.status == Some(Status::Merged))
    }

    fn went_well(&self) -> Vec<String> {
        let at_once = |task: &&SprintTask<'_>| task.rejections() == 0 && task.iterations() <= 1;
        let first: Vec<String> = self.merged().filter(at_once).map(|task| task.id.to_string()).collect();
        let merged = self.merged().count();
        if merged == 0 {
            return vec!["No task was merged.".to_owned()];
        }
        let mut lines =
            vec![format!("- {} merged, {} at the first attempt", count(merged, "task"), first.len())];
        if !first.is_empty() {
            let more = first.len().saturating_sub(LIST_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named: Vec<String> = first.into_iter().take(LIST_MAX).collect();
            lines.push(format!("- At the first attempt: {}{more}", named.join(", ")));
        }
        lines
    }

    fn longest(&self) -> Vec<String> {
        let timed = self.tasks.iter().filter_map(|task| Some((task.duration(self.now)?, task)));
        let mut timed: Vec<(Seconds, &SprintTask<'_>)> = timed.collect();
        timed.sort_by_key(|(length, task)| (std::cmp::Reverse(*length), task.id.clone()));
        let line = |(length, task): &(Seconds, &SprintTask<'_>)| {
            let claims = count(task.iterations(), "claim");
            let rejections = count(task.rejections() as usize, "rejection");
            let open = if task.is_finished() { "" } else { ", still open" };
            format!("- {}: {length}, {claims}, {rejections}{open}", task.id)
        };
        timed.iter().take(SLOWEST).map(line).collect()
    }

    fn rejections(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for task in &self.tasks {
            for event in task.events(EventName::Rejected) {
                let reason = event.more.get("reason").map(ToString::to_string).unwrap_or_default();
                // Not a verdict: no figure counts it as a rejection.
                let by = if event.agent.as_deref() == Some("system") { " was sent back by Liza" } else { "" };
                lines.push(format!("- {}{by}: {}", task.id, self.escaper.text(&reason, 200)));
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
                lines.push(format!("- {} was blocked: {}", task.id, self.escaper.text(&reason, 160)));
            }
            if task.events(EventName::IntegrationFailed).next().is_some() {
                lines.push(format!(
                    "- {} could not be merged: {}",
                    task.id,
                    merge_failure(self.escaper, task)
                ));
            }
        }
        capped(lines, LIST_MAX)
    }

    fn dropped(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for task in &self.tasks {
            let reason = |name: EventName| {
                let last = task.events(name).last()?;
                let reason = last.more.get("reason").map(ToString::to_string);
                let reason = reason.or_else(|| task.record?.rescope_reason.clone()).unwrap_or_default();
                Some(self.escaper.text(&reason, 160))
            };
            let abandoned =
                reason(EventName::Abandoned).map(|why| format!("- {} was abandoned: {why}", task.id));
            let replaced =
                reason(EventName::Superseded).map(|why| format!("- {} was replaced: {why}", task.id));
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
        let line = |(kind, count): &(&str, usize)| format!("- {count} {}", self.escaper.text(kind, 40));
        capped(kinds.iter().map(line).collect(), LIST_MAX)
    }

    fn in_sprint(&self, time: Timestamp) -> bool {
        self.sprint.timeline.started.is_none_or(|started| time >= started)
    }

    fn spec_changes(&self) -> Vec<String> {
        let changes =
            self.state.journal.spec_changes.iter().filter(|change| self.in_sprint(change.timestamp));
        let line = |change: &liza_core::model::SpecChange| {
            let why = change
                .triggered_by
                .as_deref()
                .map(|why| format!(" (triggered by {})", self.escaper.text(why, 60)));
            let what = self.escaper.text(&change.change, 160);
            format!("- {}: {what}{}", self.escaper.text(&change.spec, 80), why.unwrap_or_default())
        };
        capped(changes.map(line).collect(), LIST_MAX)
    }

    fn discoveries(&self) -> Vec<String> {
        let all = self.state.board.discovered.ready().into_iter().flatten();
        let new = all.filter(|discovery| discovery.created.is_none_or(|created| self.in_sprint(created)));
        let line = |discovery: &liza_core::model::Discovery| {
            let end = discovery
                .converted_to_task
                .as_ref()
                .map_or("open".to_owned(), |task| format!("became {task}"));
            format!("- {}, {end}: {}", discovery.id, self.escaper.text(&discovery.description, 160))
        };
        capped(new.map(line).collect(), LIST_MAX)
    }

    fn decisions(&self) -> Vec<String> {
        let line = |decision: &liza_core::model::Decision| {
            let note = decision.note.as_deref().map(|note| format!(": {}", self.escaper.text(note, 200)));
            let what = self.escaper.text(&decision.decision, 30);
            format!("- {} {what}{}", decision.timestamp, note.unwrap_or_default())
        };
        capped(self.sprint.decisions.iter().map(line).collect(), LIST_MAX)
    }

    /// Compares this sprint with the previous one.
    fn figures(&self) -> Vec<String> {
        let now = sprint_metrics(self.state);
        let before = self.previous.map(|sprint| &sprint.metrics);
        let mut rows: Vec<Vec<String>> =
            COMPARED.iter().map(|(name, figure)| compared(name, figure(&now), before.map(figure))).collect();
        let lengths = (length(self.sprint, self.now), self.previous.and_then(|last| length(last, self.now)));
        let shown = |length: Option<Seconds>| length.map_or(NOTHING.to_owned(), |length| length.to_string());
        let mut row = vec!["Duration".to_owned(), shown(lengths.0)];
        if before.is_some() {
            row.extend([shown(lengths.1), String::new()]);
        }
        rows.push(row);
        let mut headers = vec![("Figure", Align::Left), ("This sprint", Align::Right)];
        let last = self.previous.map(|sprint| self.escaper.text(&sprint.id, 20));
        if let Some(last) = &last {
            headers.extend([(last.as_str(), Align::Right), ("Change", Align::Right)]);
        }
        let mut lines = table(&headers, &rows);
        if let Some(words) = self.sprint.usage.as_ref().and_then(Usage::in_words) {
            lines.extend([String::new(), format!("Spent: {words}.")]);
        }
        lines
    }
}

/// A figure of a sprint; `None` if it has no value, such as a rate without verdicts.
type Figure = fn(&Metrics) -> Option<u32>;

const COMPARED: [(&str, Figure); 8] = [
    ("Tasks ended", |metrics| Some(metrics.tasks_done)),
    ("Iterations (claims)", |metrics| Some(metrics.iterations_total)),
    ("Submissions", |metrics| Some(metrics.task_submitted_for_review_count)),
    ("Approved", |metrics| Some(metrics.review_verdict_approvals)),
    ("Rejected", |metrics| Some(metrics.review_verdict_rejections)),
    ("Review cycles", |metrics| Some(metrics.review_cycles_total)),
    ("Approval rate of verdicts, %", |metrics| metrics.review_verdict_approval_rate_percent),
    ("Approval rate of submissions, %", |metrics| metrics.task_outcome_approval_rate_percent),
];

fn compared(name: &str, now: Option<u32>, before: Option<Option<u32>>) -> Vec<String> {
    let shown = |figure: Option<u32>| figure.map_or(NOTHING.to_owned(), |figure| figure.to_string());
    let mut row = vec![name.to_owned(), shown(now)];
    if let Some(before) = before {
        let change = match (now, before) {
            (Some(now), Some(before)) => format!("{:+}", i64::from(now) - i64::from(before)),
            (None, _) | (_, None) => String::new(),
        };
        row.extend([shown(before), change]);
    }
    row
}

fn length(sprint: &Sprint, now: Timestamp) -> Option<Seconds> {
    Some(sprint.timeline.ended.unwrap_or(now).since(sprint.timeline.started?))
}
