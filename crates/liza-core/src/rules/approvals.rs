//! The condition for merging an APPROVED task: an approval of exactly its commit.
//!
//! A person can write the status into the file; that is no approval.

use crate::model::{
    AgentId, EventName, HistoryEvent, PriorWork, Role, Sha, Status, TaskBody, TaskId, TaskRecord, Worktree,
};

/// The key of an approval that is not enough: the number of those that are needed.
pub const FIRST_OF: &str = "first_of";

/// The last approval, if it is of exactly the commit under review and not by the task's coder.
pub fn find_approval(record: &TaskRecord) -> Option<&HistoryEvent> {
    let commit = record.review_commit.as_ref()?;
    let coder = record.assigned_to.map(|coder| coder.to_string());
    let approval = record.last_event(EventName::Approved)?;
    let same = approval.text("commit").is_some_and(|approved| approved == commit.as_str());
    let other = approval.agent.is_some() && approval.agent != coder;
    // A rejection after it takes it back.
    let mut later = record.events().rev().take_while(|event| !event.is(EventName::Approved));
    let is_enough = !approval.more.contains_key(FIRST_OF);
    let is_valid = is_enough && same && other && !later.any(|event| event.is(EventName::Rejected));
    is_valid.then_some(approval)
}

/// True if the task is APPROVED by its status alone: it is not merged before a person has decided.
pub fn lacks_approval(record: &TaskRecord) -> bool {
    record.status == Some(Status::Approved) && find_approval(record).is_none()
}

/// The work of an APPROVED task whose record lacks only the commit or the coder: a person's verdict or block
/// leads out of it. `None` if the record is complete, or lacks something else.
pub fn incomplete_approval(id: &TaskId, body: &TaskBody) -> Option<PriorWork> {
    let record = body.record();
    if body.status().is_ok() || record.status != Some(Status::Approved) || !body.faults().is_empty() {
        return None;
    }
    let mut complete = record.clone();
    complete.review_commit = complete.review_commit.or_else(|| "0".repeat(40).parse::<Sha>().ok());
    complete.assigned_to = complete.assigned_to.or(Some(AgentId::new(Role::Coder, 1)));
    complete.worktree = complete.worktree.or_else(|| Some(Worktree::of(id)));
    TaskBody::new(complete, Vec::new()).status().ok()?;
    let last_coder = || record.events().rev().find(|event| event.is_claim())?.agent.as_deref()?.parse().ok();
    let coder = record.assigned_to.or_else(last_coder);
    let worktree = record.worktree.clone().or_else(|| coder.map(|_| Worktree::of(id)));
    Some(PriorWork { coder, worktree, base: record.base_commit.clone() })
}
