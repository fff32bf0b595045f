//! Parts of the prompts of several roles: notes, handoffs, earlier verdicts, changed specifications.

use std::path::Path;

use liza_core::model::{
    AgentId, EventName, Handoff, HistoryEvent, Role, SpecChange, State, TaskId, TaskRecord, Value,
};
use liza_core::rules::notes::{notes_for, unread};
use liza_core::rules::validation::commands;
use liza_core::text::count;

use super::prompt_text::{PromptText, inline, path, word};

/// The most notes in a prompt; the rest are left to `liza get`.
const NOTES_MAX: usize = 20;

/// The most commands in a prompt, and the length of each.
const COMMANDS_SHOWN: (usize, usize) = (30, 200);

pub(super) fn history(record: &TaskRecord) -> &[HistoryEvent] {
    record.history.as_deref().unwrap_or_default()
}

pub(super) fn last(record: &TaskRecord, name: EventName) -> Option<&HistoryEvent> {
    history(record).iter().rev().find(|event| event.is(name))
}

fn position_of(record: &TaskRecord, name: EventName) -> Option<usize> {
    history(record).iter().rposition(|event| event.is(name))
}

/// A fact of an event as text; empty if it is missing.
pub(super) fn fact(event: &HistoryEvent, key: &str) -> String {
    event.more.get(key).map(ToString::to_string).unwrap_or_default()
}

pub(super) fn facts(event: &HistoryEvent, key: &str) -> Vec<String> {
    match event.more.get(key) {
        Some(Value::List(items)) => items.iter().map(ToString::to_string).collect(),
        Some(value) if !value.is_blank() => vec![value.to_string()],
        Some(_) | None => Vec::new(),
    }
}

/// The absolute path of the specification, with its anchor.
pub(super) fn spec(project: &Path, spec_ref: Option<&str>) -> String {
    match spec_ref.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => path(&project.join(text)),
        None => "(not given)".to_owned(),
    }
}

pub(super) fn write_definition(page: &mut PromptText, project: &Path, record: &TaskRecord) {
    page.field("DESCRIPTION", record.description.as_deref().unwrap_or_default());
    page.field("DONE WHEN", record.done_when.as_deref().unwrap_or_default());
    page.field("SCOPE", record.scope.as_deref().unwrap_or_default());
    page.line(format!("SPEC: {}", spec(project, record.spec_ref.as_deref())));
}

/// Names the commands that Liza runs on the work: those of the project, and of the task if there is one. `liza show` has
/// what is left out.
pub(super) fn write_validation(page: &mut PromptText, state: &State, record: &TaskRecord, reader: Role) {
    let Some(config) = state.board.config.ready() else { return };
    let lines: Vec<String> = commands(config, record).into_iter().map(|command| command.line).collect();
    let heading = match reader {
        Role::CodeReviewer => {
            "VALIDATION: Liza has run these on this commit, in a copy of its own, and all passed. They are not your evidence: \
             judge what they do not show"
        }
        Role::Coder => {
            "VALIDATION: Liza runs these on your commit before a review; if one fails, the commit comes back to you. Run them yourself: liza check"
        }
        Role::Planner => {
            "VALIDATION: Liza runs these on the work of every task. A task's own command (--validate) shows what only this task does"
        }
    };
    page.short_list(heading, &lines, COMMANDS_SHOWN);
    let flaky = record.validated.as_ref().filter(|_| reader == Role::CodeReviewer);
    let flaky = flaky.map(|validated| validated.flaky.as_slice()).unwrap_or_default();
    page.short_list("PASSED ONLY AT THE SECOND TRY", flaky, COMMANDS_SHOWN);
}

/// The goal's specification, as a word of a command.
pub(super) fn goal_spec(state: &State) -> String {
    let goal = state.board.goal.ready().and_then(|goal| goal.spec_ref.as_deref());
    let file = goal.map(|spec| spec.split('#').next().unwrap_or_default().trim().to_owned());
    word(Path::new(file.as_deref().filter(|file| !file.is_empty()).unwrap_or("specs/vision.md")))
}

pub(super) struct Rejection<'r> {
    pub reason: &'r str,
    /// The reviewer, the commit and the time.
    pub by: String,
    pub coder: Option<&'r str>,
}

/// The last verdict, if it was a rejection.
pub(super) fn open_rejection(record: &TaskRecord) -> Option<Rejection<'_>> {
    let reason = record.rejection_reason.as_deref()?;
    let Some(at) = position_of(record, EventName::Rejected) else {
        return Some(Rejection { reason, by: "an earlier review".to_owned(), coder: None });
    };
    if position_of(record, EventName::Approved).is_some_and(|approved| approved > at) {
        return None;
    }
    let (before, event) = (history(record).get(..at)?, history(record).get(at)?);
    let claim = before.iter().rev().find(|event| event.is_claim());
    let who = inline(event.agent.as_deref().unwrap_or("system"));
    let commit = fact(event, "commit");
    let of = if commit.is_empty() { String::new() } else { format!(" of commit {}", inline(&commit)) };
    Some(Rejection {
        reason,
        by: format!("{who}{of}, {}", event.time),
        coder: claim.and_then(|event| event.agent.as_deref()),
    })
}

