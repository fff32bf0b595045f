//! `=== PLANNING CONTEXT ===`: the planner's triggers, the state of the sprint, and the open decisions.

use liza_core::model::{
    DISCOVERY_MAX, Discovery, EventName, HUMAN_OVERRIDE, MAX_FAILED_CODERS, REVIEW_DEADLOCK, Role, State,
    Status, TaskId, TaskRecord, TaskSummary, Urgency,
};
use liza_core::rules::triggers::{Trigger, TriggerKind};
use liza_core::text::{count, one_line};

use super::Brief;
use super::attempts::write_attempts;
use super::context::{
    fact, facts, goal_spec, history, last, spec, write_handoff, write_notes, write_validation,
};
use super::planner_steps::{WakeReasons, steps};
use super::prompt_text::{PromptText, inline, path, word};

pub(super) fn write(page: &mut PromptText, state: &State, brief: &Brief, triggers: &[Trigger]) {
    page.section("PLANNING CONTEXT");
    write_wake(page, triggers);
    write_goal(page, state, brief);
    write_sprint(page, state);
    write_blocked(page, state, brief);
    write_failed_merges(page, state, brief);
    write_discoveries(page, state);
    let handoffs = state.board.handoff.ready().into_iter().flat_map(|notes| notes.values());
    for notes in handoffs.filter(|notes| notes.reader() == Role::Planner) {
        write_handoff(page, notes, brief.agent);
    }
    write_notes(page, state, brief.agent, None);
    page.gap();
    page.line("INSTRUCTIONS:");
    let (liza, spec) = (word(&brief.program), goal_spec(state));
    let blocked = tasks_in(state, Status::Blocked);
    let find = |wanted: fn(&TaskRecord) -> bool| {
        blocked.iter().find(|(_, record)| wanted(record)).map(|(id, record)| (*id, *record))
    };
    page.steps(&steps(&WakeReasons {
        liza: &liza,
        spec: &spec,
        triggers,
        deadlocked: find(is_deadlock).map(|(id, _)| id),
        overridden: find(is_overridden).map(|(id, record)| (id, record.worktree.is_some())),
        has_copy: brief.integration_copy.is_some(),
    }));
}

fn is_deadlock(record: &TaskRecord) -> bool {
    record.status == Some(Status::Blocked) && record.blocked_reason.as_deref() == Some(REVIEW_DEADLOCK)
}

/// True if the human has blocked the task, by command or in an editor.
fn is_overridden(record: &TaskRecord) -> bool {
    let by_human =
        last(record, EventName::Blocked).is_some_and(|event| event.agent.as_deref() == Some("human"));
    by_human || record.blocked_reason.as_deref().map(str::trim) == Some(HUMAN_OVERRIDE)
}

/// The first trigger woke the planner; the others are listed as waiting.
fn write_wake(page: &mut PromptText, triggers: &[Trigger]) {
    let mut kinds: Vec<TriggerKind> = triggers.iter().map(|trigger| trigger.kind).collect();
    kinds.dedup();
    let names: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    match names.split_first() {
        None => page.line("WAKE TRIGGER: NONE"),
        Some((first, rest)) => {
            page.line(format!("WAKE TRIGGER: {first}"));
            if !rest.is_empty() {
                page.line(format!("ALSO WAITING: {}", rest.join(", ")));
            }
        }
    }
    for trigger in triggers {
        let detail = one_line(&trigger.detail, 200);
        page.quote(&format!("{} {}: {detail}", trigger.kind, inline(&trigger.subject)));
    }
}

