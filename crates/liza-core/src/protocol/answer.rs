//! answer: the human answers the question of a task.

use serde::Serialize;

use crate::model::{
    AgentId, Appended, GoalStatus, HumanNote, LogAction, MAX_FAILED_CODERS, Refusal, Section, Status, TaskId,
    TaskStatus,
};
use crate::rules::claimable::is_present;
use crate::rules::session_budget::SessionBudget;

use super::budget::{refill, refill_planner};
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::{Tx, required};
use super::unblock_task::UnblockTask;

/// Leaves a note for the task. A BLOCKED one is unblocked and goes back to its coder, unless two coders
/// failed at it: then the note wakes the planner.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub task: TaskId,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answered {
    pub task: TaskId,
    pub status: Option<Status>,
    pub unblocked: bool,
    /// The coder to which it goes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coder: Option<AgentId>,
    /// True if that coder is in the team now.
    pub coder_is_present: bool,
    /// The present task of that coder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coder_works_on: Option<TaskId>,
}

impl Rule for Answer {
    type Reply = Answered;
    const VERB: &'static str = "answer";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope =
        LoadScope::named(&[Section::Config, Section::Goal, Section::Handoff, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Answered, Refusal> {
        let text = required(&self.text, "the answer")?.to_owned();
        let (id, mut task) = (&self.task, tx.task(&self.task)?);
        if task.status.name().is_terminal() {
            return Err(tx.wrong_status(&task, "an open task"));
        }
        // Its tasks were dropped with it: no agent would read the answer.
        if let status @ GoalStatus::Aborted = tx.board.goal()?.status {
            return Err(Refusal::GoalNotOpen { status });
        }
        let note = HumanNote { timestamp: tx.now, message: text.clone(), to: Some(id.clone()) };
        tx.append(Appended::HumanNote(note));
        refill_planner(tx)?;
        refill(tx, &SessionBudget::of_task(id, &task.record))?;
        if task.record.review_dropped_by.is_some() {
            task.record.review_dropped_by = None;
            tx.put(task.clone());
        }
        let failed = task.record.failed_by.as_ref().map_or(0, Vec::len);
        let TaskStatus::Blocked { prior, .. } = &task.status else {
            tx.log(LogAction::Answered, Some(id), &text);
            return Ok(not_unblocked(id, task.status.name()));
        };
        if failed >= MAX_FAILED_CODERS {
            tx.log(LogAction::Answered, Some(id), &text);
            return Ok(not_unblocked(id, Status::Blocked));
        }
        let coder = prior.coder;
        let unblock = UnblockTask {
            task: id.clone(),
            reset_cycles: true,
            same_coder: coder.is_some(),
            keep_worktree: false,
            assessment: Some(text.clone()),
        };
        let reply = unblock.run(tx)?;
        // People look for the answer; the history of the task records that it unblocks.
        tx.log(LogAction::Answered, Some(id), &text);
        let (mut coder_is_present, mut coder_works_on) = (false, None);
        if let Some(coder) = coder {
            coder_is_present = is_present(tx.board, coder, tx.now)?;
            coder_works_on = tx.board.held_by(coder).filter(|_| coder_is_present).cloned();
        }
        let task = id.clone();
        Ok(Answered { task, status: reply.status, unblocked: true, coder, coder_is_present, coder_works_on })
    }
}

fn not_unblocked(task: &TaskId, status: Status) -> Answered {
    Answered {
        task: task.clone(),
        status: Some(status),
        unblocked: false,
        coder: None,
        coder_is_present: false,
        coder_works_on: None,
    }
}
