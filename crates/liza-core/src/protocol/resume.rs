//! resume: agents continue, held clients and merges are tried again, and the human's decision is kept.

use serde::Serialize;

use crate::model::{
    Board, DECISIONS, Effect, LogAction, Refusal, STOP, Section, SprintStatus, StopFile, TaskId, Timestamp,
};
use crate::rules::judging_settings::failing_head;
use crate::rules::session_budget::SessionBudget;
use crate::rules::spending::{tasks_with_budget, used_up};

use super::budget::{refill, refill_planner};
use super::checkpoint::{leave_checkpoint, record_decision};
use super::goal::abort_without_log;
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::Tx;

/// Lets agents continue. The decision `stop` ends the goal instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// One of [`DECISIONS`].
    pub decision: Option<String>,
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resumed {
    pub paused: bool,
    /// False if nothing had stopped and nothing was said.
    pub changed: bool,
    pub sprint: SprintStatus,
}

impl Rule for Resume {
    type Reply = Resumed;
    const VERB: &'static str = "resume";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::all(&[Section::Config, Section::Goal, Section::Sprint]);

    fn other_tasks(&self, board: &Board, _now: Timestamp) -> Vec<TaskId> {
        tasks_with_budget(board)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Resumed, Refusal> {
        let (decision, note) = (self.decision.as_deref(), self.note.as_deref());
        if let Some(decision) = decision.filter(|decision| !DECISIONS.contains(decision)) {
            let problem = format!("{decision:?} is not one of {}", DECISIONS.join(", "));
            return Err(Refusal::BadText { what: "decision", problem });
        }
        let at_checkpoint = tx.board.sprint()?.status == SprintStatus::Checkpoint;
        let stop = decision == Some(STOP);
        if let Some(spent) = used_up(tx.board, tx.now).filter(|_| !stop && at_checkpoint) {
            return Err(Refusal::BudgetUsedUp { spent: spent.to_string(), setting: spent.setting() });
        }
        if stop {
            abort_without_log(tx)?;
        } else {
            leave_checkpoint(tx)?;
        }
        let paused = tx.board.sprint()?.timeline.paused_at.is_some();
        if paused {
            tx.sprint()?.timeline.paused_at = None;
        }
        tx.effect(Effect::RemoveStopFile(StopFile::Pause));
        refill_planner(tx)?;
        refill(tx, &SessionBudget::Shared)?;
        let held = release_held(tx)?;
        if at_checkpoint || decision.is_some() {
            record_decision(tx, decision.unwrap_or("continue"), note)?;
        }
        let stopped = at_checkpoint || paused || tx.stop_files.pause || tx.stop_files.checkpoint;
        let changed = stopped || held || decision.is_some() || note.is_some();
        if changed {
            let detail = match (decision, note) {
                (Some(decision), Some(note)) => format!("{decision}: {note}"),
                (Some(text), None) | (None, Some(text)) => text.to_owned(),
                (None, None) => String::new(),
            };
            tx.log(if stop { LogAction::Aborted } else { LogAction::Resumed }, None, &detail);
        }
        let sprint = tx.change().sprint.as_ref().unwrap_or(tx.board.sprint()?).status;
        Ok(Resumed { paused: false, changed, sprint })
    }
}

/// Lets held clients and merges be tried again; returns true if there were any.
fn release_held(tx: &mut Tx<'_>) -> Result<bool, Refusal> {
    let clients = !tx.board.sprint()?.clients.is_empty();
    if clients {
        tx.sprint()?.clients.clear();
    }
    let merges = failing_head(tx.board).is_some();
    if merges {
        tx.goal()?.head_test = None;
    }
    Ok(clients || merges)
}
