//! The rules for stopping a running session, gently or by force.

use crate::model::{
    AgentId, ClientFault, Config, FaultKind, Generation, Role, Seconds, State, StopFiles, TaskId, TaskRecord,
    TaskStatus, Timestamp, lease_is_live,
};
use crate::rules::impact::has_approved;

/// The time from SIGTERM to SIGKILL.
const KILL_AFTER: Seconds = Seconds(10);
/// The interval at which a killed session that has not ended is looked at.
const CHECK_KILLED: Seconds = Seconds(1);
/// A supervisor that cannot renew stops its agent this long before the lease ends, at most.
const LEASE_MARGIN: Seconds = Seconds(15);

/// The last part of a lease, in which it counts as ending: a third of a short one, to leave time to renew it.
fn lease_margin(lease: Seconds) -> Seconds {
    Seconds(LEASE_MARGIN.0.min(lease.0 / 3))
}

/// True if a session may start under a lease: it does not end before it can be renewed.
pub fn can_be_renewed(expires: Timestamp, lease: Seconds, now: Timestamp) -> bool {
    now < expires - lease_margin(lease) && lease_is_live(expires, now)
}

/// The interval of renewals, so that the shortest lease does not end in between.
pub fn renewal_interval(config: &Config, shortest: Seconds) -> Seconds {
    Seconds(config.heartbeat_interval.0.min(shortest.0 / 3).max(1))
}

/// The visible facts of a running session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionFacts {
    pub started: Timestamp,
    /// The end of its lease, as last renewed.
    pub lease_expires: Timestamp,
    /// The length of its lease after each renewal.
    pub lease: Seconds,
    /// The time since its start in which nothing ran, and the part of it since the last renewal.
    pub frozen: (Seconds, Seconds),
    pub owns_task: bool,
    /// True if it has nothing left to do, because it no longer holds its task.
    pub is_done: bool,
    pub stop_files: StopFiles,
    /// The end of its supervisor, if that is due.
    pub shutdown: Option<Shutdown>,
    /// True if its client reports that it cannot work now.
    pub client_failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Sessions get time to end.
    Graceful,
    Immediate,
}

/// The reason that a session has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    Abort,
    /// PAUSE or CHECKPOINT, and its grace has passed.
    Halt,
    /// Another agent has its task.
    TaskLost,
    /// Its lease is about to end and could not be renewed.
    LeaseEnding,
    OverTime,
    /// It has a result and does not end by itself.
    Done,
    /// Its client cannot work now, although it goes on trying.
    ClientFault,
    Shutdown,
}

/// True if an error of the client ends the session: trying again does not help, or not soon.
pub fn stops_session(fault: &ClientFault) -> bool {
    match fault.kind {
        FaultKind::Auth => true,
        FaultKind::Quota => fault.reset.is_some(),
        FaultKind::Overloaded
        | FaultKind::ContextFull
        | FaultKind::PermissionDenied
        | FaultKind::Refused
        | FaultKind::Crashed => false,
    }
}

/// The progress of a session towards its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionPhase {
    /// It has work to do.
    #[default]
    Working,
    /// It should end by itself: it has a result, or PAUSE or CHECKPOINT is present.
    Ending {
        cause: StopCause,
        since: Timestamp,
    },
    Terminating {
        cause: StopCause,
        since: Timestamp,
    },
    Killed {
        cause: StopCause,
    },
}

/// The next action on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionStep {
    pub phase: SessionPhase,
    /// The latest time to look at it again.
    pub check_again: Timestamp,
}

impl SessionPhase {
    /// `None` unless the supervisor ends the session.
    pub fn stop_cause(self) -> Option<StopCause> {
        match self {
            SessionPhase::Working | SessionPhase::Ending { .. } => None,
            SessionPhase::Terminating { cause, .. } | SessionPhase::Killed { cause } => Some(cause),
        }
    }

    /// Decides if the session has to end, and by which signal.
    #[must_use]
    pub fn advance(self, facts: &SessionFacts, config: &Config, now: Timestamp) -> SessionStep {
        // By the clock of the session, which rests while nothing runs.
        let (frozen, unrenewed) = facts.frozen;
        let facts = &SessionFacts { lease_expires: facts.lease_expires + unrenewed - frozen, ..*facts };
        let now = now - frozen;
        let phase = match self {
            SessionPhase::Killed { .. } => self,
            SessionPhase::Terminating { cause, since } => {
                let immediate = facts.shutdown == Some(Shutdown::Immediate);
                if immediate || now >= since + KILL_AFTER { SessionPhase::Killed { cause } } else { self }
            }
            SessionPhase::Working | SessionPhase::Ending { .. } => self.stop_or_wait(facts, config, now),
        };
        SessionStep { phase, check_again: phase.next_check(facts, config, now) + frozen }
    }

    fn stop_or_wait(self, facts: &SessionFacts, config: &Config, now: Timestamp) -> Self {
        if facts.shutdown == Some(Shutdown::Immediate) {
            return SessionPhase::Killed { cause: StopCause::Shutdown };
        }
        let waiting = self.ending(facts, now);
        let due = waiting.deadlines(facts, config).into_iter().find(|(_, time)| *time <= now);
        match due {
            Some((cause, _)) => SessionPhase::Terminating { cause, since: now },
            None => waiting,
        }
    }