/// The handoff notes for a session of this role on this task: those not yet followed by a submission.
pub(super) fn handoff_for<'s>(
    state: &'s State,
    task: &TaskId,
    record: &TaskRecord,
    role: Role,
) -> Option<&'s Handoff> {
    let notes = state.board.handoff.ready()?.get(task).filter(|notes| notes.reader() == role)?;
    let pending = record.handoff_pending == Some(true);
    let written = position_of(record, EventName::Handoff);
    let current = role != Role::Coder || written > position_of(record, EventName::ReadyForReview);
    (pending || current).then_some(notes)
}

/// Writes handoff notes; `reader` is the agent that the prompt is for.
pub(super) fn write_handoff(page: &mut PromptText, notes: &Handoff, reader: AgentId) {
    let time = notes.timestamp.map(|time| format!(", {time}")).unwrap_or_default();
    let used = notes.context_used.as_deref().map(|used| format!(", context {} full", inline(used)));
    page.gap();
    page.line(format!("HANDOFF NOTES (from {}{time}{}):", notes.agent, used.unwrap_or_default()));
    page.field("Summary", &notes.summary);
    page.field("Next action", &notes.next_action);
    page.field_some("Approach", notes.approach.as_deref());
    page.field_some("Blockers", notes.blockers.as_deref());
    page.list("Files modified", &notes.files_modified);
    page.list("Next steps", &notes.next_steps);
    if notes.agent != reader {
        page.line("Another agent wrote these notes: if they and git disagree, git is right.");
    }
}

/// The step that ends a session whose context is almost full.
pub(super) fn handoff_step(before: &str, command: &str) -> String {
    format!(
        "If your context is almost full before that: {before}hand off and end your turn:\n{command} --summary \"...\" \
         --next-action \"...\""
    )
}

/// Writes that the agent's last session on the task left no result, and what is missing.
pub(super) fn write_no_result(page: &mut PromptText, record: &TaskRecord, agent: AgentId, missing: &str) {
    let since = position_of(record, EventName::Blocked).map_or(0, |at| at + 1);
    let own = |event: &&HistoryEvent| {
        event.is(EventName::SessionEnded) && event.agent.as_deref() == Some(agent.to_string().as_str())
    };
    let recent = history(record).get(since..).unwrap_or_default();
    let Some((event, end)) =
        recent.iter().rev().find(own).and_then(|event| Some((event, event.model_end()?)))
    else {
        return;
    };
    page.gap();
    page.line(format!("NO RESULT: your last session ended at {}: {}.", event.time, end.describe()));
    page.line(format!(
        "What is missing: do the work with your tools and {missing}, with the commands below. This is the last try."
    ));
}

/// Writes the notes of the human: those that the agent has not read, and the newest of the others.
pub(super) fn write_notes(page: &mut PromptText, state: &State, agent: AgentId, task: Option<&TaskId>) {
    let notes = notes_for(state, agent, task);
    if notes.is_empty() {
        return;
    }
    page.gap();
    page.line("HUMAN NOTES (they override description, scope and tier 1, never tier 0):");
    let skipped = notes.len() - NOTES_MAX.max(unread(state, agent, task).len()).min(notes.len());
    if skipped > 0 {
        page.line(format!("({} left out: liza get human_notes)", count(skipped, "older note")));
    }
    for note in notes.iter().skip(skipped) {
        let to = note.to.as_ref().map_or_else(|| "for all agents".to_owned(), |task| format!("for {task}"));
        page.quote(&format!("{}, {to}: {}", note.timestamp, note.message));
    }
}

/// Writes the changes of a task's specification since the task was created.
pub(super) fn write_spec_changes(page: &mut PromptText, state: &State, record: &TaskRecord) {
    let file = |text: &str| text.split('#').next().unwrap_or_default().trim().to_owned();
    let Some(own) = record.spec_ref.as_deref().map(file) else { return };
    let since = |change: &&SpecChange| {
        file(&change.spec) == own && record.created.is_none_or(|created| change.timestamp >= created)
    };
    let describe = |change: &SpecChange| {
        format!("{} {}: {}", change.timestamp, inline(&change.spec), inline(&change.change))
    };
    let changes: Vec<String> = state.journal.spec_changes.iter().filter(since).map(describe).collect();
    if !changes.is_empty() {
        page.gap();
        page.list("SPEC CHANGES since the task was written (the current spec applies)", &changes);
    }
}
