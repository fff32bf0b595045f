//! mark-blocked: a task cannot continue without a decision.

use crate::model::{
    Actor, Block, HUMAN_OVERRIDE, OVERRIDE_QUESTION, Refusal, Section, Task, TaskId, TaskStatus,
};
use crate::rules::approvals::incomplete_approval;

use super::blocking::block;
use super::operation::{LoadScope, Rule};
use super::ownership::own_claim;
use super::permission::{BLOCKING, Rights};
use super::reply::TaskReply;
use super::tx::{Tx, required};

const QUESTIONS_MAX: usize = 3;

/// The coder cannot continue, or a person wants the planner to think again.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkBlocked {
    pub task: TaskId,
    pub reason: String,
    /// Questions whose answers would unblock it.
    pub questions: Vec<String>,
    pub attempted: Vec<String>,
}

impl Rule for MarkBlocked {
    type Reply = TaskReply;
    const VERB: &'static str = "mark-blocked";
    const RIGHTS: Rights = BLOCKING;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        match tx.actor {
            Actor::Human => self.override_block(tx),
            Actor::Agent(..) | Actor::Operator(_) | Actor::Supervisor(..) => self.block_own(tx),
        }
    }
}

impl MarkBlocked {
    /// The coder's own block counts as its failure; that of its supervisor, for lack of a result, does not.
    fn block_own(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let task = tx.task(&self.task)?;
        let (coder, _) = own_claim(tx, &task)?;
        let reason = required(&self.reason, "the reason for blocking (--reason)")?;
        let questions = self.asked()?;
        if questions.is_empty() {
            return Err(Refusal::Missing { what: "a question that would unblock it (--question, 1 to 3)" });
        }
        let by_coder = !matches!(tx.actor, Actor::Supervisor(..));
        block(tx, task, self.block(reason, questions), by_coder.then_some(coder))
    }

    /// A person may block anything that has not ended.
    fn override_block(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let task = match incomplete_approval(&self.task, tx.board.body(&self.task)?) {
            Some(prior) => {
                let record = tx.board.body(&self.task)?.record().clone();
                Task { id: self.task.clone(), status: TaskStatus::Unclaimed { prior }, record }
            }
            None => tx.task(&self.task)?,
        };
        if task.status.name().is_terminal() || matches!(task.status, TaskStatus::Blocked { .. }) {
            return Err(tx.wrong_status(&task, "a state that is neither BLOCKED nor final"));
        }
        let reason = if self.reason.trim().is_empty() { HUMAN_OVERRIDE } else { self.reason.trim() };
        let mut questions = self.asked()?;
        if questions.is_empty() {
            questions.push(OVERRIDE_QUESTION.to_owned());
        }
        block(tx, task, self.block(reason, questions), None)
    }

    fn block(&self, reason: &str, questions: Vec<String>) -> Block {
        Block { reason: reason.to_owned(), questions, attempted: self.attempted.clone() }
    }

    /// The questions that are not blank, at most three.
    fn asked(&self) -> Result<Vec<String>, Refusal> {
        let asked = self.questions.iter().map(|question| question.trim().to_owned());
        let asked: Vec<String> = asked.filter(|question| !question.is_empty()).collect();
        if asked.len() <= QUESTIONS_MAX {
            return Ok(asked);
        }
        let problem = format!("expected 1 to {QUESTIONS_MAX}, got {}", asked.len());
        Err(Refusal::BadText { what: "questions", problem })
    }
}
