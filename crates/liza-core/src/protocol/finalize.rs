//! finalize: drafts become claimable, all together or not at all.

use serde::Serialize;

use crate::model::{
    Actor, Board, LogAction, Refusal, Revision, Section, Status, TaskId, TaskStatus, Timestamp,
};

use super::budget::refill_planner;
use super::gates::{Readiness, make_claimable};
use super::operation::{LoadScope, Rule};
use super::permission::{PLANNING, Rights};
use super::tx::Tx;

#[derive(Debug, Clone, PartialEq)]
pub struct Finalize {
    /// All drafts if none is named.
    pub tasks: Vec<TaskId>,
    /// Refuses tasks that have changed since this revision: the human approves only the text that was read.
    pub unchanged_since: Option<Revision>,
}

/// The tasks that can be claimed now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finalized {
    pub tasks: Vec<TaskId>,
    /// UNCLAIMED; DRAFT if the human has to approve them.
    pub status: Status,
}

impl Rule for Finalize {
    type Reply = Finalized;
    const VERB: &'static str = "finalize";
    const RIGHTS: Rights = PLANNING;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Sprint, Section::Config]);

    fn other_tasks(&self, board: &Board, _now: Timestamp) -> Vec<TaskId> {
        match self.tasks.as_slice() {
            [] => board.in_status(Status::Draft).collect(),
            named => named.to_vec(),
        }
    }

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Finalized, Refusal> {
        let tasks = self.other_tasks(tx.board, tx.now);
        if tasks.is_empty() {
            return Err(Refusal::NothingToDo { what: "finalize: there is no DRAFT" });
        }
        let mut readiness = Readiness::Claimable;
        for id in &tasks {
            let mut task = tx.task(id)?;
            if !matches!(task.status, TaskStatus::Draft) {
                return Err(tx.wrong_status(&task, "DRAFT"));
            }
            if let (Some(expected), Some(current)) = (self.unchanged_since, task.record.revision)
                && current > expected
            {
                return Err(Refusal::StaleRevision { what: id.to_string(), expected, current });
            }
            readiness = make_claimable(tx, &mut task)?;
            task.push_event(tx.event(readiness.event()));
            tx.put(task);
        }
        if tx.actor != Actor::Human && !tx.board.goal()?.planned {
            tx.goal()?.planned = true;
        }
        refill_planner(tx)?;
        let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
        let (action, status) = match readiness {
            Readiness::Proposed => (LogAction::TasksProposed, Status::Draft),
            Readiness::Claimable => (LogAction::TasksFinalized, Status::Unclaimed),
        };
        let only = if let [one] = tasks.as_slice() { Some(one) } else { None };
        tx.log(action, only, &names.join(", "));
        Ok(Finalized { tasks, status })
    }
}
