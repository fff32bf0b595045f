//! finish: the human has taken the goal's result out of the integration branch.
//!
//! Git says whether the main branch has it; the blackboard keeps what was taken, when and how.

use serde::Serialize;

use crate::model::{GoalStatus, LogAction, Refusal, Section, Sha, TakenResult};

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::Tx;

/// The result of the goal was merged into another branch or pushed.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// The head of the integration branch that was taken.
    pub head: Sha,
    /// What was done, for the log.
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
