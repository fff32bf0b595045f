//! `liza show`: everything about one task, and the actions that are possible now.

use std::path::PathBuf;

use liza_core::model::{
    Actor, AgentId, EventName, Fields, GateChange, HistoryEvent, Refusal, Seconds, State, TaskId, TaskRecord,
    Usage, Value, Worktree,
};
use liza_core::text::count;
use liza_host::local_time::LocalTime;
use liza_host::worktrees::outside;
use liza_status::task_words::{self, anomaly_name, event_name, validation_words};
use liza_status::view::{LeaseView, TaskDetail, TaskView, task_detail, view};
use liza_status::words::{approvals_in_words, task_status};
use liza_team::observe::observe;
use liza_team::project::{Project, now};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::task_name::meant_task;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{BOLD, CYAN, DIM, RED, ago, command, cut, one_line, pad, paint, width, wrap};
use crate::cli::ui::output::{Reply, to_json};

/// Show everything about one task.
///
/// Its definition, its state, notes and anomalies about it, its history, and what you can do about it now.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza show retry-orders")]
pub(crate) struct Args {
    /// The task: its ID, or the beginning of it.
    task: TaskId,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let id = meant_task(&state.board, args.task)?;
    if let Some(status) = state.board.archived.get(&id) {
        return archived(&project, &id, &status.to_string());
    }
    state.board.body(&id)?;
    let now = now();
    let view = view(&state, &observe(&project, &state, now), now);
    let task = view.tasks.iter().find(|task| task.id == id);
    let detail = task.and_then(|task| task_detail(&state, task));
    let detail = detail.ok_or_else(|| Refusal::UnknownTask { task: id.clone() })?;
    let (columns, times) = (context.screen.page_columns(), context.screen.local_time());
    let for_human = context.actor()? == Actor::Human;
    let stops = view.stopped.iter().map(|stop| stop.file.name()).collect::<Vec<_>>().join(", ");
    let page = TaskPage {
        state: &state,
        record: detail.record,
        task: detail.task,
        detail: &detail,
        columns,
        times,
        for_human,
        worktrees: outside(project.root()),
        stops,
    };
    Ok(Reply::new(page.render(), to_json(&detail)).at(state.board.revision.0))
}

fn archived(project: &Project, task: &TaskId, status: &str) -> Result<Reply, CommandError> {
    let text = project.store().archived_task(task)?.ok_or_else(|| {
        let message = format!("{task} is archived ({status}), but its record is missing in the archive");
        CommandError::refused("archived", message)
            .hint(format!("what happened to it: liza log --task {task}"))
    })?;
    let result = json!({"id": task, "status": status, "archived": true, "yaml": text});
    Ok(Reply::new(format!("{task}  {status}, in the archive\n\n{text}"), result))
}

struct TaskPage<'a> {
    state: &'a State,
    record: &'a TaskRecord,
    task: &'a TaskView,
    detail: &'a TaskDetail<'a>,
    columns: usize,
    times: LocalTime,
    /// True if a person reads it; otherwise an agent, or someone who plays one.
    for_human: bool,
    /// The folder of worktrees, if it is outside the project.
    worktrees: Option<PathBuf>,
    /// The stop files that are present: a session looks at its task and for stops in one command.
    stops: String,
}

/// The width of the labels.
const LABEL: usize = 14;

/// The width of a time.
const TIME: usize = "2026-01-17 14:00:00".len();

/// Below this many columns, the text of an event is below it.
const NARROW: usize = 70;

