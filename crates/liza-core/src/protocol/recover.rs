//! recover: repairs the remains of a crash on the blackboard. The program repairs those in git.

use crate::model::{LogAction, Refusal, Reservation, TaskId};

use super::operation::Rule;
use super::permission::{Rights, SUPERVISION};
use super::reply::{Nothing, TaskReply};
use super::tx::Tx;

/// Logs the repairs. With an empty list it writes nothing and only checks that the caller may.
#[derive(Debug, Clone, PartialEq)]
pub struct Recover {
    /// One line for each repair.
    pub repaired: Vec<String>,
}

/// Removes a reservation whose claim died.
#[derive(Debug, Clone, PartialEq)]
pub struct DropReservation {
    pub task: TaskId,
    /// The dead reservation; a newer one belongs to a live process and stays.
    pub reservation: Reservation,
}

impl Rule for Recover {
    type Reply = Nothing;
    const VERB: &'static str = "recover";
    const RIGHTS: Rights = SUPERVISION;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Nothing, Refusal> {
        if !self.repaired.is_empty() {
            tx.log(LogAction::Recovered, None, &self.repaired.join("; "));
            tx.require_own_repositories();
        }
        Ok(Nothing {})
    }
}

impl Rule for DropReservation {
    type Reply = TaskReply;
    const VERB: &'static str = "recover (reservation)";
    const RIGHTS: Rights = SUPERVISION;

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let id = &self.task;
        let mut record = tx.board.body(id)?.record().clone();
        if record.reservation.as_ref() != Some(&self.reservation) {
            return Err(Refusal::NoReservation { task: id.clone(), coder: self.reservation.by });
        }
        record.reservation = None;
        let reply = TaskReply { task: id.clone(), status: record.status, worktree: None };
        tx.put_record(id.clone(), record);
        Ok(reply)
    }
}