fn write_goal(page: &mut PromptText, state: &State, brief: &Brief) {
    page.gap();
    if let Some(goal) = state.board.goal.ready() {
        page.line(format!("GOAL ID: {} ({})", inline(&goal.id), goal.status));
        page.field("GOAL", &goal.description);
        page.line(format!("VISION: {}", spec(&brief.project, goal.spec_ref.as_deref())));
    }
    if let Some(copy) = &brief.integration_copy {
        page.line(format!("INTEGRATION COPY: {}", path(copy)));
        page.line("(a scratch checkout of the integration branch's head: run and change what you like in it; it is deleted)");
    }
    write_validation(page, state, &TaskRecord::default(), Role::Planner);
    if let Some(alignment) = state.journal.alignment_history.last() {
        page.field(&format!("LAST ALIGNMENT ({})", alignment.timestamp), &alignment.summary);
    }
    let decision = state.board.sprint.ready().and_then(|sprint| sprint.decisions.last());
    if let Some(decision) = decision {
        let note = decision.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
        let what = format!("{}{note}", decision.decision);
        page.field(&format!("HUMAN DECISION at the last checkpoint ({})", decision.timestamp), &what);
    }
}

/// Counts every task on the board; in_progress as the sprint's metrics define it.
fn write_sprint(page: &mut PromptText, state: &State) {
    let board = &state.board;
    let count =
        |statuses: &[Status]| board.summaries().filter(|task| statuses.iter().any(|s| task.is(*s))).count();
    let exhausted = |task: &&TaskSummary| {
        !task.status.is_some_and(Status::is_terminal) && task.failed_by.len() >= MAX_FAILED_CODERS
    };
    let pressing = discoveries(state).filter(|found| found.is_pressing()).count();
    page.gap();
    match board.sprint.ready() {
        Some(sprint) => page.line(format!("SPRINT STATE ({}, {}):", inline(&sprint.id), sprint.status)),
        None => page.line("SPRINT STATE:"),
    }
    let in_progress = [
        Status::Claimed,
        Status::ReadyForReview,
        Status::Rejected,
        Status::Approved,
        Status::IntegrationFailed,
    ];
    let counters = [
        ("total", board.tasks.len()),
        ("merged", count(&[Status::Merged])),
        ("in_progress", count(&in_progress)),
        ("unclaimed", count(&[Status::Unclaimed])),
        ("blocked", count(&[Status::Blocked])),
        ("integration_failed", count(&[Status::IntegrationFailed])),
        ("hypothesis_exhausted", board.summaries().filter(exhausted).count()),
        ("immediate_discoveries", pressing),
        ("draft", count(&[Status::Draft])),
        ("abandoned_or_superseded", count(&[Status::Abandoned, Status::Superseded])),
    ];
    for (name, number) in counters {
        page.line(format!("{name}: {number}"));
    }
    let drafts: Vec<String> =
        board.summaries().filter(|task| task.is(Status::Draft)).map(|task| task.id.to_string()).collect();
    if !drafts.is_empty() {
        page.line(format!(
            "DRAFTS left by an earlier session (complete and finalize them, or abandon them): {}",
            drafts.join(", ")
        ));
    }
}

/// The tasks in that status, by priority, then age.
fn tasks_in(state: &State, status: Status) -> Vec<(&TaskId, &TaskRecord)> {
    let all = state.bodies().map(|(id, body)| (id, body.record()));
    let mut tasks: Vec<_> = all.filter(|(_, record)| record.status == Some(status)).collect();
    tasks.sort_by_key(|(_, record)| (record.priority.unwrap_or(3), record.created));
    tasks
}

fn title(id: &TaskId, record: &TaskRecord, brief: &Brief) -> String {
    let age = record.created.map(|created| format!(", created {} ago", brief.now.since(created)));
    format!("TASK: {id} (priority {}{})", record.priority.unwrap_or(3), age.unwrap_or_default())
}

