//! The planner's commands: add-task, edit-task, finalize, unblock-task, supersede-task, abandon-task.

use crate::agent::{Actor, Role};
use crate::board::DEFAULT_PRIORITY;
use crate::change::Appended;
use crate::command::{NewTask, TaskEdit};
use crate::effect::Effect;
use crate::event::{EventName, HistoryEvent, LogAction, one_line};
use crate::goal::{Alignment, GoalStatus};
use crate::ids::TaskId;
use crate::needs::dependants;
use crate::notes::{Anomaly, AnomalyType};
use crate::record::{Status, TaskRecord};
use crate::refusal::Refusal;
use crate::sprint::SprintStatus;
use crate::task::{EXHAUSTED, Kept, REVIEW_DEADLOCK, Task, TaskStatus, clear_owned};
use crate::value::Fields;

use super::block::missing_gates;
use super::sprint::start_next_sprint;
use super::tx::{Tx, required};

const PRIORITIES: std::ops::RangeInclusive<i64> = 1..=5;

fn check_priority(priority: i64) -> Result<i64, Refusal> {
    if PRIORITIES.contains(&priority) {
        return Ok(priority);
    }
    Err(Refusal::BadText {
        what: "priority",
        problem: format!("{priority} is not 1 (highest) to 5 (lowest)"),
    })
}

fn check_dependencies(tx: &Tx<'_>, task: &TaskId, depends_on: &[TaskId]) -> Result<(), Refusal> {
    match depends_on.iter().find(|dependency| *dependency == task || !tx.knows(dependency)) {
        Some(own) if own == task => {
            Err(Refusal::BadText { what: "depends_on", problem: format!("{task} cannot depend on itself") })
        }
        Some(unknown) => Err(Refusal::UnknownDependency { task: task.clone(), dependency: unknown.clone() }),
        None => Ok(()),
    }
}

fn check_gates(task: &TaskId, record: &TaskRecord) -> Result<(), Refusal> {
    let missing = missing_gates(record, true);
    if missing.is_empty() { Ok(()) } else { Err(Refusal::GatesMissing { task: task.clone(), missing }) }
}

/// Writes a task down; it joins the sprint's plan.
pub(super) fn add_task(tx: &mut Tx<'_>, id: &TaskId, new: &NewTask) -> Result<(), Refusal> {
    if tx.knows(id) {
        return Err(Refusal::TaskExists { task: id.clone() });
    }
    let goal = tx.board.goal.get(crate::board::Section::Goal)?;
    if goal.status != GoalStatus::InProgress {
        return Err(Refusal::GoalNotOpen { status: goal.status });
    }
    let description = required(&new.description, "what to build (--desc)")?;
    check_dependencies(tx, id, &new.depends_on)?;
    let said =
        |text: &Option<String>| text.as_deref().map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned);
    let status = if new.draft { Status::Draft } else { Status::Unclaimed };
    let record = TaskRecord {
        id: Some(id.clone()),
        description: Some(description.to_owned()),
        status: Some(status),
        priority: Some(check_priority(new.priority.unwrap_or(DEFAULT_PRIORITY))?),
        depends_on: Some(new.depends_on.clone()),
        spec_ref: said(&new.spec_ref),
        done_when: said(&new.done_when),
        scope: said(&new.scope),
        max_iterations: new.max_iterations,
        max_review_cycles: new.max_review_cycles,
        lease_duration_override: new.lease,
        created: Some(tx.now),
        history: Some(vec![tx.event(EventName::Created)]),
        ..TaskRecord::default()
    };
    if !new.draft {
        check_gates(id, &record)?;
    }
    join_sprint(tx, id, new.stretch)?;
    tx.log(LogAction::Task(EventName::Created), Some(id), description);
    tx.reply("task", id.as_str());
    tx.reply("status", status.name());
    tx.put_record(id.clone(), record);
    Ok(())
}

