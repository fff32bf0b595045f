//! What a person writes into the file by hand, one field at a time.

use std::sync::Arc;

use liza_core::model::{AgentId, Role, Seconds, Status, TaskId, Worktree};

use crate::world::{LEASE, World};

/// A lease that no run comes to the end of.
const ENDLESS: Seconds = Seconds(100 * 365 * 86_400);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    Approved,
    Claimed,
    Unclaimed,
    Merged,
    Blocked,
    NoCoder,
    OtherCoder,
    EndlessLease,
    NoCommit,
    ManyIterations,
    NoReviewer,
    /// The folder of the worktree is deleted.
    NoWorktree,
}

impl Edit {
    pub const ALL: [Edit; 12] = [
        Edit::Approved,
        Edit::Claimed,
        Edit::Unclaimed,
        Edit::Merged,
        Edit::Blocked,
        Edit::NoCoder,
        Edit::OtherCoder,
        Edit::EndlessLease,
        Edit::NoCommit,
        Edit::ManyIterations,
        Edit::NoReviewer,
        Edit::NoWorktree,
    ];

    /// Writes it into the file, past all rules.
    pub fn write(self, world: &mut World, task: &TaskId) {
        if self == Edit::NoWorktree {
            world.worktrees.remove(task);
            return;
        }
        let (coder, lease) = (AgentId::new(Role::Coder, 1), world.now + LEASE);
        let board = &mut Arc::make_mut(&mut world.state).board;
        let Ok(mut record) = board.body(task).map(|body| body.record().clone()) else { return };
        match self {
            Edit::Approved => record.status = Some(Status::Approved),
            Edit::Claimed => {
                record.status = Some(Status::Claimed);
                (record.assigned_to, record.lease_expires) = (Some(coder), Some(lease));
                record.worktree = Some(Worktree::of(task));
            }
            Edit::Unclaimed => record.status = Some(Status::Unclaimed),
            Edit::Merged => record.status = Some(Status::Merged),
            Edit::Blocked => record.status = Some(Status::Blocked),
            Edit::NoCoder => record.assigned_to = None,
            Edit::OtherCoder => record.assigned_to = Some(AgentId::new(Role::Coder, 9)),
            Edit::EndlessLease => record.lease_expires = Some(lease + ENDLESS),
            Edit::NoCommit => record.review_commit = None,
            Edit::ManyIterations => record.iteration = Some(99),
            Edit::NoReviewer => record.reviewing_by = None,
            Edit::NoWorktree => {}
        }
        board.put(task.clone(), record);
    }
}
