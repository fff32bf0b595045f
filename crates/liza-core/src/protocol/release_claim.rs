//! release-claim: a person takes a claim away.

use crate::model::{
    AgentStatus, Effect, EventName, LogAction, Refusal, Section, Status, TaskId, TaskRecord, lease_is_live,
};

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::reply::TaskReply;
use super::tx::Tx;

/// Releases a coder's or a code reviewer's claim. Works on the record, so also on a broken one.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseClaim {
    pub task: TaskId,
    pub role: ClaimRole,
    /// If true, a live lease is no obstacle.
    pub force: bool,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimRole {
    Coder,
    Reviewer,
    Both,
}

impl Rule for ReleaseClaim {
    type Reply = TaskReply;
    const VERB: &'static str = "release-claim";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Handoff, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let id = &self.task;
        let mut record = tx.board.body(id)?.record().clone();
        let reason = self.reason.as_deref().unwrap_or("released by the human");
        let as_coder = matches!(self.role, ClaimRole::Coder | ClaimRole::Both);
        let as_reviewer = matches!(self.role, ClaimRole::Reviewer | ClaimRole::Both);
        let (by, until) = match record.status {
            // A status that cannot be read, next to an owner, is a claim with a typing error.
            None if as_coder && record.assigned_to.is_some() => (record.assigned_to, None),
            Some(Status::Claimed) if as_coder => (record.assigned_to, record.lease_expires),
            Some(Status::ReadyForReview) if as_reviewer && record.reviewing_by.is_some() => {
                (record.reviewing_by, record.review_lease_expires)
            }
            _ => return Err(Refusal::NothingToRelease { task: id.clone() }),
        };
        if let (Some(by), Some(until), false) = (by, until, self.force)
            && lease_is_live(until, tx.now)
        {
            return Err(Refusal::LeaseLive { task: id.clone(), by, until });
        }
        tx.free_agents(by, id, AgentStatus::Idle)?;
        if record.status == Some(Status::ReadyForReview) {
            record.reviewing_by = None;
            record.review_lease_expires = None;
            record.review_head = None;
            record.review_moves = None;
            record.review_phase = None;
        } else {
            make_unclaimed(tx, id, &mut record)?;
        }
        let event = tx.event(EventName::Released).with("reason", reason);
        let event = event.with_some("previous", by.map(|by| by.to_string()));
        record.history.get_or_insert_default().push(event);
        tx.log(LogAction::Task(EventName::Released), Some(id), reason);
        let reply = TaskReply { task: id.clone(), status: record.status, worktree: None };
        tx.put_record(id.clone(), record);
        Ok(reply)
    }
}

fn make_unclaimed(tx: &mut Tx<'_>, id: &TaskId, record: &mut TaskRecord) -> Result<(), Refusal> {
    record.clear_status_fields();
    record.status = Some(Status::Unclaimed);
    record.reservation = None;
    record.iteration = None;
    record.handoff_pending = record.handoff_pending.map(|_| false);
    // Notes about work that is gone would mislead the next coder.
    tx.drop_handoff(id)?;
    tx.effect(Effect::RemoveWorktree(id.clone()));
    Ok(())
}