/// A task that comes after the sprint was completed opens the next one.
fn join_sprint(tx: &mut Tx<'_>, id: &TaskId, stretch: bool) -> Result<(), Refusal> {
    match tx.sprint()?.status {
        SprintStatus::Aborted => {
            let status = SprintStatus::Aborted;
            return Err(Refusal::SprintStatus { status, verb: "add-task", needed: "an open sprint" });
        }
        SprintStatus::Completed => start_next_sprint(tx)?,
        SprintStatus::InProgress | SprintStatus::Checkpoint => {}
    }
    let scope = &mut tx.sprint()?.scope;
    if stretch {
        scope.stretch.push(id.clone())
    } else {
        scope.planned.push(id.clone())
    }
    Ok(())
}

/// Completes or corrects a task that nobody has begun.
pub(super) fn edit_task(tx: &mut Tx<'_>, id: &TaskId, edit: &TaskEdit) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    if !matches!(task.status, TaskStatus::Draft | TaskStatus::Unclaimed { .. }) {
        return Err(tx.wrong_status(&task, "DRAFT or UNCLAIMED"));
    }
    check_unreserved(tx, &task)?;
    let mut changed = Vec::new();
    let record = &mut task.record;
    let texts = [
        ("description", &edit.description, &mut record.description),
        ("spec_ref", &edit.spec_ref, &mut record.spec_ref),
        ("done_when", &edit.done_when, &mut record.done_when),
        ("scope", &edit.scope, &mut record.scope),
    ];
    for (name, new, field) in texts {
        if let Some(new) = new {
            *field = Some(required(new, "the new text")?.to_owned());
            changed.push(name);
        }
    }
    if let Some(priority) = edit.priority {
        record.priority = Some(check_priority(priority)?);
        changed.push("priority");
    }
    if let Some(depends_on) = &edit.depends_on {
        check_dependencies(tx, id, depends_on)?;
        record.depends_on = Some(depends_on.clone());
        changed.push("depends_on");
    }
    if changed.is_empty() {
        return Err(Refusal::NothingToDo { what: "change: name at least one field" });
    }
    tx.log(LogAction::Edited, Some(id), &format!("changed {}", changed.join(", ")));
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

/// Nobody changes a task under the hands of somebody who is claiming it.
fn check_unreserved(tx: &Tx<'_>, task: &Task) -> Result<(), Refusal> {
    match task.record.reservation.as_ref().filter(|reservation| reservation.is_live(tx.now)) {
        Some(r) => Err(Refusal::Reserved { task: task.id.clone(), by: r.by, until: r.expires }),
        None => Ok(()),
    }
}

/// Makes drafts claimable, all together or not at all.
pub(super) fn finalize(tx: &mut Tx<'_>, named: &[TaskId]) -> Result<(), Refusal> {
    let tasks: Vec<TaskId> = match named {
        [] => tx.board.heads().filter(|head| head.is(Status::Draft)).map(|head| head.id.clone()).collect(),
        named => named.to_vec(),
    };
    if tasks.is_empty() {
        return Err(Refusal::NothingToDo { what: "finalize: there is no DRAFT" });
    }
    for id in &tasks {
        finalize_one(tx, id)?;
    }
    let names: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    let detail = format!("{} task(s) moved from DRAFT to UNCLAIMED: {}", names.len(), names.join(", "));
    let only = if let [one] = tasks.as_slice() { Some(one) } else { None };
    tx.log(LogAction::TasksFinalized, only, &detail);
    tx.reply("tasks", names);
    tx.reply("status", Status::Unclaimed.name());
    Ok(())
}

/// All gates of a draft.
fn check_finalizable(tx: &Tx<'_>, task: &Task) -> Result<(), Refusal> {
    check_gates(&task.id, &task.record)?;
    check_dependencies(tx, &task.id, task.record.depends_on.as_deref().unwrap_or_default())
}

