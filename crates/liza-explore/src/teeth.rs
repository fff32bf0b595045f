//! Broken machines: each breaks one promise, so that the exploration is known to notice.

use std::rc::Rc;

use liza_core::model::{AgentId, Loaded, Role, Status, TaskId, TaskRecord};

use crate::alphabet::{Action, step};
use crate::properties as promise;
use crate::world::{Tooth, World};

/// Each fault with the promise that it breaks.
pub const FAULTS: [(Tooth, &str); 11] = [
    (Tooth::TwoOwners, promise::ONE_OWNER),
    (Tooth::MergesUnapproved, promise::MERGED_IS_APPROVED),
    (Tooth::ForgetsWorktree, promise::CLAIMED_HAS_WORKTREE),
    (Tooth::RevivesAbandoned, promise::TERMINAL_STAYS),
    (Tooth::CountsTooFar, promise::LIMITS_HOLD),
    (Tooth::LeavesWork, promise::WORK_IS_CONSERVED),
    (Tooth::IgnoresBlocked, promise::PLANNER_IS_WOKEN),
    (Tooth::HearsFenced, promise::LATE_IS_REFUSED),
    (Tooth::IgnoresStopFiles, promise::STOP_FILES_HOLD),
    (Tooth::LosesCommit, promise::BOARD_IS_VALID),
    (Tooth::AsksNobody, promise::WAY_OUT),
];

/// The next board, where the fault shows; `None` where the machine does what it should.
pub(crate) fn bite(tooth: Tooth, world: &World, action: &Action) -> Option<World> {
    let sound = || step(world, action).ok();
    match (tooth, action) {
        (Tooth::TwoOwners, Action::ClaimReview(_, task)) => {
            sound().map(|next| with_holder(next, AgentId::new(Role::Coder, 1), task))
        }
        (Tooth::MergesUnapproved, Action::Merge(_, task)) => {
            let submitted = world.state.board.status(task) == Some(Status::ReadyForReview);
            submitted.then(|| edited(world.clone(), task, |record| record.status = Some(Status::Merged)))
        }
        (Tooth::ForgetsWorktree, Action::Claim(_, task)) => {
            let mut next = sound()?;
            next.worktrees.remove(task);
            Some(next)
        }
        (Tooth::RevivesAbandoned, Action::HumanUnblocks(task)) => {
            let ended = world.state.board.status(task) == Some(Status::Abandoned);
            ended.then(|| edited(world.clone(), task, |record| record.status = Some(Status::Unclaimed)))
        }
        (Tooth::CountsTooFar, Action::Claim(_, task)) => {
            sound().map(|next| edited(next, task, |record| record.iteration = Some(9)))
        }
        (Tooth::HearsFenced, Action::LateSubmit(coder, task)) => {
            step(world, &Action::Submit(*coder, task.clone())).ok()
        }
        (Tooth::LosesCommit, Action::Submit(_, task)) => {
            sound().map(|next| edited(next, task, |record| record.review_commit = None))
        }
        _ => None,
    }
}

fn edited(mut world: World, task: &TaskId, change: impl FnOnce(&mut TaskRecord)) -> World {
    let state = Rc::make_mut(&mut world.state);
    let mut record = state.board.body(task).unwrap().record().clone();
    change(&mut record);
    state.board.put(task.clone(), record);
    world
}

fn with_holder(mut world: World, agent: AgentId, task: &TaskId) -> World {
    if let Loaded::Ready(agents) = &mut Rc::make_mut(&mut world.state).board.agents
        && let Some(entry) = agents.get_mut(&agent)
    {
        entry.current_task = Some(task.clone());
    }
    world
}
