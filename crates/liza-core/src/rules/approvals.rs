//! The condition for merging an APPROVED task: an approval of exactly its commit.
//!
//! A person can write APPROVED or MERGED into the file; that is neither an approval nor a merge.

use crate::model::{AgentId, PriorWork, Role, Sha, Status, TaskBody, TaskId, TaskRecord, Worktree};

/// True if the last approval is of exactly the commit under review and not by the task's coder. A rejection after it
/// takes it back.
pub fn has_approval(record: &TaskRecord) -> bool {
    let coder = record.assigned_to.map(|coder| coder.to_string());
    let is_valid = |commit: &Sha| {
        let approval = record.past().approval?;
        let is_same = approval.commit.as_deref() == Some(commit.as_str());
        Some(is_same && approval.by.is_some() && approval.by != coder.as_deref())
    };
    record.review_commit.as_ref().and_then(is_valid).unwrap_or(false)
}

/// True if the task is APPROVED or MERGED by its status alone: a person has to decide. Each merge leaves its commit or
/// its event, also in files of the original system.
pub fn lacks_approval(record: &TaskRecord) -> bool {
    match record.status {
        Some(Status::Approved) => !has_approval(record),
        Some(Status::Merged) => record.merge_commit.is_none() && !record.past().is_merged,
        Some(_) | None => false,
    }
}

/// The work of a task that is MERGED by its status alone, or of an APPROVED one whose record lacks only the commit or
/// the coder: a person's verdict or block leads out of it. `None` if the record is complete, or lacks something else.
pub fn incomplete_approval(id: &TaskId, body: &TaskBody) -> Option<PriorWork> {
    let record = body.record();
    let lacks_parts = match record.status {
        Some(Status::Merged) => lacks_approval(record),
        Some(Status::Approved) => body.status().is_err(),
        Some(_) | None => false,
    };
    if !lacks_parts || !body.faults().is_empty() {
        return None;
    }
    let mut complete = record.clone();
    complete.review_commit = complete.review_commit.or_else(|| "0".repeat(40).parse::<Sha>().ok());
    complete.assigned_to = complete.assigned_to.or(Some(AgentId::new(Role::Coder, 1)));
    complete.worktree = complete.worktree.or_else(|| Some(Worktree::of(id)));
    TaskBody::new(complete, Vec::new()).status().ok()?;
    let last_coder = || record.past().last_coder?.parse().ok();
    let coder = record.assigned_to.or_else(last_coder);
    let worktree = record.worktree.clone().or_else(|| coder.map(|_| Worktree::of(id)));
    Some(PriorWork { coder, worktree, base: record.base_commit.clone() })
}
