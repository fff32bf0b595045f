//! What a supervisor does next: pure decisions over the blackboard, the stop files and `now`.
//!
//! The loop that waits, starts and stops processes carries these out; it decides nothing itself.
//! What an agent did is judged from the blackboard first, from its exit code last.

mod running;
mod session;

pub use running::{Running, StopCause, StopStep, is_done, still_owns, still_registered, stop_step};
pub use session::{Ending, GRACEFUL, Next, Session, after_session, backoff};

use crate::agent::Role;
use crate::board::State;
use crate::claimable::{claimable_for, mergeable_for, reviewable_for};
use crate::command::Halt;
use crate::effect::HaltFile;
use crate::goal::GoalStatus;
use crate::ids::{AgentId, TaskId};
use crate::record::Status;
use crate::time::Timestamp;
use crate::trigger::{Trigger, planner_triggers, unseen};

/// What a supervisor sees when it asks what to do.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The blackboard.
    pub state: &'a State,
    /// Whose supervisor.
    pub agent: AgentId,
    /// The stop files.
    pub halt: Halt,
    /// Now.
    pub now: Timestamp,
    /// Since when it has had nothing to do.
    pub idle_since: Timestamp,
    /// Whether it runs inside a team, which waits on where a lone one ends.
    pub in_team: bool,
}

/// Why a supervisor ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// ABORT stands, or the goal was aborted.
    Aborted,
    /// The role has no work now or later.
    RoleComplete,
    /// A lone supervisor has waited long enough.
    WaitedLongEnough,
}

/// Why a supervisor waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// That many drafts wait for the planner.
    Drafts(usize),
    /// There is no goal yet.
    NoGoal,
    /// There is nothing for this role now.
    NoWork,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// End.
    Stop(StopReason),
    /// Go on heartbeating, start nothing, until the file is gone.
    Hold(HaltFile),
    /// Merge what was approved.
    Merge(TaskId),
    /// Claim a task and start a session on it; the first that can be had of these.
    Code(Vec<TaskId>),
    /// Claim a review and start a session on it.
    Review(Vec<TaskId>),
    /// Start a planning session for these triggers.
    Plan(Vec<Trigger>),
    /// Wait for a change of the blackboard, at the latest until then.
    Wait {
        /// Why.
        why: WaitReason,
        /// When to look again by oneself.
        until: Timestamp,
    },
}

/// Decides: ABORT, then PAUSE and CHECKPOINT, then merges, then work, then waiting.
pub fn next_step(situation: &Situation<'_>) -> Step {
    let goal = situation.state.board.goal.ready();
    if situation.halt.abort || goal.is_some_and(|goal| goal.status == GoalStatus::Aborted) {
        return Step::Stop(StopReason::Aborted);
    }
    if situation.halt.checkpoint {
        return Step::Hold(HaltFile::Checkpoint);
    }
    if situation.halt.pause {
        return Step::Hold(HaltFile::Pause);
    }
    work(situation).unwrap_or_else(|| wait_or_stop(situation))
}

fn work(situation: &Situation<'_>) -> Option<Step> {
    let Situation { state, agent, now, .. } = *situation;
    match agent.role() {
        Role::Planner => {
            let seen = state.board.sprint.ready().map(|sprint| sprint.seen_triggers.as_slice());
            let triggers = unseen(&planner_triggers(state, now), seen.unwrap_or_default());
            (!triggers.is_empty()).then_some(Step::Plan(triggers))
        }
        Role::Coder => {
            let tasks = claimable_for(&state.board, agent, now);
            (!tasks.is_empty()).then_some(Step::Code(tasks))
        }
        Role::CodeReviewer => {
            if let Some(task) = mergeable_for(&state.board, agent, now).into_iter().next() {
                return Some(Step::Merge(task));
            }
            let tasks = reviewable_for(&state.board, agent, now);
            (!tasks.is_empty()).then_some(Step::Review(tasks))
        }
    }
}

fn wait_or_stop(situation: &Situation<'_>) -> Step {
    let Situation { state, agent, now, idle_since, in_team, .. } = *situation;
    if role_complete(state, agent.role(), in_team) {
        return Step::Stop(StopReason::RoleComplete);
    }
    let config = state.board.config.ready().cloned().unwrap_or_default();
    if !in_team && agent.role() != Role::Planner && now.since(idle_since) >= config.coder_max_wait {
        return Step::Stop(StopReason::WaitedLongEnough);
    }
    let drafts = state.board.heads().filter(|head| head.is(Status::Draft)).count();
    let no_goal = state.board.goal.ready().is_none_or(|goal| goal.description.trim().is_empty());
    let why = match agent.role() {
        Role::Planner if no_goal => WaitReason::NoGoal,
        Role::Coder | Role::CodeReviewer if drafts > 0 => WaitReason::Drafts(drafts),
        Role::Planner | Role::Coder | Role::CodeReviewer => WaitReason::NoWork,
    };
    Step::Wait { why, until: now + config.coder_poll_interval }
}

/// Whether this role has nothing to do now or later. Inside a team only a decided goal ends it, since the planner may
/// open the next sprint.
pub fn role_complete(state: &State, role: Role, in_team: bool) -> bool {
    let decided = state.board.goal.ready().is_some_and(|goal| goal.status != GoalStatus::InProgress);
    let begun = !state.board.tasks.is_empty();
    let over = state.board.heads().all(|head| head.status.is_some_and(Status::is_terminal));
    match role {
        Role::Planner => decided,
        Role::Coder | Role::CodeReviewer => decided || (!in_team && begun && over),
    }
}
