//! supersede-task: other tasks replace one.

use serde::Serialize;

use crate::model::{
    Actor, Alignment, Appended, Board, Effect, EventName, LogAction, Refusal, Section, Status, Task, TaskId,
    TaskRecord, TaskStatus, Timestamp,
};
use crate::rules::session_budget::SessionBudget;
use crate::text::one_line;

use super::budget::check_budget;
use super::dropping::check_removable;
use super::gates::{check_commands, make_claimable};
use super::operation::{LoadScope, Rule};
use super::ownership::check_unreserved;
use super::permission::{PLANNING, Rights};
use super::reply::TaskReply;
use super::tx::{Tx, non_blank, required};
use super::unblock_task::record_assessment;

/// Replaces a task: the original, its replacements, the plan and its dependants change in one write.
#[derive(Debug, Clone, PartialEq)]
pub struct SupersedeTask {
    pub task: TaskId,
    pub by: Vec<TaskId>,
    pub reason: String,
    pub root_cause: String,
    /// The relation of the work to the goal after it.
    pub summary: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Superseded {
    #[serde(flatten)]
    pub task: TaskReply,
    pub superseded_by: Vec<TaskId>,
}

impl Rule for SupersedeTask {
    type Reply = Superseded;
    const VERB: &'static str = "supersede-task";
    const RIGHTS: Rights = PLANNING;
    const LOADS: LoadScope =
        LoadScope::all(&[Section::Config, Section::Goal, Section::Sprint, Section::Handoff]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn other_tasks(&self, board: &Board, _now: Timestamp) -> Vec<TaskId> {
        self.by.iter().cloned().chain(dependants(board, &self.task)).collect()
    }

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Superseded, Refusal> {
        let id = &self.task;
        let mut task = tx.task(id)?;
        check_removable(tx, &task)?;
        if tx.actor != Actor::Human {
            check_budget(tx, &SessionBudget::of_task(id, &task.record))?;
            check_depth(tx, &task)?;
        }
        let reason = required(&self.reason, "why it is replaced (--reason)")?;
        let root_cause = required(&self.root_cause, "what was wrong with it (--root-cause)")?;
        if self.by.is_empty() {
            return Err(Refusal::Missing { what: "the replacements (--by a,b)" });
        }
        let by = each_once(&self.by);
        for replacement in &by {
            adopt(tx, &task, replacement, reason)?;
        }
        rewire(tx, id, &by)?;
        extend_plan(tx, id, &by)?;

        record_assessment(tx, &task, task.record.blocked_reason.as_deref().unwrap_or_default(), root_cause);
        let names: Vec<String> = by.iter().map(ToString::to_string).collect();
        let list = names.join(", ");
        let summary = match non_blank(self.summary.as_deref()) {
            Some(summary) => summary.to_owned(),
            None => format!("Change: {id} replaced by {list} ({reason}).\nRoot cause: {root_cause}"),
        };
        let event = format!("rescope_{id}");
        tx.append(Appended::Alignment(Alignment { timestamp: tx.now, event, summary }));
        let event = tx.event(EventName::Superseded).with("by", names).with("reason", reason);
        task.push_event(event.with("root_cause", root_cause));
        if task.status.prior_work().worktree.is_some() {
            tx.effect(Effect::RemoveWorktree(id.clone()));
        }
        tx.drop_handoff(id)?;
        task.record.reservation = None;
        task.record.handoff_pending = task.record.handoff_pending.map(|_| false);
        task.status = TaskStatus::Superseded { by: by.clone(), reason: reason.to_owned() };
        tx.log(LogAction::Rescoped, Some(id), &format!("{list} ({})", one_line(root_cause, 160)));
        Ok(Superseded { task: tx.put(task), superseded_by: by })
    }
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

/// Makes a replacement claimable, with a reference to the original.
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
        let readiness = make_claimable(tx, &mut task)?;
        task.push_event(tx.event(readiness.event()).with("supersedes", original.id.as_str()));
    } else if !matches!(task.status, TaskStatus::Unclaimed { .. }) {
        return Err(bad(&format!("it is {}, not DRAFT or UNCLAIMED", task.status.name())));
    }
    check_unreserved(tx, &task)?;
    let supersedes = task.record.supersedes.get_or_insert_default();
    if !supersedes.contains(&original.id) {
        supersedes.push(original.id.clone());
    }
    inherit_validation(&original.record, &mut task.record)?;
    // A new plan lowers nothing.
    task.record.impact = task.record.impact.max(original.record.impact);
    task.record.rescope_reason = Some(reason.to_owned());
    task.record.rescope_depth = Some(original.record.rescope_depth.unwrap_or(0).saturating_add(1));
    match SessionBudget::of_task(&original.id, &original.record) {
        SessionBudget::Task(first) => {
            task.record.budget_task = Some(first);
            task.record.shared_budget = None;
        }
        SessionBudget::Shared | SessionBudget::Planner => task.record.shared_budget = Some(true),
    }
    tx.put(task);
    Ok(())
}

/// A replacement has to show what the original had to: a planner cannot lose a command by a new plan.
fn inherit_validation(original: &TaskRecord, record: &mut TaskRecord) -> Result<(), Refusal> {
    let Some(inherited) = original.validation.as_ref().filter(|lines| !lines.is_empty()) else {
        return Ok(());
    };
    let own = record.validation.take().unwrap_or_default();
    record.validation = Some(check_commands(&[own, inherited.clone()].concat())?);
    Ok(())
}

/// After too many replacements in a row, the human decides.
fn check_depth(tx: &Tx<'_>, task: &Task) -> Result<(), Refusal> {
    let depth = task.record.rescope_depth.unwrap_or(0);
    if depth < tx.config()?.max_rescopes {
        return Ok(());
    }
    Err(Refusal::RescopeLimit { task: task.id.clone(), depth })
}

fn dependants(board: &Board, task: &TaskId) -> Vec<TaskId> {
    let waiting = board.summaries().filter(|summary| summary.depends_on.contains(task));
    waiting.map(|summary| summary.id.clone()).collect()
}

/// Lets the dependants of the original depend on its replacements.
fn rewire(tx: &mut Tx<'_>, original: &TaskId, by: &[TaskId]) -> Result<(), Refusal> {
    for id in dependants(tx.board, original) {
        if tx.status(&id).is_some_and(Status::is_terminal) {
            continue;
        }
        let mut task = tx.task(&id)?;
        let mut new: Vec<TaskId> = Vec::new();
        for dependency in task.record.depends_on.take().unwrap_or_default() {
            let next = if dependency == *original { by } else { std::slice::from_ref(&dependency) };
            for next in next {
                if *next != id && !new.contains(next) {
                    new.push(next.clone());
                }
            }
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
