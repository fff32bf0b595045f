//! sprint new, sprint deadline, and the end of a sprint.

use serde::Serialize;

use crate::model::{
    Board, Effect, LogAction, Refusal, Section, SessionCounts, SprintStatus, StopFile, TaskId, Timestamp,
};
use crate::rules::sprint::{is_complete, is_planning};

use super::open_work::{check_open, open_tasks, start_next_sprint};
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights, SUPERVISION};
use super::tx::Tx;

/// Every planned task has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompleteSprint;

/// The next sprint begins with the tasks that are still open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewSprint;

/// Sets the latest time at which a person wants to review the sprint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SetDeadline {
    /// `None` removes it.
    pub deadline: Option<Timestamp>,
}

/// The sprint's new status, or the new sprint's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SprintReply {
    pub sprint: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadlineSet {
    pub deadline: Option<Timestamp>,
}

impl Rule for CompleteSprint {
    type Reply = SprintReply;
    const VERB: &'static str = "sprint complete";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::all(&[Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<SprintReply, Refusal> {
        expect_status(tx, Self::VERB, "IN_PROGRESS", |status| status == SprintStatus::InProgress)?;
        let planning = is_planning(tx.board, tx.now);
        if !is_complete(tx.board, tx.board.sprint()?, planning) {
            let why = match open_tasks(tx.board).first() {
                Some(task) => format!("{task} is open"),
                None if planning => "a planning session is running".to_owned(),
                None => "nothing is planned".to_owned(),
            };
            return Err(Refusal::SprintNotComplete { why });
        }
        let now = tx.now;
        let sprint = tx.sprint()?;
        sprint.status = SprintStatus::Completed;
        sprint.timeline.ended = Some(now);
        let id = sprint.id.clone();
        tx.log_as("system", LogAction::SprintCompleted, None, &id);
        Ok(SprintReply { sprint: SprintStatus::Completed.to_string() })
    }
}

impl Rule for NewSprint {
    type Reply = SprintReply;
    const VERB: &'static str = "sprint new";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Sprint]);

    /// The figures of the next sprint include the past of its tasks.
    fn other_tasks(&self, board: &Board, _now: Timestamp) -> Vec<TaskId> {
        open_tasks(board)
    }

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<SprintReply, Refusal> {
        check_open(tx)?;
        expect_status(tx, Self::VERB, "a finished sprint", SprintStatus::is_terminal)?;
        let sprint = start_next_sprint(tx)?;
        tx.sprint()?.sessions = SessionCounts::default();
        tx.effect(Effect::RemoveStopFile(StopFile::Checkpoint));
        tx.log(LogAction::SprintStarted, None, &sprint);
        Ok(SprintReply { sprint })
    }
}

impl Rule for SetDeadline {
    type Reply = DeadlineSet;
    const VERB: &'static str = "sprint deadline";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<DeadlineSet, Refusal> {
        expect_status(tx, Self::VERB, "an open sprint", |status| !status.is_terminal())?;
        let deadline = self.deadline;
        if let Some(deadline) = deadline.filter(|deadline| *deadline <= tx.now) {
            return Err(Refusal::PastDeadline { deadline });
        }
        tx.sprint()?.timeline.deadline = deadline;
        let detail = deadline.map_or("no deadline".to_owned(), |deadline| format!("deadline {deadline}"));
        tx.log(LogAction::SprintUpdated, None, &detail);
        Ok(DeadlineSet { deadline })
    }
}

pub(super) fn expect_status(
    tx: &Tx<'_>,
    verb: &'static str,
    needed: &'static str,
    fits: fn(SprintStatus) -> bool,
) -> Result<(), Refusal> {
    let status = tx.board.sprint()?.status;
    if fits(status) { Ok(()) } else { Err(Refusal::SprintStatus { status, verb, needed }) }
}
