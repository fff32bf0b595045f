//! finish: the human has taken the goal's result out of the integration branch.
//!
//! Git knows if the main branch has it; the blackboard keeps the commit, the time and the way.

use serde::Serialize;

use crate::model::{GoalStatus, LogAction, Refusal, Section, Sha, TakenResult};

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::Tx;

/// The result of the goal was merged into another branch or pushed.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// The integration head that was taken.
    pub head: Sha,
    /// The action, for the log.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finished {
    pub goal: String,
    /// Its status, which does not change.
    pub status: GoalStatus,
}

impl Rule for Finish {
    type Reply = Finished;
    const VERB: &'static str = "finish";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Goal]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<Finished, Refusal> {
        let taken = TakenResult { head: self.head.clone(), time: tx.now, how: self.detail.clone() };
        let goal = tx.goal()?;
        goal.taken = Some(taken);
        let (id, status) = (goal.id.clone(), goal.status);
        tx.log(LogAction::GoalFinished, None, &format!("{id} at {}: {}", self.head.short(), self.detail));
        Ok(Finished { goal: id, status })
    }
}