impl TaskPage<'_> {
    fn render(&self) -> String {
        let task = self.task;
        let (status, detail) = match (self.for_human, task.status) {
            (false, Some(status)) => {
                (status.to_string(), format!("priority {} · revision {}", task.priority, task.revision))
            }
            (true, _) | (false, None) => (task_status(task), format!("priority {}", task.priority)),
        };
        let mut lines = self.title(&status, &detail);
        lines.extend(wrap(&task.description, self.columns));
        let parts =
            [self.next(), self.contract(), self.progress(), self.trouble(), self.comments(), self.history()];
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            lines.push(String::new());
            lines.extend(part);
        }
        lines.join("\n")
    }

    /// The name, the status and the rest: in one line if they fit.
    fn title(&self, status: &str, detail: &str) -> Vec<String> {
        let id = self.task.id.as_str();
        if width(id) + width(status) + width(detail) + 4 <= self.columns {
            return vec![format!("{}  {}  {}", paint(BOLD, id), paint(CYAN, status), paint(DIM, detail))];
        }
        let parts = [(BOLD, id), (CYAN, status), (DIM, detail)].into_iter();
        let lines = parts
            .flat_map(|(style, text)| wrap(text, self.columns).into_iter().map(move |line| (style, line)));
        lines.map(|(style, line)| paint(style, &line)).collect()
    }

    fn field(&self, label: &str, text: &str) -> Vec<String> {
        let lines = wrap(text, self.columns.saturating_sub(LABEL).max(10));
        let named = |(n, line): (usize, String)| {
            let label = if n == 0 { pad(label, LABEL) } else { " ".repeat(LABEL) };
            format!("{}{line}", paint(DIM, &label))
        };
        lines.into_iter().enumerate().map(named).collect()
    }

    fn fields<S: AsRef<str>>(&self, fields: &[(&str, Option<S>)]) -> Vec<String> {
        let said = fields.iter().filter_map(|(label, text)| Some((*label, text.as_ref()?.as_ref())));
        said.filter(|(_, text)| !text.trim().is_empty())
            .flat_map(|(label, text)| self.field(label, text))
            .collect()
    }

    fn next(&self) -> Vec<String> {
        let mut lines = self.field("Next", &self.task.next.to_string());
        if !self.for_human && !self.stops.is_empty() {
            lines.extend(self.field("Stop", &self.stops));
        }
        let step = if self.for_human { &self.task.human_command } else { &self.task.command };
        lines.extend(step.iter().flat_map(|step| command(step, LABEL, self.columns)));
        for fault in &self.task.broken {
            lines.extend(wrap(fault, self.columns).iter().map(|line| paint(RED, line)));
        }
        lines
    }

    fn contract(&self) -> Vec<String> {
        let record = self.record;
        let with_status = |id: &TaskId| match self.state.board.status(id) {
            Some(status) => format!("{id} ({status})"),
            None => format!("{id} (unknown)"),
        };
        let depends: Vec<String> = self.task.depends_on.iter().map(with_status).collect();
        let needed: Vec<String> = self.detail.needed_by.iter().copied().map(with_status).collect();
        self.fields(&[
            ("Done when", record.done_when.clone()),
            ("Validated by", record.validation.as_deref().map(bullets)),
            ("Scope", record.scope.clone()),
            ("Specification", record.spec_ref.clone()),
            ("Depends on", Some(depends.join(", "))),
            ("Needed by", Some(needed.join(", "))),
            ("Replaces", record.supersedes.as_deref().map(names)),
            ("Replaced by", record.superseded_by.as_deref().map(names)),
        ])
    }

    /// Its agents, worktree and commits.
    fn progress(&self) -> Vec<String> {
        let (record, task) = (self.record, self.task);
        let lease = |lease: Option<LeaseView>| match lease.map(|lease| lease.left).filter(|_| !task.stopped) {
            Some(left @ 0..) => format!(", lease {}", Seconds(left.unsigned_abs())),
            Some(left) => format!(", lease expired {}", ago(Seconds(left.unsigned_abs()))),
            None => String::new(),
        };
        let claim =
            task.iteration.map(|n| format!(", attempt {n}{}", of(task.max_iterations))).unwrap_or_default();
        let reviewed = task.reviewing_by.is_some();
        let coder_lease = if reviewed { String::new() } else { lease(task.lease) };
        let coder = task.assigned_to.map(|coder| format!("{coder}{claim}{coder_lease}"));
        let reviewer = task.reviewing_by.map(|reviewer| format!("{reviewer}{}", lease(task.lease)));
        let cycles = (task.review_cycles > 0 || record.review_cycles_total.unwrap_or(0) > 0).then(|| {
            let total = record.review_cycles_total.unwrap_or(0);
            format!("{}{} with this coder, {total} in total", task.review_cycles, of(task.max_review_cycles))
        });
        let base =
            record.base_commit.as_ref().map(|base| format!(" from {}", base.short())).unwrap_or_default();
        let impact =
            approvals_in_words(task).map(|words| format!("{words}: {}", task.high_impact.join(", ")));
        self.fields(&[
            ("Coder", coder),
            ("Code reviewer", reviewer),
            ("Rejections", cycles),
            ("Worktree", record.worktree.as_ref().map(|worktree| format!("{}{base}", self.place(worktree)))),
            ("Submitted", record.review_commit.as_ref().map(|commit| commit.short().to_owned())),
            ("Impact", impact),
            ("Facts", record.facts.as_ref().map(|facts| bullets(&facts.lines()))),
            ("Approved", record.approved_by.map(|by| by.to_string())),
            ("Merged as", record.merge_commit.as_ref().map(|commit| commit.short().to_owned())),
            ("Used", record.usage.as_ref().map(Usage::in_full)),
        ])
    }

    /// The path of a worktree, as a person enters it.
    fn place(&self, worktree: &Worktree) -> String {
        let outside = self.worktrees.as_ref().map(|folder| folder.join(self.task.id.as_str()));
        outside.map_or_else(|| worktree.to_string(), |place| place.display().to_string())
    }

    fn trouble(&self) -> Vec<String> {
        let record = self.record;
        let failed = record.failed_by.iter().flatten().copied();
        let failed: Vec<AgentId> = failed.filter(|agent| !has_only_asked(record, *agent)).collect();
        // Liza has sent it back with the same lines.
        let is_sent_back = record.past().last_verdict_by == Some(Some("system"));
        let is_reason = record.rejection_reason.is_some() && is_sent_back;
        let mut lines = self.fields(&[
            ("Takes back", record.takes_back.as_deref().map(bullets)),
            ("Rejected", record.rejection_reason.clone()),
            ("Blocked", record.blocked_reason.clone()),
            ("Questions", record.blocked_questions.as_deref().map(bullets)),
            ("Asked", asked_before(record).as_deref().map(bullets)),
            ("Attempted", record.attempted.as_deref().map(bullets)),
            ("Failed by", Some(failed).filter(|failed| !failed.is_empty()).map(|failed| names(&failed))),
            ("Rescoped", record.rescope_reason.clone()),
            ("Gate", record.gate_change.as_ref().map(gate_in_words)),
            ("Validation", record.validated.as_ref().filter(|_| !is_reason).map(validation_words)),
        ]);
        let counted = |label: &str, n: Option<u32>| {
            let sessions = count(n.filter(|n| *n > 0)? as usize, "session");
            Some(self.field(label, &format!("{sessions} since the last progress")))
        };
        lines.extend(counted("Crashed", record.crashes).into_iter().flatten());
        lines.extend(counted("No result", record.idle_exits).into_iter().flatten());
        lines
    }

    /// Pre-check, handoff, notes, anomalies and discoveries.
    fn comments(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let events = self.record.history.iter().flatten();
        if let Some(check) = events.rev().find(|event| event.is(EventName::PreExecutionCheckpoint)) {
            lines.extend(self.field("Pre-check", &facts(&check.more, "\n")));
        }
        if let Some(notes) = self.detail.handoff {
            let mut text = format!("{}: {}\nnext: {}", notes.agent, notes.summary, notes.next_action);
            for (what, more) in [("approach", &notes.approach), ("blockers", &notes.blockers)] {
                text.extend(more.iter().map(|more| format!("\n{what}: {more}")));
            }
            text.extend(notes.next_steps.iter().map(|step| format!("\n- {step}")));
            lines.extend(self.field("Handoff", &text));
        }
        for note in &self.detail.notes {
            lines.extend(self.field("Note", &format!("{} ({})", note.note.message, note.readers())));
        }
        for anomaly in &self.detail.anomalies {
            let who = anomaly.reporter.as_deref().unwrap_or("unknown");
            let text =
                format!("{who} reports {}: {}", anomaly_name(&anomaly.kind), facts(&anomaly.details, ", "));
            lines.extend(self.field("Anomaly", &text));
        }
        for discovery in &self.detail.discoveries {
            lines.extend(self.field("Discovered", &format!("{}: {}", discovery.id, discovery.description)));
        }
        lines
    }

    fn history(&self) -> Vec<String> {
        let events: Vec<&HistoryEvent> = self.record.history.iter().flatten().collect();
        if events.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![paint(BOLD, "HISTORY")];
        let name = events.iter().map(|event| width(&event_name(&event.event))).max().unwrap_or(0).min(28);
        for event in events {
            let who = event.agent.as_deref().map(|agent| format!("{agent}  ")).unwrap_or_default();
            let rest = format!("{who}{}", facts(&event.more, ", "));
            let narrow = self.columns < NARROW;
            let left = if narrow { 2 } else { TIME + 2 + name + 2 };
            let mut texts = wrap(&rest, self.columns.saturating_sub(left).max(10)).into_iter();
            let first = if narrow { String::new() } else { texts.next().unwrap_or_default() };
            let room = if narrow { self.columns.saturating_sub(TIME + 2) } else { name };
            let head = pad(&cut(&event_name(&event.event), room), name);
            let line = format!("{}  {head}  {first}", paint(DIM, &self.times.full(event.time)));
            lines.push(line.trim_end().to_owned());
            lines.extend(texts.map(|text| format!("{}{text}", " ".repeat(left))));
        }
        lines
    }
}

