//! Everything that a team waits for, as one type.

use liza_core::model::{TaskId, Timestamp};
use liza_core::supervise::{AfterSession, WorkKind};

use super::error::SupervisorError;
use super::helper_protocol::HelperReport;
use super::message::{MessageLevel, TeamMessage};
use super::session::Session;

/// An agent's place in the team.
pub(super) type MemberIndex = usize;

#[derive(Debug)]
pub(super) enum Event {
    /// The blackboard or a stop file may have changed.
    Changed,
    Session(MemberIndex, HelperReport),
    /// Others were faster to claim these tasks, and the agent went on to another one.
    ClaimsLost(MemberIndex, Vec<FailedClaim>),
    /// A background job has ended.
    JobDone(MemberIndex, Result<JobOutcome, SupervisorError>),
    /// The leases were renewed, or could not be.
    LeasesRenewed(Result<(), SupervisorError>),
    /// An observer has something to report.
    Observed(Vec<TeamMessage>),
    Timer,
    /// A person or the system asks the supervisor to end.
    Signal {
        /// Whether it was Ctrl-C in the terminal.
        interrupt: bool,
    },
}

/// A task that an agent could not claim: another one was faster, or the task has changed.
#[derive(Debug)]
pub(super) struct FailedClaim {
    pub kind: WorkKind,
    pub task: TaskId,
    pub why: String,
}

/// The outcome of a background job.
#[derive(Debug)]
pub(super) enum JobOutcome {
    /// The agent can start to work; what was repaired before.
    Ready(Vec<String>),
    /// A merge has ended; the text says how.
    Merged(TaskId, String),
    Started(Box<Session>),
    Judged(SessionVerdict),
    /// The blackboard shows the agent's new status.
    StatusShown,
    /// The agent is deregistered, or the reason why it could not be; its lease then expires.
    Left(Option<SupervisorError>),
}

/// How a session was judged.
#[derive(Debug)]
pub(super) struct SessionVerdict {
    /// Its task; a planner has none.
    pub task: Option<TaskId>,
    pub next: AfterSession,
    /// Why a planner ends that has reached the limit of sessions without a result.
    pub gave_up: Option<SupervisorError>,
    /// Whether the notes say what happens next.
    pub is_reported: bool,
    /// What the session achieved, and when, if it is known.
    pub result: Option<(Option<Timestamp>, String)>,
    pub notes: Vec<(MessageLevel, String)>,
}
