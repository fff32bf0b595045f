//! Broken machines: each breaks one promise, so that the exploration is known to notice.

use std::sync::Arc;

use liza_core::model::{AgentId, Approver, Loaded, Role, Status, TaskId, TaskRecord};

use crate::alphabet::{Action, step};
use crate::properties as promise;
use crate::world::{Size, Tooth, World};

/// A broken machine, the promise that it breaks, and the team in which that shows.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub tooth: Tooth,
    pub promise: &'static str,
    pub size: Size,
    /// As many boards as it needs to show.
    pub boards: usize,
    /// The steps to the first board.
    pub begin: fn(Size) -> Vec<Action>,
}

const SMALL: Size = Size::new(1, 1, 1);
const VALIDATED: Size = Size { validation: true, ..SMALL };

const fn fault(tooth: Tooth, promise: &'static str) -> Fault {
    Fault { tooth, promise, size: SMALL, boards: 700, begin: |_| Vec::new() }
}

/// The first task is approved and its merge waits for the person; the second one waits for its review.
fn held_merge_before_a_review(size: Size) -> Vec<Action> {
    let (coder, reviewer) = (AgentId::new(Role::Coder, 1), AgentId::new(Role::CodeReviewer, 1));
    let submitted = |task: &TaskId| {
        [
            Action::Reserve(coder, task.clone()),
            Action::Claim(coder, task.clone()),
            Action::Submit(coder, task.clone()),
        ]
    };
    let tasks: Vec<TaskId> = size.task_ids().collect();
    let judged = tasks.first().into_iter().flat_map(|task| {
        let approved = [Action::ClaimReview(reviewer, task.clone()), Action::Approve(reviewer, task.clone())];
        submitted(task).into_iter().chain(approved).chain([Action::HoldMerge(reviewer, task.clone())])
    });
    judged.chain(tasks.iter().skip(1).flat_map(submitted)).collect()
}

pub const FAULTS: [Fault; 15] = [
    fault(Tooth::TwoOwners, promise::ONE_OWNER),
    fault(Tooth::MergesUnapproved, promise::MERGED_IS_APPROVED),
    Fault { size: VALIDATED, boards: 1_000, ..fault(Tooth::IgnoresValidation, promise::MERGED_IS_VERIFIED) },
    fault(Tooth::ForgetsWorktree, promise::CLAIMED_HAS_WORKTREE),
    fault(Tooth::RevivesAbandoned, promise::TERMINAL_STAYS),
    fault(Tooth::CountsTooFar, promise::LIMITS_HOLD),
    fault(Tooth::LeavesWork, promise::WORK_IS_CONSERVED),
    Fault {
        size: Size::new(2, 1, 1),
        begin: held_merge_before_a_review,
        ..fault(Tooth::FirstMergeOnly, promise::WORK_IS_CONSERVED)
    },
    Fault {
        size: Size { loses_records: true, ..SMALL },
        boards: 1_500,
        ..fault(Tooth::ForgetsLostMerge, promise::MERGED_ONCE)
    },
    fault(Tooth::IgnoresBlocked, promise::PLANNER_IS_WOKEN),
    fault(Tooth::HearsFenced, promise::LATE_IS_REFUSED),
    fault(Tooth::IgnoresStopFiles, promise::STOP_FILES_HOLD),
    fault(Tooth::LosesCommit, promise::BOARD_IS_VALID),
    fault(Tooth::ForgetsExits, promise::SESSIONS_END),
    fault(Tooth::AsksNobody, promise::WAY_OUT),
];

impl Fault {
    /// The first board of the broken machine.
    pub fn world(&self) -> World {
        let first = World { tooth: Some(self.tooth), ..World::new(self.size) };
        (self.begin)(self.size).iter().fold(first, |world, action| step(&world, action).unwrap())
    }
}

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
        (Tooth::IgnoresValidation, Action::HumanApproves(task)) => {
            // A person's word counts as that of a reviewer, who would have needed green commands.
            let reviewer = Approver::Agent(AgentId::new(Role::CodeReviewer, 1));
            sound().map(|next| edited(next, task, |record| record.approved_by = Some(reviewer)))
        }
        (Tooth::ForgetsExits, Action::Idle(_, task) | Action::Crash(_, task)) => {
            sound().map(|next| without_count(next, task))
        }
        (Tooth::LosesCommit, Action::Submit(_, task)) => {
            sound().map(|next| edited(next, task, |record| record.review_commit = None))
        }
        _ => None,
    }
}

fn edited(mut world: World, task: &TaskId, change: impl FnOnce(&mut TaskRecord)) -> World {
    let state = Arc::make_mut(&mut world.state);
    let mut record = state.board.body(task).unwrap().record().clone();
    change(&mut record);
    state.board.put(task.clone(), record);
    world
}

/// The session that has just ended was never counted.
fn without_count(mut world: World, task: &TaskId) -> World {
    if let Loaded::Ready(sprint) = &mut Arc::make_mut(&mut world.state).board.sprint {
        sprint.sessions.tasks.shift_remove(task);
    }
    edited(world, task, |record| {
        (record.crashes, record.idle_exits, record.iteration) = (None, None, None);
    })
}

fn with_holder(mut world: World, agent: AgentId, task: &TaskId) -> World {
    if let Loaded::Ready(agents) = &mut Arc::make_mut(&mut world.state).board.agents
        && let Some(entry) = agents.get_mut(&agent)
    {
        entry.current_task = Some(task.clone());
    }
    world
}