/// A limit behind a number; nothing while the settings cannot be read.
fn of(limit: Option<u32>) -> String {
    limit.map(|limit| format!(" of {limit}")).unwrap_or_default()
}

/// A change of the gate, and the failure under the old gate.
fn gate_in_words(change: &GateChange) -> String {
    let word = match &change.accepted {
        Some(accepted) => format!("accepted at {}", accepted.time),
        None => "not accepted".to_owned(),
    };
    let files = format!("it changes {} ({word})", change.files.join(", "));
    match &change.old_failure {
        None => files,
        Some(failure) => format!(
            "{files}. Under the gate of the integration branch the {}; output: {}\n{}",
            failure.what,
            failure.output,
            bullets(&failure.last_lines)
        ),
    }
}

fn names<T: ToString>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn bullets(items: &[String]) -> String {
    items.iter().map(|item| format!("- {}", one_line(item))).collect::<Vec<_>>().join("\n")
}

/// A map of facts as text; commit IDs are shortened.
fn facts(fields: &Fields, between: &str) -> String {
    let shown = |(key, value): (String, &Value)| {
        let text = one_line(&value.to_string());
        let commit = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        format!("{key}: {}", if commit { &text[..8] } else { &text })
    };
    task_words::facts(fields).map(shown).collect::<Vec<_>>().join(between)
}

/// The last questions of the task, if it is not blocked now.
fn asked_before(record: &TaskRecord) -> Option<Vec<String>> {
    let block = record.events().rev().find(|event| event.is(EventName::Blocked))?;
    let Some(Value::List(questions)) = block.more.get("questions") else { return None };
    let is_open = record.blocked_questions.is_some();
    Some(questions.iter().map(ToString::to_string).collect()).filter(|_| !is_open)
}

/// True if a coder has blocked the task itself, with a question, and was never stopped by a limit.
fn has_only_asked(record: &TaskRecord, agent: AgentId) -> bool {
    let name = agent.to_string();
    let blocks: Vec<&HistoryEvent> = record.events().filter(|event| event.is(EventName::Blocked)).collect();
    let stopped =
        |event: &HistoryEvent| event.more.get("coder").is_some_and(|coder| coder.to_string() == name);
    let asked = blocks.iter().any(|event| event.agent.as_deref() == Some(&name));
    asked && !blocks.iter().any(|event| stopped(event))
}
