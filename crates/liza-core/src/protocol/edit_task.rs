//! edit-task: completes or corrects a task that no coder has started.

use crate::model::{
    Actor, EventName, Impact, LogAction, PriorWork, Refusal, Section, Status, TaskId, TaskStatus,
};

use super::budget::refill_planner;
use super::gates::{
    check_commands, check_dependencies, check_priority, check_spec, make_claimable, missing_gates,
    needs_approval,
};
use super::operation::{LoadScope, Rule};
use super::ownership::check_unreserved;
use super::permission::{PLANNING, Rights};
use super::reply::TaskReply;
use super::tx::{Tx, required};

/// Changes a DRAFT or UNCLAIMED task.
#[derive(Debug, Clone, PartialEq)]
pub struct EditTask {
    pub task: TaskId,
    pub edit: TaskEdit,
}

/// The new values; an absent one stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskEdit {
    pub description: Option<String>,
    pub spec_ref: Option<String>,
    pub done_when: Option<String>,
    pub scope: Option<String>,
    pub priority: Option<i64>,
    /// Agents only raise it.
    pub impact: Option<Impact>,
    /// These must be MERGED first.
    pub depends_on: Option<Vec<TaskId>>,
    /// Commands that show that it is done. Once it has left DRAFT, an agent only adds to them.
    pub validate: Option<Vec<String>>,
}

impl Rule for EditTask {
    type Reply = TaskReply;
    const VERB: &'static str = "edit-task";
    const RIGHTS: Rights = PLANNING;

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn scope(&self) -> LoadScope {
        let TaskEdit { spec_ref, done_when, scope, depends_on, .. } = &self.edit;
        // What completes a draft makes it claimable, for which its dependencies are checked.
        let completes = spec_ref.is_some() || done_when.is_some() || scope.is_some();
        LoadScope {
            sections: &[Section::Config, Section::Sprint],
            all_summaries: completes || depends_on.is_some(),
        }
    }

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let (id, edit) = (&self.task, &self.edit);
        let mut task = tx.task(id)?;
        let adds_commands = *edit == TaskEdit { validate: edit.validate.clone(), ..TaskEdit::default() };
        let status = task.status.name();
        let is_unstarted = matches!(status, Status::Draft | Status::Unclaimed);
        if !is_unstarted && (!adds_commands || status.is_terminal()) {
            return Err(tx.wrong_status(&task, "DRAFT or UNCLAIMED"));
        }
        check_unreserved(tx, &task)?;
        edit.spec_ref.as_deref().map_or(Ok(()), check_spec)?;
        let was_complete = missing_gates(&task.record, true).is_empty();
        let mut changed = Vec::new();
        // A planner cannot weaken what it has set once the task has left DRAFT.
        let may_replace = tx.actor == Actor::Human || matches!(task.status, TaskStatus::Draft);
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
        if let Some(impact) = edit.impact {
            if tx.actor != Actor::Human && Some(impact) < record.impact {
                let place = format!("impact of {id}: agents only raise it");
                return Err(Refusal::EditNotPermitted { actor: tx.actor.to_string(), place });
            }
            record.impact = Some(impact);
            changed.push("impact");
        }
        if let Some(depends_on) = &edit.depends_on {
            check_dependencies(tx, id, depends_on)?;
            record.depends_on = Some(depends_on.clone());
            changed.push("depends_on");
        }
        if let Some(lines) = &edit.validate {
            let kept = if may_replace { Vec::new() } else { record.validation.take().unwrap_or_default() };
            record.validation = Some(check_commands(&[kept, lines.clone()].concat())?);
            changed.push("validation");
        }
        if changed.is_empty() {
            return Err(Refusal::NothingToDo { what: "change: name at least one field" });
        }
        let rewritten = changed.iter().any(|name| !matches!(*name, "priority" | "impact" | "validation"));
        if rewritten && needs_approval(tx)? && !matches!(task.status, TaskStatus::Draft) {
            // The human approved another text.
            if task.status != (TaskStatus::Unclaimed { prior: PriorWork::default() }) {
                return Err(
                    tx.wrong_status(&task, "a task without work: the human approves changes of plans")
                );
            }
            task.status = TaskStatus::Draft;
            task.push_event(tx.event(EventName::Proposed));
        }
        let detail = format!("changed {}", changed.join(", "));
        let is_completed = !was_complete && missing_gates(&task.record, true).is_empty();
        // A planner finalizes its plan as a whole.
        if is_completed && tx.actor == Actor::Human && matches!(task.status, TaskStatus::Draft) {
            let readiness = make_claimable(tx, &mut task)?;
            task.push_event(tx.event(readiness.event()));
            refill_planner(tx)?;
            tx.log(LogAction::Task(readiness.event()), Some(id), &detail);
        } else {
            tx.log(LogAction::Edited, Some(id), &detail);
        }
        Ok(tx.put(task))
    }
}
