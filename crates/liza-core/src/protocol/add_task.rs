//! add-task: a task joins the sprint's plan.

use crate::model::{
    Actor, DEFAULT_PRIORITY, EventName, GoalStatus, Impact, LogAction, Refusal, Seconds, Section,
    SprintStatus, Status, TaskId, TaskRecord,
};

use crate::rules::session_budget::plan_has_begun;

use super::budget::refill_planner;
use super::gates::{
    check_commands, check_dependencies, check_gates, check_priority, check_spec, needs_approval,
};
use super::open_work::start_next_sprint;
use super::operation::{LoadScope, Rule};
use super::permission::{PLANNING, Rights};
use super::reply::TaskReply;
use super::tx::{Tx, non_blank, required};

#[derive(Debug, Clone, PartialEq)]
pub struct AddTask {
    pub task: TaskId,
    pub new: NewTask,
}

/// The content of a new task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewTask {
    pub description: String,
    pub spec_ref: Option<String>,
    pub done_when: Option<String>,
    pub scope: Option<String>,
    pub priority: Option<i64>,
    pub impact: Option<Impact>,
    /// These must be MERGED first.
    pub depends_on: Vec<TaskId>,
    pub draft: bool,
    /// If true, the sprint may end without it.
    pub stretch: bool,
    /// Its own limit of claims.
    pub max_iterations: Option<u32>,
    /// Its own limit of rejections.
    pub max_review_cycles: Option<u32>,
    pub lease: Option<Seconds>,
    /// Commands that show that it is done.
    pub validate: Vec<String>,
}

impl Rule for AddTask {
    type Reply = TaskReply;
    const VERB: &'static str = "add-task";
    const RIGHTS: Rights = PLANNING;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Sprint, Section::Config]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let (id, new) = (&self.task, &self.new);
        if tx.knows(id) {
            return Err(Refusal::TaskExists { task: id.clone() });
        }
        let goal = tx.board.goal()?;
        if goal.status != GoalStatus::InProgress {
            return Err(Refusal::GoalNotOpen { status: goal.status });
        }
        let description = required(&new.description, "what to build (--desc)")?;
        check_dependencies(tx, id, &new.depends_on)?;
        new.spec_ref.as_deref().map_or(Ok(()), check_spec)?;
        let text = |text: &Option<String>| non_blank(text.as_deref()).map(str::to_owned);
        let proposed = !new.draft && needs_approval(tx)?;
        let status = if new.draft || proposed { Status::Draft } else { Status::Unclaimed };
        let mut record = TaskRecord {
            id: Some(id.clone()),
            description: Some(description.to_owned()),
            status: Some(status),
            priority: Some(check_priority(new.priority.unwrap_or(DEFAULT_PRIORITY))?),
            impact: new.impact,
            depends_on: Some(new.depends_on.clone()),
            spec_ref: text(&new.spec_ref),
            done_when: text(&new.done_when),
            scope: text(&new.scope),
            max_iterations: new.max_iterations,
            max_review_cycles: new.max_review_cycles,
            lease_duration_override: new.lease,
            validation: Some(check_commands(&new.validate)?).filter(|lines| !lines.is_empty()),
            created: Some(tx.now),
            history: Some(vec![tx.event(EventName::Created)]),
            ..TaskRecord::default()
        };
        if !new.draft {
            check_gates(id, &record)?;
        }
        if proposed {
            record.history.get_or_insert_default().push(tx.event(EventName::Proposed));
        }
        self.mark_planned(tx, &mut record)?;
        join_sprint(tx, id, new.stretch)?;
        tx.log(LogAction::Task(EventName::Created), Some(id), description);
        tx.put_record(id.clone(), record);
        Ok(TaskReply { task: id.clone(), status: Some(status), worktree: None })
    }
}

impl AddTask {
    /// Tasks that the planner adds to a running plan share one session budget. A task that a person adds has
    /// its own, and lets the planner look at it.
    fn mark_planned(&self, tx: &mut Tx<'_>, record: &mut TaskRecord) -> Result<(), Refusal> {
        if tx.actor == Actor::Human {
            return refill_planner(tx);
        }
        if plan_has_begun(tx.board, tx.board.sprint()?) {
            record.shared_budget = Some(true);
        }
        if !self.new.draft && !tx.board.goal()?.planned {
            tx.goal()?.planned = true;
        }
        Ok(())
    }
}

/// A task that is added to a completed sprint opens the next sprint.
fn join_sprint(tx: &mut Tx<'_>, id: &TaskId, stretch: bool) -> Result<(), Refusal> {
    match tx.sprint()?.status {
        status @ SprintStatus::Aborted => {
            return Err(Refusal::SprintStatus { status, verb: "add-task", needed: "an open sprint" });
        }
        SprintStatus::Completed => drop(start_next_sprint(tx)?),
        SprintStatus::InProgress | SprintStatus::Checkpoint => {}
    }
    let scope = &mut tx.sprint()?.scope;
    let list = if stretch { &mut scope.stretch } else { &mut scope.planned };
    list.push(id.clone());
    Ok(())
}
