//! The path from a request to a change: admission, the command's rule, the sprint's figures.

use crate::model::{Board, Change, Refusal, Section, TaskId, Timestamp};

use super::admission::admit;
use super::operation::{Operation, Request};
use super::sprint_figures;
use super::tx::Tx;

#[must_use = "the change still has to be written"]
#[derive(Debug, Clone, PartialEq)]
pub struct Decided<R> {
    pub change: Change,
    /// The reply, or the refusal if the write is not what the caller wanted: a lost race, a limit.
    pub answer: Result<R, Refusal>,
}

/// Decides a request: returns the change to write, or a refusal. Nothing else may change the blackboard.
pub fn apply<C: Operation>(board: &Board, request: &Request<C>) -> Result<Decided<C::Reply>, Refusal> {
    admit(board, request)?;
    let mut tx = Tx::new(board, request.actor, request.now, request.stop_files, request.command.verb());
    let answer = match request.command.run(&mut tx) {
        Err(refusal) if !tx.writes_anyway() => return Err(refusal),
        answer => answer,
    };
    if answer.is_ok() && request.command.is_result() {
        tx.note_result()?;
    }
    sprint_figures::update(&mut tx, request.command.scope().all_summaries)?;
    Ok(Decided { change: tx.finish(), answer })
}

/// A request whose command's type the store need not know: it loads, decides and keeps the answer.
pub trait Pending {
    fn now(&self) -> Timestamp;
    fn sections(&self) -> Vec<Section>;
    fn summaries(&self, board: &Board) -> Option<Vec<TaskId>>;
    fn bodies(&self, board: &Board) -> Vec<TaskId>;
    fn named_tasks(&self, board: &Board) -> Vec<TaskId>;
    /// See [`apply`]; keeps the answer for the caller.
    fn decide(&mut self, board: &Board) -> Result<Change, Refusal>;
}

/// A request, and its answer once it is decided.
#[derive(Debug)]
pub struct PendingRequest<C: Operation> {
    pub request: Request<C>,
    /// See [`Decided::answer`].
    pub answer: Option<Result<C::Reply, Refusal>>,
}

impl<C: Operation> From<Request<C>> for PendingRequest<C> {
    fn from(request: Request<C>) -> Self {
        Self { request, answer: None }
    }
}

impl<C: Operation> Pending for PendingRequest<C> {
    fn now(&self) -> Timestamp {
        self.request.now
    }

    fn sections(&self) -> Vec<Section> {
        self.request.sections()
    }

    fn summaries(&self, board: &Board) -> Option<Vec<TaskId>> {
        self.request.summaries(board)
    }

    fn bodies(&self, board: &Board) -> Vec<TaskId> {
        self.request.bodies(board)
    }

    fn named_tasks(&self, board: &Board) -> Vec<TaskId> {
        self.request.named_tasks(board)
    }

    fn decide(&mut self, board: &Board) -> Result<Change, Refusal> {
        let Decided { change, answer } = apply(board, &self.request)?;
        self.answer = Some(answer);
        Ok(change)
    }
}