    /// Working, or ending since it first had a reason to.
    fn ending(self, facts: &SessionFacts, now: Timestamp) -> Self {
        let halted = facts.stop_files.pause || facts.stop_files.checkpoint;
        let applies = |cause| match cause {
            StopCause::Done => facts.is_done,
            StopCause::Halt => halted,
            StopCause::Abort
            | StopCause::TaskLost
            | StopCause::LeaseEnding
            | StopCause::OverTime
            | StopCause::ClientFault
            | StopCause::Shutdown => false,
        };
        match self {
            SessionPhase::Ending { cause, .. } if applies(cause) => self,
            SessionPhase::Working
            | SessionPhase::Ending { .. }
            | SessionPhase::Terminating { .. }
            | SessionPhase::Killed { .. } => [StopCause::Done, StopCause::Halt]
                .into_iter()
                .find(|cause| applies(*cause))
                .map_or(SessionPhase::Working, |cause| SessionPhase::Ending { cause, since: now }),
        }
    }

    /// The due time of each reason to stop it, the strongest first.
    fn deadlines(self, facts: &SessionFacts, config: &Config) -> Vec<(StopCause, Timestamp)> {
        let mut due = Vec::new();
        let at_once = |applies: bool, cause| applies.then_some((cause, facts.started));
        due.extend(at_once(facts.stop_files.abort, StopCause::Abort));
        due.extend(at_once(!facts.owns_task, StopCause::TaskLost));
        due.push((StopCause::LeaseEnding, facts.lease_expires - lease_margin(facts.lease)));
        if let SessionPhase::Ending { cause, since } = self {
            due.push((cause, since + config.stop_grace));
        }
        due.push((StopCause::OverTime, facts.started + config.session_limit));
        due.extend(at_once(facts.client_failed, StopCause::ClientFault));
        due.extend(at_once(facts.shutdown.is_some(), StopCause::Shutdown));
        due
    }

    fn next_check(self, facts: &SessionFacts, config: &Config, now: Timestamp) -> Timestamp {
        match self {
            SessionPhase::Working | SessionPhase::Ending { .. } => {
                self.deadlines(facts, config).into_iter().map(|(_, time)| time).min().unwrap_or(now)
            }
            SessionPhase::Terminating { since, .. } => since + KILL_AFTER,
            SessionPhase::Killed { .. } => now + CHECK_KILLED,
        }
    }
}

/// A supervisor that looks so much later than it meant to is only slow.
const TOLERANCE: Seconds = Seconds(20);

/// The time between two looks of a supervisor in which nothing ran: the machine was suspended (the running
/// time `ran` stands still), or its processes were stopped (the pause is longer than the one `intended`).
/// Leases look expired then, and have to be renewed before anything is judged by them.
pub fn frozen_time(passed: Seconds, ran: Seconds, intended: Seconds) -> Seconds {
    let frozen = passed.0.saturating_sub(ran.0.min(intended.0));
    Seconds(if frozen > TOLERANCE.0 { frozen } else { 0 })
}

/// True if the registration of a session is still valid. An unreadable one is not lost.
pub fn still_registered(state: &State, agent: AgentId, generation: Generation) -> bool {
    let Some(agents) = state.board.agents.ready() else { return true };
    agents.get(&agent).is_some_and(|entry| entry.generation == Some(generation))
}

/// True if a session's task is its own, or was finished by it. An unreadable task is not lost.
pub fn still_owns(state: &State, agent: AgentId, task: Option<&TaskId>) -> bool {
    let Some(body) = task.and_then(|task| state.board.body(task).ok()) else { return true };
    let Ok(status) = body.status() else { return true };
    match (agent.role(), status) {
        (Role::Planner, _) => true,
        (_, TaskStatus::Blocked { .. }) => blocked_by(body.record(), agent),
        (Role::CodeReviewer, TaskStatus::ReadyForReview { .. }) => {
            body.record().reviewing_by == Some(agent) || has_approved(body.record(), agent)
        }
        (Role::CodeReviewer, _) => gave_verdict(body.record(), agent),
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

/// True if the last verdict is the reviewer's own; also if there is none. The human may have decided instead.
fn gave_verdict(record: &TaskRecord, reviewer: AgentId) -> bool {
    record.past().last_verdict_by.is_none_or(|by| by == Some(reviewer.to_string().as_str()))
}

/// True if the agent itself, or the rules on its account, blocked the task. A human's override is someone
/// else's, and so is a BLOCKED without an event: a person wrote it into the file.
fn blocked_by(record: &TaskRecord, agent: AgentId) -> bool {
    let own = |name: &str| name == "system" || name == agent.to_string();
    record.past().block_since_start.and_then(|block| block.by).is_some_and(own)
}

/// True if a session has nothing left to do: it no longer holds its task or review, or it has handed off. A
/// planner has no task whose status would show it. An unreadable task is not done.
pub fn is_done(state: &State, agent: AgentId, task: Option<&TaskId>) -> bool {
    let Some(body) = task.and_then(|task| state.board.body(task).ok()) else { return false };
    let Ok(status) = body.status() else { return false };
    !status.is_held_by(agent) || body.record().handoff_pending == Some(true)
}
