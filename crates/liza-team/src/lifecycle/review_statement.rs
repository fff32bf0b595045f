//! The statement of an agent's approval: what it read, at which head, and with which program. A person's approval needs none.

use liza_core::model::{AgentId, TaskId, TaskStatus};
use liza_ids::{Approver, Digest};
use liza_receipts::{Predicate, Purpose, Review, ReviewVerdict};

use crate::engine::{Engine, EngineError, Exchange};

use super::fetch_commits::integration_head;

/// States that an agent approves the submitted commit, before the blackboard has it: an approval without its statement is never
/// merged as consistent.
pub(super) fn state_approval(engine: &Engine<'_>, task: &TaskId, agent: AgentId) -> Result<(), EngineError> {
    let board = engine.read(&[task])?;
    let TaskStatus::ReadyForReview { commit, review, .. } = &board.task(task)?.status else { return Ok(()) };
    let known = review.as_ref().and_then(|review| review.head.clone());
    let Some(head) = known.or(integration_head(engine.project(), &board)?) else { return Ok(()) };
    let repo = engine.repo()?;
    let exchange = Exchange::with(engine.project(), &board)?;
    exchange.as_ref().map_or(Ok(()), Exchange::bring_first_receipts)?;
    let change = match repo.has_commit(&head)? {
        true => repo.change_digest(&head, commit)?,
        false => None,
    };
    let state = engine.project().state()?;
    let agents = state.board.agents.ready();
    let program = agents.and_then(|agents| agents.get(&agent)?.client.clone());
    let model = state.board.config()?.model(agent.role()).map(str::to_owned);
    let review = Review {
        agent: Approver::Agent(agent),
        program,
        model,
        commit: commit.clone(),
        head,
        // Without a defined merge there is no change to name.
        change: change.unwrap_or_else(|| Digest::of(b"")),
        verdict: ReviewVerdict::Approved,
        made_by: engine.maker()?,
    };
    engine.state(Some(task), Purpose::Review, Predicate::Review(review))?;
    if let Some(exchange) = exchange {
        // The machine that merges fetches it; if the remote does not answer now, the next push sends it.
        let _ = exchange.send_receipts();
    }
    Ok(())
}