fn write_blocked(page: &mut PromptText, state: &State, brief: &Brief) {
    let tasks = tasks_in(state, Status::Blocked);
    if tasks.is_empty() {
        return;
    }
    page.gap();
    page.line("BLOCKED TASKS, by priority, then age:");
    for (id, record) in tasks {
        page.gap();
        page.line(title(id, record, brief));
        page.field("Description", record.description.as_deref().unwrap_or_default());
        page.field("Done when", record.done_when.as_deref().unwrap_or_default());
        page.field("Blocked by", record.blocked_reason.as_deref().unwrap_or_default());
        page.list("Questions", record.blocked_questions.as_deref().unwrap_or_default());
        page.list("Tried", record.attempted.as_deref().unwrap_or_default());
        let failed: Vec<String> = record.failed_by.iter().flatten().map(ToString::to_string).collect();
        if !failed.is_empty() {
            let note = if failed.len() >= MAX_FAILED_CODERS {
                " (HYPOTHESIS_EXHAUSTED: cannot be unblocked)"
            } else {
                ""
            };
            page.line(format!("Failed by: {}{note}", failed.join(", ")));
        }
        if record.worktree.is_some() {
            page.line(format!("Work so far: {}", path(&brief.worktrees.join(id.as_str()))));
        }
        if is_deadlock(record) {
            let rejections = count(record.review_cycles_current.unwrap_or(0) as usize, "rejection");
            page.line(format!(
                "REVIEW_DEADLOCK after {rejections}: what coder and reviewer could not agree on is below."
            ));
        }
        if is_overridden(record) {
            page.line("The human blocked this task, to have it planned again.");
        }
        let current: Vec<_> = last(record, EventName::Blocked).into_iter().collect();
        write_attempts(page, state, id, record, &current);
    }
}

fn write_failed_merges(page: &mut PromptText, state: &State, brief: &Brief) {
    let tasks = tasks_in(state, Status::IntegrationFailed);
    if tasks.is_empty() {
        return;
    }
    page.gap();
    page.line("FAILED MERGES, by priority, then age:");
    for (id, record) in tasks {
        page.gap();
        page.line(title(id, record, brief));
        page.field("Description", record.description.as_deref().unwrap_or_default());
        let times = history(record).iter().filter(|event| event.is(EventName::IntegrationFailed)).count();
        page.line(format!("Failed merges: {times}"));
        let Some(event) = last(record, EventName::IntegrationFailed) else { continue };
        page.field("Last failure", &fact(event, "reason"));
        page.list("Conflicting files", &facts(event, "files"));
        let output = fact(event, "output");
        if !output.is_empty() {
            page.line(format!("Test output: {}", path(&brief.project.join(output))));
        }
    }
}

fn discoveries(state: &State) -> impl Iterator<Item = &Discovery> {
    state.board.discovered.ready().into_iter().flatten()
}

fn write_discoveries(page: &mut PromptText, state: &State) {
    let open = |urgency: Urgency| {
        let mut found: Vec<&Discovery> =
            discoveries(state).filter(|found| found.urgency == urgency && found.is_open()).collect();
        found.sort_by_key(|found| (found.severity, found.id));
        found.into_iter().map(describe).collect::<Vec<String>>()
    };
    for (urgency, heading) in
        [(Urgency::Immediate, "IMMEDIATE DISCOVERIES"), (Urgency::Deferred, "OPEN DEFERRED DISCOVERIES")]
    {
        let found = open(urgency);
        if !found.is_empty() {
            page.gap();
            page.list(heading, &found);
        }
    }
}

fn describe(found: &Discovery) -> String {
    let short = (found.size() > DISCOVERY_MAX).then(|| found.bounded());
    let found = short.as_ref().unwrap_or(found);
    let severity = format!("{:?}", found.severity).to_lowercase();
    let by = found.by.as_deref().map(|by| format!(", by {}", inline(by))).unwrap_or_default();
    let during = found.during.as_ref().map(|task| format!(", during {task}")).unwrap_or_default();
    let advice = found.recommendation.as_deref().map(|text| format!("\nRecommendation: {text}"));
    format!("{} ({severity}{by}{during}): {}{}", found.id, found.description, advice.unwrap_or_default())
}
