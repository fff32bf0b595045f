//! When a running session has to be stopped, and how hard.

use crate::model::{
    AgentId, Config, EventName, Generation, HistoryEvent, Role, Seconds, State, StopFiles, TaskId,
    TaskRecord, TaskStatus, Timestamp,
};

/// How long after SIGTERM the rest is killed.
const KILL_AFTER: Seconds = Seconds(10);
/// A supervisor that cannot renew stops its agent this long before the lease ends.
const LEASE_MARGIN: Seconds = Seconds(15);

/// A running session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningSession {
    /// When it began.
    pub started: Timestamp,
    /// Until when its lease runs, as last renewed.
    pub lease_expires: Timestamp,
    /// Whether its task is still its own.
    pub owns_task: bool,
    /// Since when it has nothing left to do, because it no longer holds its task.
    pub done_since: Option<Timestamp>,
    /// Since when PAUSE or CHECKPOINT is present.
    pub halted_since: Option<Timestamp>,
    /// When it was asked to end.
    pub terminated_at: Option<Timestamp>,
}

/// Why it has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// ABORT.
    Abort,
    /// PAUSE or CHECKPOINT, and its grace has passed.
    Halt,
    /// Another agent has its task.
    TaskLost,
    /// Its lease is about to end and could not be renewed.
    LeaseEnding,
    /// It has run too long.
    OverTime,
    /// It has a result and does not end by itself.
    Done,
}

/// What to do to it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopStep {
    /// Nothing; look again then at the latest.
    Leave(Timestamp),
    /// Ask every process of it to end.
    Terminate(StopCause),
    /// End every process of it.
    Kill,
}

/// Decides whether a running session has to end.
pub fn stop_step(
    running: &RunningSession,
    stop_files: StopFiles,
    config: &Config,
    now: Timestamp,
) -> StopStep {
    if let Some(asked) = running.terminated_at {
        let deadline = asked + KILL_AFTER;
        return if now >= deadline { StopStep::Kill } else { StopStep::Leave(deadline) };
    }
    let due = [
        (StopCause::Abort, stop_files.abort.then_some(now)),
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

/// Whether the registration is still valid under which a session was started. What cannot be read is not lost.
pub fn still_registered(state: &State, agent: AgentId, generation: Generation) -> bool {
    let Some(agents) = state.board.agents.ready() else { return true };
    agents.get(&agent).is_some_and(|entry| entry.generation == Some(generation))
}

/// Whether a session's task is its own, or was finished by it; false once someone else took it away. What cannot be
/// read is not lost.
pub fn still_owns(state: &State, agent: AgentId, task: Option<&TaskId>) -> bool {
    let Some(body) = task.and_then(|task| state.board.body(task).ok()) else { return true };
    let Ok(status) = body.status() else { return true };
    match (agent.role(), status) {
        (Role::Planner, _) => true,
        (_, TaskStatus::Blocked { .. }) => blocked_by(body.record(), agent),
        (Role::CodeReviewer, TaskStatus::ReadyForReview { .. }) => body.record().reviewing_by == Some(agent),
        (Role::CodeReviewer, _) => true,
        (
            Role::Coder,
            TaskStatus::Unclaimed { .. }
            | TaskStatus::Draft
            | TaskStatus::Abandoned
            | TaskStatus::Superseded { .. },
        ) => false,
        (Role::Coder, TaskStatus::Merged { .. }) => body.record().assigned_to == Some(agent),
        (
            Role::Coder,
            TaskStatus::Claimed { work, .. }
            | TaskStatus::ReadyForReview { work, .. }
            | TaskStatus::Rejected { work, .. }
            | TaskStatus::Approved { work, .. }
            | TaskStatus::IntegrationFailed { work, .. },
        ) => work.coder == agent,
    }
}

/// Whether the agent itself, or the rules on its account, blocked the task. A human's override is someone else's, and
/// so is a BLOCKED without an event of its own: a person wrote it into the file.
fn blocked_by(record: &TaskRecord, agent: AgentId) -> bool {
    let started = |event: &HistoryEvent| event.is_claim() || event.is(EventName::Resumed);
    let mut since = record.events().rev().take_while(|event| !started(event));
    let block = since.find(|event| event.is(EventName::Blocked));
    let own = |name: &str| name == "system" || name == agent.to_string();
    block.and_then(|event| event.agent.as_deref()).is_some_and(own)
}

/// Whether a session has nothing left to do: it no longer holds its task or review, or it has handed off. A planner has
/// no task whose status would show it. What cannot be read is not done.
pub fn is_done(state: &State, agent: AgentId, task: Option<&TaskId>) -> bool {
    let Some(body) = task.and_then(|task| state.board.body(task).ok()) else { return false };
    let Ok(status) = body.status() else { return false };
    !status.is_held_by(agent) || body.record().handoff_pending == Some(true)
}
