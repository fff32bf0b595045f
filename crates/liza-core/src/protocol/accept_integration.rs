//! accept-integration, sync: the head of the integration branch from which the program continues.
//!
//! The program records each head that it sets. Foreign commits stop merges until the human accepts them.

use liza_ids::BranchMerge;
use serde::Serialize;

use crate::model::{
    AgentStatus, Board, Effect, EventName, LogAction, Refusal, Section, Sha, Status, TaskId, Timestamp,
};

use super::budget::refill_after_merge;
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights, SUPERVISION};
use super::tx::Tx;

/// The human accepts the branch as it is, or has just brought another branch into it.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptIntegration {
    pub head: Sha,
    /// The action, for the log.
    pub detail: String,
    /// Accepted merges of tasks that the blackboard does not know: it may be older than they are.
    pub merged: Vec<BranchMerge>,
}

/// Nothing was recorded before: the program starts from the head that it found.
#[derive(Debug, Clone, PartialEq)]
pub struct AdoptIntegration {
    pub head: Sha,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IntegrationAccepted {
    pub integration_head: Sha,
}

impl Rule for AcceptIntegration {
    type Reply = IntegrationAccepted;
    const VERB: &'static str = "accept-integration";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Handoff, Section::Sprint]);

    fn other_tasks(&self, _: &Board, _: Timestamp) -> Vec<TaskId> {
        self.merged.iter().map(|merge| merge.task.clone()).collect()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<IntegrationAccepted, Refusal> {
        let goal = tx.goal()?;
        if goal.integration_head.as_ref() != Some(&self.head) {
            // The human has accepted the protected files of the branch with it.
            goal.gate_version = goal.gate_version.wrapping_add(1);
        }
        goal.integration_head = Some(self.head.clone());
        goal.head_test = None;
        tx.log(LogAction::IntegrationUpdated, None, &self.detail);
        for merge in &self.merged {
            record(merge, tx)?;
        }
        Ok(IntegrationAccepted { integration_head: self.head.clone() })
    }
}

/// Makes the task MERGED from any status: its work is on the branch that the human accepts, and would
/// otherwise be done and merged once more. Budgets are refilled as by any other merge.
fn record(merge: &BranchMerge, tx: &mut Tx<'_>) -> Result<(), Refusal> {
    let BranchMerge { task: id, commit, merge_commit } = merge;
    let mut record = tx.board.body(id)?.record().clone();
    if record.status.is_some_and(Status::is_terminal) {
        return Ok(());
    }
    let coder = record.assigned_to;
    tx.free_agents([coder, record.reviewing_by].into_iter().flatten(), id, AgentStatus::Idle)?;
    if record.worktree.is_some() {
        tx.effect(Effect::RemoveWorktree(id.clone()));
    }
    record.clear_status_fields();
    record.status = Some(Status::Merged);
    record.merge_commit = Some(merge_commit.clone());
    record.reservation = None;
    record.handoff_pending = record.handoff_pending.map(|_| false);
    let event = tx.event(EventName::Merged).with("commit", commit.as_str());
    let event = event.with("merge_commit", merge_commit.as_str());
    let event = event.with_some("coder", coder.map(|coder| coder.to_string()));
    record.history.get_or_insert_default().push(event.with("reason", "accepted with the integration branch"));
    tx.drop_handoff(id)?;
    refill_after_merge(tx, id, &record)?;
    let detail = format!("merged by {} before; accepted", merge_commit.short());
    tx.log(LogAction::Task(EventName::Merged), Some(id), &detail);
    tx.put_record(id.clone(), record);
    Ok(())
}

impl Rule for AdoptIntegration {
    type Reply = IntegrationAccepted;
    const VERB: &'static str = "adopt-integration";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Goal]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<IntegrationAccepted, Refusal> {
        if let Some(known) = &tx.board.goal()?.integration_head {
            return Ok(IntegrationAccepted { integration_head: known.clone() });
        }
        tx.goal()?.integration_head = Some(self.head.clone());
        let detail = format!("the integration branch starts at {}", self.head.short());
        tx.log_as("system", LogAction::IntegrationUpdated, None, &detail);
        Ok(IntegrationAccepted { integration_head: self.head.clone() })
    }
}
