//! When a running session has to be stopped, and how hard.

use crate::command::Halt;
use crate::config::Config;
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
