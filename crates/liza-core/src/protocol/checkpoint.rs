//! checkpoint: every agent stops until a person has reviewed the sprint.

use serde::Serialize;

use crate::model::{
    Board, Decision, Effect, LogAction, Refusal, Section, Sprint, SprintStatus, StopFile, TaskId, Timestamp,
};
use crate::rules::spending::{tasks_with_budget, used_up};

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights, SUPERVISION};
use super::sprint::expect_status;
use super::tx::Tx;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkpoint {
    pub cause: CheckpointCause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointCause {
    Human,
    Deadline,
    Budget,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointReached {
    pub sprint: SprintStatus,
    /// False if it was at a checkpoint before.
    pub changed: bool,
}

impl Rule for Checkpoint {
    type Reply = CheckpointReached;
    const RIGHTS: Rights = HUMAN;
    const VERB: &'static str = "checkpoint";
    const LOADS: LoadScope = LoadScope::all(&[Section::Config, Section::Sprint]);

    fn rights(&self) -> Rights {
        match self.cause {
            CheckpointCause::Human => Self::RIGHTS,
            CheckpointCause::Deadline | CheckpointCause::Budget => SUPERVISION,
        }
    }

    fn other_tasks(&self, board: &Board, _now: Timestamp) -> Vec<TaskId> {
        match self.cause {
            CheckpointCause::Human | CheckpointCause::Deadline => Vec::new(),
            CheckpointCause::Budget => tasks_with_budget(board),
        }
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<CheckpointReached, Refusal> {
        expect_status(tx, Self::VERB, "an open sprint", |status| !status.is_terminal())?;
        let now = tx.now;
        if self.cause == CheckpointCause::Deadline && !tx.board.sprint()?.deadline_due(now) {
            return Err(Refusal::NothingToDo { what: "check: the deadline has not passed" });
        }
        let spent = match self.cause {
            CheckpointCause::Human | CheckpointCause::Deadline => None,
            CheckpointCause::Budget => {
                let spent =
                    used_up(tx.board, now).filter(|_| tx.board.sprint.ready().is_some_and(is_running));
                Some(spent.ok_or(Refusal::NothingToDo { what: "check: no budget is used up" })?)
            }
        };
        let changed = enter_checkpoint(tx)?;
        match self.cause {
            CheckpointCause::Human if changed => {
                tx.log(LogAction::Checkpoint, None, "requested by the human");
            }
            CheckpointCause::Human => {}
            CheckpointCause::Deadline => {
                // A deadline that passes during a checkpoint is met by that checkpoint.
                tx.sprint()?.timeline.checkpoint_at = Some(now);
                tx.log_as("system", LogAction::Checkpoint, None, "the sprint's deadline has passed");
            }
            CheckpointCause::Budget => {
                let spent = spent.map(|spent| spent.to_string()).unwrap_or_default();
                tx.log_as("system", LogAction::Checkpoint, None, &format!("a budget is used up: {spent}"));
            }
        }
        Ok(CheckpointReached { sprint: SprintStatus::Checkpoint, changed })
    }
}

fn is_running(sprint: &Sprint) -> bool {
    sprint.status == SprintStatus::InProgress
}

/// Stops the sprint for a review; false if it had stopped before.
pub(super) fn enter_checkpoint(tx: &mut Tx<'_>) -> Result<bool, Refusal> {
    tx.create_stop_file(StopFile::Checkpoint);
    tx.effect(Effect::WriteSprintSummary);
    // A second call must not make the wait look shorter than it is.
    if tx.board.sprint()?.status == SprintStatus::Checkpoint {
        return Ok(false);
    }
    let now = tx.now;
    let sprint = tx.sprint()?;
    sprint.timeline.checkpoint_at = Some(now);
    sprint.status = SprintStatus::Checkpoint;
    Ok(true)
}

pub(super) fn leave_checkpoint(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    if tx.board.sprint()?.status == SprintStatus::Checkpoint {
        tx.sprint()?.status = SprintStatus::InProgress;
    }
    tx.effect(Effect::RemoveStopFile(StopFile::Checkpoint));
    Ok(())
}

pub(super) fn record_decision(tx: &mut Tx<'_>, decision: &str, note: Option<&str>) -> Result<(), Refusal> {
    let entry = Decision { timestamp: tx.now, decision: decision.to_owned(), note: note.map(str::to_owned) };
    tx.sprint()?.decisions.push(entry);
    Ok(())
}
