//! clear-stale-review-claims: clears the claims of code reviewers whose lease has expired.

use serde::Serialize;

use crate::model::{AgentStatus, Board, LogAction, Refusal, Status, TaskId, TaskStatus, Timestamp};

use super::operation::{LoadScope, Rule};
use super::permission::{Rights, SUPERVISION};
use super::tx::Tx;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClearStaleReviewClaims;

/// The tasks that another code reviewer can take now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewsCleared {
    pub cleared: Vec<TaskId>,
}

impl Rule for ClearStaleReviewClaims {
    type Reply = ReviewsCleared;
    const VERB: &'static str = "clear-stale-review-claims";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::all(&[]);

    fn other_tasks(&self, board: &Board, now: Timestamp) -> Vec<TaskId> {
        let stale = board.summaries().filter(|summary| {
            summary.is(Status::ReadyForReview)
                && summary.reviewing_by.is_some()
                && summary.review_is_free(now)
        });
        stale.map(|summary| summary.id.clone()).collect()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<ReviewsCleared, Refusal> {
        let mut cleared = Vec::new();
        for id in self.other_tasks(tx.board, tx.now) {
            // A broken record must not keep the others from being cleared.
            let Ok(mut task) = tx.task(&id) else { continue };
            tx.free_agents(task.record.reviewing_by, &id, AgentStatus::Idle)?;
            if let TaskStatus::ReadyForReview { review, .. } = &mut task.status {
                *review = None;
            }
            tx.put(task);
            cleared.push(id);
        }
        if !cleared.is_empty() {
            let names: Vec<&str> = cleared.iter().map(TaskId::as_str).collect();
            let detail = format!("stale review claims: {}", names.join(", "));
            tx.log(LogAction::ReviewsCleared, None, &detail);
        }
        Ok(ReviewsCleared { cleared })
    }
}
