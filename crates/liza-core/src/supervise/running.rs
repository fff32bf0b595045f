//! When a running session has to be stopped, and how hard.

use crate::agent::Role;
use crate::board::State;
use crate::command::Halt;
use crate::config::Config;
use crate::event::{EventName, HistoryEvent};
use crate::ids::{AgentId, Generation, TaskId};
use crate::record::{Status, TaskRecord};
use crate::time::{Seconds, Timestamp};

/// How long after SIGTERM the rest is killed.
const KILL_AFTER: Seconds = Seconds(10);
/// A supervisor that cannot renew stops its agent this long before the lease ends.
const LEASE_MARGIN: Seconds = Seconds(15);

/// A session that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// When it began.
    pub started: Timestamp,
    /// Until when its lease runs, as last renewed.
    pub lease_expires: Timestamp,
    /// Whether what it works on is still its own.
    pub owns_task: bool,
    /// Since when there is nothing left for it to do: what it worked on has left its hands.
    pub done_since: Option<Timestamp>,
    /// Since when PAUSE or CHECKPOINT stands.
    pub halted_since: Option<Timestamp>,
    /// When it was asked to end.
    pub terminated_at: Option<Timestamp>,
}

/// Why it has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// ABORT.
    Abort,
    /// PAUSE or CHECKPOINT, and its grace is over.
    Halt,
    /// Somebody else has its task.
    TaskLost,
    /// Its lease is about to end and could not be renewed.
    LeaseEnding,
    /// It has run too long.
    OverTime,
    /// What it was for is done, and it does not end by itself.
    Done,
}

/// What to do to it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopStep {
    /// Nothing; look again at that time at the latest.
    Leave(Timestamp),
    /// Ask every process of it to end.
    Terminate(StopCause),
    /// End every process of it.
    Kill,
}

/// Decides whether a running session has to end.
pub fn stop_step(running: &Running, halt: Halt, config: &Config, now: Timestamp) -> StopStep {
    if let Some(asked) = running.terminated_at {
        let deadline = asked + KILL_AFTER;
        return if now >= deadline { StopStep::Kill } else { StopStep::Leave(deadline) };
    }
    let due = [
        (StopCause::Abort, halt.abort.then_some(now)),
        (StopCause::TaskLost, (!running.owns_task).then_some(now)),
        (StopCause::LeaseEnding, Some(running.lease_expires - LEASE_MARGIN)),
        (StopCause::Done, running.done_since.map(|since| since + config.stop_grace)),
        (StopCause::Halt, running.halted_since.map(|since| since + config.stop_grace)),
        (StopCause::OverTime, Some(running.started + config.session_limit)),
    ];
    let due: Vec<(StopCause, Timestamp)> =
        due.into_iter().filter_map(|(cause, time)| Some((cause, time?))).collect();
    match due.iter().find(|(_, time)| *time <= now) {
        Some((cause, _)) => StopStep::Terminate(*cause),
        None => StopStep::Leave(due.iter().map(|(_, time)| *time).min().unwrap_or(now)),
    }
}

/// Whether the registration still stands under which a session was started. What cannot be read is not lost.
pub fn still_registered(state: &State, agent: AgentId, generation: Generation) -> bool {
    let Some(agents) = state.board.agents.ready() else { return true };
    agents.get(&agent).is_some_and(|entry| entry.generation == Some(generation))
}

/// Whether a session's task is its own, or has left its hands by its own doing; false once somebody else took it
/// away. What cannot be read is not lost.
pub fn still_owns(state: &State, agent: AgentId, task: Option<&TaskId>) -> bool {
    let Some(body) = task.and_then(|task| state.board.body(task).ok()) else { return true };
    let record = &body.record;
    match (agent.role(), record.status) {
        (Role::Planner, _) | (_, None) => true,
        (Role::Coder | Role::CodeReviewer, Some(Status::Blocked)) => blocked_by(record, agent),
        (Role::CodeReviewer, Some(Status::ReadyForReview)) => record.reviewing_by == Some(agent),
        (
            Role::CodeReviewer,
            Some(
                Status::Draft
                | Status::Unclaimed
                | Status::Claimed
                | Status::Approved
                | Status::Rejected
                | Status::Merged
                | Status::IntegrationFailed
                | Status::Abandoned
                | Status::Superseded,
            ),
        ) => true,
        (Role::Coder, Some(Status::Unclaimed | Status::Draft | Status::Abandoned | Status::Superseded)) => {
            false
        }
        (
            Role::Coder,
            Some(
                Status::Claimed
                | Status::ReadyForReview
                | Status::Approved
                | Status::Rejected
                | Status::Merged
                | Status::IntegrationFailed,
            ),
        ) => record.assigned_to == Some(agent),
    }
}

/// Whether the agent itself, or the rules on its account, blocked the task. A human's override is somebody else's, and
/// so is a BLOCKED without an event of its own: a person has written it into the file.
fn blocked_by(record: &TaskRecord, agent: AgentId) -> bool {
    let begun = |event: &HistoryEvent| EventName::is_claim(&event.event) || event.is(EventName::Resumed);
    let mut since = record.history.iter().flatten().rev().take_while(|event| !begun(event));
    let block = since.find(|event| event.is(EventName::Blocked));
    let own = |name: &str| name == "system" || name == agent.to_string();
    block.and_then(|event| event.agent.as_deref()).is_some_and(own)
}

/// Whether a session has nothing left to do: its task or review has left its hands, or it has handed over. A planner
/// has no task whose state would tell. What cannot be read is not done.
pub fn is_done(state: &State, agent: AgentId, task: Option<&TaskId>) -> bool {
    let Some(Ok(task)) = task.map(|task| state.board.task(task)) else { return false };
    !task.status.is_held_by(agent) || task.record.handoff_pending == Some(true)
}