fn finalize_one(tx: &mut Tx<'_>, id: &TaskId) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    if !matches!(task.status, TaskStatus::Draft) {
        return Err(tx.wrong_status(&task, "DRAFT"));
    }
    check_finalizable(tx, &task)?;
    task.status = TaskStatus::Unclaimed { kept: Kept::default() };
    task.remember(tx.event(EventName::Finalized));
    tx.put(task);
    Ok(())
}

/// How a blocked task is released.
pub(super) struct Unblocking<'t> {
    pub(super) reset_cycles: bool,
    pub(super) same_coder: bool,
    pub(super) keep_worktree: bool,
    pub(super) assessment: Option<&'t str>,
}

/// Releases a blocked task, unless two coders have failed at it.
pub(super) fn unblock(tx: &mut Tx<'_>, id: &TaskId, how: &Unblocking<'_>) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    let TaskStatus::Blocked { block, kept } = task.status.clone() else {
        return Err(tx.wrong_status(&task, "BLOCKED"));
    };
    let failed_by = task.record.failed_by.clone().unwrap_or_default();
    if failed_by.len() >= EXHAUSTED {
        return Err(Refusal::HypothesisExhausted { task: id.clone(), failed_by });
    }
    let assessment = how.assessment.map(str::trim).filter(|text| !text.is_empty());
    if block.reason == REVIEW_DEADLOCK && assessment.is_none() && tx.actor != Actor::Human {
        return Err(Refusal::AssessmentNeeded { task: id.clone(), cause: block.reason });
    }
    let next = kept_after_unblock(id, &kept, how)?;
    if next.worktree.is_none() {
        task.record.handoff_pending = task.record.handoff_pending.map(|_| false);
        task.record.integration_fix = task.record.integration_fix.map(|_| false);
        tx.drop_handoff(id)?;
        tx.effect(Effect::RemoveWorktree { task: id.clone() });
    }
    if how.reset_cycles {
        task.record.review_cycles_current = Some(0);
    }
    task.record.iteration = None;
    let event = tx.event(EventName::Unblocked).with("was", block.reason.as_str());
    task.remember(event.with_some("assessment", assessment));
    if let Some(assessment) = assessment {
        record_assessment(tx, &task, &block.reason, assessment);
    }
    let detail = match (how.same_coder, next.coder) {
        (true, Some(coder)) => format!("back to {coder}"),
        _ if next.worktree.is_some() => "for another coder, worktree kept".to_owned(),
        _ => "for another coder".to_owned(),
    };
    task.status = TaskStatus::Unclaimed { kept: next };
    tx.settle(task, EventName::Unblocked, &detail);
    Ok(())
}

fn kept_after_unblock(id: &TaskId, kept: &Kept, how: &Unblocking<'_>) -> Result<Kept, Refusal> {
    let nothing = |what| Refusal::NothingKept { task: id.clone(), what };
    if how.same_coder {
        kept.coder.ok_or_else(|| nothing("coder"))?;
        return Ok(kept.clone());
    }
    if how.keep_worktree {
        kept.worktree.as_ref().ok_or_else(|| nothing("worktree"))?;
        return Ok(Kept { coder: None, ..kept.clone() });
    }
    Ok(Kept::default())
}

/// A deadlock or an exhausted hypothesis is settled together with what the planner makes of it.
fn record_assessment(tx: &mut Tx<'_>, task: &Task, blocked_reason: &str, assessment: &str) {
    let exhausted = task.record.failed_by.as_ref().is_some_and(|failed| failed.len() >= EXHAUSTED);
    let kind = match (blocked_reason == REVIEW_DEADLOCK, exhausted) {
        (true, _) => AnomalyType::ReviewDeadlock,
        (false, true) => AnomalyType::HypothesisExhaustion,
        (false, false) => return,
    };
    let details = Fields::from_iter([("assessment".to_owned(), assessment.into())]);
    tx.append(Appended::Anomaly(Anomaly {
        timestamp: tx.now,
        task: Some(task.id.clone()),
        reporter: Some(tx.actor.to_string()),
        kind: kind.name().to_owned(),
        details,
    }));
}

/// Why a task is replaced.
pub(super) struct Rescope<'t> {
    pub(super) reason: &'t str,
    pub(super) root_cause: &'t str,
    pub(super) summary: Option<&'t str>,
}

/// Whether the planner may take the task off the board: not while somebody has it.
fn check_removable(tx: &Tx<'_>, task: &Task) -> Result<(), Refusal> {
    let free = matches!(
        task.status.name(),
        Status::Draft | Status::Unclaimed | Status::Rejected | Status::IntegrationFailed | Status::Blocked
    );
    if !free {
        let needed = "DRAFT, UNCLAIMED, REJECTED, INTEGRATION_FAILED or BLOCKED";
        return Err(tx.wrong_status(task, needed));
    }
    check_unreserved(tx, task)
}

fn blocked_reason(task: &Task) -> String {
    task.record.blocked_reason.clone().unwrap_or_default()
}

/// Replaces a task by others: the original, its replacements, their plan and those who wait change in one write.
pub(super) fn supersede(
    tx: &mut Tx<'_>,
    id: &TaskId,
    by: &[TaskId],
    why: &Rescope<'_>,
) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    check_removable(tx, &task)?;
    let reason = required(why.reason, "why it is replaced (--reason)")?;
    let root_cause = required(why.root_cause, "what was at the bottom of it (--root-cause)")?;
    if by.is_empty() {
        return Err(Refusal::Missing { what: "the replacements (--by a,b)" });
    }
    let by = each_once(by);
    for replacement in &by {
        adopt(tx, &task, replacement, reason)?;
    }
    rewire(tx, id, &by)?;
    extend_plan(tx, id, &by)?;

    record_assessment(tx, &task, &blocked_reason(&task), root_cause);
    let names: Vec<String> = by.iter().map(ToString::to_string).collect();
    let list = names.join(", ");
    let summary = match why.summary.map(str::trim).filter(|text| !text.is_empty()) {
        Some(summary) => summary.to_owned(),
        None => format!("Change: {id} replaced by {list} ({reason}).\nRoot cause: {root_cause}"),
    };
    let event = format!("rescope_{id}");
    tx.append(Appended::Alignment(Alignment { timestamp: tx.now, event, summary }));
    task.remember(
        tx.event(EventName::Superseded)
            .with("by", names.clone())
            .with("reason", reason)
            .with("root_cause", root_cause),
    );
    if task.status.kept().worktree.is_some() {
        tx.effect(Effect::RemoveWorktree { task: id.clone() });
    }
    tx.drop_handoff(id)?;
    task.record.reservation = None;
    task.record.handoff_pending = task.record.handoff_pending.map(|_| false);
    task.status = TaskStatus::Superseded { by, reason: reason.to_owned() };
    tx.log(LogAction::Rescoped, Some(id), &format!("SUPERSEDED → {list} ({})", one_line(root_cause, 160)));
    tx.reply("superseded_by", names);
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

fn each_once(tasks: &[TaskId]) -> Vec<TaskId> {
    let mut once: Vec<TaskId> = Vec::new();
    for task in tasks {
        if !once.contains(task) {
            once.push(task.clone());
        }
    }
    once
}

/// Makes a replacement claimable, with a reference to what it replaces.
fn adopt(tx: &mut Tx<'_>, original: &Task, id: &TaskId, reason: &str) -> Result<(), Refusal> {
    let bad = |why: &str| Refusal::BadReplacement {
        task: original.id.clone(),
        replacement: id.clone(),
        why: why.to_owned(),
    };
    if *id == original.id {
        return Err(bad("a task cannot replace itself"));
    }
    if !tx.knows(id) {
        return Err(bad("it does not exist"));
    }
    let mut task = tx.task(id)?;
    if matches!(task.status, TaskStatus::Draft) {
        check_finalizable(tx, &task)?;
        task.status = TaskStatus::Unclaimed { kept: Kept::default() };
        task.remember(tx.event(EventName::Finalized).with("supersedes", original.id.as_str()));
    } else if !matches!(task.status, TaskStatus::Unclaimed { .. }) {
        return Err(bad(&format!("it is {}, not DRAFT or UNCLAIMED", task.status.name())));
    }
    check_unreserved(tx, &task)?;
    let supersedes = task.record.supersedes.get_or_insert_default();
    if !supersedes.contains(&original.id) {
        supersedes.push(original.id.clone());
    }
    task.record.rescope_reason = Some(reason.to_owned());
    tx.put(task);
    Ok(())
}

/// Lets those who waited for the original wait for its replacements.
fn rewire(tx: &mut Tx<'_>, original: &TaskId, by: &[TaskId]) -> Result<(), Refusal> {
    for id in dependants(tx.board, original) {
        if tx.status(&id).is_some_and(Status::is_terminal) {
            continue;
        }
        let mut task = tx.task(&id)?;
        let old = task.record.depends_on.take().unwrap_or_default();
        let mut new = Vec::new();
        for dependency in old {
            let next = if dependency == *original { by } else { std::slice::from_ref(&dependency) };
            new.extend(
                next.iter().filter(|next| **next != id && !new.contains(*next)).cloned().collect::<Vec<_>>(),
            );
        }
        task.record.depends_on = Some(new);
        tx.put(task);
    }
    Ok(())
}

/// A sprint is not complete while the replacement of a planned task is open.
fn extend_plan(tx: &mut Tx<'_>, original: &TaskId, by: &[TaskId]) -> Result<(), Refusal> {
    let scope = &mut tx.sprint()?.scope;
    let list = if scope.stretch.contains(original) { &mut scope.stretch } else { &mut scope.planned };
    let new: Vec<TaskId> = by.iter().filter(|id| !list.contains(id)).cloned().collect();
    list.extend(new);
    Ok(())
}

/// Gives a task up. Works on the record, so that a broken one can be given up too.
pub(super) fn abandon(tx: &mut Tx<'_>, id: &TaskId, reason: &str) -> Result<(), Refusal> {
    let reason = required(reason, "the rationale (--reason)")?;
    let mut record = tx.board.body(id)?.record.clone();
    if let Ok(task) = tx.task(id) {
        check_removable(tx, &task)?;
        record_assessment(tx, &task, &blocked_reason(&task), reason);
    } else if record.status.is_some_and(Status::is_terminal) {
        return Err(tx.task(id).err().unwrap_or(Refusal::UnknownTask { task: id.clone() }));
    }
    let holders = [(record.assigned_to, Role::Coder), (record.reviewing_by, Role::CodeReviewer)];
    for (agent, _) in holders {
        if let Some(agent) = agent {
            tx.free_agent(agent, id, crate::agent::AgentStatus::Idle)?;
        }
    }
    if record.worktree.is_some() {
        tx.effect(Effect::RemoveWorktree { task: id.clone() });
    }
    clear_owned(&mut record);
    record.id = Some(id.clone());
    record.status = Some(Status::Abandoned);
    record.reservation = None;
    record.handoff_pending = record.handoff_pending.map(|_| false);
    let event = HistoryEvent::new(tx.now, EventName::Abandoned, tx.actor).with("reason", reason);
    record.history.get_or_insert_default().push(event);
    tx.drop_handoff(id)?;
    tx.log(LogAction::Task(EventName::Abandoned), Some(id), reason);
    tx.reply("task", id.as_str());
    tx.reply("status", Status::Abandoned.name());
    tx.put_record(id.clone(), record);
    Ok(())
}
